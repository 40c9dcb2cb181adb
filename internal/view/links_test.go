package view_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/partition"
)

// TestLinks exports the links of a crawl by hand: the latest version of a page counts, each target has its URL, from
// whichever section holds it, and the outcome of its latest request.
func TestLinks(t *testing.T) {
	s := newHandmade(t)
	const a, b, pending, mailed, outside, excluded = "http://a.example/", "http://b.example/gone", "http://a.example/pending",
		"http://b.example/mailed", "http://c.example/", "http://a.example/x.png"
	target := func(url string, kind actor.LinkKind) blobschema.Target {
		q := s.queued(url)
		return blobschema.Target{Fingerprint: s.hash.Fingerprint(url), Slot: q.Slot, Host: q.Key, Kind: 1 + uint8(kind), Followed: true}
	}
	links := func(urls ...string) blobschema.PageLinks {
		l := blobschema.PageLinks{Source: s.hash.Fingerprint(a), Slot: s.queued(a).Slot, Host: "a.example"}
		for _, u := range urls {
			l.Targets = append(l.Targets, target(u, actor.LinkAnchor))
		}
		return l
	}
	answer := func(url string, at int, generation uint32, outcome blobschema.Outcome, status uint16) blobschema.Page {
		p := page(url, at)
		p.Generation, p.Outcome, p.Status = generation, outcome, status
		return p
	}
	s.commit(0, func(c *blobschema.Commit) { // replaced by the next version
		c.Pages, c.Links = []blobschema.Page{answer(a, 1, 0, blobschema.OutcomeOK, 200)}, []blobschema.PageLinks{links(pending, b)}
		c.State = &blobschema.Run{Queued: []blobschema.Queued{s.queued(pending)}}
	})
	s.commit(0, func(c *blobschema.Commit) {
		l := links(b, pending, mailed, outside, excluded)
		l.Targets[0].Anchor, l.Targets[0].NoFollow = "gone \"now\"", true
		l.Targets[4].URL, l.Targets[4].Followed, l.Targets[4].Kind = excluded, false, 1+uint8(actor.LinkRequisite)
		l.Targets = append(l.Targets, blobschema.Target{Fingerprint: 1, Host: "old.example"})
		c.Pages, c.Links = []blobschema.Page{answer(a, 2, 1, blobschema.OutcomeOK, 200)}, []blobschema.PageLinks{l}
		c.Outside = []blobschema.Queued{s.queued(outside)}
		c.Buffered = map[partition.ID][]blobschema.Queued{1: {s.queued(mailed)}}
	})
	s.commit(0, func(c *blobschema.Commit) { // a 304 keeps the links
		c.Pages, c.Links = []blobschema.Page{answer(a, 3, 2, blobschema.OutcomeUnchanged, 304)}, nil
	})
	s.commit(1, func(c *blobschema.Commit) {
		c.Pages = []blobschema.Page{answer(b, 1, 0, blobschema.OutcomeServerError, 500), answer(b, 2, 1, blobschema.OutcomeClientError, 404)}
	})
	v, err := view.New(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1e9+2, 0).UTC()
	want := []view.Link{
		{Source: a, Fetched: at, Target: b, Host: "b.example", Kind: "anchor", Anchor: "gone \"now\"", NoFollow: true, Followed: true, Outcome: "client-error", Status: 404},
		{Source: a, Fetched: at, Target: pending, Host: "a.example", Kind: "anchor", Followed: true},
		{Source: a, Fetched: at, Target: mailed, Host: "b.example", Kind: "anchor", Followed: true},
		{Source: a, Fetched: at, Target: outside, Host: "c.example", Kind: "anchor", Followed: true},
		{Source: a, Fetched: at, Target: excluded, Host: "a.example", Kind: "requisite"},
		{Source: a, Fetched: at, Host: "old.example"},
	}
	var got []view.Link
	for l, err := range v.Links(t.Context(), t.TempDir(), func(int64) {}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, l)
	}
	same := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".key" || p.Last().String() == ".n" }, cmp.Ignore())
	if d := cmp.Diff(want, got, same); d != "" {
		t.Errorf("links (-want +got):\n%s", d)
	}
	for url, pages := range map[string]int{b: 1, pending: 1, excluded: 1, a: 0} {
		from, err := v.LinkedFrom(t.Context(), mustParse(t, url), 5)
		if err != nil || from.Pages != pages || len(from.Examples) != pages {
			t.Errorf("linked from %+v, %v; want %d", from, err, pages)
		}
	}
}

// TestLinksOfCrawl checks the links of a real crawl: every target that was requested has its outcome, and no target
// lacks its URL.
func TestLinksOfCrawl(t *testing.T) {
	_, _, v := overlaid(t, 60)
	outcomes := map[string]string{}
	for _, pg := range all(t, v, view.LatestRecord) {
		outcomes[pg.URL] = pg.Outcome.String()
	}
	var sources []string
	n := map[string]int{}
	for l, err := range v.Links(t.Context(), t.TempDir(), func(int64) {}) {
		if err != nil {
			t.Fatal(err)
		}
		n[l.Kind]++
		if l.Target == "" || l.Kind == "" || l.Outcome != outcomes[l.Target] {
			t.Errorf("link %+v, want outcome %q", l, outcomes[l.Target])
		}
		if len(sources) == 0 || sources[len(sources)-1] != l.Source {
			sources = append(sources, l.Source)
		}
	}
	if slices.Sort(sources); len(slices.Compact(slices.Clone(sources))) != len(sources) || n["anchor"] < 100 || n["redirect"] == 0 {
		t.Errorf("%d groups of links by page, kinds %v", len(sources), n)
	}
}
