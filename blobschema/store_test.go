package blobschema_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/partition"
)

// maps is a Store that consists of two maps.
type maps struct{ records, objects map[string]string }

func (m maps) Records(_ context.Context, keys ...string) ([][]byte, error) {
	values := make([][]byte, len(keys))
	for i, key := range keys {
		if v, ok := m.records[key]; ok {
			values[i] = []byte(v)
		}
	}
	return values, nil
}

func (m maps) Object(_ context.Context, name string, offset, length int64) ([]byte, error) {
	data, ok := m.objects[name]
	if !ok || offset != 0 || length != -1 {
		return nil, errors.New("it cannot be read")
	}
	return []byte(data), nil
}

func (m maps) List(context.Context, string) iter.Seq2[blobschema.StoredObject, error] { return nil }

func TestRead(t *testing.T) {
	s := maps{records: map[string]string{"a": `{"seq":7}`, "bad": "{"}}
	var a blobschema.Head
	b := blobschema.Head{Seq: 3}
	found, err := blobschema.ReadRecords(t.Context(), s, []string{"a", "b"}, []any{&a, &b})
	if err != nil || !found[0] || found[1] || a.Seq != 7 || b.Seq != 3 {
		t.Errorf("%v, %v: %d and %d", found, err, a.Seq, b.Seq)
	}
	if found, err := blobschema.ReadRecord(t.Context(), s, "bad", &a); found || !errors.Is(err, wire.ErrDamaged) {
		t.Errorf("a damaged record: %v, %v", found, err)
	}
	if found, err := blobschema.ReadRecord(t.Context(), s, "b", &a); found || err != nil {
		t.Errorf("no record: %v, %v", found, err)
	}
}

func TestMap(t *testing.T) {
	c := &blobschema.Crawl{Slots: 64, Partitions: 2}
	first, err := partition.NewMap(64, 2)
	if err != nil {
		t.Fatal(err)
	}
	data, err := first.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	s := maps{objects: map[string]string{"map": string(data), "bad": "x"}}
	get := blobschema.GetFrom(t.Context(), s)
	for name, want := range map[string]error{"": nil, "map": nil, "bad": wire.ErrDamaged} {
		m, err := blobschema.ReadMap(get, c, name)
		if !errors.Is(err, want) || err == nil && m.Slots() != 64 {
			t.Errorf("map %q: %v", name, err)
		}
	}
	c.Slots = 32
	if _, err := blobschema.ReadMap(get, c, "map"); !errors.Is(err, wire.ErrDamaged) {
		t.Errorf("a map of other slots: %v", err)
	}
	if _, err := blobschema.ReadManifest(get, "none"); err == nil {
		t.Error("a manifest that does not exist was read")
	}
	if _, err := blobschema.ReadSeeds(get, "bad"); err == nil {
		t.Error("damaged URLs were read")
	}
}
