package crawl

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

var crashes = flag.Bool("crashes", false, "try all that can go wrong with one effect")

// dies is the error with which a process dies.
type dies struct{}

// live runs an actor to its end or its death, and reports which. After a death only its effects remain, its lease expires,
// and messages that it received and did not acknowledge come back. A failing operation may also be its death.
func (w *world) live(a interface {
	actor.Actor
	Drop()
}) (alive bool) {
	w.t.Helper()
	defer func() {
		if r := recover(); r != nil && r != (dies{}) {
			panic(r)
		}
		if !alive {
			a.Drop()
			w.Mono += 3 * time.Minute
			w.redeliver()
		}
	}()
	_, err := w.run(a)
	if err != nil && !errors.Is(err, errLost) {
		w.t.Error(err)
	}
	return err == nil
}

// redeliver puts unacknowledged mail back into its mailbox.
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

// death is how a process dies, or how one operation fails.
type death uint8

const (
	diesBefore death = iota
	diesAfter
	failsBefore
	failsAfter
	deaths
)

// crashing is a crawl of two sites that link to each other, in two partitions, in which effect number at goes wrong,
// counted from one.
type crashing struct {
	at     int
	death  death
	moves  bool // all slots of partition 1 move to 2 meanwhile, and then to 0
	narrow bool // the second site is in scope because a seed redirects to it
}

// pagesOfASite is the number of pages of each of the two sites.
const pagesOfASite = 3

// web serves the sites, and checks that no host is requested faster than the delay (I9).
func (x crashing) web(t *testing.T, w *world, c *blobschema.Crawl, hosts []string) (seeds []string) {
	last := map[string]time.Duration{}
	w.web = func(r actor.Request) *actor.Outcome {
		host := string(r.URL.Host())
		if began := w.Mono - fetchTime; r.URL.Path() != "/robots.txt" {
			if before, ok := last[host]; ok && began-before < c.Settings.Delay {
				t.Errorf("I9: %s is asked %v after the page before", r.URL, began-before)
			}
			last[host] = began
		}
		return site(t, host, pagesOfASite, func(i int) []string {
			return []string{fmt.Sprintf("https://%s/%d", host, i+1), fmt.Sprintf("https://%s/%d", hosts[0], i), fmt.Sprintf("https://%s/%d", hosts[1], i)}
		})(r)
	}
	seeds = []string{"https://" + hosts[0] + "/0"}
	if x.narrow {
		c.Settings.Scope = blobschema.ScopeHost
		seeds = append(seeds, "https://go.example/")
		serve := w.web
		w.web = func(r actor.Request) *actor.Outcome {
			o := serve(r)
			if r.URL.String() == seeds[1] {
				to := "https://" + hosts[1] + "/0"
				o.Page.Outcome, o.Page.Status, o.Page.Redirect = blobschema.OutcomeRedirect, 301, to
				o.Links = []actor.Link{{URL: parseURL(t, to), Kind: actor.LinkRedirect}}
			}
			return o
		}
	}
	return seeds
}

// run returns the number of effects.
func (x crashing) run(t *testing.T) (effects int) {
	t.Helper()
	w, c := newWorld(t), newCrawl(2)
	hosts := []string{ofPartition(t, c, 0), ofPartition(t, c, 1)}
	seeds := x.web(t, w, &c, hosts)
	c = w.begin(c, seeds...)
	w.fault = func(e actor.Effect) (before, after error) {
		if effects++; effects != x.at {
			return nil, nil
		}
		switch x.death {
		case failsBefore:
			return errLost, nil
		case failsAfter:
			return nil, errLost
		case diesAfter:
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
		w.Mono += 20 * time.Second
	}
	want, got := map[string]int{}, map[string]int{}
	for p := range partition.ID(3) {
		if rec := w.Table[naming.HeadKey(c.ID, p)]; rec.Found && w.head(c.ID, p).Commit != "" {
			for url, times := range w.visible(c.ID, p) {
				got[url] += times
			}
		}
	}
	for i := range pagesOfASite + 1 { // the last page does not exist
		want[fmt.Sprintf("https://%s/%d", hosts[0], i)], want[fmt.Sprintf("https://%s/%d", hosts[1], i)] = 1, 1
	}
	if x.narrow {
		want[seeds[1]] = 1
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("pages (-want +got):\n%s", d)
	}
	return effects
}

// TestCrashAnywhere checks that, wherever a process dies or an operation fails, before or after its effect, the crawl ends
// with all pages, each once (I7, I8), and no host is requested faster than its pace (I9). It tries a sample of all cases;
// with -crashes all of them.
func TestCrashAnywhere(t *testing.T) {
	for name, x := range map[string]crashing{"plain": {}, "moves": {moves: true}, "narrow": {narrow: true}} {
		t.Run(name, func(t *testing.T) {
			effects := x.run(t)
			if effects < 100 {
				t.Errorf("only %d effects", effects)
			}
			every := 1 + effects/29*2 // odd, so that every kind of death occurs
			if *crashes {
				every = 1
			}
			for i := 0; i < effects*int(deaths); i += every {
				x.at, x.death = 1+i/int(deaths), death(i%int(deaths))
				if x.run(t); t.Failed() {
					t.Fatalf("%+v of %d effects", x, effects)
				}
			}
		})
	}
}
