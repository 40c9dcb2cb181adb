package crawl

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/partition"
)

// loadWanted loads the due parts of slots that are not in memory, and notes when the next one is due. If the step may not
// fetch anything and no request waits for a part, it loads none. At the page limit it skips parts that are known to have
// neither requests nor revisits: due parts that do not fit into memory together would replace each other forever.
func (s *Step) loadWanted(now time.Time) {
	s.reading.next = time.Time{}
	if s.reading.parts || s.lease.phase != working || s.reading.rescan || s.asksNothing() && len(s.inbox.requests) == 0 {
		return
	}
	wanted := s.st.f.Wanted(now, s.budget.exhausted && s.limited())
	s.reading.next, _ = s.st.f.PartDue()
	if len(wanted) == 0 {
		return
	}
	s.reading.parts = true
	s.Spawn(func(t *actor.Task) error {
		defer func() { s.reading.parts = false }()
		states, err := s.st.readParts(t, wanted)
		for try := 0; errors.Is(err, actor.ErrNotFound) && try < 3; try++ { // a run was merged and swept meanwhile
			states, err = s.st.readParts(t, wanted)
		}
		if errors.Is(err, actor.ErrNotFound) && s.lease.left() <= 0 { // this step stood still, and another continued
			return ErrLeaseLost
		}
		if err != nil {
			return fmt.Errorf("load slots of partition %d: %w", s.cfg.Partition, err)
		}
		for _, id := range wanted {
			if err := s.st.f.Load(s.Clock(), id, states[id]); err != nil {
				return err
			}
		}
		return nil
	})
}

// readParts reads the state of some parts, ordered by slot, from all runs that hold any of it.
func (st *state) readParts(t *actor.Task, wanted []frontier.PartID) (map[frontier.PartID]*blobschema.Run, error) {
	var slots []partition.Slot
	for _, id := range wanted {
		if n := len(slots); n == 0 || slots[n-1] != id.Slot {
			slots = append(slots, id.Slot)
		}
	}
	refs := st.man.Runs
	var pieces []runPiece
	for _, ref := range refs {
		if ref.Last < slots[0] || ref.First > slots[len(slots)-1] {
			continue
		}
		ix, err := st.index(t, ref)
		if err != nil {
			return nil, err
		}
		for _, piece := range wantedPieces(ix, slots) {
			if piece.data, err = t.Object(ref.Object, ref.Offset+piece.at, piece.length); err != nil {
				return nil, err
			}
			pieces = append(pieces, piece)
		}
	}
	h := st.links.Hash
	v, err := t.Do(actor.Work{Do: func() (any, error) { return joinParts(h, wanted, pieces) }})
	if err != nil {
		return nil, err
	}
	return v.(map[frontier.PartID]*blobschema.Run), nil
}

// runPiece is a byte range of a run that holds whole blocks.
type runPiece struct {
	blocks     []blobschema.BlockRef
	at, length int64
	data       []byte
}

// wantedPieces returns the ranges of a run to read for some slots, in ascending order. Neighbouring blocks are read
// together.
func wantedPieces(ix *blobschema.RunIndex, slots []partition.Slot) []runPiece {
	const gap = 64 << 10 // unneeded bytes that cost less than another request
	var blocks []blobschema.BlockRef
	for _, b := range ix.Blocks(slots[0], slots[len(slots)-1]) {
		if i, _ := slices.BinarySearch(slots, b.First); i < len(slots) && slots[i] <= b.Last {
			blocks = append(blocks, b)
		}
	}
	slices.SortFunc(blocks, func(a, b blobschema.BlockRef) int { return cmp.Compare(a.Offset, b.Offset) })
	var pieces []runPiece
	for _, b := range blocks {
		if n := len(pieces); n > 0 && b.Offset-pieces[n-1].at-pieces[n-1].length <= gap {
			pieces[n-1].blocks = append(pieces[n-1].blocks, b)
			pieces[n-1].length = b.Offset + b.Length - pieces[n-1].at
			continue
		}
		pieces = append(pieces, runPiece{blocks: []blobschema.BlockRef{b}, at: b.Offset, length: b.Length})
	}
	return pieces
}

// joinParts merges what the pieces of runs hold of some parts into one run for each part.
func joinParts(h partition.Hash, wanted []frontier.PartID, pieces []runPiece) (map[frontier.PartID]*blobschema.Run, error) {
	bySlot := map[partition.Slot][]blobschema.Part{}
	for _, id := range wanted {
		bySlot[id.Slot] = append(bySlot[id.Slot], id.Part)
	}
	out := make(map[frontier.PartID]*blobschema.Run, len(wanted))
	for _, id := range wanted {
		out[id] = &blobschema.Run{}
	}
	// of returns the run of the part that a URL belongs to; nil if the part is not wanted. A part that is a whole slot needs
	// no fingerprint.
	of := func(slot partition.Slot, fp func() uint64) *blobschema.Run {
		for _, is := range bySlot[slot] {
			if is == (blobschema.Part{}) || is.Has(fp()) {
				return out[frontier.PartID{Slot: slot, Part: is}]
			}
		}
		return nil
	}
	// Each block is decoded, and its entries are dealt to their parts.
	for _, p := range pieces {
		if int64(len(p.data)) < p.length {
			return nil, wire.ErrDamaged
		}
		for _, b := range p.blocks {
			var block blobschema.Run
			if err := blobschema.DecodeBlock(p.data[b.Offset-p.at:][:b.Length], b, &block, wanted[0].Slot, wanted[len(wanted)-1].Slot); err != nil {
				return nil, err
			}
			for _, e := range block.Settled {
				if run := of(e.Slot, func() uint64 { return e.Fingerprint }); run != nil {
					run.Settled = append(run.Settled, e)
				}
			}
			for _, q := range block.Queued {
				if run := of(q.Slot, func() uint64 { return h.Fingerprint(q.URL) }); run != nil {
					run.Queued = append(run.Queued, q)
				}
			}
			for _, k := range block.Keys { // every part may be the first one of its slot that is loaded
				for _, is := range bySlot[k.Slot] {
					run := out[frontier.PartID{Slot: k.Slot, Part: is}]
					run.Keys = append(run.Keys, k)
				}
			}
		}
	}
	for _, run := range out {
		blobschema.Join(h, run)
	}
	return out, nil
}

func (st *state) index(t *actor.Task, ref blobschema.RunRef) (*blobschema.RunIndex, error) {
	if ix := st.indexes[ref.Object]; ix != nil {
		return ix, nil
	}
	data, err := t.Object(ref.Object, ref.Offset+ref.Index, ref.Length-ref.Index)
	if err != nil {
		return nil, err
	}
	ix, err := blobschema.OpenRun(data, ref)
	if err != nil {
		return nil, fmt.Errorf("index of %s: %w", ref.Object, err)
	}
	st.indexes[ref.Object] = ix
	return ix, nil
}

// forgetIndexes drops the indexes of runs that the manifest no longer names.
func (st *state) forgetIndexes() {
	if len(st.indexes) <= len(st.man.Runs) {
		return
	}
	named := make(map[string]*blobschema.RunIndex, len(st.man.Runs))
	for _, r := range st.man.Runs {
		if ix := st.indexes[r.Object]; ix != nil {
			named[r.Object] = ix
		}
	}
	st.indexes = named
}
