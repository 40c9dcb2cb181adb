package crawl

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/page"
	"github.com/orbweaver/orbweaver/partition"
)

var crashes = flag.Bool("crashes", false, "have processes die at each effect")

// dies is what a process dies of.
type dies struct{}

// live carries an actor to its end, or to its death: it reports which. Then nothing of it is left but
// what it has done, its lease expires, and what it has received and not acknowledged comes back.
func (w *world) live(a interface {
	actor.Actor
	Drop()
}) (alive bool) {
	w.t.Helper()
	defer func() {
		if r := recover(); r == (dies{}) {
			a.Drop()
			w.now += 3 * time.Minute
			w.redeliver()
		} else if r != nil {
			panic(r)
		}
	}()
	if _, err := w.run(a); err != nil {
		w.t.Fatal(err)
	}
	return true
}

// redeliver puts mail back into its mailbox that was received and not acknowledged.
func (w *world) redeliver() {
	for r := 1; r <= w.receipts; r++ {
		m, err := blobschema.DecodeMail(w.mail[r])
		if err != nil { // acknowledged, or a wake
			continue
		}
		q := naming.MailboxQueue(m.To)
		if !slices.ContainsFunc(w.queues[q], func(m actor.Message) bool { return m.Receipt == r }) {
			w.queues[q] = append(w.queues[q], actor.Message{Body: w.mail[r], Receipt: r, Receives: 2})
		}
	}
}

// crashing is a crawl of two sites that link to each other, in two partitions, in which a process dies
// before effect number at, or right after it; effects are counted from one. If it moves, all slots of
// partition 1 go to 2 meanwhile, and then to 0.
type crashing struct {
	at           int
	after, moves bool
}

// run returns how many effects there were.
func (x crashing) run(t *testing.T) (effects int) {
	t.Helper()
	const n = 3
	w, c := newWorld(t), newCrawl(2)
	hosts := []string{ofPartition(t, c, 0), ofPartition(t, c, 1)}
	last := map[string]time.Duration{}
	w.web = func(r page.Request) *page.Outcome {
		host := string(r.URL.Host())
		if began := w.now - fetchTime; r.URL.Path() != "/robots.txt" {
			if before, ok := last[host]; ok && began-before < c.Settings.Delay {
				t.Errorf("I9: %s is asked %v after the page before", r.URL, began-before)
			}
			last[host] = began
		}
		return site(t, host, n, func(i int) []string {
			return []string{fmt.Sprintf("https://%s/%d", host, i+1), fmt.Sprintf("https://%s/%d", hosts[0], i), fmt.Sprintf("https://%s/%d", hosts[1], i)}
		})(r)
	}
	c = w.begin(c, "https://"+hosts[0]+"/0")
	w.fault = func(e actor.Effect) (error, error) {
		if effects++; effects != x.at {
			return nil, nil
		}
		if x.after {
			if _, err := w.apply(e); err != nil {
				t.Error(err)
			}
		}
		panic(dies{})
	}
	for round := 0; ; round++ {
		if round == 40 {
			t.Fatalf("it has no end: %+v and %+v", w.head(c.ID, 0), w.head(c.ID, 1))
		}
		k := NewTick(TickConfig{Crawl: c.ID, ResendAfter: time.Minute, SweepEvery: time.Minute}, &w.memory)
		if !w.live(k) {
			w.memory = TickMemory{}
			continue
		}
		report := k.Report()
		if report.Finished {
			break
		}
		if from := partition.ID(round); x.moves && (round == 1 || round == 2) {
			for !w.live(NewRepartition(c.ID, func(p Partitioning) (*partition.Map, error) {
				owners := p.Target.Owners()
				for s := range owners {
					if owners[s] == from {
						owners[s] = 2 - 2*(from-1)
					}
				}
				return p.Target.WithOwners(owners)
			})) {
			}
		}
		for p := range partition.ID(report.Partitions()) {
			s, err := NewStep(StepConfig{
				Crawl: c, Partition: p, Process: fmt.Sprint("p", round), MergeFanIn: 2,
				Deadline: 3 * time.Second, CommitEvery: 2 * time.Second, MailEvery: 3 * time.Second,
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			w.live(s)
		}
		w.now += 20 * time.Second
	}
	want, got := map[string]int{}, map[string]int{}
	for p := range partition.ID(3) {
		if rec := w.table[naming.HeadKey(c.ID, p)]; rec.Found && w.head(c.ID, p).Commit != "" {
			for url, times := range w.visible(c.ID, p) {
				got[url] += times
			}
		}
	}
	for i := range n + 1 { // the last is not found
		want[fmt.Sprintf("https://%s/%d", hosts[0], i)], want[fmt.Sprintf("https://%s/%d", hosts[1], i)] = 1, 1
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("pages (-want +got):\n%s", d)
	}
	return effects
}

// TestCrashAnywhere: wherever a process dies, before an effect or right after it, others end
// the crawl with all pages, each once (I7, I8), and no host is asked faster than its pace (I9);
// also while slots move. Of all such deaths it tries some, with -crashes all of them.
func TestCrashAnywhere(t *testing.T) {
	for moves, every := range map[bool]int{false: 3, true: 9} {
		effects := crashing{moves: moves}.run(t)
		if effects < 100 {
			t.Errorf("only %d effects", effects)
		}
		if *crashes {
			every = 1
		}
		for i := 0; i < 2*effects; i += every {
			if x := (crashing{at: 1 + i/2, after: i%2 > 0, moves: moves}); x.run(t) > 0 && t.Failed() {
				t.Fatalf("%+v of %d effects", x, effects)
			}
		}
	}
}
