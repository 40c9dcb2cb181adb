package crawl

import (
	"maps"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/partition"
)

// state is what a step knows of its partition: what commits hold, and the batch for the next one. Its methods
// read what is stored, but write nothing, except that its archive puts full WARC objects. A step that ends well leaves it to the next one in its process.
type state struct {
	// Of the step at work.
	cfg   *StepConfig
	lease *lease
	batch *batch

	man     blobschema.Manifest // of the last commit
	f       *frontier.Frontier
	links   frontier.Mapping
	out     buffers
	marks   map[partition.ID]*marks
	totals  blobschema.Totals // as they are now, without the frontier's counts
	sent    *sentFilter
	policy  schedule.Policy
	scopes  scopes
	topics  []blobschema.Topic // topics that scopes and frontier were made with
	made    string             // settings that the frontier was made with, see madeWith
	seeds   int                // batches of seeds whose hosts are in the scope
	wish    blobschema.Wish    // as obeyed last
	indexes map[string]*blobschema.RunIndex
	merged  *merged // a finished merge, for the next commit
	ter     *territory
	archive archive
	formers formers
}

// Warm is what a step leaves to the next one in the same process, which may use it
// if the head still names the same commit.
type Warm struct {
	commit string
	st     *state
}

// attach makes a state that of a step, with nothing in its batch.
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
	settled   int // pages so far, those of refusals included
	links     []blobschema.PageLinks
	outside   []blobschema.Queued
	receipts  []actor.Receipt // to acknowledge after the commit
	applied   bool            // some mail or order had an effect
	urls      int             // URLs that came by mail
	requested bool            // an answer to a request from outside is in it
	newScope  []string
	warcs     []string
	puts      int // objects being put that the commit relies on
}

func (b *batch) empty() bool {
	return len(b.pages) == 0 && !b.applied && len(b.receipts) == 0 && len(b.newScope) == 0
}

// add adds a page record.
func (b *batch) add(p *blobschema.Page) {
	b.pages = append(b.pages, *p)
	b.settled++
}

// dirty reports whether a commit would hold anything new.
func (st *state) dirty() bool {
	return !st.batch.empty() || st.f.Dirty() || len(st.ter.owed)+len(st.ter.arrived) > 0
}

// figures are the totals as of now, the frontier's counts included.
func (st *state) figures() blobschema.Totals {
	t := st.totals
	t.Outcomes = maps.Clone(t.Outcomes)
	n := st.f.Counts()
	t.Known, t.Pending, t.Unexamined, t.Hosts, t.Urgent = n.Known, n.Pending, n.Unexamined, n.Hosts, n.Urgent
	t.WaitMillis += n.WaitMillis
	t.Capped += n.Capped
	t.Held = st.out.held()
	t.Topics = st.topicTotals()
	return t
}

// here are those of some slots whose state is here, and which a step can thus do something
// for.
func (st *state) here(slots []blobschema.SlotSummary) []blobschema.SlotSummary {
	awaited := st.ter.awaited
	if len(awaited) == 0 {
		return slots
	}
	return slices.DeleteFunc(slices.Clone(slots), func(sum blobschema.SlotSummary) bool { return awaited[sum.Slot] != 0 })
}
