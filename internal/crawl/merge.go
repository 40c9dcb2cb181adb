package crawl

import (
	"errors"
	"fmt"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
)

// mergeFanIn is the number of runs of one tier that are merged into one run of the next. Each URL is written once per tier,
// log8 of the number of commits.
const mergeFanIn = 8

// mergeBytes bounds the bytes of a merge of more than mergeFanIn runs. Slots may bring the runs of many partitions, and a
// merge holds its runs in memory.
const mergeBytes = 32 << 20

// mergeable returns the runs to merge next, oldest first: those of the lowest full tier, or none.
func mergeable(runs []blobschema.RunRef, fanIn int) (from []blobschema.RunRef) {
	byTier := map[uint8][]blobschema.RunRef{}
	for _, r := range runs {
		byTier[r.Tier] = append(byTier[r.Tier], r)
		if full := byTier[r.Tier]; len(full) >= fanIn && (len(from) == 0 || r.Tier <= from[0].Tier) {
			from = full
		}
	}
	size := int64(0)
	for i, r := range from {
		if size += r.Length; i >= fanIn && size > mergeBytes {
			return from[:i]
		}
	}
	return from
}

// merged is a run that replaces others once a commit names it. It has no object if the merged runs hold nothing of this
// partition any more.
type merged struct {
	from []blobschema.RunRef
	to   blobschema.RunRef
}

// replace swaps the merged runs for the new one, and returns the objects that the manifest no longer names. Commit objects
// stay: they hold pages and links too.
func (m *merged) replace(runs []blobschema.RunRef) (out []blobschema.RunRef, dropped []string) {
	placed := false
	for _, r := range runs {
		if !slices.ContainsFunc(m.from, func(f blobschema.RunRef) bool { return f.Object == r.Object }) {
			out = append(out, r)
			continue
		}
		if !placed && m.to.Object != "" {
			out, placed = append(out, m.to), true
		}
		if r.Tier > 0 {
			dropped = append(dropped, r.Object)
		}
	}
	return out, dropped
}

// compact starts a merge when a tier is full. It runs beside everything else, and the next commit adopts its result. A
// crash before that leaves an object that nothing names.
func (s *Step) compact() {
	if s.reading.merge || s.st.merged != nil || s.lease.hurry {
		return
	}
	from := mergeable(s.st.man.Runs, s.cfg.MergeFanIn)
	if len(from) == 0 {
		return
	}
	s.reading.merge = true
	seq, fence, takes := s.st.man.Seq, s.lease.head.Fence, s.st.ter.takes
	s.Spawn(func(t *actor.Task) error {
		defer func() { s.reading.merge = false }()
		var datas [][]byte
		for _, r := range from {
			data, err := t.Object(r.Object, r.Offset, r.Length)
			if errors.Is(err, actor.ErrNotFound) && s.lease.left() <= 0 {
				return ErrLeaseLost
			}
			if err != nil {
				return fmt.Errorf("merge runs: %w", err)
			}
			datas = append(datas, data)
		}
		// Decoding and merging run off the loop.
		h, ours := s.st.links.Hash, s.st.ours()
		var data []byte
		m := &merged{from: from}
		_, err := t.Do(actor.Work{Do: func() (any, error) {
			var runs []*blobschema.Run
			for i, d := range datas {
				run := &blobschema.Run{}
				if err := blobschema.DecodeRun(d, from[i], run); err != nil {
					return nil, fmt.Errorf("merge %s: %w", from[i].Object, err)
				}
				runs = append(runs, run)
			}
			data, m.to = blobschema.EncodeRun(blobschema.MergeRuns(h, runs).Only(ours), h)
			return nil, nil
		}})
		if err != nil {
			return err
		}
		// The new run is stored; the next commit names it.
		if len(data) > 0 {
			m.to.Tier = from[0].Tier + 1
			m.to.Object = naming.Run(s.cfg.Crawl.ID, s.cfg.Partition, seq, fence, m.to.Tier)
			stored := false
			s.lease.put(actor.PutObject{Name: m.to.Object, Parts: [][]byte{data}}, func() { stored = true })
			t.Await(func() bool { return stored })
		}
		if s.st.ter.takes == takes { // otherwise a slot that arrived meanwhile may have state in these runs, which the merge left out
			s.st.merged = m
		}
		return nil
	})
}
