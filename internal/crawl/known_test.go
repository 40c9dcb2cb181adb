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

// knownHosts are the eight hosts of TestKnownHosts.
func knownHosts() (seeds []string) {
	for i := range 8 {
		seeds = append(seeds, fmt.Sprintf("https://h%d.example/", i))
	}
	return seeds
}

func isSlow(host string) bool { return host == "h2.example" || host == "h5.example" }

// timedWeb answers each request, those of slow hosts in an hour, and adds the hosts to order as their robots.txt are requested.
func timedWeb(order *[]string) func(actor.Request) *actor.Outcome {
	return func(req actor.Request) *actor.Outcome {
		o := actor.Aborted(req, time.Time{})
		o.Temporary, o.Page.Outcome, o.Page.Status, o.Page.Time = false, blobschema.OutcomeClientError, 404, virtual.Epoch
		o.Record, o.ResponseAt, o.Page.Length, o.Response = []byte("0123456789answer"), 10, 6, fetchTime
		host := string(req.URL.Host())
		if isSlow(host) {
			o.Response = time.Hour
		}
		if req.URL.RequestURI() == "/robots.txt" {
			*order = append(*order, host)
		}
		return o
	}
}

// TestKnownHosts crawls eight hosts, of which two are slow, and then again: the second crawl requests the slow hosts last
// from the beginning, and reads the hosts it knows with one call per cold step.
func TestKnownHosts(t *testing.T) {
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
			w.web = timedWeb(&order)
			c := newCrawl(2)
			c.Settings.Policy = "performance"
			c = w.begin(c, knownHosts()...)
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
			b := NewAnother(next, Seeds(urls(t, knownHosts()...)), false)
			if _, err := w.run(b); !errors.Is(err, k.err) {
				t.Fatalf("%v, want %v", err, k.err)
			} else if err != nil {
				return
			}
			next, _, _ = b.Crawl()
			if n := checkKnown(t, w, next, k.later); n != k.known {
				t.Errorf("%d hosts are known, want %d", n, k.known)
			}
			order = nil
			checkKnownSteps(t, w, next, k.known)
			if ranked := k.known > 0 && k.later == 0; ranked && (len(order) != 8 || !isSlow(order[6]) || !isSlow(order[7])) {
				t.Errorf("the hosts were requested in the order %s", strings.Join(order, " "))
			}
			if slices.Sort(order); len(slices.Compact(order)) != 8 {
				t.Errorf("not all hosts were requested: %v", order)
			}
		})
	}
}

// checkKnown checks the times of the hosts that a crawl knows, some time after they were measured, and returns their number.
func checkKnown(t *testing.T, w *world, c blobschema.Crawl, later time.Duration) int {
	t.Helper()
	name := c.Settings.KnownHosts
	if name == "" {
		return 0
	}
	hosts, err := blobschema.DecodeKnownHosts(w.Objects[name])
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hosts {
		want := fetchTime
		switch {
		case later > 0:
			want = 50 * time.Millisecond // of an unknown host
		case isSlow(h.Host):
			want = 2 * time.Second // no more is believed
		}
		if d := h.Resp - want; d.Abs() > time.Millisecond {
			t.Errorf("%s answers in %v, want %v", h.Host, h.Resp, want)
		}
	}
	return len(hosts)
}

// checkKnownSteps checks how many objects the steps of a crawl read: a cold one reads the hosts that it knows, if any.
func checkKnownSteps(t *testing.T, w *world, c blobschema.Crawl, known int) {
	t.Helper()
	w.memory = TickMemory{}
	w.tick(c.ID)
	s, counts := w.step(StepConfig{Crawl: c, Process: "p", Connections: 1}, nil)
	got := []int{counts["GetObject"]}
	for _, warm := range []*Warm{s.Warm(), nil} {
		_, counts := w.step(StepConfig{Crawl: c, Process: "p"}, warm)
		got = append(got, counts["GetObject"])
	}
	read := min(known, 1)
	if d := cmp.Diff([]int{read, 0, 1 + read}, got); d != "" { // the last one also reads the commit
		t.Errorf("objects read by the first step, a warm one and a cold one (-want +got):\n%s", d)
	}
}
