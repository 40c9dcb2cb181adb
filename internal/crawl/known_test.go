package crawl

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/virtual"
	"github.com/orbweaver/orbweaver/partition"
)

// TestKnownHosts crawls eight hosts, of which two are slow, and then again: the second crawl requests the slow hosts last
// from the beginning, and reads the hosts it knows with one call per cold step.
func TestKnownHosts(t *testing.T) {
	var seeds []string
	for i := range 8 {
		seeds = append(seeds, fmt.Sprintf("https://h%d.example/", i))
	}
	slow := func(host string) bool { return host == "h2.example" || host == "h5.example" }
	// A year later, both slow hosts count as unknown ones again. A crawl with another politeness key or policy knows none.
	for _, k := range []struct {
		name   string
		from   string
		later  time.Duration
		change func(*blobschema.Settings)
		known  int
		err    error
	}{
		{"last", "", 0, nil, 8, nil},
		{"by id", "test", 0, nil, 8, nil},
		{"none", NoHosts, 0, nil, 0, nil},
		{"unknown", "other", 0, nil, 0, blobschema.ErrUnknownCrawl},
		{"a year later", "", 365 * 24 * time.Hour, nil, 8, nil},
		{"another policy", "", 0, func(s *blobschema.Settings) { s.Policy = "breadth-first" }, 0, nil},
		{"another key", "", 0, func(s *blobschema.Settings) { s.PartitionBy = blobschema.ByDomain }, 0, nil},
	} {
		t.Run(k.name, func(t *testing.T) {
			w := newWorld(t)
			var order []string
			w.web = func(req actor.Request) *actor.Outcome {
				o := actor.Aborted(req, time.Time{})
				o.Temporary, o.Page.Outcome, o.Page.Status, o.Page.Time = false, blobschema.OutcomeClientError, 404, virtual.Epoch
				o.Record, o.ResponseAt, o.Page.Length, o.Response = []byte("0123456789answer"), 10, 6, fetchTime
				host := string(req.URL.Host())
				if slow(host) {
					o.Response = time.Hour
				}
				if req.URL.RequestURI() == "/robots.txt" {
					order = append(order, host)
				}
				return o
			}
			c := newCrawl(2)
			c.Settings.Policy = "performance"
			c = w.begin(c, seeds...)
			for p := range 2 {
				w.step(StepConfig{Crawl: c, Partition: partition.ID(p), Process: "p", Connections: 1}, nil)
			}
			for range 3 { // until a run finds the end, and copies the hosts
				w.tick(c.ID)
			}
			next := newCrawl(1)
			next.ID, next.Settings.Policy, next.Settings.HostsFrom = "next", "performance", k.from
			next.Created = w.Now().Wall.Add(k.later)
			if k.change != nil {
				k.change(&next.Settings)
			}
			b := NewAnother(next, Seeds(urls(t, seeds...)), false)
			_, err := w.run(b)
			if !errors.Is(err, k.err) {
				t.Fatalf("%v, want %v", err, k.err)
			}
			if err != nil {
				return
			}
			next, _, _ = b.Crawl()
			var hosts []blobschema.HostObservation
			if name := next.Settings.KnownHosts; name != "" {
				if hosts, err = blobschema.DecodeKnownHosts(w.Objects[name]); err != nil {
					t.Fatal(err)
				}
			}
			for _, h := range hosts {
				want := fetchTime
				if slow(h.Host) {
					want = 2 * time.Second // no more is believed
				}
				if k.later > 0 {
					want = 50 * time.Millisecond // of an unknown host
				}
				if d := h.Resp - want; d.Abs() > time.Millisecond {
					t.Errorf("%s answers in %v, want %v", h.Host, h.Resp, want)
				}
			}
			w.memory, order = TickMemory{}, nil
			w.tick(next.ID)
			s, counts := w.step(StepConfig{Crawl: next, Process: "p", Connections: 1}, nil)
			if len(hosts) != k.known || counts["GetObject"] != min(k.known, 1) {
				t.Errorf("%d hosts are known, and the step reads %d objects", len(hosts), counts["GetObject"])
			}
			if k.known == 0 || k.later > 0 {
				return
			}
			if len(order) != 8 || !slow(order[6]) || !slow(order[7]) {
				t.Errorf("the hosts were requested in the order %s", strings.Join(order, " "))
			}
			if slices.Sort(order); len(slices.Compact(order)) != 8 {
				t.Errorf("not all hosts were requested: %v", order)
			}
			for _, warm := range []*Warm{s.Warm(), nil} {
				_, counts := w.step(StepConfig{Crawl: next, Process: "p"}, warm)
				want := map[bool]int{true: 0, false: 2}[warm != nil] // the commit and the hosts
				if d := cmp.Diff(want, counts["GetObject"]); d != "" {
					t.Errorf("objects read by a step with nothing to do (-want +got):\n%s", d)
				}
			}
		})
	}
}
