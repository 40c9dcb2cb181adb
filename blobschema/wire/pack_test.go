package wire_test

import (
	"encoding/hex"
	"errors"
	"testing"

	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/blobschema/wire/wiretest"
)

func TestPackGolden(t *testing.T) {
	got := wire.Append([]byte("before"), []wire.Section{{Name: "a", Data: []byte("one")}, {Name: "empty", Data: nil}, {Name: "b", Data: []byte("three")}})
	const want = "6265666f7265" + // what was there
		"4f57504b05" + "6f6e65" + "7468726565" + // header, sections
		"03" + "016103" + "e9b2942a" + "05656d70747900" + "00000000" + "016205" + "bc51441c" + // table
		"1a000000" + "1f9d235d" + "4b50574f" // tail
	if hex.EncodeToString(got) != want {
		t.Fatalf("pack is\n%x\nwant\n%s", got, want)
	}
	p, err := wire.Open(got[len("before"):])
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "one", "empty": "", "b": "three"} {
		b, err := p.Section(name)
		if err != nil || string(b) != want {
			t.Errorf("section %s is %q, %v; want %q", name, b, err, want)
		}
		off, n := p.SectionAt(name)
		if at := got[len("before")+int(off):][:n]; string(at) != want {
			t.Errorf("section %s is at %d: %q", name, off, at)
		}
	}
	if _, err := p.Section("none"); !errors.Is(err, wire.ErrDamaged) {
		t.Errorf("section that is not there: %v", err)
	}
	if off, n := p.SectionAt("none"); off != 0 || n != 0 {
		t.Errorf("section that is not there is at %d, %d", off, n)
	}
}

func TestPackDamage(t *testing.T) {
	pack := wire.Append(nil, []wire.Section{{Name: "a", Data: []byte("one")}, {Name: "b", Data: []byte("three")}})
	if err := wiretest.ReadPack(pack); err != nil {
		t.Fatal(err)
	}
	wiretest.EachDamage(pack, func(what string, b []byte) {
		if err := wiretest.ReadPack(b); !wiretest.IsRefusal(err) {
			t.Errorf("%s: error %v", what, err)
		}
	})
	if err := wiretest.ReadPack(wire.Append(nil, []wire.Section{{Name: "a", Data: nil}, {Name: "a", Data: nil}})); !errors.Is(err, wire.ErrDamaged) {
		t.Errorf("two sections of a name: %v", err)
	}
	pack[wire.HeaderSize-1] = wire.Version + 1
	if _, err := wire.Open(pack); !errors.Is(err, wire.ErrVersion) {
		t.Errorf("pack of another version: %v", err)
	}
}

func FuzzPack(f *testing.F) {
	f.Add(wire.Append(nil, nil))
	f.Add(wire.Append(nil, []wire.Section{{Name: "a", Data: []byte("one")}, {Name: "b", Data: []byte("three")}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := wiretest.ReadPack(data); err != nil && !wiretest.IsRefusal(err) {
			t.Fatal(err)
		}
	})
}
