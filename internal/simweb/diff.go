package simweb

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
)

// Got is the result of a crawl for a URL. [Diff] always compares Outcome, and the other fields unless they are
// zero.
type Got struct {
	Outcome  blobschema.Outcome
	Status   int
	Digest   string // either of Expect's
	Redirect string
}

// GotOf returns the Got of a page record. An unchanged page counts as the page whose digest its record repeats.
// A body that was cut at a time limit has no digest, because its length depends on the crawl. Records of
// robots.txt files do not belong in a Diff.
func GotOf(p blobschema.Page) Got {
	if p.Outcome == blobschema.OutcomeUnchanged {
		p.Outcome, p.Status = blobschema.OutcomeOK, 200
	}
	if p.Truncated == "time" { // the value of WARC-Truncated
		p.Digest = ""
	}
	return Got{Outcome: p.Outcome, Status: int(p.Status), Digest: p.Digest, Redirect: p.Redirect}
}

const diffLines = 20 // of each kind of difference

// Diff describes the differences between a crawl and the truth: missing, extra and different URLs. It counts
// each kind and names the first ones. It returns "" if nothing differs.
func Diff(t Truth, got map[string]Got) string {
	var missing, extra, different []string
	for _, url := range t.Reachable() {
		e := t.Pages[url]
		g, ok := got[url]
		switch {
		case !ok && e.Optional:
			continue
		case !ok:
			missing = append(missing, fmt.Sprintf("%s (%s, outcome %d, status %d, depth %d)", url, e.Kind, e.Outcome, e.Status, e.Depth))
			continue
		}
		if d := e.differs(g); d != "" {
			different = append(different, fmt.Sprintf("%s (%s): %s", url, e.Kind, d))
		}
	}
	for _, url := range slices.Sorted(maps.Keys(got)) {
		if _, ok := t.Pages[url]; !ok {
			extra = append(extra, fmt.Sprintf("%s (outcome %d, status %d)", url, got[url].Outcome, got[url].Status))
		}
	}
	var b strings.Builder
	for _, part := range []struct {
		name  string
		lines []string
	}{{"missing", missing}, {"extra", extra}, {"different", different}} {
		if len(part.lines) == 0 {
			continue
		}
		fmt.Fprintf(&b, "%d %s (of %d expected, %d got):\n", len(part.lines), part.name, len(t.Pages), len(got))
		for i, l := range part.lines {
			if i == diffLines {
				fmt.Fprintf(&b, "  ... and %d more\n", len(part.lines)-i)
				break
			}
			fmt.Fprintf(&b, "  %s\n", l)
		}
	}
	return b.String()
}

func (e Expect) differs(g Got) string {
	var d []string
	if g.Outcome != e.Outcome && (e.Or == 0 || g.Outcome != e.Or) {
		d = append(d, fmt.Sprintf("outcome %d, expected %d", g.Outcome, e.Outcome))
	}
	if g.Status != 0 && g.Status != e.Status {
		d = append(d, fmt.Sprintf("status %d, expected %d", g.Status, e.Status))
	}
	if g.Digest != "" && e.Digest != "" && g.Digest != e.Digest && g.Digest != e.Encoded {
		d = append(d, fmt.Sprintf("digest %s, expected %s", g.Digest, e.Digest))
	}
	if g.Redirect != "" && g.Redirect != e.Redirect {
		d = append(d, fmt.Sprintf("redirect to %s, expected %q", g.Redirect, e.Redirect))
	}
	return strings.Join(d, "; ")
}
