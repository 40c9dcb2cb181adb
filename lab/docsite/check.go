package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
)

// storing says how an answer must be stored.
type storing uint8

const (
	anyhow  storing = iota // two files may be equal, and the second a revisit of the first
	anew                   // as a response record
	revisit                // as a reference to an earlier one
)

// A want is what a phase must bring for a URL.
type want struct {
	status  int
	file    string // that the payload must equal; "" for none
	storing storing
}

// outcome is what a page record must say beside the status.
func (w want) outcome() blobschema.Outcome {
	switch w.status {
	case http.StatusOK:
		return blobschema.OutcomeOK
	case http.StatusMovedPermanently:
		return blobschema.OutcomeRedirect
	case http.StatusNotModified:
		return blobschema.OutcomeUnchanged
	}
	return blobschema.OutcomeClientError
}

// result is what recrawl must say of it.
func (w want) result() string {
	switch {
	case w.status == http.StatusNotFound:
		return "gone"
	case w.status == http.StatusNotModified, w.storing == revisit:
		return "unchanged"
	}
	return "changed"
}

// A check is one thing that was looked at.
type check struct {
	Name  string   `json:"name"`
	Fact  string   `json:"fact"`  // what was seen
	Wrong []string `json:"wrong"` // what should not have been

	missed []string // told, but not wrong as long as it is little
}

func (c *check) wrongf(format string, args ...any) {
	c.Wrong = append(c.Wrong, fmt.Sprintf(format, args...))
}

// checkPages holds the page records of a generation to what is wanted, by key: each has
// one, and there are no others. Records of earlier generations must be as many as before.
func checkPages(pages []blobschema.Page, generation uint32, before int, wants map[string]want) check {
	c := check{Name: "pages"}
	had, statuses := map[string]bool{}, map[int]int{}
	for i := range pages {
		p := &pages[i]
		if p.Robots {
			continue
		}
		if p.Generation < generation {
			before--
			continue
		}
		u, err := url.Parse(p.URL)
		if err != nil {
			c.wrongf("%q is stored as a URL", p.URL)
			continue
		}
		w, ok := wants[key(u)]
		switch {
		case !ok || had[key(u)]:
			c.wrongf("%s: no link leads there, or it has two records; generation %d, %s, status %d", p.URL, p.Generation, p.Outcome, p.Status)
		case p.Generation != generation:
			c.wrongf("%s has generation %d, not %d", p.URL, p.Generation, generation)
		case int(p.Status) != w.status || p.Outcome != w.outcome():
			c.wrongf("%s: %s with status %d, not %s with status %d; %s", p.URL, p.Outcome, p.Status, w.outcome(), w.status, p.Detail)
		case p.Truncated != "":
			c.wrongf("%s is cut: %s", p.URL, p.Truncated)
		case w.storing == anew && p.Original != nil || w.storing == revisit && p.Original == nil:
			c.wrongf("%s: the record is a revisit, or is none and should be", p.URL)
		}
		had[key(u)] = true
		statuses[int(p.Status)]++
	}
	for _, k := range slices.Sorted(maps.Keys(wants)) {
		if !had[k] {
			c.wrongf("%s has no page record; it should have status %d", k, wants[k].status)
		}
	}
	if before != 0 {
		c.wrongf("of the records of earlier generations, %d are missing (or, if negative, are new)", before)
	}
	c.Fact = fmt.Sprintf("%s held to the files; %s", plural(len(had), "page record"), listStatuses(statuses))
	return c
}

// checkBytes reads every answer back by its page record, and compares those of a
// generation with the files. There must be no other records in the archive.
func checkBytes(a *archive, pages []blobschema.Page, generation uint32, wants map[string]want) (check, error) {
	c := check{Name: "bytes"}
	named, compared, revisits := 0, 0, 0
	for i := range pages {
		p := &pages[i]
		if p.WARC == "" {
			continue
		}
		named++
		own, original, what := a.find(p)
		if what != "" {
			c.wrongf("%s, generation %d: %s", p.URL, p.Generation, what)
			continue
		}
		u, err := url.Parse(p.URL)
		if err != nil || p.Generation != generation || wants[key(u)].file == "" {
			continue
		}
		file, err := os.ReadFile(wants[key(u)].file)
		if err != nil {
			return c, err
		}
		compared++
		if own != original {
			revisits++
		}
		if original.payload != sha256.Sum256(file) {
			c.wrongf("%s: the payload is not the file, which has %d bytes", p.URL, len(file))
		}
	}
	if named != len(a.captures) {
		c.wrongf("the archive has %d answers, the page records name %d", len(a.captures), named)
	}
	c.Fact = fmt.Sprintf("%s compared with their files, %d of them by reference to an earlier record", plural(compared, "payload"), revisits)
	return c, nil
}

// checkRequests holds what the server was asked for to what is wanted: each URL once,
// with a condition or without, and nothing else but robots.txt.
func checkRequests(asked []request, wants map[string]want, conditional bool) check {
	c := check{Name: "requests"}
	had, statuses := map[string]int{}, map[int]int{}
	robots, conditions := 0, 0
	for i := range asked {
		r := &asked[i]
		k, err := r.key()
		w, ok := wants[k]
		switch {
		case err == nil && k == "/robots.txt":
			robots++
			continue
		case err != nil || r.Method != http.MethodGet || !ok:
			c.wrongf("%s %q was asked for, status %d", r.Method, r.URI, r.Status)
		case r.Status != w.status:
			c.wrongf("%s was answered with status %d, not %d", r.URI, r.Status, w.status)
		case r.conditional() != conditional:
			c.wrongf("%s was asked for with If-None-Match %q, If-Modified-Since %q", r.URI, r.IfNoneMatch, r.IfModifiedSince)
		}
		if r.conditional() {
			conditions++
		}
		had[k]++
		statuses[r.Status]++
	}
	for _, k := range slices.Sorted(maps.Keys(wants)) {
		if had[k] != 1 {
			c.wrongf("%s was asked for %d times", k, had[k])
		}
	}
	if robots > 1 {
		c.wrongf("robots.txt was asked for %d times", robots)
	}
	c.Fact = fmt.Sprintf("%s, %d of them conditional, %d for robots.txt; %s", plural(len(asked), "request"), conditions, robots, listStatuses(statuses))
	return c
}

// checkSummary compares what the crawler says at its end with what is there, and with what
// the server sent it in phase p. wants are those of what recrawl was given, nil for a crawl.
func checkSummary(sum *summary, a *archive, pages []blobschema.Page, wants map[string]want, p *phase) check {
	c := check{Name: "summary"}
	records := 0
	for i := range pages {
		if !pages[i].Robots {
			records++
		}
	}
	outcomes := int64(0)
	for _, n := range sum.Totals.Outcomes {
		outcomes += n
	}
	switch t := &sum.Totals; {
	case sum.Status != 0 || t.Pending+t.Unexamined+t.Held+t.DeadMail > 0:
		c.wrongf("it did not finish: %s", sum.Reason)
	case outcomes != int64(records):
		c.wrongf("the summary counts %d outcomes, but there are %d page records", outcomes, records)
	case t.Stored != a.bytes:
		c.wrongf("the summary says that %d bytes are stored, the WARC files have %d", t.Stored, a.bytes)
	}
	if p.Received != p.Sent {
		c.wrongf("%d bytes were received, by the server's log %d were sent", p.Received, p.Sent)
	}
	if len(sum.Requested) != len(wants) {
		c.wrongf("it tells of %d URLs, but was given %d", len(sum.Requested), len(wants))
	}
	for _, r := range sum.Requested {
		if u, err := url.Parse(r.URL); err != nil || r.Result != wants[key(u)].result() {
			c.wrongf("of %s it says %q", r.URL, r.Result)
		}
	}
	c.Fact = fmt.Sprintf("%s, %s received and %s in all WARC files, compared with the crawler's own figures", plural(records, "page record"), size(p.Sent), size(a.bytes))
	return c
}

// checkFsck has fsck look at everything.
func checkFsck(ctx context.Context, cr *crawler) (check, error) {
	wrong, err := cr.fsck(ctx)
	return check{Name: "fsck", Fact: "it finds " + plural(len(wrong), "violation"), Wrong: wrong}, err
}

// checkWarcio has another reader verify the WARC files.
func checkWarcio(ctx context.Context, warcio string, a *archive) (check, error) {
	c := check{Name: "warcio", Fact: plural(len(a.files), "file") + " checked"}
	out, err := exec.CommandContext(ctx, warcio, append([]string{"check"}, a.files...)...).CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.Exited() {
		c.wrongf("%v: %s", err, strings.TrimSpace(string(out)))
		err = nil
	}
	return c, err
}

// listStatuses is such as "status 200: 17, 404: 2".
func listStatuses(n map[int]int) string {
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(n)) {
		parts = append(parts, fmt.Sprintf("%d: %d", status, n[status]))
	}
	if len(parts) == 0 {
		return "no status"
	}
	return "status " + strings.Join(parts, ", ")
}
