package rank

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/virtual"
	"github.com/orbweaver/orbweaver/partition"
)

// visibility is the time after which the message of a killed step is redelivered.
const visibility = 30 * time.Minute

// world executes the effects of actors on a table, objects and a queue in memory. It checks that
// objects never change (I6).
type world struct {
	virtual.Store
	t       testing.TB
	now     time.Duration
	queue   []partition.ID
	effects int
	// kill is the number of effects after which the running actor is killed; -1: none.
	kill int
	// fork is called before each effect with the partition of the running step; nil: it is not called.
	fork func(partition.ID)
	at   partition.ID // of the running step
	warm map[partition.ID]*Warm
	// deadline of steps; 0: none.
	deadline time.Duration
	cold     bool // steps keep no state in memory
	// fault returns the error of an effect, before or after it takes place; nil: no faults.
	fault func(actor.Effect) (before, after error)
	gets  int
	died  bool  // a step was killed, so messages may be lost
	alone int64 // of jobs that do not say
}

func newWorld(t testing.TB) *world {
	return &world{t: t, Store: virtual.NewStore(), kill: -1, alone: -1, warm: map[partition.ID]*Warm{}}
}

func (w *world) clone() *world {
	c := *w
	c.Store, c.queue = w.Clone(), slices.Clone(w.queue)
	c.warm = map[partition.ID]*Warm{}
	return &c
}

// Record implements made.Store.
func (w *world) Record(key string, value []byte) error {
	w.Write(key, value)
	return nil
}

var errKilled = errors.New("killed")

func (w *world) clock() actor.Now { return actor.Now{Wall: virtual.Epoch.Add(w.now), Mono: w.now} }

// run runs an actor until it ends or is killed.
func (w *world) run(a actor.Actor) error {
	r := w.begin(a, 0)
	for {
		ended, err := w.turn(r, 0)
		if ended {
			return err
		}
	}
}

// running is a running actor with its pending effects.
type running struct {
	virtual.Process
	queue []actor.Issue
	p     partition.ID
}

// begin starts an actor for a partition.
func (w *world) begin(a actor.Actor, p partition.ID) *running {
	r := &running{p: p}
	r.Process = virtual.Process{Actor: a, Now: w.clock, Carry: func(is actor.Issue) { r.queue = append(r.queue, is) }}
	r.Start()
	return r
}

// turn executes the i-th pending effect of an actor.
func (w *world) turn(r *running, i int) (ended bool, err error) {
	if ended, err := r.Actor.Ended(); ended {
		return true, err
	}
	if len(r.queue) == 0 {
		w.t.Fatal("the actor has not ended and has no pending effect")
	}
	is := r.queue[i]
	r.queue = slices.Delete(r.queue, i, i+1)
	if w.fork != nil {
		w.fork(w.at)
	}
	w.effects++
	if w.effects-1 == w.kill {
		r.Kill()
		return true, errKilled
	}
	v, err := w.try(is.Effect)
	r.Reply(is.ID, v, err)
	return r.Actor.Ended()
}

func (w *world) try(e actor.Effect) (any, error) {
	if w.fault == nil {
		return w.apply(e)
	}
	before, after := w.fault(e)
	if before != nil {
		return nil, before
	}
	v, err := w.apply(e)
	if err == nil && after != nil {
		return nil, after
	}
	return v, err
}

func (w *world) apply(effect actor.Effect) (any, error) {
	w.now += time.Millisecond
	switch e := effect.(type) {
	case actor.Sleep:
		w.now += e.For
		return nil, nil
	case actor.Send:
		if e.Queue != naming.RankQueue {
			return nil, fmt.Errorf("unknown queue %s", e.Queue)
		}
		for _, b := range e.Bodies {
			_, p, err := blobschema.DecodeJob(b)
			if err != nil {
				return nil, err
			}
			w.queue = append(w.queue, p)
		}
		return nil, nil
	case actor.GetObject:
		w.gets++
	case actor.DeleteObject:
		if !strings.Contains(e.Name, "/rank/") {
			w.t.Errorf("a rank step deletes %s", e.Name)
		}
	case actor.WriteRecord:
		if len(e.Value) > 400<<10 {
			w.t.Errorf("record %s has %d bytes", e.Key, len(e.Value))
		}
	}
	v, ok, err := w.Apply(effect)
	switch {
	case !ok:
		return nil, fmt.Errorf("unknown effect %T", effect)
	case errors.Is(err, virtual.ErrChanged):
		w.t.Error(err)
	}
	return v, err
}

// crawl returns the crawl of the world.
func (w *world) crawl() blobschema.Crawl {
	w.t.Helper()
	c, err := actor.Decode[blobschema.Crawl](w.Table[naming.CrawlKey("c")], "crawl")
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) step(p partition.ID) *Step {
	warm := w.warm[p]
	delete(w.warm, p)
	return NewStep(StepConfig{Crawl: w.crawl(), Partition: p, Deadline: w.deadline}, warm)
}

// start begins a job.
func (w *world) start(cfg StartConfig) error {
	cfg.Crawl, cfg.Alone = w.crawl(), cmp.Or(cfg.Alone, w.alone)
	return w.run(NewStart(cfg))
}

// drain runs a step for each message until there are none. The message of a killed step is redelivered; NewRemind sends
// messages again that the step may have lost.
func (w *world) drain() error {
	for n := 0; len(w.queue) > 0 || w.died; n++ {
		if n > 10_000 {
			w.t.Fatal("too many messages")
		}
		if len(w.queue) == 0 {
			w.died = false
			if err := w.run(NewRemind("c", 0)); err != nil {
				return err
			}
			continue
		}
		p := w.queue[0]
		w.queue = w.queue[1:]
		s := w.step(p)
		w.at = p
		switch err := w.run(s); {
		case errors.Is(err, errKilled):
			w.killed(p)
		case err != nil:
			return err
		case !w.cold:
			w.warm[p] = s.Warm()
		}
	}
	return nil
}

// killed drops the state in memory after a crash and redelivers the message of the step.
func (w *world) killed(p partition.ID) {
	w.warm, w.died = map[partition.ID]*Warm{}, true
	if len(w.queue) == 0 {
		w.now += visibility
	}
	w.queue = append(w.queue, p)
}

// drainWild runs up to n steps at once with their effects in random order, and delivers some messages twice.
func (w *world) drainWild(r *rand.Rand, n int) error {
	var live []*running
	for turns := 0; len(w.queue)+len(live) > 0; turns++ {
		if turns > 1_000_000 {
			w.t.Fatal("too many messages")
		}
		if len(w.queue) > 0 && (len(live) == 0 || len(live) < n && r.IntN(4) == 0) {
			i := r.IntN(len(w.queue))
			p := w.queue[i]
			if r.IntN(3) > 0 {
				w.queue = slices.Delete(w.queue, i, i+1)
			}
			live = append(live, w.begin(w.step(p), p))
			continue
		}
		i := r.IntN(len(live))
		ended, err := w.turn(live[i], r.IntN(max(1, len(live[i].queue))))
		switch {
		case ended && err != nil:
			return err
		case ended:
			if r.IntN(2) == 0 {
				w.warm[live[i].p] = live[i].Actor.(*Step).Warm()
			}
			live = slices.Delete(live, i, i+1)
		}
	}
	return nil
}

func (w *world) job() ranks.Job {
	w.t.Helper()
	j, err := actor.Decode[ranks.Job](w.Table[naming.RankKey("c")], "job")
	if err != nil {
		w.t.Fatal(err)
	}
	return j
}

func (w *world) head(p int) ranks.Head {
	w.t.Helper()
	h, err := actor.Decode[ranks.Head](w.Table[naming.RankHeadKey("c", partition.ID(p))], "head")
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

// ranks returns the ranks of the last finished job, by fingerprint and by host.
func (w *world) ranks() (pages map[uint64]float64, hosts map[string]float64) {
	w.t.Helper()
	latest := w.job()
	job := latest.Finished()
	if job == nil {
		w.t.Fatalf("no finished job: %+v", latest)
	}
	pages, hosts = map[uint64]float64{}, map[string]float64{}
	for p := 0; ; p++ {
		if !w.Table[naming.RankHeadKey("c", partition.ID(p))].Found {
			return pages, hosts
		}
		h := w.head(p)
		r, ok := h.Result(job.Number)
		if !ok {
			w.t.Fatalf("head %d has no result of job %d", p, job.Number)
		}
		for _, name := range []string{r.Table, r.Rest} {
			table, err := ranks.DecodeTable(w.Objects[name])
			if err != nil {
				w.t.Fatalf("%s: %v", name, err)
			}
			for i := range table.Len() {
				fp, rank := table.At(i)
				pages[fp] = rank
			}
		}
		if warm := w.warm[partition.ID(p)]; warm != nil && warm.levels[0] != nil { // tables are of float32
			for i, fp := range warm.layout.Nodes {
				if diff := pages[fp] - warm.levels[0].x[i]; math.Abs(diff) > 1e-7*warm.levels[0].x[i] {
					w.t.Errorf("table says %g where the rank is %g", pages[fp], warm.levels[0].x[i])
				}
				pages[fp] = warm.levels[0].x[i]
			}
		}
		rh, err := ranks.DecodeHosts(w.Objects[r.Hosts])
		if err != nil {
			w.t.Fatal(err)
		}
		for i, name := range rh.Names {
			hosts[name] = rh.Ranks[i]
		}
	}
}

// orphans returns the objects of rank jobs that no head names.
func (w *world) orphans() (out []string) {
	named := map[string]bool{}
	for key := range w.Table {
		if strings.HasPrefix(key, "c/rank/") {
			h, err := actor.Decode[ranks.Head](w.Table[key], key)
			if err != nil {
				w.t.Fatal(err)
			}
			for _, n := range slices.Concat(h.Next.Objects(), h.Last.Objects()) {
				named[n] = true
			}
			for _, r := range h.Rounds {
				named[r.Object] = true
			}
			for _, d := range h.Dropped {
				named[d.Object] = true
			}
		}
	}
	for name := range w.Objects {
		if strings.HasPrefix(name, naming.RankPrefix("c")) && !named[name] {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
