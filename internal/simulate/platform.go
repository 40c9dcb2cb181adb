package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/drivers/embedded"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/virtual"
	"github.com/orbweaver/orbweaver/partition"
)

// tick runs the coordinator every minute.
func (w *world) tick() {
	w.After(time.Minute, w.tick)
	w.resume()
	w.startTick()
	if !w.cfg.Local && w.fault(&w.outside, TwoTicks) {
		w.newTick(nil)
	}
}

// startTick begins a coordinator run, unless one is running.
func (w *world) startTick() {
	if w.ticking != nil {
		return
	}
	w.ticking = w.newTick(w.memory)
}

// newTick begins a coordinator run with the memory of earlier runs; nil: none.
func (w *world) newTick(memory *crawl.TickMemory) *proc {
	p := w.newProc("tick", 0)
	cfg := crawl.TickConfig{
		Crawl: w.crawl.ID, Process: p.process(), Exclusive: w.cfg.Local, ResendAfter: cmp.Or(w.cfg.Resend, 10000*time.Hour),
		SweepEvery: w.cfg.SweepEvery,
	}
	if w.cfg.Elastic {
		cfg.PlanEvery, cfg.Capacity = time.Minute, 40
	}
	switch {
	case w.cfg.Cold:
		memory = nil
	case memory == nil:
		memory = &crawl.TickMemory{}
	}
	k := crawl.NewTick(cfg, memory)
	p.Actor = k
	began := w.Mono
	p.onEnd = func(err error) {
		if w.ticking == p {
			w.ticking = nil
		}
		if err != nil || p.dead { // the next run is in another process
			w.memory = &crawl.TickMemory{}
			return
		}
		rep := k.Report()
		if w.cfg.Local && rep.Map.Version != w.toldMap { // as package service does
			w.toldMap = rep.Map.Version
			for _, q := range slices.Clone(w.live) {
				if q.step != nil && !q.Ended() {
					q.Take(q.step.Signal(q.now(), crawl.ReadOrders{}))
				}
			}
		}
		w.startRanks(&rep)
		if !rep.Idle && len(rep.Heads) > 0 {
			w.repartitionWhen(rep.Totals.Pending + rep.Totals.Unexamined)
		}
		if rep.Finished && (len(rep.Map.Moving) > 0 || rep.Map.Target != "") {
			w.fail(broken("end", "a coordinator run finds the crawl finished while slots are moving"))
		}
		if w.onlyRevisits(&rep) || (rep.Finished || rep.Limited) && !rep.Following() {
			w.finish(began, &rep)
		}
	}
	p.start()
	return p
}

// pollWakes is the trigger of the step function: every wake starts a step, even if one is running already.
func (w *world) pollWakes() {
	pause := w.poll.between(200*time.Millisecond, time.Second)
	if w.cfg.Local {
		pause /= 20
	}
	w.After(pause, w.pollWakes)
	free := 10
	if w.cfg.Concurrency > 0 {
		free = min(free, w.cfg.Concurrency-w.working())
	}
	if free <= 0 {
		return
	}
	got, err := w.queues.Receive(w.Wall(), naming.WakesQueue, free)
	if err != nil {
		w.fail(err)
		return
	}
	for _, d := range got {
		_, part, err := blobschema.DecodeWake(d.Body)
		if err != nil {
			w.fail(err)
			return
		}
		p := w.newProc("step", part)
		w.After(p.between(0, 500*time.Millisecond), func() { w.startStep(p) })
		if err := w.queues.Ack(w.Wall(), naming.WakesQueue, d.Receipt); err != nil {
			w.fail(err)
		}
	}
}

// working returns the number of running steps.
func (w *world) working() (n int) {
	for _, p := range w.live {
		if p.step != nil {
			n++
		}
	}
	return n
}

// machines is the number of machines that serve a partition in turn, each with its own warm state.
const machines = 3

// startStep begins a step in a new process.
func (w *world) startStep(p *proc) {
	if w.cfg.Local && slices.ContainsFunc(w.live, func(q *proc) bool { return q.step != nil && q.part == p.part }) {
		return
	}
	cfg := crawl.StepConfig{
		Crawl: w.crawl, Partition: p.part, Process: p.process(), Exclusive: w.cfg.Local,
		Connections: w.cfg.Connections, Lease: lease, Margin: margin, MaxResident: w.cfg.MaxResident, MaxPart: w.cfg.MaxPart,
		MergeFanIn: w.cfg.MergeFanIn,
		SleepMax:   cmp.Or(w.cfg.SleepMax, 30*time.Second), CommitEvery: cmp.Or(w.cfg.CommitEvery, 20*time.Second), CommitPages: 40,
		MailEvery: w.cfg.MailEvery, Linger: 2 * time.Second, CrashesAllowed: w.crashesAllowed(),
		Retry: w.retry(), Token: agent, Software: agent,
	}
	if p.rng.IntN(4) == 0 {
		cfg.Deadline = p.between(10*time.Second, 5*time.Minute)
	}
	if w.cfg.Cold {
		cfg.SendsWakes, cfg.SleepMax, cfg.Linger = true, cmp.Or(w.cfg.SleepMax, 2*time.Second), 200*time.Millisecond
		if w.cfg.PerHour > 0 && cfg.Deadline == 0 { // such a step may never run out of work, but functions end
			cfg.Deadline = 14 * time.Minute
		}
	}
	p.on = machine{kind: "step", part: p.part}
	if !w.cfg.Local {
		p.on.n = p.rng.IntN(machines)
	}
	warm := w.warm[p.on]
	delete(w.warm, p.on)
	s, err := crawl.NewStep(cfg, warm)
	if err != nil {
		w.fail(err)
		return
	}
	p.Actor, p.step = s, s
	p.onEnd = func(err error) {
		switch {
		case p.dead:
		case err == nil:
			w.warm[p.on] = s.Warm()
			for host, d := range p.learnt {
				w.pace[host] = max(w.pace[host], d)
			}
			if !w.cfg.Cold && p.rng.IntN(2) == 0 {
				w.After(p.between(0, time.Second), w.startTick)
			}
		case errors.Is(err, crawl.ErrLeaseLost):
			w.count(LeaseLost)
		case errors.Is(err, crawl.ErrLeaseTaken), errors.Is(err, errInjected):
		case errors.Is(err, actor.ErrNotFound) && w.part(p.part).holder != p: // deleted after another step took its lease
		default:
			w.fail(fmt.Errorf("a step fails: partition %d at %v: %w", p.part, w.Mono, err))
		}
	}
	p.start()
}

const (
	lease  = 2 * time.Minute
	margin = 5 * time.Second
)

// retry returns the retry policy of steps.
func (w *world) retry() polite.Retry {
	r := polite.Retry{Attempts: 4, Wait: 5 * time.Second}
	if w.cfg.Attempts > 0 {
		r.Attempts, r.HostFailures = w.cfg.Attempts, 255
	}
	return r
}

// crashesAllowed prevents steps from blaming a URL for injected crashes.
func (w *world) crashesAllowed() int {
	if w.cfg.Killer != "" {
		return 0
	}
	return 1 << 30
}

// pollIntake is the trigger of the intake function.
func (w *world) pollIntake() {
	w.After(w.poll.between(200*time.Millisecond, 2*time.Second), w.pollIntake)
	got, err := w.queues.Receive(w.Wall(), naming.IntakeQueue, 10)
	if err != nil {
		w.fail(err)
	}
	if len(got) == 0 {
		return
	}
	msgs := make([]actor.Message, len(got))
	for i, d := range got {
		msgs[i] = w.message(d)
	}
	p := w.newProc("intake", 0)
	p.Actor = crawl.NewIntake(crawl.IntakeConfig{Crawl: w.crawl.ID}, msgs)
	p.onEnd = func(err error) {
		switch {
		case p.dead || errors.Is(err, errInjected):
			return // the messages are delivered again
		case err != nil:
			w.fail(fmt.Errorf("the intake fails: %w", err))
			return
		}
		w.taken = w.Mono
		for _, m := range msgs {
			if err := w.queues.Ack(w.Wall(), naming.IntakeQueue, m.Receipt.(embedded.Receipt)); err != nil {
				w.fail(err)
			}
		}
	}
	p.start()
}

// newProc returns a process that has not started.
func (w *world) newProc(kind string, part partition.ID) *proc {
	key := fmt.Sprint(kind, " ", part)
	w.procs[key]++
	n := w.procs[key]
	p := &proc{
		w: w, kind: kind, part: part, identity: newIdentity(w.cfg.Seed, fmt.Sprintf("%s/%d", key, n)),
		on: machine{kind: kind, part: part, n: n},
	}
	p.Process = virtual.Process{Now: p.now, Carry: p.issue, OnEnd: p.end}
	return p
}

// process returns the name of the process for its actor.
func (p *proc) process() string {
	if p.w.cfg.Local {
		return fmt.Sprintf("local%d", p.w.process)
	}
	return fmt.Sprintf("%s%d-%d", p.kind, p.part, p.w.procs[fmt.Sprint(p.kind, " ", p.part)])
}
