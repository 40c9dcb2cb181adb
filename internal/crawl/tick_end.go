package crawl

import (
	"maps"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

// finished applies the rule for the end: every seed applied, nothing pending, all
// mail sent has been applied, seen in two ticks between which no head named a new
// commit.
func (k *Tick) finished(*actor.Task) error {
	c := &k.report.Crawl
	seqs := map[partition.ID]uint64{}
	quiet := c.Published == len(c.SeedBatches) && len(k.report.Map.Moving) == 0 && k.report.Map.Target == ""
	for p := range partition.ID(k.report.Partitions()) {
		if k.expected(p) != k.applied(p) {
			quiet = false
		}
		h := k.heads[p]
		if h == nil {
			continue
		}
		seqs[p] = h.Seq
		if h.Totals.Pending+h.Totals.Unexamined+h.Totals.Held > 0 || h.Wish != k.report.Wish.Version {
			quiet = false
		}
	}
	k.report.Quiet = quiet
	k.report.Finished = quiet && k.notes.Quiet != nil && maps.Equal(k.notes.Quiet, seqs)
	if quiet && !k.report.Finished {
		k.note(func(n *blobschema.TickNotes) { n.Quiet = seqs })
	}
	k.report.Limited = c.Settings.MaxPages > 0 && !looks(&c.Settings) && k.report.Totals.Pages >= c.Settings.MaxPages && k.answered()
	return nil
}

// answered reports whether nothing is left of requests from outside: none is pending, or on
// its way. While there were none, what mail is under way does not matter.
func (k *Tick) answered() bool {
	if len(k.report.Requests.Sent) == 0 {
		return true
	}
	for p := range partition.ID(k.report.Partitions()) {
		if k.expected(p) != k.applied(p) {
			return false
		}
	}
	return k.report.Totals.Urgent+k.report.Totals.Held == 0
}

// whatMatters is all that can make an idle crawl go on, as it is now.
func (k *Tick) whatMatters() blobschema.Idle {
	w := &k.report.Wish
	now := blobschema.Idle{Batches: len(k.report.Crawl.SeedBatches), Limit: k.grants.Limit, Wish: w.Version, Orders: w.Orders, Map: k.report.Map.Version, Index: k.report.Crawl.Settings.Index}
	if done := k.ranks.Finished(); done != nil {
		now.Ranks = done.Number
	}
	for _, n := range k.report.Requests.Sent {
		now.Requests += n
	}
	return now
}

// over reports whether no step is at work, nor will be for its own sake.
func (k *Tick) over() bool {
	r := &k.report
	return r.Leased == 0 && (r.Finished || r.Limited || r.Wish.Stop || r.Wish.Pause)
}

// idle takes note of it if nothing is to do, so that the next ticks need not look.
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
