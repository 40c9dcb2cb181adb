package crawl

import (
	"cmp"
	"errors"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/partition"
)

// TickConfig configures a coordinator run.
type TickConfig struct {
	Crawl     string // id of the crawl
	Process   string // as in StepConfig
	Exclusive bool   // as in StepConfig
	// WakeAgain is the time after which a wake that no step has answered is resent: it may be lost, or wait for a free
	// function. The time doubles with each resend, up to 15 minutes. Default 1 min; 3 s with a TickMemory.
	WakeAgain   time.Duration
	ResendAfter time.Duration // least time between two resends of unapplied mail, and least age of the mail resent to a partition with a running step; default 10 min
	SweepEvery  time.Duration // least time between two sweeps for merged runs to delete; default 10 min
	// FollowNow makes index and ranks follow at once, as if the crawl were over.
	FollowNow  bool
	HostsEvery time.Duration // least time between two copies of host estimates to the hosts table; default 1 min
	// These apply where the crawl's settings let the coordinator change the number of partitions: the least time between
	// two plans, default 2 min; the pages that one partition may fetch in ten minutes, default 20,000; and the number of
	// mailboxes, 0 for no limit.
	PlanEvery time.Duration
	Capacity  float64
	Mailboxes int
	// DailyCalls limits the function calls of a day: the coordinator pauses a crawl that exceeds it. 0: no limit.
	DailyCalls int64
	Policy     schedule.Policy // as in StepConfig
	// Spent returns the billed calls of the process since the run began; nil: calls are not counted.
	Spent func() blobschema.Calls
}

// TickMemory is what the coordinator runs of one process remember from one to the next. Losing it costs a few wakes and
// index jobs, and one more run at the end. The zero value is ready for use.
type TickMemory struct {
	notes blobschema.TickNotes
	heads map[partition.ID]readHead
}

// readHead is a head as read last, and its stored form. Nobody changes either.
type readHead struct {
	stored []byte
	head   blobschema.Head
}

// Report is what a coordinator run found.
type Report struct {
	Crawl    blobschema.Crawl
	Desired  blobschema.DesiredState
	Heads    []blobschema.Head // heads of the partitions that have one
	Totals   blobschema.Totals // sum over all heads, as of their last commits
	Woken    []partition.ID    // partitions that this run sent a wake to
	Leased   int               // number of partitions with a running step
	Finished bool              // nothing is left to do
	Quiet    bool              // the crawl is finished if the next run finds the same
	Limited  bool              // the page limit is reached
	// Idle means that an earlier run found nothing to do, and nothing has changed since that could matter. Such a run does
	// not read the partitions, and Heads is empty.
	Idle     bool
	Requests blobschema.Requests
	Map      blobschema.MapRecord
	// Indexing is the number of partitions with commits or anchor texts that are not in the index yet; 0 without an index.
	// WantsRanks means that a rank job should begin, Ranking that one is under way.
	Indexing            int
	WantsRanks, Ranking bool
}

// Partitions returns the largest number of partitions so far.
func (r *Report) Partitions() int { return max(r.Crawl.Partitions, r.Map.Partitions) }

// Tick is one coordinator run: it reads the heads and does what follows from them. Every action is idempotent, so two runs
// at once do no harm, and the next run repeats what a crashed one left undone. It is an [actor.Actor].
type Tick struct {
	actor.Procedure
	cfg    TickConfig
	mem    *TickMemory
	report Report
	first  *partition.Map // the map of epoch 1
	grants blobschema.Grants
	ranks  ranks.Job // last rank job of a crawl with an index, once it was read
	heads  map[partition.ID]*blobschema.Head
	record blobschema.TickRecord
	notes  *blobschema.TickNotes          // in mem, or in record
	learnt []func(*blobschema.TickRecord) // changes of the record, written at the end
	told   blobschema.Calls               // part of cfg.Spent that the record has
	copied bool                           // the hosts table has the estimates of all commits
	// indexCalls is the number of function calls of all index steps whose records this run read.
	indexCalls int64
}

// NewTick returns a coordinator run. The runs of a process share mem, one at a time. mem is nil where each run may be in
// another process: then its content is in the table, and a run of an idle crawl reads only a few records.
func NewTick(cfg TickConfig, mem *TickMemory) *Tick {
	again := time.Minute
	if mem != nil {
		again = 3 * time.Second
	}
	cfg.WakeAgain = cmp.Or(cfg.WakeAgain, again)
	cfg.ResendAfter = cmp.Or(cfg.ResendAfter, 10*time.Minute)
	cfg.HostsEvery = cmp.Or(cfg.HostsEvery, time.Minute)
	cfg.SweepEvery = cmp.Or(cfg.SweepEvery, 10*time.Minute)
	cfg.PlanEvery = cmp.Or(cfg.PlanEvery, 2*time.Minute)
	cfg.Capacity = cmp.Or(cfg.Capacity, 20_000)
	k := &Tick{cfg: cfg, mem: mem, heads: map[partition.ID]*blobschema.Head{}}
	k.Body = k.run
	return k
}

// Report returns what the run found. It is valid after the run has ended without an error.
func (k *Tick) Report() Report { return k.report }

// tickDuties lists the duties of a coordinator run in order. An error ends the run, except in the last duties: nothing
// waits for those, they read more the more partitions there are, and an error in them does not undo the others.
var tickDuties = []struct {
	name string
	do   func(*Tick, *actor.Task) error
	last bool
}{
	{"send seeds", (*Tick).publishSeeds, false},
	{"tell partitions what others found", (*Tick).changeDesired, false},
	{"shrink the slices of topics", (*Tick).watchTopics, false},
	{"steer revisits", (*Tick).steerRevisits, false},
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

// run reads the records and does the duties.
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
