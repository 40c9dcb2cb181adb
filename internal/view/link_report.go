package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// LinkReport lists what the owner of a site may want to repair, from the latest version of each page. Each list is
// bounded, and has the number of all that it would hold.
type LinkReport struct {
	Crawl   string
	Made    time.Time
	Pages   int64 // URLs that were requested
	Links   int64
	Commits uint64 // that the report read

	Broken     top[BrokenLink]
	Redirects  top[Redirect]
	Duplicates top[Duplicate]
	Slow       top[blobschema.Page] // by the time until the body was received; only answers whose time was measured
	Large      top[blobschema.Page] // by the size of the payload
	Changed    top[blobschema.Page] // that were fetched again and had changed, the latest first
}

// BrokenLink is a URL that pages link to and that has no page: its answer is an error, or there was no answer.
type BrokenLink struct {
	URL     string
	Outcome string
	Status  uint16 // 0 without an answer
	Pages   int    // that link to it
	From    []Link // examples
}

// Redirect is a chain of redirects from a URL that pages link to.
type Redirect struct {
	Hops    []string // the URL, where it leads to, and so on
	Status  uint16   // of the first answer
	Pages   int      // that link to the first URL
	Outcome string   // of the last URL; "" if it was not requested
	End     uint16   // status of the last URL
	Loop    bool     // the last URL is an earlier one
}

// Broken reports whether the chain leads to no page.
func (r *Redirect) Broken() bool { return r.Loop || broken(r.Outcome) }

// Duplicate is a payload of several URLs.
type Duplicate struct {
	Digest string
	Bytes  int64
	Count  int
	URLs   []string // examples
}

// Bounds of a link report.
const (
	examples     = 10      // pages or URLs shown for one entry
	maxRedirects = 100_000 // redirects that are followed, in memory
	maxHops      = 20
)

// top is the beginning of a list.
type top[T any] struct {
	First []T
	All   int64
	most  int
	order func(a, b *T) int
}

// add adds an entry, and sorts and shortens the list now and then.
func (l *top[T]) add(v T) {
	l.All++
	if l.First = append(l.First, v); len(l.First) >= 2*l.most+100 {
		l.sort()
	}
}

func (l *top[T]) sort() {
	slices.SortStableFunc(l.First, func(a, b T) int { return l.order(&a, &b) })
	l.First = slices.Clone(l.First[:min(l.most, len(l.First))])
}

// LinkReport makes a report with at most n entries in each list. It reads all commits four times, and sorts in files in
// tmp as [View.Links] does. It is of the moment when it begins.
func (v *View) LinkReport(ctx context.Context, tmp string, n int) (_ *LinkReport, err error) {
	if v, err = v.Freeze(ctx); err != nil {
		return nil, err
	}
	r := &LinkReport{Crawl: v.id, Made: time.Now().UTC()}
	for i := range v.still.heads {
		r.Commits += v.still.heads[i].Seq
	}
	r.Broken = top[BrokenLink]{most: n, order: func(a, b *BrokenLink) int {
		return cmp.Or(cmp.Compare(b.Pages, a.Pages), cmp.Compare(a.URL, b.URL))
	}}
	r.Redirects = top[Redirect]{most: n, order: func(a, b *Redirect) int {
		if a.Broken() != b.Broken() {
			return map[bool]int{true: -1, false: 1}[a.Broken()]
		}
		return cmp.Or(cmp.Compare(len(b.Hops), len(a.Hops)), cmp.Compare(b.Pages, a.Pages), cmp.Compare(a.Hops[0], b.Hops[0]))
	}}
	r.Duplicates = top[Duplicate]{most: n, order: func(a, b *Duplicate) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Digest, b.Digest))
	}}
	pages := func(of func(*blobschema.Page) int64) top[blobschema.Page] {
		return top[blobschema.Page]{most: n, order: func(a, b *blobschema.Page) int {
			return cmp.Or(cmp.Compare(of(b), of(a)), cmp.Compare(a.URL, b.URL))
		}}
	}
	r.Slow = pages(func(p *blobschema.Page) int64 { return int64(p.Total) })
	r.Large = pages(func(p *blobschema.Page) int64 { return p.BodyBytes })
	r.Changed = pages(func(p *blobschema.Page) int64 { return p.Time.UnixMicro() })
	redirects, err := r.addPages(ctx, v, tmp)
	if err != nil {
		return nil, err
	}
	if err := r.addLinks(ctx, v, tmp, redirects); err != nil {
		return nil, err
	}
	r.Broken.sort()
	r.Redirects.sort()
	r.Duplicates.sort()
	r.Slow.sort()
	r.Large.sort()
	r.Changed.sort()
	return r, nil
}

// hop is a URL that redirects, or that another one redirects to.
type hop struct {
	to      string // "" if it does not redirect
	status  uint16
	outcome string
	pages   int  // that link to it
	target  bool // another URL redirects to it
}

// addPages adds what page records show, and returns the redirects by URL.
func (r *LinkReport) addPages(ctx context.Context, v *View, tmp string) (_ map[string]*hop, err error) {
	byDigest := &sorter{tmp: tmp, memory: sortMemory / 2}
	defer func() { err = errors.Join(err, byDigest.close()) }()
	hops := map[string]*hop{}
	for pg, err := range v.Pages(ctx, LatestRecord) {
		if err != nil {
			return nil, err
		}
		if pg.Robots {
			continue
		}
		r.Pages++
		if pg.Total > 0 {
			r.Slow.add(pg)
		}
		if pg.Change == blobschema.PageChanged {
			r.Changed.add(pg)
		}
		if pg.Outcome == blobschema.OutcomeRedirect && pg.Redirect != "" && len(hops) < maxRedirects {
			hops[pg.URL] = &hop{to: pg.Redirect, status: pg.Status, outcome: pg.Outcome.String()}
		}
		if ok := pg.Outcome == blobschema.OutcomeOK || pg.Outcome == blobschema.OutcomeUnchanged; !ok || pg.BodyBytes == 0 {
			continue
		}
		r.Large.add(pg)
		if pg.Digest != "" {
			if err := byDigest.add(fmt.Appendf(nil, "%s\t%d\t%s\n", plain(pg.Digest), pg.BodyBytes, plain(pg.URL))); err != nil {
				return nil, err
			}
		}
	}
	var d Duplicate
	end := func() {
		if d.Count > 1 {
			r.Duplicates.add(d)
		}
	}
	err = byDigest.each(func(line []byte) error {
		f := strings.Split(strings.TrimSuffix(string(line), "\n"), "\t")
		if f[0] != d.Digest {
			end()
			d = Duplicate{Digest: f[0]}
			_, _ = fmt.Sscan(f[1], &d.Bytes) // written above
		}
		if d.Count++; d.Count <= examples {
			d.URLs = append(d.URLs, f[2])
		}
		return ctx.Err()
	})
	end()
	return hops, err
}

// addLinks adds broken links, and the chains of the redirects.
func (r *LinkReport) addLinks(ctx context.Context, v *View, tmp string, hops map[string]*hop) error {
	for _, h := range slices.Collect(maps.Values(hops)) {
		if to := hops[h.to]; to != nil {
			to.target = true
		} else if len(hops) < 2*maxRedirects {
			hops[h.to] = &hop{target: true}
		}
	}
	var b BrokenLink
	end := func() {
		if h := hops[b.URL]; h != nil {
			h.pages, h.outcome = b.Pages, cmp.Or(b.Outcome, h.outcome)
			h.status = cmp.Or(b.Status, h.status)
		}
		if b.Pages > 0 && broken(b.Outcome) {
			r.Broken.add(b)
		}
	}
	err := v.linksByTarget(ctx, tmp, nil, func(l *Link) error {
		r.Links++
		if l.Target == "" { // its URL is stored nowhere, so it was never requested
			return nil
		}
		if l.Target != b.URL {
			end()
			b = BrokenLink{URL: l.Target, Outcome: l.Outcome, Status: l.Status}
		}
		if l.Kind == "redirect" {
			return nil
		}
		if b.Pages++; len(b.From) < examples {
			b.From = append(b.From, *l)
		}
		return nil
	})
	end()
	for url, h := range hops {
		if h.to != "" && (h.pages > 0 || !h.target) {
			r.Redirects.add(chain(hops, url))
		}
	}
	return err
}

// chain follows the redirects of a URL.
func chain(hops map[string]*hop, url string) Redirect {
	c := Redirect{Hops: []string{url}, Status: hops[url].status, Pages: hops[url].pages}
	for h := hops[url]; h != nil && len(c.Hops) <= maxHops && !c.Loop; h = hops[url] {
		if c.Outcome, c.End = h.outcome, h.status; h.to == "" {
			break
		}
		url = h.to
		c.Loop = slices.Contains(c.Hops, url)
		c.Hops = append(c.Hops, url)
		c.Outcome, c.End = "", 0
	}
	return c
}

// broken reports whether a link to a URL with an outcome is broken: the answer was an error, or there was none.
func broken(outcome string) bool {
	switch o, _ := blobschema.ParseOutcome(outcome); o {
	case blobschema.OutcomeClientError, blobschema.OutcomeServerError, blobschema.OutcomeDNS, blobschema.OutcomeConnect,
		blobschema.OutcomeTLS, blobschema.OutcomeTimeout, blobschema.OutcomeProtocol, blobschema.OutcomeCut:
		return true
	}
	return false
}
