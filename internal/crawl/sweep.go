package crawl

import (
	"fmt"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
)

// Runs that were merged into others are deleted, by the coordinator alone, and only if no manifest and no hand-over named
// them in two sweeps. One sweep is not enough: a hand-over may pass from a manifest not yet read to one already read. It
// stays in the giver's manifest until the receiver names its runs, so the second sweep finds it.

const (
	sweepsUnnamed = 2    // sweeps without a name after which a run is deleted
	maxSwept      = 1000 // largest number of runs in one sweep
)

// candidates adds the runs that commits no longer name to the record of runs to sweep.
func candidates(r *blobschema.TickRecord, names []string) {
	for _, name := range names {
		known := slices.ContainsFunc(r.Sweep, func(d blobschema.Dropped) bool { return d.Object == name })
		if !known && len(r.Sweep) < maxSwept { // any run beyond the bound stays as an orphan for fsck
			r.Sweep = append(r.Sweep, blobschema.Dropped{Object: name})
		}
	}
}

// sweep deletes merged runs. A run that another manifest still names is left out: when that manifest drops it, its commit
// says so.
func (k *Tick) sweep(t *actor.Task) error {
	if len(k.record.Sweep) == 0 || !k.passed(k.record.SweptAt, k.cfg.SweepEvery) {
		return nil
	}
	if err := k.remember(t); err != nil { // keeps what was copied if the sweep crashes
		return err
	}
	named := map[string]bool{}
	every := func(*blobschema.Head) bool { return true }
	err := k.eachManifest(t, every, func(man *blobschema.Manifest) {
		for _, r := range man.Runs {
			named[r.Object] = true
		}
		for _, g := range man.Given {
			for _, r := range g.Runs {
				named[r.Object] = true
			}
		}
	})
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	counts := map[string]int{} // sweeps that found the run unnamed; -1: deleted or named
	for _, c := range k.record.Sweep {
		switch counts[c.Object] = c.Unnamed + 1; {
		case named[c.Object]:
			counts[c.Object] = -1
		case c.Unnamed+1 >= sweepsUnnamed:
			if _, err := t.Do(actor.DeleteObject{Name: c.Object}); err != nil {
				return fmt.Errorf("delete %s: %w", c.Object, err)
			}
			counts[c.Object] = -1
		}
	}
	now := k.Now().Wall.UTC()
	k.learn(func(r *blobschema.TickRecord) {
		r.SweptAt = now
		r.Sweep = slices.DeleteFunc(r.Sweep, func(c blobschema.Dropped) bool { return counts[c.Object] < 0 })
		for i := range r.Sweep {
			if n := counts[r.Sweep[i].Object]; n > 0 {
				r.Sweep[i].Unnamed = n
			}
		}
	})
	return nil
}
