package blobschema

import (
	"time"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/partition"
)

// Slots move by pointers. The map record names the moves. The old
// owner stops requesting URLs of the slots and commits without them; its manifest keeps the
// [Handover]. The new owner reads the hand-over and names its runs in its own manifest, which
// confirms the move.

// MapRecord is the record of the partition map. It does not exist before the first move:
// the map of epoch 1 deals the slots to Crawl.Partitions partitions.
type MapRecord struct {
	Version    uint64          `json:"version"` // of this record; it grows with every change
	Epoch      partition.Epoch `json:"epoch"`
	Partitions int             `json:"partitions"` // every partition that ever owned a slot is below this
	Object     string          `json:"object"`     // the map of Epoch; "" for that of epoch 1
	// Target is the desired map, "" if that is the map of Epoch. A slot that is being moved continues to its target
	// after its arrival.
	Target string `json:"target,omitempty"`
	// Moving are the moves that are not confirmed. No slot is in two of them.
	Moving []Moving `json:"moving,omitempty"`
	// Previous are the objects of the last previous maps, newest first; "" is the map
	// of epoch 1.
	Previous []string `json:"former,omitempty"`
}

// MaxPrevious bounds the previous maps in the record.
const MaxPrevious = 16

// Moving is the move of slots from one partition to another.
type Moving struct {
	Epoch partition.Epoch `json:"epoch"`
	From  partition.ID    `json:"from"`
	To    partition.ID    `json:"to"`
	Slots partition.Slots `json:"slots"`
}

// Moved is the newest hand-over of some slots that a partition has seen. It is
// kept forever, so that an older hand-over that arrives again has no effect.
type Moved struct {
	Epoch    partition.Epoch
	Received bool // received; otherwise given away
	Slots    partition.Slots
}

// Handover is the part of a partition's state that moves with slots to another partition. It stays in
// the manifest until the receiver has confirmed it.
type Handover struct {
	Epoch partition.Epoch
	To    partition.ID
	Slots partition.Slots
	Runs  []RunRef      // with all entries of the slots, and entries of others
	State []SlotSummary // of the slots that are not empty
	// Floor is the time of the last takeover from a crash that the state of the hosts may not include.
	Floor time.Time
}

// moved and handover are the stored forms.
type moved struct {
	_        struct{} `cbor:",toarray"`
	Epoch    partition.Epoch
	Received bool
	Slots    string
}

type handover struct {
	_     struct{} `cbor:",toarray"`
	Epoch partition.Epoch
	To    partition.ID
	Slots string
	Runs  []RunRef
	State []SlotSummary
	Floor int64 // Unix microseconds, 0 for none
}

// MarshalCBOR encodes m.
func (m Moved) MarshalCBOR() ([]byte, error) {
	return cborEnc.Marshal(moved{Epoch: m.Epoch, Received: m.Received, Slots: m.Slots.String()})
}

// UnmarshalCBOR decodes the result of MarshalCBOR.
func (m *Moved) UnmarshalCBOR(b []byte) error {
	var s moved
	if err := cborDec.Unmarshal(b, &s); err != nil {
		return err
	}
	slots, err := partition.ParseSlots(s.Slots)
	*m = Moved{Epoch: s.Epoch, Received: s.Received, Slots: slots}
	return err
}

// MarshalCBOR encodes h.
func (h Handover) MarshalCBOR() ([]byte, error) {
	s := handover{Epoch: h.Epoch, To: h.To, Slots: h.Slots.String(), Runs: h.Runs, State: h.State}
	if !h.Floor.IsZero() {
		s.Floor = h.Floor.UnixMicro()
	}
	return cborEnc.Marshal(s)
}

// UnmarshalCBOR decodes the result of MarshalCBOR.
func (h *Handover) UnmarshalCBOR(b []byte) error {
	var s handover
	if err := cborDec.Unmarshal(b, &s); err != nil {
		return err
	}
	slots, err := partition.ParseSlots(s.Slots)
	*h = Handover{Epoch: s.Epoch, To: s.To, Slots: slots, Runs: s.Runs, State: s.State}
	if s.Floor != 0 {
		h.Floor = time.UnixMicro(s.Floor).UTC()
	}
	return err
}

// Holding is the set of slots that a partition holds by its manifest: its slots in the map of
// epoch 1, changed by the hand-overs since. The manifest, not the map, gives the right to request
// URLs of a slot. A Holding is not safe for concurrent changes.
type Holding struct {
	self  partition.ID
	first *partition.Map // of epoch 1
	moved map[partition.Slot]movedAt
}

type movedAt struct {
	epoch    partition.Epoch
	received bool
}

// NewHolding returns the holding of a partition, given the map of epoch 1 and the moves in its manifest.
func NewHolding(p partition.ID, first *partition.Map, list []Moved) *Holding {
	h := &Holding{self: p, first: first, moved: map[partition.Slot]movedAt{}}
	for _, m := range list {
		h.Add(m)
	}
	return h
}

// Add records a hand-over. It has no effect on slots with a newer one.
func (h *Holding) Add(m Moved) {
	for _, s := range m.Slots {
		if m.Epoch > h.Seen(s) {
			h.moved[s] = movedAt{m.Epoch, m.Received}
		}
	}
}

// Holds reports whether the partition holds a slot.
func (h *Holding) Holds(s partition.Slot) bool {
	if m, ok := h.moved[s]; ok {
		return m.received
	}
	return h.first.Owner(s) == h.self
}

// Seen returns the epoch of the newest hand-over of a slot that the partition has seen, or 1 if
// there is none.
func (h *Holding) Seen(s partition.Slot) partition.Epoch {
	if m, ok := h.moved[s]; ok {
		return m.epoch
	}
	return 1
}

// Slots returns all slots that the partition holds.
func (h *Holding) Slots() (out partition.Slots) {
	for s := range partition.Slot(h.first.Slots()) {
		if h.Holds(s) {
			out = append(out, s)
		}
	}
	return out
}

// Moved returns the moves for a manifest.
func (h *Holding) Moved() (out []Moved) {
	if len(h.moved) == 0 {
		return nil
	}
	at := map[movedAt]int{}
	for s := range partition.Slot(h.first.Slots()) {
		m, ok := h.moved[s]
		if !ok {
			continue
		}
		i, ok := at[m]
		if !ok {
			i = len(out)
			at[m] = i
			out = append(out, Moved{Epoch: m.epoch, Received: m.received})
		}
		out[i].Slots = append(out[i].Slots, s)
	}
	return out
}

// MapObjectName encodes a map and returns the name of its object.
func MapObjectName(crawl string, m *partition.Map) (name string, data []byte, err error) {
	if data, err = m.MarshalBinary(); err != nil {
		return "", nil, err
	}
	return naming.Map(crawl, m.Epoch(), data), data, nil
}
