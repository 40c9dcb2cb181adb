package crawl

import (
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
)

// passed reports whether d has passed since a time, or since the crawl began if that is later. It also returns true if the
// clock was set back.
func (k *Tick) passed(since time.Time, d time.Duration) bool {
	if c := k.report.Crawl.Created; since.Before(c) {
		since = c
	}
	past := k.Now().Wall.Sub(since)
	return past < 0 || past >= d
}

// learn keeps a change of the record, to be written at the end of the run.
func (k *Tick) learn(change func(*blobschema.TickRecord)) { k.learnt = append(k.learnt, change) }

// note changes what the next run remembers.
func (k *Tick) note(change func(*blobschema.TickNotes)) {
	change(k.notes)
	if k.mem == nil {
		k.learn(func(r *blobschema.TickRecord) { change(&r.TickNotes) })
	}
}

// remember writes the kept changes to the record, which the next run reads in whatever process.
func (k *Tick) remember(t *actor.Task) error {
	if len(k.learnt) == 0 {
		return nil
	}
	spent := blobschema.Calls{}
	if k.cfg.Spent != nil {
		spent = k.cfg.Spent().Minus(k.told)
	}
	err := actor.Update(t, naming.TickKey(k.report.Crawl.ID), func(r *blobschema.TickRecord) bool {
		for _, change := range k.learnt {
			change(r)
		}
		r.Calls.Add(spent)
		return true
	})
	k.learnt = nil
	k.told.Add(spent)
	return err
}
