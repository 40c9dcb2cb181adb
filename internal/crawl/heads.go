package crawl

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

// readAll reads the records that a run needs: those of the crawl, and unless the crawl is idle, all heads.
func (k *Tick) readAll(t *actor.Task) error {
	// The records of the crawl come first, in one read.
	id := k.cfg.Crawl
	keys := []string{
		naming.CrawlKey(id), naming.DesiredKey(id), naming.GrantsKey(id), naming.RequestsKey(id), naming.TickKey(id),
		naming.MapKey(id), // read before the heads, so that its moves are at most as new as they are
	}
	recs, err := t.Records(keys...)
	if err != nil {
		return err
	}
	if !recs[0].Found {
		return fmt.Errorf("crawl %s has no record", id)
	}
	for i, into := range []any{&k.report.Crawl, &k.report.Desired, &k.grants, &k.report.Requests, &k.record} {
		if err := recs[i].Into(into, keys[i]); err != nil {
			return err
		}
	}
	c := &k.report.Crawl
	if k.report.Map, err = mapRecord(c, recs[5]); err != nil {
		return err
	}
	// A run without memory stops here if nothing has changed since the crawl was idle.
	if k.notes = &k.record.TickNotes; k.mem != nil {
		k.notes = &k.mem.notes
	} else if was := k.record.Idle; was != nil {
		if k.report.Crawl.Settings.Index {
			if err := k.readRankJob(t); err != nil {
				return err
			}
		}
		now := k.whatMatters()
		if now.Finished, now.Limited = was.Finished, was.Limited; now == *was {
			k.report.Idle, k.report.Finished, k.report.Limited = true, was.Finished, was.Limited
			return nil
		}
	}
	if k.first, err = partition.NewMap(c.Slots, c.Partitions); err != nil {
		return err
	}
	// The heads are read last.
	keys = make([]string, k.report.Partitions())
	for p := range keys {
		keys[p] = naming.HeadKey(id, partition.ID(p))
	}
	if recs, err = t.Records(keys...); err != nil {
		return err
	}
	k.report.Heads = make([]blobschema.Head, 0, len(recs)) // k.heads points into it
	for p, rec := range recs {
		if !rec.Found {
			continue
		}
		h, err := k.mem.head(partition.ID(p), rec)
		if err != nil {
			return err
		}
		k.report.Heads = append(k.report.Heads, h)
		k.heads[partition.ID(p)] = &k.report.Heads[len(k.report.Heads)-1]
		k.report.Totals.Add(&h.Totals)
		if k.leased(&h) {
			k.report.Leased++
		}
	}
	return nil
}

// head decodes the head of a partition, unless its bytes are those that the last run has read. The heads of all partitions
// together grow with the square of their number, because each counts the mail to every other.
func (m *TickMemory) head(p partition.ID, rec actor.Record) (blobschema.Head, error) {
	if m == nil {
		return actor.Decode[blobschema.Head](rec, "head")
	}
	if was, ok := m.heads[p]; ok && bytes.Equal(was.stored, rec.Value) {
		return was.head, nil
	}
	h, err := actor.Decode[blobschema.Head](rec, "head")
	if err != nil {
		return h, err
	}
	if m.heads == nil {
		m.heads = map[partition.ID]readHead{}
	}
	m.heads[p] = readHead{rec.Value, h}
	return h, nil
}

// readHeads reads the heads of some partitions; nil for those that have none.
func readHeads(t *actor.Task, crawl string, ps ...partition.ID) ([]*blobschema.Head, error) {
	if len(ps) == 0 {
		return nil, nil
	}
	keys := make([]string, len(ps))
	for i, p := range ps {
		keys[i] = naming.HeadKey(crawl, p)
	}
	recs, err := t.Records(keys...)
	if err != nil {
		return nil, err
	}
	heads := make([]*blobschema.Head, len(ps))
	for i, rec := range recs {
		if err := rec.Into(&heads[i], "head"); err != nil {
			return nil, err
		}
	}
	return heads, nil
}

// leased reports whether a step may be running under h.
func (k *Tick) leased(h *blobschema.Head) bool {
	if h.Owner == "" || k.cfg.Exclusive && !ownedBy(h.Owner, k.cfg.Process) {
		return false
	}
	return k.Now().Wall.Before(h.LeaseUntil)
}

// manifestsAtOnce is the number of commits that a run reads at once; each is read whole.
const manifestsAtOnce = 8

// eachManifest calls do with the manifest of each head that wanted selects, in order of the heads. There may be thousands
// and a function has one minute, so it reads several at once.
func (k *Tick) eachManifest(t *actor.Task, wanted func(*blobschema.Head) bool, do func(*blobschema.Manifest)) error {
	var names []string
	for i := range k.report.Heads {
		if h := &k.report.Heads[i]; h.Commit != "" && wanted(h) {
			names = append(names, h.Commit)
		}
	}
	for some := range slices.Chunk(names, manifestsAtOnce) {
		mans, errs, left := make([]*blobschema.Manifest, len(some)), make([]error, len(some)), len(some)
		for i, name := range some {
			k.Spawn(func(t *actor.Task) error {
				mans[i], errs[i] = blobschema.ReadManifest(t.Object, name)
				left--
				return nil
			})
		}
		t.Await(func() bool { return left == 0 })
		if err := errors.Join(errs...); err != nil {
			return err
		}
		for _, man := range mans {
			do(man)
		}
	}
	return nil
}
