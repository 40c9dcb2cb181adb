package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/partition"
)

func TestCloudWork(t *testing.T) { testCloudWork(memoryCloud(t)) }

// testCloudWork starts and stops workers during a crawl: one starts before the crawl and stops during it, when two others
// join. No page is lost or requested twice.
func testCloudWork(c *cloud) {
	srv, err := simweb.Start(c.t.Context(), simweb.Config{
		Seed: 5, Hosts: 12, Pages: simweb.Pages{Min: 40, Max: 60}, PageBytes: 4 << 10, LinksPerPage: 12, CrossHost: 0.2,
		Connection: simweb.Connection{LatencyMin: 2 * time.Millisecond, LatencyMax: 10 * time.Millisecond},
		Kinds:      simweb.PageShares{Redirect: 0.05, Gone: 0.05},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	defer srv.Close()
	web := srv.Web()
	first := c.worker("--json")
	c.run(append([]string{"crawl", "--detach", "--scope", "any", "--delay", "20ms", "--sitemaps=false"}, web.Seeds()...)...).ends(exitOK)
	requests := func() (n int) {
		for _, of := range srv.Requests() {
			n += of
		}
		return n
	}
	for begin := time.Now(); requests() < 100; time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > 20*time.Second {
			c.t.Fatalf("%d requests", requests())
		}
	}
	second, third := c.worker(), c.worker("--idle-exit", "--steps", "1")
	first.leave()
	first.ends(exitOK)
	third.ends(exitOK, `^works in aws://test, on 1 partition at once$`, `^left aws://test after .* pages? \(.*/s\) in \d+ steps?$`)
	second.leave()
	second.ends(exitOK, `^works in aws://test, on \d+ partitions at once$`, `^left aws://test after `)

	p := c.platform()
	v, err := view.New(c.t.Context(), engine.Store{Platform: p})
	if err != nil {
		c.t.Fatal(err)
	}
	got := map[string]simweb.Got{}
	for pg, err := range v.Pages(c.t.Context(), view.EveryRecord) {
		if err != nil {
			c.t.Fatal(err)
		}
		if !pg.Robots {
			got[pg.URL] = simweb.GotOf(pg)
		}
	}
	if d := simweb.Diff(web.Truth(simweb.Scope{}), got); d != "" {
		c.t.Error(d)
	}
	c.run("fsck").ends(exitOK, `^clean: `)
	c.run("status").ends(exitOK, `^state +finished$`)
	events := first.events()
	if k := []string{events[0].Event, events[len(events)-1].Event}; !slices.Equal(k, []string{"joined", "left"}) {
		c.t.Errorf("events %v", k)
	}
	var pages int64
	for _, e := range events {
		pages = max(pages, e.Pages)
	}
	if last := events[len(events)-1]; pages == 0 || last.Pages != pages || last.Steps == 0 || last.Platform != c.url ||
		last.Crawl != v.ID() || last.State != "crawling" {
		c.t.Errorf("%d pages, and in the end %+v", pages, last)
	}
}

func TestCloudWorkRequests(t *testing.T) { testCloudWorkRequests(memoryCloud(t)) }

// testCloudWorkRequests checks that one worker carries out orders and requests, and changes to another crawl.
func testCloudWorkRequests(c *cloud) {
	url := c.site.url
	w := c.worker()
	c.run("crawl", "--delay", "0s", "--every", "50ms", url+"/0", url+"/fixed").ends(exitOK, `^Finished: nothing is left to do, 41 pages\.$`)
	c.run("recrawl", "--every", "50ms", url+"/1").ends(exitOK, `/1: ok 200, generation 1`)
	c.run("crawl", "--new", "--detach", "--delay", "3s", url+"/0").ends(exitOK)
	before := c.site.count()
	if !c.site.wait(before + 1) {
		c.t.Fatal("no worker has changed to the other crawl")
	}
	c.run("crawl", "--every", "50ms", "--delay", "0s").ends(exitOK, `^Finished: nothing is left to do, 40 pages\.$`) // the settings change in the middle
	c.run("fsck").ends(exitOK, `^clean: `)
	w.leave()
	w.ends(exitOK)
	c.run("work", "--idle-exit").ends(exitOK, `^left aws://test after .*: 0 pages`) // there is nothing to do
	c.run("work", "--idle-exit", "--json").ends(exitOK, `"event":"left",.*"crawl":"[0-9-]+",.*"state":"finished"`)
	c.run("work", "--for", "100ms", "--no-tick", "--quiet").ends(exitOK)
}

// worker is a running worker, and its result.
type worker struct {
	t     *testing.T
	leave func()
	done  sync.WaitGroup
	*result
}

// worker starts a worker, which stops at an interrupt, such as Ctrl-C, or at the end of the test.
func (c *cloud) worker(flags ...string) *worker {
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	w := &worker{t: c.t}
	w.leave = cancel
	c.t.Cleanup(func() { cancel(); w.done.Wait() })
	args := append([]string{"work", "--tick", "200ms", "--allow-net", "127.0.0.0/8"}, flags...)
	w.done.Go(func() { w.result = c.runFor(ctx, args...) })
	return w
}

// ends waits for the worker's end, and checks its result.
func (w *worker) ends(status exit, lines ...string) *worker {
	w.t.Helper()
	w.done.Wait()
	w.result.ends(status, lines...)
	return w
}

type workEvent struct {
	Event    string `json:"event"`
	Platform string `json:"platform"`
	Crawl    string `json:"crawl"`
	State    string `json:"state"`
	Pages    int64  `json:"pages"`
	Steps    int64  `json:"steps_ended"`
}

func (w *worker) events() (out []workEvent) {
	w.t.Helper()
	for line := range strings.Lines(w.out) {
		var e workEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			w.t.Fatalf("%q: %v", line, err)
		}
		out = append(out, e)
	}
	if len(out) < 2 {
		w.t.Fatalf("only these events:\n%s", w.out)
	}
	return out
}

func TestWorkFigures(t *testing.T) {
	waiting := service.WorkSnapshot{MostSteps: 8}
	busy := service.WorkSnapshot{
		Worked: service.Worked{Pages: 1200, Bytes: 3 << 20, Steps: 2, Failed: 1}, MostSteps: 8, AtWork: []partition.ID{1, 4}, Active: 30, Crawl: "20261121-220000",
		Report: &crawl.Report{Totals: blobschema.Totals{Pages: 5000, Pending: 70, Unexamined: 7}, Leased: 5},
	}
	idle := service.WorkSnapshot{MostSteps: 1, Crawl: "20261121-220000", Report: &crawl.Report{Idle: true, Finished: true}}
	for _, c := range []struct {
		snap  service.WorkSnapshot
		line  string
		frame []string
	}{
		{waiting, "10 s: no crawl yet: 'orbweaver crawl' creates one", []string{
			"orbweaver work · no crawl yet: 'orbweaver crawl' creates one · 10 s",
			"  pages  0 · 0.0/s            ",
			"  work   0 of 8 partitions, 0 requests under way · 0 B received",
			"  left   50 s to --for",
		}},
		{busy, "10 s: 1,200 pages (120.0/s), 2 of 8 partitions, 30 requests under way, 3.0 MiB received, 1 step failed; " +
			"all together: 5,000 pages, queue 77, 5 partitions at work", []string{
			"orbweaver work · 20261121-220000 · 10 s",
			"  pages  1,200 · 120.0/s           █                  last minute, up to 400/s",
			"  work   2 of 8 partitions, 30 requests under way · 3.0 MiB received",
			"  all    5,000 pages, queue 77, 5 partitions at work",
			"  failed 1 step",
			"  left   50 s to --for",
		}},
		{idle, "10 s: finished, 0 pages (0.0/s), 0 of 1 partition, 0 requests under way, 0 B received", []string{
			"orbweaver work · 20261121-220000, finished · 10 s",
			"  pages  0 · 0.0/s            ",
			"  work   0 of 1 partition, 0 requests under way · 0 B received",
			"  left   50 s to --for",
		}},
	} {
		began := time.Now()
		f := folderTarget("d").workFigures(c.snap, newMeter(began, time.Minute, blobschema.Totals{}), began.Add(10*time.Second))
		if d := cmp.Diff(c.line, lineOf(&f)); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff(c.frame, blockOf(&f)); d != "" {
			t.Error(d)
		}
	}
}
