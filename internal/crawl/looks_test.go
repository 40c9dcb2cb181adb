package crawl

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/fresh"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/page"
)

// lookedAt is a crawl whose five pages have had their first answers.
func lookedAt(t *testing.T, limit int64, asked *[]page.Request) (*world, blobschema.Crawl, StepConfig) {
	t.Helper()
	c, host := newCrawl(1), "www.example"
	c.Settings.RecrawlPerHour, c.Settings.MaxPages = 2, limit
	w := newWorld(t)
	w.web = changing(host, asked)
	c = w.begin(c, all(host)[:5]...)
	w.tick(c.ID)
	return w, c, StepConfig{Crawl: c, Process: "p", SleepMax: time.Second, MergeFanIn: 1000}
}

// TestLooks: settled URLs are asked for again, with the record of the answer before, which costs no read
// where the process has it; a limit on pages does not keep them from it, nor do they count for it; and such a crawl does not finish.
func TestLooks(t *testing.T) {
	for _, limit := range []int64{0, 3, 5} {
		t.Run(fmt.Sprint("limit ", limit), func(t *testing.T) {
			var asked []page.Request
			w, c, cfg := lookedAt(t, limit, &asked)
			s, _ := w.step(cfg, nil)
			pages := 5
			if limit > 0 {
				pages = int(limit)
			}
			if n := len(asked); n != pages+1 {
				t.Fatalf("%d requests at first", n)
			}
			w.tick(c.ID)
			cold := limit == 3 // each step in another process
			for round := 0; w.head(c.ID, 0).Totals.Again < 12; round++ {
				if round > 400 {
					t.Fatalf("too few looks: %+v", w.head(c.ID, 0).Totals)
				}
				w.now += time.Hour
				asked = nil
				rep, _ := w.tick(c.ID)
				if rep.Quiet || rep.Finished || rep.Limited {
					t.Fatalf("the crawl counts as finished: %+v", rep.Totals)
				}
				warm := s.Warm()
				if cold {
					warm = nil
				}
				var counts map[string]int
				s, counts = w.step(cfg, warm)
				for _, r := range asked {
					if r.Robots {
						continue
					}
					if r.Generation == 0 || r.Former == nil || r.Former.ETag != `"v1"` {
						t.Errorf("asked for %s, generation %d, former %+v", r.URL, r.Generation, r.Former)
					}
				}
				if !cold && counts["GetObject"] > 0 {
					t.Errorf("round %d: %d looks took %d reads", round, len(asked), counts["GetObject"])
				}
			}
			tot := w.head(c.ID, 0).Totals
			if tot.Pages != int64(pages) || tot.Changed != 0 || tot.Urgent != 0 {
				t.Errorf("totals %+v", tot)
			}
		})
	}
}

// TestSteerLooks: the threshold rises with too many looks, falls with too few, and is that of one
// tick even if there are two at once.
func TestSteerLooks(t *testing.T) {
	var asked []page.Request
	w, c, cfg := lookedAt(t, 0, &asked)
	w.step(cfg, nil)
	wish := func() (v blobschema.Wish) {
		w.record(naming.WishKey(c.ID), &v)
		return v
	}
	w.tick(c.ID)
	first := wish()
	if want := fresh.First(blobschema.Change{}, 5, 2); math.Abs(first.Threshold-want) > 1e-9 || first.Looks.Pages != 5 {
		t.Fatalf("the first threshold is %+v, want %v", first, want)
	}
	w.tick(c.ID)
	if got := wish(); got.Threshold != first.Threshold || got.Looks != first.Looks {
		t.Errorf("a second tick made it %+v", got)
	}
	w.now += 30 * time.Minute
	w.tick(c.ID) // no look where there was to be one
	if got := wish(); !(got.Threshold < first.Threshold) || got.Version != first.Version {
		t.Errorf("after half an hour without a look it is %v, before it was %v; version %d", got.Threshold, first.Threshold, got.Version)
	}
	before := wish().Threshold
	w.now += 5 * time.Hour
	w.tick(c.ID) // who knows what was in that time
	if got := wish(); got.Threshold != before || got.Looks.At.Sub(epoch) < 5*time.Hour {
		t.Errorf("after a long time it is %+v, before it was %v", got, before)
	}
}

// TestHintOfOthers: what a sitemap says of another host's pages changes nothing of when they are looked at.
func TestHintOfOthers(t *testing.T) {
	for _, of := range []string{"https://www.example/", "https://other.example/"} {
		var asked []page.Request
		w, _, cfg := lookedAt(t, 0, &asked)
		s, _ := w.step(cfg, nil)
		url := urls(t, all("www.example")[0])[0]
		target := blobschema.Target{Fingerprint: s.hash.Fingerprint(url.String())}
		task := frontier.Task{Request: page.Request{URL: urls(t, of+"sitemap.xml")[0]}}
		before := s.st.f.Summaries()
		s.hint(task, &page.Link{URL: url, Kind: page.LinkListed, Modified: 1}, &target, &blobschema.Queued{Host: "www.example", Slot: s.hash.Slot("www.example")})
		if hinted := s.st.f.Dirty(); hinted != (of == "https://www.example/") {
			t.Errorf("a sitemap of %s: hinted %v; %v became %v", of, hinted, before, s.st.f.Summaries())
		}
	}
}

// TestLooksOfColdSteps: a step that begins afresh brings no look forward: the threshold is what it was.
func TestLooksOfColdSteps(t *testing.T) {
	var asked []page.Request
	w, c, cfg := lookedAt(t, 0, &asked)
	c.Settings.RecrawlPerHour = 120 // a threshold far below that of a look a day
	w.step(cfg, nil)
	w.tick(c.ID)
	w.step(cfg, nil) // plans anew
	for range 5 {
		w.tick(c.ID)
		w.step(cfg, nil)
	}
	if tot := w.head(c.ID, 0).Totals; w.now < fresh.Shortest && tot.Again > 0 {
		t.Errorf("%d looks at pages that were first asked for %v ago", tot.Again, w.now)
	}
}

// TestLimitWakesNobody: where the limit on pages is reached, nobody is woken for what was found and will not be asked
// for, but for looks that are due, and for what was found when the limit is raised.
func TestLimitWakesNobody(t *testing.T) {
	var asked []page.Request
	w, c, _ := lookedAt(t, 3, &asked)
	w.step(inCloud(c, 0), nil)
	for range 3 {
		w.tick(c.ID)
		w.wakes = nil
		w.step(inCloud(c, 0), nil)
		if slices.ContainsFunc(w.wakes, func(s wakeSent) bool { return s.delay < 30*time.Second }) {
			t.Fatalf("a step has wakes sent: %v", w.wakes)
		}
		w.now += 10 * time.Second
	}
	w.wakes = nil
	if w.tick(c.ID); len(w.wakes) > 0 {
		t.Errorf("a tick has wakes sent: %v", w.wakes)
	}
	w.now += looksAtLeast
	if w.tick(c.ID); len(w.wakes) != 1 {
		t.Errorf("a tick has wakes sent later: %v", w.wakes)
	}
	w.step(inCloud(c, 0), nil)
	if _, err := w.run(NewBegin(blobschema.Crawl{}, nil, func(c *blobschema.Crawl) error { c.Settings.MaxPages = 5; return nil })); err != nil {
		t.Fatal(err)
	}
	w.wakes = nil
	if w.tick(c.ID); len(w.wakes) != 1 {
		t.Errorf("a tick has wakes sent for a higher limit: %v", w.wakes)
	}
}
