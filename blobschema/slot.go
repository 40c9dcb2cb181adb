package blobschema

import (
	"fmt"

	"github.com/orbweaver/orbweaver/partition"
)

// SlotSummary describes a part of a slot that is not loaded.
type SlotSummary struct {
	_          struct{} `cbor:",toarray"`
	Slot       partition.Slot
	Part       Part
	Known      uint32
	Pending    uint32
	Unexamined uint32 // entries added since the slot was last loaded
	Due        int64  // Unix milliseconds at which the first URL is due; 0 for none
	Urgent     uint32 // of Pending, see Queued.Urgent
}

// Part is the part of a slot's URLs whose fingerprints begin with the Depth bits Prefix.
// The zero value is the whole slot. Two halves replace a part that holds too many URLs
// (extendible hashing: Fagin, Nievergelt, Pippenger, Strong 1979).
type Part struct {
	_      struct{} `cbor:",toarray"`
	Depth  uint8
	Prefix uint32
}

// MaxPartDepth is the largest Depth of a part, in bits.
const MaxPartDepth = 24

// Has reports whether a fingerprint belongs to the part.
func (p Part) Has(fp uint64) bool { return fp>>(64-p.Depth) == uint64(p.Prefix) }

// First returns the least fingerprint of the part. It orders the parts of a slot.
func (p Part) First() uint64 { return uint64(p.Prefix) << (64 - p.Depth) }

// Halves returns the two parts that p consists of.
func (p Part) Halves() [2]Part {
	return [2]Part{{Depth: p.Depth + 1, Prefix: p.Prefix << 1}, {Depth: p.Depth + 1, Prefix: p.Prefix<<1 | 1}}
}

// WholeSlots joins the summaries of each slot's parts. It returns an error if the summaries are out of
// order, or if the parts of a slot overlap or leave a gap.
func WholeSlots(parts []SlotSummary) ([]SlotSummary, error) {
	var out []SlotSummary
	end := uint64(1) << MaxPartDepth // end of the last part
	for _, s := range parts {
		n := len(out)
		same := n > 0 && out[n-1].Slot == s.Slot
		if n > 0 && s.Slot < out[n-1].Slot || s.Part.Depth > MaxPartDepth {
			return nil, fmt.Errorf("the summaries of slots are not in order: slot %d, part %+v", s.Slot, s.Part)
		}
		width := uint64(1) << (MaxPartDepth - s.Part.Depth)
		start := uint64(s.Part.Prefix) * width
		switch {
		case same && start != end, !same && (start != 0 || end != 1<<MaxPartDepth):
			return nil, fmt.Errorf("the parts of slot %d are not all of it, or overlap", s.Slot)
		case !same:
			s.Part = Part{}
			out = append(out, s)
		default:
			w := &out[n-1]
			w.Known, w.Pending, w.Unexamined, w.Urgent = w.Known+s.Known, w.Pending+s.Pending, w.Unexamined+s.Unexamined, w.Urgent+s.Urgent
			if w.Due == 0 || s.Due != 0 && s.Due < w.Due {
				w.Due = s.Due
			}
		}
		end = start + width
	}
	if end != 1<<MaxPartDepth {
		return nil, fmt.Errorf("the parts of slot %d are not all of it", out[len(out)-1].Slot)
	}
	return out, nil
}
