package view

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// Link is a link of a page.
type Link struct {
	Source   string    `json:"source"`
	Fetched  time.Time `json:"fetched"`          // when the source was requested, to the second
	Target   string    `json:"target,omitempty"` // "" if no commit has the text of its URL
	Host     string    `json:"target_host"`
	Kind     string    `json:"kind,omitempty"` // an actor.LinkKind in words; "" in commits that do not have it
	Anchor   string    `json:"anchor,omitempty"`
	NoFollow bool      `json:"nofollow"`
	Followed bool      `json:"followed"`                 // the target was in scope and not dropped
	Outcome  string    `json:"target_outcome,omitempty"` // of the latest request for the target; "" if there was none
	Status   uint16    `json:"target_status,omitempty"`

	key string // of the source in the capture index
	n   int    // position on the page
}

// Links yields the links on the latest version of each page, by page in the order of the capture index. An error ends
// it. Each link has the status of its target. Links sorts all links twice, in bounded memory; the rest is in files in tmp, ""
// for the usual folder: some 200 bytes for each link. It calls sorted with the number of links sorted so far. It reads all
// commits twice; use a frozen view of a crawl that runs.
func (v *View) Links(ctx context.Context, tmp string, sorted func(n int64)) iter.Seq2[Link, error] {
	return func(yield func(Link, error) bool) {
		bySource := &sorter{tmp: tmp, memory: sortMemory / 2}
		err := v.linksByTarget(ctx, tmp, sorted, func(l *Link) error { return bySource.add(l.line(l.key)) })
		if err == nil {
			err = bySource.each(func(line []byte) error {
				if l := linkOf(line); !yield(l, ctx.Err()) || ctx.Err() != nil {
					return errStop
				}
				return nil
			})
		}
		if err = errors.Join(err, bySource.close()); err != nil && !errors.Is(err, errStop) {
			yield(Link{}, err)
		}
	}
}

// errStop ends a loop whose consumer wants no more.
var errStop = errors.New("stop")

// linksByTarget passes on the links of the latest version of each page, joined with the records of their targets. All
// links to a target follow each other.
func (v *View) linksByTarget(ctx context.Context, tmp string, sorted func(n int64), use func(*Link) error) (err error) {
	s := &sorter{tmp: tmp, memory: sortMemory / 2}
	defer func() { err = errors.Join(err, s.close()) }()
	// A page that has not changed since the previous answer has the links of that answer.
	latest, err := v.latest(ctx, func(pg *blobschema.Page) bool {
		return pg.Generation > 0 && pg.Outcome != blobschema.OutcomeUnchanged
	})
	if err != nil {
		return err
	}
	for c, err := range v.Commits(ctx) {
		if err == nil {
			err = v.addNames(c, s)
		}
		if err == nil {
			err = v.addLinks(c, s, latest)
		}
		if err != nil {
			return err
		}
	}
	// Of each target, the names come first, the best one last.
	var target, name string
	var n int64
	return s.each(func(line []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		fp, rest, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), "\t")
		if fp != target {
			target, name = fp, ""
		}
		if of, isName := strings.CutPrefix(rest, nameMark); isName {
			name = of
			return nil
		}
		l := linkOf([]byte(rest[len(linkMark):]))
		if f := strings.Split(name, "\t"); len(f) == 4 {
			l.Outcome, l.Target = f[1], f[3]
			status, _ := strconv.ParseUint(f[2], 10, 16)
			l.Status = uint16(status)
		}
		n++
		if sorted != nil {
			sorted(n)
		}
		return use(&l)
	})
}

// The marks of lines in the sorter of linksByTarget; a name sorts before the links to it.
const (
	nameMark = "A"
	linkMark = "B"
)

// addNames adds a line for each URL in a commit: fingerprint, rank of the name, outcome, status, URL.
func (v *View) addNames(c Commit, s *sorter) error {
	pages, err := c.Pages()
	if err != nil {
		return fmt.Errorf("pages of %s: %w", c.Name, err)
	}
	var line []byte
	add := func(rank, outcome string, status uint16, url string) error {
		line = fmt.Appendf(line[:0], "%016x\t%s%s\t%s\t%d\t%s\n", v.hash.Fingerprint(url), nameMark, rank, outcome, status, plain(url))
		return s.add(line)
	}
	for i := range pages {
		pg := &pages[i]
		if err := add(fmt.Sprintf("%08x%016x", pg.Generation+1, pg.Time.UnixMicro()), pg.Outcome.String(), pg.Status, pg.URL); err != nil {
			return err
		}
	}
	urls, err := c.urls()
	for i := 0; err == nil && i < len(urls); i++ {
		err = add("0", "", 0, urls[i].URL)
	}
	if err != nil {
		return fmt.Errorf("URLs of %s: %w", c.Name, err)
	}
	return nil
}

// urls returns the URLs in a commit that have no page record there: pending ones, those in mail, and those out of scope.
func (c *Commit) urls() ([]blobschema.Queued, error) {
	m, err := c.Manifest()
	if err != nil {
		return nil, err
	}
	var run blobschema.Run
	data, err := c.Run()
	if err == nil && data != nil {
		if len(m.Runs) == 0 {
			return nil, fmt.Errorf("its manifest does not name its run")
		}
		err = blobschema.DecodeRun(data, m.Runs[len(m.Runs)-1], &run)
	}
	if err != nil {
		return nil, err
	}
	urls := run.Queued
	outside, err := c.Outside()
	if err != nil {
		return nil, err
	}
	urls = append(urls, outside...)
	buffered, err := c.Buffered()
	if err != nil {
		return nil, err
	}
	for _, list := range buffered {
		urls = append(urls, list...)
	}
	outbox, err := c.Outbox()
	for i := 0; err == nil && i < len(outbox); i++ {
		var mail blobschema.Mail
		mail, err = blobschema.DecodeMail(outbox[i].Body)
		urls = append(urls, mail.URLs...)
	}
	return urls, err
}

// addLinks adds a line for each link in a commit, unless a later record of its page replaces it.
func (v *View) addLinks(c Commit, s *sorter, latest map[uint64]blobschema.Page) error {
	return v.eachPage(c, func(links *blobschema.PageLinks, pg *blobschema.Page) error {
		if last, ok := latest[links.Source]; ok && newer(last, *pg) || pg.Time.Before(v.since) {
			return nil
		}
		u, err := weburl.Parse(pg.URL)
		if err != nil {
			return fmt.Errorf("page record: %w", err)
		}
		for i := range links.Targets {
			l := linkTo(pg, &links.Targets[i])
			l.key, l.n = u.Key(), i
			if err := s.add(l.line(fmt.Sprintf("%016x\t%s", links.Targets[i].Fingerprint, linkMark))); err != nil {
				return err
			}
		}
		return nil
	})
}

// eachPage calls use for each page with links in a commit, with its record.
func (v *View) eachPage(c Commit, use func(*blobschema.PageLinks, *blobschema.Page) error) error {
	links, err := c.Links()
	if err != nil {
		return fmt.Errorf("links of %s: %w", c.Name, err)
	}
	if len(links) == 0 {
		return nil
	}
	pages, err := c.Pages()
	if err != nil {
		return fmt.Errorf("pages of %s: %w", c.Name, err)
	}
	records := make(map[uint64]*blobschema.Page, len(pages))
	for i := range pages {
		fp := v.hash.Fingerprint(pages[i].URL)
		if old := records[fp]; !pages[i].Robots && (old == nil || newer(pages[i], *old)) {
			records[fp] = &pages[i]
		}
	}
	for i := range links {
		pg := records[links[i].Source]
		if pg == nil {
			return fmt.Errorf("links of %s: page %016x has no record", c.Name, links[i].Source)
		}
		if err := use(&links[i], pg); err != nil {
			return err
		}
	}
	return nil
}

func linkTo(pg *blobschema.Page, t *blobschema.Target) *Link {
	l := &Link{
		Source: pg.URL, Fetched: pg.Time.Truncate(time.Second), Target: t.URL, Host: t.Host, Anchor: t.Anchor, NoFollow: t.NoFollow, Followed: t.Followed,
	}
	if t.Kind > 0 {
		l.Kind = actor.LinkKind(t.Kind - 1).String()
	}
	return l
}

// line returns l as a line of tab-separated fields after a key.
func (l *Link) line(key string) []byte {
	return fmt.Appendf(nil, "%s\t%06d\t%s\t%d\t%s\t%s\t%s\t%s\t%t\t%t\t%s\t%d\t%s\n", key, l.n, plain(l.Source), l.Fetched.Unix(), plain(l.Target),
		plain(l.Host), l.Kind, plain(l.Anchor), l.NoFollow, l.Followed, l.Outcome, l.Status, l.key)
}

// linkOf parses a line of [Link.line], with a key without tabs.
func linkOf(line []byte) (l Link) {
	f := strings.Split(string(bytes.TrimSuffix(line, []byte("\n"))), "\t")
	if len(f) != 13 {
		panic(fmt.Sprintf("view: a sorted link has %d fields", len(f))) // line writes all of them
	}
	l.n, _ = strconv.Atoi(f[1])
	at, _ := strconv.ParseInt(f[3], 10, 64)
	status, _ := strconv.ParseUint(f[11], 10, 16)
	l.Source, l.Fetched, l.Target, l.Host, l.Kind, l.Anchor = f[2], time.Unix(at, 0).UTC(), f[4], f[5], f[6], f[7]
	l.NoFollow, l.Followed, l.Outcome, l.Status, l.key = f[8] == "true", f[9] == "true", f[10], uint16(status), f[12]
	return l
}

// plain replaces tabs and line ends, which only damaged commits have.
func plain(s string) string {
	if strings.ContainsAny(s, "\t\n\r") {
		s = strings.Join(strings.Fields(s), " ")
	}
	return s
}

// LinkedFrom is what links to a URL.
type LinkedFrom struct {
	Pages    int    `json:"pages"`          // with a link to it on their latest version
	More     bool   `json:"more,omitempty"` // there are more pages than were counted
	Examples []Link `json:"examples,omitempty"`
}

// maxCounted bounds the pages that LinkedFrom counts: about 100 MB.
const maxCounted = 1 << 20

// LinkedFrom counts the pages that link to a URL, and returns the first n of them by the time of their request. It reads
// all commits.
func (v *View) LinkedFrom(ctx context.Context, u weburl.URL, n int) (LinkedFrom, error) {
	fp := v.hash.Fingerprint(u.String())
	type version struct {
		generation uint32
		at         int64
		links      bool
	}
	versions := map[uint64]version{} // of pages that link to it, or once did
	var out LinkedFrom
	for c, err := range v.Commits(ctx) {
		if err != nil {
			return out, err
		}
		err = v.eachPage(c, func(links *blobschema.PageLinks, pg *blobschema.Page) error {
			t := slices.IndexFunc(links.Targets, func(t blobschema.Target) bool { return t.Fingerprint == fp })
			old, ok := versions[links.Source]
			this := version{pg.Generation, pg.Time.UnixMicro(), t >= 0}
			switch {
			case !ok && t < 0, ok && (old.generation > this.generation || old.generation == this.generation && old.at > this.at):
				return nil
			case !ok && len(versions) >= maxCounted:
				out.More = true
				return nil
			}
			versions[links.Source] = this
			// All versions of one page share a fingerprint; only the latest is an example.
			out.Examples = slices.DeleteFunc(out.Examples, func(l Link) bool { return l.Source == pg.URL })
			if t < 0 {
				return nil
			}
			l := linkTo(pg, &links.Targets[t])
			l.Target = u.String()
			at, _ := slices.BinarySearchFunc(out.Examples, *l, func(a, b Link) int {
				return cmp.Or(a.Fetched.Compare(b.Fetched), cmp.Compare(a.Source, b.Source))
			})
			if out.Examples = slices.Insert(out.Examples, at, *l); len(out.Examples) > n {
				out.Examples = out.Examples[:n]
			}
			return nil
		})
		if err != nil {
			return out, err
		}
	}
	for _, p := range versions {
		if p.links {
			out.Pages++
		}
	}
	return out, nil
}
