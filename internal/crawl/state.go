package crawl

import (
	"maps"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/partition"
)

// state is what a step knows of its partition: the content of its commits and the batch for the next one. Its methods read
// stored objects. They write none, except that the archive puts full WARC objects. A step that ends well leaves its state
// to the next step in the process.
type state struct {
	// These belong to the current step.
	cfg   *StepConfig
	lease *lease
	batch *batch

	man     blobschema.Manifest // of the last commit
	f       *frontier.Frontier
	known   map[string]polite.Pace // states in which hosts of the frontier begin
	links   frontier.Mapping
	out     buffers
	marks   map[partition.ID]*blobschema.Marks // mail applied, by sender
	totals  blobschema.Totals                  // current totals, without the frontier's counts
	sent    *sentFilter
	policy  schedule.Policy
	scopes  scopes
	topics  []blobschema.Topic      // topics that scopes and frontier were built with
	made    string                  // settings that the frontier was built with, see madeWith
	seeds   int                     // number of seed batches whose hosts are in scope
	desired blobschema.DesiredState // desired state that the step obeyed last
	indexes map[string]*blobschema.RunIndex
	merged  *merged // finished merge for the next commit; nil: none
	ter     *territory
	archive archive
	cache   recordCache
}

// Warm is the state that a step leaves to the next one in the same process. The next step uses it only if the head still
// names the same commit.
type Warm struct {
	commit string
	st     *state
}

// attach gives a state to a step, with an empty batch.
func (st *state) attach(s *Step) {
	st.cfg, st.lease, st.batch = &s.cfg, &s.lease, &batch{}
	st.archive.lease = &s.lease
	if st.ter != nil {
		st.ter.pulling, st.ter.gaveTo = false, nil
	}
}

// batch is what has happened since the last commit began.
type batch struct {
	begun     time.Time
	pages     []blobschema.Page
	settled   int // settled URLs so far, refusals included
	links     []blobschema.PageLinks
	outside   []blobschema.Queued
	receipts  []actor.Receipt // receipts to acknowledge after the commit
	applied   bool            // some mail or order had an effect
	urls      int             // URLs received by mail
	requested bool            // it holds an answer to a request from outside
	newScope  []string
	warcs     []string
	puts      int // puts under way that the commit depends on
}

func (b *batch) empty() bool {
	return len(b.pages) == 0 && !b.applied && len(b.receipts) == 0 && len(b.newScope) == 0
}

func (b *batch) add(p *blobschema.Page) {
	b.pages = append(b.pages, *p)
	b.settled++
}

// dirty reports whether a commit would hold anything new.
func (st *state) dirty() bool {
	return !st.batch.empty() || st.f.Dirty() || len(st.ter.owed)+len(st.ter.arrived) > 0
}

// figures returns the current totals, including the frontier's counts.
func (st *state) figures() blobschema.Totals {
	t := st.totals
	t.Outcomes = maps.Clone(t.Outcomes)
	n := st.f.Counts()
	t.Known, t.Pending, t.Unexamined, t.Hosts, t.Urgent = n.Known, n.Pending, n.Unexamined, n.Keys, n.Urgent
	t.WaitMillis += n.WaitMillis
	t.Capped += n.Capped
	t.Buffered = st.out.links()
	t.Topics = st.topicTotals()
	return t
}

// here returns the slots whose state has arrived, so that a step can work on them.
func (st *state) here(slots []blobschema.SlotSummary) []blobschema.SlotSummary {
	awaited := st.ter.awaited
	if len(awaited) == 0 {
		return slots
	}
	return slices.DeleteFunc(slices.Clone(slots), func(sum blobschema.SlotSummary) bool { return awaited[sum.Slot] != 0 })
}
