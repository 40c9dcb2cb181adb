package crawl

import (
	"maps"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

// finished applies the rule for the end: every seed is applied, no slot is moving, nothing is pending or buffered, every
// partition obeys the desired state, all sent mail is applied, and two successive runs find no new commit in any head.
func (k *Tick) finished(*actor.Task) error {
	c := &k.report.Crawl
	seqs := map[partition.ID]uint64{}
	quiet := c.Published == len(c.SeedBatches) && len(k.report.Map.Moving) == 0 && k.report.Map.Target == ""
	quiet = quiet && k.delivered()
	for i := range k.report.Heads {
		h := &k.report.Heads[i]
		seqs[h.Partition] = h.Seq
		if h.Totals.Pending+h.Totals.Unexamined+h.Totals.Buffered > 0 || h.Desired != k.report.Desired.Version {
			quiet = false
		}
	}
	k.report.Quiet = quiet
	k.report.Finished = quiet && k.notes.Quiet != nil && maps.Equal(k.notes.Quiet, seqs)
	if quiet && !k.report.Finished {
		k.note(func(n *blobschema.TickNotes) { n.Quiet = seqs })
	}
	k.report.Limited = c.Settings.MaxPages > 0 && !revisits(&c.Settings) && k.report.Totals.Pages >= c.Settings.MaxPages && k.answered()
	return nil
}

// answered reports whether no request from outside and no requisite is pending or on its way. If there cannot be any, mail
// under way does not matter.
func (k *Tick) answered() bool {
	none := len(k.report.Requests.Sent) == 0 && !k.report.Crawl.Settings.AnyRequisites()
	return none || k.delivered() && k.report.Totals.Urgent+k.report.Totals.Buffered == 0
}

// delivered reports whether all mail is applied.
func (k *Tick) delivered() bool {
	for p := range partition.ID(k.report.Partitions()) {
		if k.expected(p) != k.applied(p) {
			return false
		}
	}
	return true
}

// whatMatters returns everything that can make an idle crawl continue, as it is now.
func (k *Tick) whatMatters() blobschema.Idle {
	w := &k.report.Desired
	now := blobschema.Idle{Batches: len(k.report.Crawl.SeedBatches), Limit: k.grants.Limit, Desired: w.Version, Orders: w.Orders, Map: k.report.Map.Version, Index: k.report.Crawl.Settings.Index}
	if done := k.ranks.Finished(); done != nil {
		now.Ranks = done.Number
	}
	for _, n := range k.report.Requests.Sent {
		now.Requests += n
	}
	return now
}

// over reports whether no step is running and the crawl itself needs none.
func (k *Tick) over() bool {
	r := &k.report
	return r.Leased == 0 && (r.Finished || r.Limited || r.Desired.Stop || r.Desired.Pause)
}

// idle records that there is nothing to do, so that the next runs need not read the partitions.
func (k *Tick) idle(*actor.Task) error {
	if !k.copied || k.mem != nil || !k.over() || len(k.record.Sweep) > 0 || k.report.Following() {
		return nil
	}
	for p := range partition.ID(k.report.Partitions()) {
		if k.needsStep(p) {
			return nil
		}
	}
	now := k.whatMatters()
	now.Finished, now.Limited = k.report.Finished, k.report.Limited
	k.learn(func(r *blobschema.TickRecord) { r.Idle = &now })
	return nil
}
