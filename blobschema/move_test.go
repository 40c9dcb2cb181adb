package blobschema

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/partition"
)

// TestHandoverRoundTrip checks that the moves of a manifest are decoded as they were encoded.
func TestHandoverRoundTrip(t *testing.T) {
	want := Manifest{Version: wire.Version, Crawl: "web", Seq: 1, Fence: 1, Time: time.Unix(0, 0).UTC(),
		Moved: []Moved{{Epoch: 2, Slots: partition.Slots{1, 5, 9, 13}}, {Epoch: 3, Received: true, Slots: partition.Slots{7}}},
		Given: []Handover{{Epoch: 2, To: 4, Slots: partition.Slots{1, 5, 9, 13}, Runs: []RunRef{{Object: "o", Length: 9}},
			State: []SlotSummary{{Slot: 5, Known: 2, Pending: 1, Due: 7}}, Floor: time.UnixMicro(12345).UTC()}}}
	b, err := cborEnc.Marshal(&want)
	if err != nil {
		t.Fatal(err)
	}
	var got Manifest
	if err := cborDec.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(SlotSummary{})); d != "" {
		t.Errorf("manifest differs (-want +got):\n%s", d)
	}
}

// TestMapObjectName checks that the name of a map object depends on its content.
func TestMapObjectName(t *testing.T) {
	m, err := partition.NewMap(6, 2)
	if err != nil {
		t.Fatal(err)
	}
	name, data, err := MapObjectName("web", m)
	var got partition.Map
	if err != nil || got.UnmarshalBinary(data) != nil || got.Epoch() != 1 || got.Slots() != 6 || name != naming.Map("web", 1, data) {
		t.Errorf("%s has %x, %v", name, data, err)
	}
}

// TestHolding checks that the newest hand-over of a slot decides, in any order of calls.
func TestHolding(t *testing.T) {
	first, err := partition.NewMap(6, 2)
	if err != nil {
		t.Fatal(err)
	}
	h := NewHolding(1, first, nil)
	if got := h.Slots().String(); got != "1-5/2" {
		t.Errorf("partition 1 of 2 begins with %s", got)
	}
	h.Add(Moved{Epoch: 4, Received: false, Slots: partition.Slots{1, 3}})
	h.Add(Moved{Epoch: 2, Received: true, Slots: partition.Slots{0, 1}}) // slot 1 has a newer hand-over
	h.Add(Moved{Epoch: 5, Received: true, Slots: partition.Slots{3}})
	h.Add(Moved{Epoch: 5, Received: false, Slots: partition.Slots{3}}) // I3: one hand-over of an epoch
	if got := h.Slots().String(); got != "0,3,5" {
		t.Errorf("it holds %s", got)
	}
	if d := cmp.Diff(h.Moved(), NewHolding(1, first, h.Moved()).Moved()); d != "" {
		t.Errorf("as stored it differs (-want +got):\n%s", d)
	}
	want := []Moved{{Epoch: 2, Received: true, Slots: partition.Slots{0}}, {Epoch: 4, Slots: partition.Slots{1}}, {Epoch: 5, Received: true, Slots: partition.Slots{3}}}
	if d := cmp.Diff(want, h.Moved()); d != "" {
		t.Errorf("a manifest says of it (-want +got):\n%s", d)
	}
	if got := NewHolding(1, first, nil).Moved(); got != nil {
		t.Errorf("of what never moved a manifest says %+v", got)
	}
	for s, want := range map[partition.Slot]partition.Epoch{0: 2, 1: 4, 2: 1, 3: 5} {
		if got := h.Seen(s); got != want {
			t.Errorf("slot %d was seen last at epoch %d, want %d", s, got, want)
		}
	}
}
