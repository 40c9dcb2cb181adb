package blobschema

import (
	"time"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/partition"
)

// Slots are moved by pointers. The map record says which slots are to go where; the old
// owner stops asking for them, and commits without them: its manifest keeps the
// [Handover]. The new owner pulls that, and names the runs in a manifest of its own, which
// confirms the move.

// MapRecord is the record of the partition map. There is none before the first move:
// then the map is that of epoch 1, dealt to Crawl.Partitions partitions.
type MapRecord struct {
	Version    uint64          `json:"version"` // of this record: it grows with every change
	Epoch      partition.Epoch `json:"epoch"`
	Partitions int             `json:"partitions"` // all that ever owned a slot are below this
	Object     string          `json:"object"`     // the map of Epoch; "" for that of epoch 1
	// Target is the map that is wanted, "" where that is the map of Epoch: slots that are
	// on the move already follow when they have arrived.
	Target string `json:"target,omitempty"`
	// Moving are the moves that their receivers have not confirmed. No slot is in two.
	Moving []Moving `json:"moving,omitempty"`
	// Former are the objects of the maps before, newest first, as far as they are kept; "" is
	// that of epoch 1.
	Former []string `json:"former,omitempty"`
}

// MaxFormer is how many former maps the record names.
const MaxFormer = 16

// Moving says that slots go from one partition to another.
type Moving struct {
	Epoch partition.Epoch `json:"epoch"`
	From  partition.ID    `json:"from"`
	To    partition.ID    `json:"to"`
	Slots partition.Slots `json:"slots"`
}

// Moved says of some slots what the newest hand-over did that a partition has seen of
// them. It stays for ever: an older one, come again, changes nothing.
type Moved struct {
	Epoch partition.Epoch
	Held  bool // taken; else given away
	Slots partition.Slots
}

// Handover is what a partition gives of its state when slots go to another: it stays in
// the manifest until the receiver has confirmed it.
type Handover struct {
	Epoch partition.Epoch
	To    partition.ID
	Slots partition.Slots
	Runs  []RunRef      // with all that is known of the slots, among others
	State []SlotSummary // of those that hold anything
	// Floor is the last takeover from a crash that the hosts of the slots may not know of.
	Floor time.Time
}

// moved and handover are how these are stored.
type moved struct {
	_     struct{} `cbor:",toarray"`
	Epoch partition.Epoch
	Held  bool
	Slots string
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
	return cborEnc.Marshal(moved{Epoch: m.Epoch, Held: m.Held, Slots: m.Slots.String()})
}

// UnmarshalCBOR decodes what MarshalCBOR wrote.
func (m *Moved) UnmarshalCBOR(b []byte) error {
	var s moved
	if err := cborDec.Unmarshal(b, &s); err != nil {
		return err
	}
	slots, err := partition.ParseSlots(s.Slots)
	*m = Moved{Epoch: s.Epoch, Held: s.Held, Slots: slots}
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

// UnmarshalCBOR decodes what MarshalCBOR wrote.
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

// Holding says which slots a partition holds, as its manifest says: those of the map of
// epoch 1, but for what has moved since. The manifest, not the map, is the right to ask for
// URLs of a slot. A Holding is not safe for concurrent changes.
type Holding struct {
	self  partition.ID
	first *partition.Map // of epoch 1
	moved map[partition.Slot]movedAt
}

type movedAt struct {
	epoch partition.Epoch
	held  bool
}

// NewHolding returns what the manifest of a partition says, given the map of epoch 1.
func NewHolding(p partition.ID, first *partition.Map, list []Moved) *Holding {
	h := &Holding{self: p, first: first, moved: map[partition.Slot]movedAt{}}
	for _, m := range list {
		h.Add(m)
	}
	return h
}

// Add takes note of a hand-over of slots, of each only if it is newer than all before.
func (h *Holding) Add(m Moved) {
	for _, s := range m.Slots {
		if m.Epoch > h.Seen(s) {
			h.moved[s] = movedAt{m.Epoch, m.Held}
		}
	}
}

// Holds reports whether the partition holds a slot.
func (h *Holding) Holds(s partition.Slot) bool {
	if m, ok := h.moved[s]; ok {
		return m.held
	}
	return h.first.Owner(s) == h.self
}

// Seen is the epoch of the newest hand-over of a slot that the partition has seen: 1 for
// none.
func (h *Holding) Seen(s partition.Slot) partition.Epoch {
	if m, ok := h.moved[s]; ok {
		return m.epoch
	}
	return 1
}

// Slots are all slots that the partition holds.
func (h *Holding) Slots() (out partition.Slots) {
	for s := range partition.Slot(h.first.Slots()) {
		if h.Holds(s) {
			out = append(out, s)
		}
	}
	return out
}

// Moved is what a manifest says of the holding: by epoch, given before held.
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
			out = append(out, Moved{Epoch: m.epoch, Held: m.held})
		}
		out[i].Slots = append(out[i].Slots, s)
	}
	return out
}

// MapObjectName names the object of a map by its content.
func MapObjectName(crawl string, m *partition.Map) (name string, data []byte, err error) {
	if data, err = m.MarshalBinary(); err != nil {
		return "", nil, err
	}
	return naming.Map(crawl, m.Epoch(), data), data, nil
}
