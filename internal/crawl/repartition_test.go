package crawl

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/partition"
)

// TestPlanFitsItsRecord: whatever is wanted, the record stays within what a table takes,
// and in the end the target is reached.
func TestPlanFitsItsRecord(t *testing.T) {
	m, err := partition.NewMap(partition.MaxSlots, partition.MaxPartitions)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	owners := m.Owners()
	for s := range owners {
		owners[s] = partition.ID(rng.IntN(partition.MaxPartitions))
	}
	target, err := m.WithOwners(owners)
	if err != nil {
		t.Fatal(err)
	}
	p := Partitioning{Record: blobschema.MapRecord{Epoch: 1, Partitions: partition.MaxPartitions}, Map: m, Target: target}
	plans := 0
	for p.plan() {
		b, err := json.Marshal(p.Record)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > 300<<10 {
			t.Fatalf("a record of %d KB", len(b)>>10)
		}
		if plans++; plans%2 == 0 {
			p.Record.Moving = nil // all are confirmed
		}
		if plans > 1000 {
			t.Fatal("the target is never reached")
		}
	}
	p.Record.Moving = nil
	for p.plan() {
		p.Record.Moving = nil
	}
	if moves := p.Map.Toward(target, func(partition.Slot) bool { return false }); len(moves) > 0 {
		t.Errorf("%d slots are not where they are wanted", len(moves))
	}
}
