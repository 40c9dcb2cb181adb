package crawl

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/internal/virtual"
)

// answeredOnce is a crawl whose five pages have been answered once.
func answeredOnce(t *testing.T, limit int64, requests *[]actor.Request) (*world, blobschema.Crawl, StepConfig) {
	t.Helper()
	c, host := newCrawl(1), "www.example"
	c.Settings.RecrawlPerHour, c.Settings.MaxPages = 2, limit
	w := newWorld(t)
	w.web = changing(host, requests)
	c = w.begin(c, all(host)[:5]...)
	w.tick(c.ID)
	return w, c, StepConfig{Crawl: c, Process: "p", SleepMax: time.Second, MergeFanIn: 1000}
}

// TestRevisits checks that settled URLs are revisited with the record of the previous answer, which the same process does not
// read again. The page limit neither stops revisits nor counts them, and such a crawl does not finish.
func TestRevisits(t *testing.T) {
	for _, limit := range []int64{0, 3, 5} {
		t.Run(fmt.Sprint("limit ", limit), func(t *testing.T) {
			var requests []actor.Request
			w, c, cfg := answeredOnce(t, limit, &requests)
			s, _ := w.step(cfg, nil)
			pages := 5
			if limit > 0 {
				pages = int(limit)
			}
			if n := len(requests); n != pages+1 {
				t.Fatalf("%d requests at first", n)
			}
			w.tick(c.ID)
			cold := limit == 3 // each step in another process
			for round := 0; w.head(c.ID, 0).Totals.Again < 12; round++ {
				if round > 400 {
					t.Fatalf("too few looks: %+v", w.head(c.ID, 0).Totals)
				}
				w.Mono += time.Hour
				requests = nil
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
				for _, r := range requests {
					if r.Robots {
						continue
					}
					if r.Generation == 0 || r.Previous == nil || r.Previous.ETag != `"v1"` {
						t.Errorf("requested %s, generation %d, former %+v", r.URL, r.Generation, r.Previous)
					}
				}
				if !cold && counts["GetObject"] > 0 {
					t.Errorf("round %d: %d looks took %d reads", round, len(requests), counts["GetObject"])
				}
			}
			tot := w.head(c.ID, 0).Totals
			if tot.Pages != int64(pages) || tot.Changed != 0 || tot.Urgent != 0 {
				t.Errorf("totals %+v", tot)
			}
		})
	}
}

// TestSteerRevisits checks that the threshold rises with too many revisits and falls with too few, and that two runs at once
// count them once.
func TestSteerRevisits(t *testing.T) {
	var requests []actor.Request
	w, c, cfg := answeredOnce(t, 0, &requests)
	w.step(cfg, nil)
	desired := func() (v blobschema.DesiredState) {
		w.record(naming.DesiredKey(c.ID), &v)
		return v
	}
	w.tick(c.ID)
	first := desired()
	if want := schedule.FirstThreshold(5, 2); math.Abs(first.Threshold-want) > 1e-9 || first.Revisits.Pages != 5 {
		t.Fatalf("the first threshold is %+v, want %v", first, want)
	}
	w.tick(c.ID)
	if got := desired(); got.Threshold != first.Threshold || got.Revisits != first.Revisits {
		t.Errorf("a second tick made it %+v", got)
	}
	w.Mono += 30 * time.Minute
	w.tick(c.ID) // no revisit where one was due
	if got := desired(); !(got.Threshold < first.Threshold) || got.Version != first.Version {
		t.Errorf("after half an hour without a look it is %v, before it was %v; version %d", got.Threshold, first.Threshold, got.Version)
	}
	before := desired().Threshold
	w.Mono += 5 * time.Hour
	w.tick(c.ID) // the revisits of that time are unknown
	if got := desired(); got.Threshold != before || got.Revisits.At.Sub(virtual.Epoch) < 5*time.Hour {
		t.Errorf("after a long time it is %+v, before it was %v", got, before)
	}
}

// TestHintOfOthers checks that a sitemap cannot change the revisits of another host's pages.
func TestHintOfOthers(t *testing.T) {
	for _, of := range []string{"https://www.example/", "https://other.example/"} {
		var requests []actor.Request
		w, _, cfg := answeredOnce(t, 0, &requests)
		s, _ := w.step(cfg, nil)
		url := urls(t, all("www.example")[0])[0]
		task := schedule.Task{Request: actor.Request{URL: urls(t, of+"sitemap.xml")[0]}}
		before := s.st.f.Summaries()
		s.st.hint(task, &actor.Link{URL: url, Kind: actor.LinkListed, Modified: 1}, s.st.links.Link(url))
		if hinted := s.st.f.Dirty(); hinted != (of == "https://www.example/") {
			t.Errorf("a sitemap of %s: hinted %v; %v became %v", of, hinted, before, s.st.f.Summaries())
		}
	}
}

// TestRevisitsOfColdSteps checks that a cold step brings no revisit forward: the threshold is unchanged.
func TestRevisitsOfColdSteps(t *testing.T) {
	var requests []actor.Request
	w, c, cfg := answeredOnce(t, 0, &requests)
	c.Settings.RecrawlPerHour = 120 // a threshold far below that of a revisit a day
	w.step(cfg, nil)
	w.tick(c.ID)
	w.step(cfg, nil) // plans again
	for range 5 {
		w.tick(c.ID)
		w.step(cfg, nil)
	}
	if tot := w.head(c.ID, 0).Totals; w.Mono < schedule.ShortestInterval && tot.Again > 0 {
		t.Errorf("%d looks at pages that were first requested %v ago", tot.Again, w.Mono)
	}
}

// TestLimitWakesNobody checks that at the page limit no partition is woken for new URLs that will not be requested, only
// for due revisits, and for the new URLs when the limit is raised.
func TestLimitWakesNobody(t *testing.T) {
	var requests []actor.Request
	w, c, _ := answeredOnce(t, 3, &requests)
	w.step(inCloud(c, 0), nil)
	for range 3 {
		w.tick(c.ID)
		w.wakes = nil
		w.step(inCloud(c, 0), nil)
		if slices.ContainsFunc(w.wakes, func(s wakeSent) bool { return s.delay < 30*time.Second }) {
			t.Fatalf("a step has wakes sent: %v", w.wakes)
		}
		w.Mono += 10 * time.Second
	}
	w.wakes = nil
	if w.tick(c.ID); len(w.wakes) > 0 {
		t.Errorf("a tick has wakes sent: %v", w.wakes)
	}
	w.Mono += maxRevisitPause
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

// TestStale checks that a partition plans its revisits again if the threshold has fallen much.
func TestStale(t *testing.T) {
	for _, k := range []struct {
		pending           int64
		threshold, wanted float64
		want              bool
	}{
		{1, 1, 1 / schedule.ReplanAt, true},
		{1, 1, 1.01 / schedule.ReplanAt, false},
		{1, 1, 1, false},
		{0, 1, 1 / schedule.ReplanAt / 2, false},
		{9, 1, 0, false},
		{9, 0, 0.001, false},
	} {
		h := blobschema.Head{Threshold: k.threshold, Totals: blobschema.Totals{Pending: k.pending}}
		if got := stale(&h, k.wanted); got != k.want {
			t.Errorf("%+v: %v", k, got)
		}
	}
}

// TestSteering checks what a coordinator run makes of the revisits since the threshold was set.
func TestSteering(t *testing.T) {
	const before = 0.01
	for _, k := range []struct {
		name     string
		since    time.Duration
		revisits int64 // since then
		pause    bool
		want     string // of the threshold
		counted  bool   // what was until now
	}{
		{"too soon", steerEvery - time.Second, 100, false, "same", false},
		{"too few", 10 * time.Minute, 0, false, "lower", true},
		{"too many", 10 * time.Minute, 100, false, "higher", true},
		{"as many as wanted", 30 * time.Minute, 30, false, "same", true},
		{"as long as may be", mostUnseen - time.Second, 0, false, "lower", true},
		{"no revisit for a long time", mostUnseen + time.Second, 0, false, "same", true},
		{"the clock was set", -time.Minute, 100, false, "same", true},
		{"paused", 10 * time.Minute, 0, true, "same", true},
	} {
		c, w := newCrawl(1), newWorld(t)
		c.Settings.RecrawlPerHour = 60
		c = w.begin(c, all("www.example")[0])
		w.Mono += 2 * time.Hour
		was := blobschema.RevisitCounts{At: w.Now().Wall.Add(-k.since), Again: 1000, Pages: 5000}
		w.says(c, 0, blobschema.Head{Fence: 1, Totals: blobschema.Totals{Pages: 5000, Again: 1000 + k.revisits}})
		w.Table[naming.DesiredKey(c.ID)] = actor.Record{Found: true, Revision: -1, Value: actor.Encode(blobschema.DesiredState{Threshold: before, Revisits: was, Pause: k.pause})}
		w.tick(c.ID)
		var got blobschema.DesiredState
		w.record(naming.DesiredKey(c.ID), &got)
		change := "same"
		switch {
		case got.Threshold > before*1.001:
			change = "higher"
		case got.Threshold < before*0.999:
			change = "lower"
		}
		if counted := !got.Revisits.At.Equal(was.At); change != k.want || counted != k.counted || counted && (got.Revisits.Again != 1000+k.revisits || got.Revisits.Pages != 5000) {
			t.Errorf("%s: %v became %+v", k.name, before, got)
		}
	}
}

// TestThresholdIsObeyed checks that a running step obeys a threshold that has fallen much, and that its next head reports
// so. A threshold that has risen changes nothing that waits.
func TestThresholdIsObeyed(t *testing.T) {
	for _, by := range []float64{1 / schedule.ReplanAt / 2, 2} {
		var requests []actor.Request
		w, c, cfg := answeredOnce(t, 0, &requests)
		s, _ := w.step(cfg, nil)
		w.tick(c.ID)
		s, _ = w.step(cfg, s.Warm())
		was := w.head(c.ID, 0)
		var desired blobschema.DesiredState
		w.record(naming.DesiredKey(c.ID), &desired)
		desired.Threshold = was.Threshold * by
		w.Table[naming.DesiredKey(c.ID)] = actor.Record{Found: true, Revision: -1, Value: actor.Encode(desired)}
		w.step(cfg, s.Warm())
		is := w.head(c.ID, 0)
		if replanned := is.Threshold == desired.Threshold; was.Threshold == 0 || replanned != (by < 1) || replanned != (is.Seq > was.Seq) {
			t.Errorf("by %v: %v became %v, commit %d became %d", by, was.Threshold, is.Threshold, was.Seq, is.Seq)
		}
	}
}

// TestChangedRevisits checks that revisits that found a changed page are counted.
func TestChangedRevisits(t *testing.T) {
	var requests []actor.Request
	w, c, cfg := answeredOnce(t, 0, &requests)
	plain, changes := w.web, true
	w.web = func(r actor.Request) *actor.Outcome {
		o := plain(r)
		if changes && r.Generation > 0 {
			o.Page.Digest, o.Page.ETag = fmt.Sprint("sha1:", r.Generation), ""
		}
		if r.URL.Path() == "/4" && r.Generation > 0 {
			o.Page.Outcome, o.Page.Status, o.Page.Digest = blobschema.OutcomeTimeout, 0, "sha1:none"
		}
		return o
	}
	s, _ := w.step(cfg, nil)
	for round := 0; w.head(c.ID, 0).Totals.Again < 8 && round < 300; round++ {
		w.Mono += time.Hour
		w.tick(c.ID)
		s, _ = w.step(cfg, s.Warm())
	}
	changed, failed := int64(0), int64(0)
	for i := range 5 {
		for _, p := range w.records(c.ID, 0, all("www.example")[i]) {
			switch {
			case p.Generation > 0 && p.Outcome == blobschema.OutcomeOK:
				changed++
			case p.Generation > 0:
				failed++
			}
		}
	}
	if tot := w.head(c.ID, 0).Totals; tot.Again != changed+failed || tot.Changed != changed || changed == 0 || failed == 0 {
		t.Errorf("%d pages were others, %d were not there: %+v", changed, failed, tot)
	}
}

// TestRevisitsGiveBack checks that a step that runs forever because of its revisits returns unneeded grants once, and keeps
// them while there is something to find.
func TestRevisitsGiveBack(t *testing.T) {
	var requests []actor.Request
	w, c, cfg := answeredOnce(t, 100, &requests)
	var grants []int64
	cfg.SleepMax, cfg.Deadline, cfg.CommitEvery = time.Hour, 40*time.Second, 2*time.Second
	w.fault = func(e actor.Effect) (before, after error) {
		if wr, ok := e.(actor.WriteRecord); ok && wr.Key == naming.GrantsKey(c.ID) {
			g, err := actor.Decode[blobschema.Grants](actor.Record{Found: true, Value: wr.Value}, "grants")
			if err != nil {
				t.Fatal(err)
			}
			if g.Granted[0] == 5 && w.Mono > 20*time.Second {
				t.Errorf("given back only after %v", w.Mono)
			}
			grants = append(grants, g.Granted[0])
		}
		return nil, nil
	}
	w.step(cfg, nil)
	if len(grants) != 2 || grants[0] <= 5 || grants[1] != 5 { // and not requested again for revisits
		t.Errorf("granted %v", grants)
	}
}

// TestLimitOfParts checks that at the page limit a step does not load slots in turn for URLs that it may not request.
func TestLimitOfParts(t *testing.T) {
	const hosts, each = 6, 3
	for _, perHour := range []float64{0, 1} {
		c, w := newCrawl(1), newWorld(t)
		c.Settings.RecrawlPerHour, c.Settings.MaxPages = perHour, 2
		var seeds []string
		a := answers{}
		for i := range hosts * each {
			seeds = append(seeds, fmt.Sprintf("https://www%d.example/%d", i%hosts, i))
			a[seeds[i]] = linking(t, actor.LinkAnchor)
		}
		requests := w.serve(a)
		c = w.begin(c, seeds...)
		cfg := StepConfig{Crawl: c, Process: "p", SleepMax: time.Second, MaxResident: 2 * each}
		reads := 0
		for range 10 {
			report, _ := w.tick(c.ID)
			for range report.Woken {
				_, counts := w.step(cfg, nil)
				reads += counts["GetObject"]
			}
			w.Mono += time.Hour
		}
		if n := w.head(c.ID, 0).Totals.Pages; n != 2 || reads > 500 { // about 35 per step, otherwise endless
			t.Errorf("%v looks an hour: %d pages, %d requests, %d reads", perHour, n, len(*requests), reads)
		}
	}
}
