package crawl

import (
	"fmt"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

// loadHorizon is the time over which the load of a slot is measured: the number of its URLs that may be requested in that
// time. A host with a million URLs is only as much work as its pace allows.
const loadHorizon = 10 * time.Minute

// planElastic changes the number of partitions and balances their load, if the settings allow it. It does nothing while
// slots are moving, or if there is too little work to justify moves.
func (k *Tick) planElastic(t *actor.Task) error {
	set := &k.report.Crawl.Settings
	most := set.MostPartitions
	if k.cfg.Mailboxes > 0 {
		most = min(most, k.cfg.Mailboxes)
	}
	if most == 0 || len(k.report.Map.Moving) > 0 || k.report.Map.Target != "" || k.over() || !k.passed(k.record.PlannedAt, k.cfg.PlanEvery) {
		return nil
	}
	least := min(max(1, set.LeastPartitions), most)
	now := k.Now().Wall.UTC()
	k.learn(func(r *blobschema.TickRecord) { r.PlannedAt = now })
	if k.report.Totals.Pending+k.report.Totals.Unexamined < wakeURLs*int64(least) {
		return nil
	}
	if err := k.remember(t); err != nil { // first, so that a crash in the planning is not followed by another at once
		return err
	}
	load, total, err := k.loads(t)
	if err != nil {
		return fmt.Errorf("read loads of slots: %w", err)
	}
	version := k.report.Map.Version
	_, after, err := changePartitioning(t, &k.report.Crawl, func(p *Partitioning) (bool, error) {
		if p.Record.Version != version {
			return false, nil // another change came first
		}
		owning := len(p.Map.Partitions())
		o := partition.BalanceOptions{Start: set.Imbalance}
		if n := partition.Size(total, k.cfg.Capacity, owning, least, most); n != owning {
			o.Partitions = p.Map.Active(n)
		}
		moves := p.Map.Balance(load, o)
		if len(moves) == 0 {
			return false, nil
		}
		target, err := p.Map.Apply(moves)
		if err != nil {
			return false, err
		}
		p.remember()
		p.Target = target
		return p.plan(), nil
	})
	if err != nil {
		return err
	}
	k.report.Map = after.Record
	return nil
}

// loads reads the load of each slot from the manifests.
func (k *Tick) loads(t *actor.Task) (bySlot []float64, total float64, err error) {
	set := &k.report.Crawl.Settings
	atMost := float64(1 << 40)
	if set.Delay > 0 {
		atMost = float64(loadHorizon / set.Delay)
	}
	bySlot = make([]float64, k.report.Crawl.Slots)
	busy := func(h *blobschema.Head) bool { return h.Totals.Pending+h.Totals.Unexamined > 0 }
	err = k.eachManifest(t, busy, func(man *blobschema.Manifest) {
		for _, sum := range man.Slots {
			if int(sum.Slot) < len(bySlot) {
				bySlot[sum.Slot] += float64(sum.Pending) + float64(sum.Unexamined)
			}
		}
	})
	for i := range bySlot { // a slot may be in parts
		bySlot[i] = min(bySlot[i], atMost)
		total += bySlot[i]
	}
	return bySlot, total, err
}
