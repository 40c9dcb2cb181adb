package crawl

import (
	"fmt"
	"slices"
	"testing"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
)

// TestCrashLoop checks that a URL that crashes steps costs a few processes and no other page. After some crashes steps
// request one URL at a time, named in a commit first, and refuse the one that keeps crashing them.
func TestCrashLoop(t *testing.T) {
	c, w := newCrawl(1), newWorld(t)
	var seeds []string
	for i := range 40 {
		seeds = append(seeds, fmt.Sprintf("https://h%d.example/", i))
	}
	deadly := seeds[25]
	deaths, careful := 0, 0
	var man blobschema.Manifest // manifest that the head names
	w.serve(nil)
	serve := w.web
	answered := 0
	w.web = func(r actor.Request) *actor.Outcome {
		if h := w.head(c.ID, 0); h.Commit != "" {
			if man.Seq != h.Seq {
				man = w.manifest(c.ID, 0)
			}
			if man.Careful > 0 {
				careful++
				if url := r.URL.String(); !slices.Contains(man.Suspects, url) {
					t.Errorf("%s is requested by a careful step, and no commit says so: %v", url, man.Suspects)
				}
				if under := w.counts["Fetch"] - answered; under != 1 {
					t.Errorf("%d requests under way of a careful step", under)
				}
			}
		}
		if answered++; r.URL.String() == deadly && !r.Robots {
			panic(dies{})
		}
		return serve(r)
	}
	c = w.begin(c, seeds...)
	for {
		if deaths > 20 {
			t.Fatalf("it goes on dying: %+v", w.manifest(c.ID, 0))
		}
		answered = 0
		s := stepOf(t, StepConfig{Crawl: c, Process: fmt.Sprint("p", deaths)}, nil)
		if w.live(s) {
			break
		}
		deaths++
		if h := w.head(c.ID, 0); h.Owner == "" {
			t.Errorf("after a crash: %+v", h)
		}
	}
	// Three steps crash before steps are careful, one because care ended among the robots.txt files, the rest by the
	// suspect.
	if deaths != 3+1+suspectCrashes || careful == 0 {
		t.Errorf("%d processes died, %d requests were made with care", deaths, careful)
	}
	for _, url := range seeds {
		want := blobschema.OutcomeClientError
		if url == deadly {
			want = blobschema.OutcomeSuspect
		}
		if got := w.records(c.ID, 0, url); len(got) == 0 || got[len(got)-1].Outcome != want {
			t.Errorf("%s: %+v", url, got)
		}
	}
	h := w.head(c.ID, 0)
	man = w.manifest(c.ID, 0)
	if len(man.Suspects) > 0 || h.Crashes != 0 || h.Totals.Pending != 0 || h.Totals.Outcomes["suspect"] != 1 {
		t.Errorf("in the end %v are suspects, %d crashes in a row; %+v", man.Suspects, h.Crashes, h.Totals)
	}
	w.web = serve
	checkCareEnds(t, w, c)
}

// checkCareEnds checks that steps do not stay careful forever.
func checkCareEnds(t *testing.T, w *world, c blobschema.Crawl) {
	t.Helper()
	man, serve, most, answered := w.manifest(c.ID, 0), w.web, 0, 0
	var more []string
	for i := range man.Careful/2 + 20 {
		more = append(more, fmt.Sprintf("https://more%d.example/", i))
	}
	w.request(c.ID, blobschema.Request{ID: "more", Seeds: more})
	w.web = func(r actor.Request) *actor.Outcome {
		most = max(most, w.counts["Fetch"]-answered)
		answered++
		return serve(r)
	}
	w.step(StepConfig{Crawl: c, Process: "p", Connections: 10}, nil)
	if man = w.manifest(c.ID, 0); man.Careful != 0 || man.Alarms != 2 || most != 10 || w.head(c.ID, 0).Totals.Pending != 0 {
		t.Errorf("still careful: %d, %d alarms, %d requests at once", man.Careful, man.Alarms, most)
	}
}

// TestStoppedWithASuspect checks that a careful step that is stopped at any time accuses no URL, and that the next step
// requests the URL it named.
func TestStoppedWithASuspect(t *testing.T) {
	c, w := newCrawl(1), newWorld(t)
	seeds := []string{"https://a.example/", "https://b.example/"}
	c = w.begin(c, seeds...)
	w.says(c, 0, blobschema.Head{Fence: 1, Crashes: 3})
	cfg := StepConfig{Crawl: c, Process: "p"}
	for at := 1; ; at += 2 {
		try, events := w.clone(), 0
		requests := try.serve(nil)
		if _, err := try.run(prompted{stepOf(t, cfg, nil), func() Signal {
			if events++; events == at {
				return Stop{}
			}
			return nil
		}}); err != nil {
			t.Fatal(err)
		}
		if h := try.head(c.ID, 0); h.Commit != "" && len(try.manifest(c.ID, 0).Suspects) > 0 {
			t.Fatalf("stopped at event %d: %v are under suspicion", at, try.manifest(c.ID, 0).Suspects)
		}
		try.redeliver()
		try.Mono += c.Settings.Delay
		if try.step(cfg, nil); len(try.visible(c.ID, 0)) != 2 || len(*requests) < 4 {
			t.Fatalf("stopped at event %d: %v", at, try.visible(c.ID, 0))
		}
		if events < at {
			return
		}
	}
}
