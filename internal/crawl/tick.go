package crawl

import (
	"errors"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/partition"
)

// TickConfig says what a tick looks after.
type TickConfig struct {
	Crawl     string // id
	Process   string // as in StepConfig
	Exclusive bool   // as in StepConfig
	// WakeAgain is after how long a wake that no step has answered is sent again, and twice as
	// long each further time, up to 15 minutes: it may be lost, or wait for a free function.
	// Default 1 min, 3 s with a TickMemory.
	WakeAgain   time.Duration
	ResendAfter time.Duration // how often mail that is not applied is sent again at most, and how old it is then where a step is at work; default 10 min
	SweepEvery  time.Duration // how often runs that were merged are looked for, to be deleted; default 10 min
	// Settle has index and ranks follow at once, as if the crawl were over.
	Settle     bool
	HostsEvery time.Duration // how often host estimates are copied to the hosts table; default 1 min
	// Where the crawl's settings let ticks change the number of partitions: how often they look,
	// default 2 min; how many pages one partition may fetch in ten minutes, default 20,000; and
	// how many mailboxes there are, 0 for as many as it takes.
	PlanEvery time.Duration
	Capacity  float64
	Mailboxes int
	// DailyCalls limits the function calls of a day; the coordinator pauses a crawl that exceeds it. 0: no limit.
	DailyCalls int64
	Policy     schedule.Policy // as in StepConfig
	// Spent is what the process was billed for since the tick began; nil: that is not counted.
	Spent func() blobschema.Calls
}

// TickMemory is what one process's ticks remember from one to the next. Losing it
// costs a few wakes and index jobs, and a tick at the end. The zero value is ready for use.
type TickMemory struct{ notes blobschema.TickNotes }

// Report is what a tick found.
type Report struct {
	Crawl    blobschema.Crawl
	Wish     blobschema.Wish
	Heads    []blobschema.Head // of the partitions that have one
	Totals   blobschema.Totals // over all heads, as of their last commits
	Woken    []partition.ID
	Leased   int
	Finished bool // nothing is left to do
	Quiet    bool // it would be finished if the next tick finds the same
	Limited  bool // the page limit is reached
	// Idle says that nothing was left to do at an earlier tick, and that nothing has come
	// since that could change it: the partitions were not looked at, and Heads is empty.
	Idle     bool
	Requests blobschema.Requests
	Map      blobschema.MapRecord
	// Indexing is how many partitions have commits, or texts of links, that are not in the index yet,
	// where there is to be one. WantsRanks says that a rank job should be begun, Ranking that one is under way.
	Indexing            int
	WantsRanks, Ranking bool
}

// Partitions is how many partitions there are, or ever were.
func (r *Report) Partitions() int { return max(r.Crawl.Partitions, r.Map.Partitions) }

// Tick is one run of the coordinator: it reads the heads and does what follows from
// them. Every action is idempotent: two ticks at once do no harm, and a tick that dies
// is made up for by the next. It is an [actor.Actor].
type Tick struct {
	actor.Procedure
	cfg    TickConfig
	mem    *TickMemory
	report Report
	first  *partition.Map // of epoch 1
	grants blobschema.Grants
	ranks  ranks.Job // of a crawl with an index, once it was read
	heads  map[partition.ID]*blobschema.Head
	record blobschema.TickRecord
	notes  *blobschema.TickNotes          // in mem, or in record
	learnt []func(*blobschema.TickRecord) // changes of the record, made at the end
	told   blobschema.Calls               // of cfg.Spent, what the record has
	copied bool                           // the hosts table has the estimates of all commits
	// indexCalls are the function calls of all index steps, as far as this run read their records.
	indexCalls int64
}

// NewTick returns a tick. mem is shared by the ticks of a process, one at a time. It is
// nil where each tick may run in another process: then what it would hold is in the
// table, and a tick of an idle crawl reads a few records only.
func NewTick(cfg TickConfig, mem *TickMemory) *Tick {
	if cfg.WakeAgain == 0 {
		cfg.WakeAgain = time.Minute
		if mem != nil {
			cfg.WakeAgain = 3 * time.Second
		}
	}
	if cfg.ResendAfter == 0 {
		cfg.ResendAfter = 10 * time.Minute
	}
	if cfg.HostsEvery == 0 {
		cfg.HostsEvery = time.Minute
	}
	if cfg.SweepEvery == 0 {
		cfg.SweepEvery = 10 * time.Minute
	}
	if cfg.PlanEvery == 0 {
		cfg.PlanEvery = 2 * time.Minute
	}
	if cfg.Capacity == 0 {
		cfg.Capacity = 20_000
	}
	k := &Tick{cfg: cfg, mem: mem, heads: map[partition.ID]*blobschema.Head{}}
	k.Body = k.run
	return k
}

// Report returns what the tick found, once it has ended well.
func (k *Tick) Report() Report { return k.report }

// tickDuties are all that a run of the coordinator does, in this order. An error ends the run, except in those that nothing
// waits for: they come last, read more the more partitions there are, and what went before is kept even if they fail.
var tickDuties = []struct {
	name string
	do   func(*Tick, *actor.Task) error
	last bool
}{
	{"send seeds", (*Tick).publishSeeds, false},
	{"tell partitions what others found", (*Tick).changeWish, false},
	{"shrink the slices of topics", (*Tick).watchTopics, false},
	{"steer revisits", (*Tick).steerLooks, false},
	{"move slots", (*Tick).moves, false},
	{"wake partitions", (*Tick).wake, false},
	{"see whether it is finished", (*Tick).finished, false},
	{"follow with index and ranks", (*Tick).follow, false},
	{"limit function calls", (*Tick).limitCalls, false},
	{"forget applied requests", (*Tick).pruneRequests, false},
	{"send lost mail again", (*Tick).resend, false},
	{"copy estimates of hosts", (*Tick).copyHosts, true},
	{"delete merged runs", (*Tick).sweep, true},
	{"plan the number of partitions", (*Tick).planElastic, true},
	{"note that nothing is left", (*Tick).idle, true},
	{"remember", (*Tick).remember, true},
}

// run reads all that a run needs, and does its duties.
func (k *Tick) run(t *actor.Task) error {
	if err := k.readAll(t); err != nil || k.report.Idle {
		return err
	}
	var failed error
	for _, d := range tickDuties {
		switch err := d.do(k, t); {
		case err != nil && !d.last:
			return err
		case err != nil:
			failed = errors.Join(failed, err)
		}
	}
	return failed
}
