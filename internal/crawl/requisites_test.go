package crawl

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// needing returns an answer of a media type with requisites.
func needing(t *testing.T, mime string, to ...string) func(*actor.Outcome) {
	link := linking(t, actor.LinkRequisite, to...)
	return func(o *actor.Outcome) {
		link(o)
		o.Page.MIME = mime
		for i := range o.Links {
			o.Links[i].Requisite = true
		}
	}
}

// TestRequisites checks which requisites are fetched, at which depth, and what becomes of their own links: scope, depth,
// nofollow and the page limit do not apply to them, but exclude, traps and the settings of topics do.
func TestRequisites(t *testing.T) {
	const at, cdn = "https://www.example", "https://cdn.example"
	web := answers{
		at + "/": func(o *actor.Outcome) {
			needing(t, "text/html", cdn+"/a.css", cdn+"/html", at+"/html", cdn+"/moved", cdn+"/x.pdf", at+"/1/2/3/4", cdn+"/both")(o)
			o.Links[6].Kind, o.Links[6].NoFollow = actor.LinkAnchor, true
		},
		cdn + "/a.css": needing(t, "text/css", cdn+"/b.css"),
		cdn + "/b.css": needing(t, "text/css", cdn+"/font"),
		cdn + "/font":  func(*actor.Outcome) {},
		cdn + "/both":  func(*actor.Outcome) {},
		cdn + "/moved": linking(t, actor.LinkRedirect, cdn+"/there"),
		cdn + "/there": func(*actor.Outcome) {},
		cdn + "/html": func(o *actor.Outcome) { // a page out of scope: its links and requisites are not wanted
			needing(t, "text/html", cdn+"/no")(o)
			linking(t, actor.LinkAnchor, at+"/no")(o)
		},
		at + "/html": func(o *actor.Outcome) { // a page in scope is one however it was found
			needing(t, "text/html", cdn+"/yes")(o)
			linking(t, actor.LinkAnchor, at+"/next")(o)
		},
		cdn + "/yes": func(*actor.Outcome) {},
		at + "/next": func(*actor.Outcome) {},
	}
	alone := map[string]int{at + "/": 0}
	whole := map[string]int{
		at + "/": 0, cdn + "/a.css": 1, cdn + "/b.css": 1, cdn + "/font": 1, cdn + "/html": 1, cdn + "/moved": 1, cdn + "/there": 1, cdn + "/both": 1,
		at + "/html": 1, cdn + "/yes": 1,
	}
	linked := maps.Clone(whole)
	linked[at+"/next"] = 2
	topic := func(on bool) func(*blobschema.Settings) {
		return func(s *blobschema.Settings) {
			s.Requisites = !on
			s.Topics = []blobschema.Topic{{Name: "a", Scope: blobschema.ScopeHost, MaxDepth: -1, Exclude: s.Exclude, Requisites: on}}
		}
	}
	for name, tt := range map[string]struct {
		change func(*blobschema.Settings)
		want   map[string]int
		pages  int64
	}{
		"with":            {func(*blobschema.Settings) {}, linked, 2},
		"without":         {func(s *blobschema.Settings) { s.Requisites = false }, alone, 1},
		"one page":        {func(s *blobschema.Settings) { s.MaxPages = 1 }, whole, 1},
		"of a topic":      {topic(true), linked, 2},
		"not of a topic":  {topic(false), alone, 1},
		"seeds alone":     {func(s *blobschema.Settings) { s.MaxDepth = 0 }, map[string]int{at + "/": 0, cdn + "/a.css": 1, cdn + "/b.css": 1, cdn + "/font": 1, cdn + "/html": 1, cdn + "/moved": 1, cdn + "/there": 1, cdn + "/both": 1, at + "/html": 1}, 1},
		"any host, depth": {func(s *blobschema.Settings) { s.Scope, s.MaxDepth = blobschema.ScopeAny, 0 }, map[string]int{at + "/": 0, cdn + "/a.css": 1, cdn + "/b.css": 1, cdn + "/font": 1, cdn + "/html": 1, cdn + "/moved": 1, cdn + "/there": 1, cdn + "/both": 1, at + "/html": 1}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrawl(1)
			c.Settings.Scope, c.Settings.Requisites, c.Settings.MaxSegments, c.Settings.Exclude = blobschema.ScopeHost, true, 3, []string{`\.pdf$`}
			tt.change(&c.Settings)
			w := newWorld(t)
			requests := w.serve(web)
			seed := Seed{URL: urls(t, at+"/")[0], Topic: uint8(len(c.Settings.Topics))}
			if _, err := w.run(NewBegin(c, []Seed{seed}, nil)); err != nil {
				t.Fatal(err)
			}
			w.tick(c.ID)
			w.record("test/crawl", &c)
			w.step(StepConfig{Crawl: c, Process: "p"}, nil)
			if d := cmp.Diff(tt.want, depths(*requests)); d != "" {
				t.Errorf("requested, by depth (-want +got):\n%s", d)
			}
			if tot := w.head(c.ID, 0).Totals; tot.Pages != tt.pages || tot.Urgent != 0 {
				t.Errorf("%+v", tot)
			}
		})
	}
}

// TestRequisiteBecomesPage checks that the links of a requisite are followed once its host comes into scope.
func TestRequisiteBecomesPage(t *testing.T) {
	const at, cdn = "https://www.example", "https://cdn.example"
	c := newCrawl(1)
	c.Settings.Scope, c.Settings.Requisites = blobschema.ScopeHost, true
	w := newWorld(t)
	requests := w.serve(answers{
		at + "/":         needing(t, "text/html", cdn+"/html"),
		cdn + "/html":    linking(t, actor.LinkAnchor, cdn+"/next"),
		cdn + "/next":    func(*actor.Outcome) {},
		cdn + "/another": func(*actor.Outcome) {},
	})
	c = w.begin(c, at+"/")
	w.step(StepConfig{Crawl: c, Process: "p"}, nil)
	seed, err := weburl.Parse(cdn + "/another")
	if err != nil {
		t.Fatal(err)
	}
	more := NewBegin(blobschema.Crawl{}, Seeds([]weburl.URL{seed}), func(*blobschema.Crawl) error { return nil })
	if _, err := w.run(more); err != nil {
		t.Fatal(err)
	}
	c, _, _ = more.Crawl()
	w.tick(c.ID)
	w.step(StepConfig{Crawl: c, Process: "q"}, nil)
	n := map[string]int{}
	for _, r := range *requests {
		if !r.Robots {
			n[r.URL.String()]++
		}
	}
	if d := cmp.Diff(map[string]int{at + "/": 1, cdn + "/html": 2, cdn + "/next": 1, cdn + "/another": 1}, n); d != "" {
		t.Errorf("requests (-want +got):\n%s", d)
	}
}

// TestSentRequisites checks that a link is sent after the same URL was sent as a requisite, and each only once.
func TestSentRequisites(t *testing.T) {
	f := newSentFilter(10, nil)
	link := frontier.Link{Fingerprint: 7, Depth: 1, Rank: 2}
	needed := link
	needed.Rank, needed.Flags = 1, blobschema.FlagRequisite
	for i, l := range []frontier.Link{needed, link, needed, link} {
		if _, news := f.add(&l); news != (i < 2) {
			t.Errorf("link %d: %v", i, news)
		}
	}
}
