package wire_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/orbweaver/orbweaver/blobschema/wire"
)

func TestPackGolden(t *testing.T) {
	got := wire.Append([]byte("before"), []wire.Section{{Name: "a", Data: []byte("one")}, {Name: "empty", Data: nil}, {Name: "b", Data: []byte("three")}})
	const want = "6265666f7265" + // existing bytes
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
	if err := readPack(pack); err != nil {
		t.Fatal(err)
	}
	eachDamage(pack, func(what string, b []byte) {
		if err := readPack(b); !isRefusal(err) {
			t.Errorf("%s: error %v", what, err)
		}
	})
	if err := readPack(wire.Append(nil, []wire.Section{{Name: "a", Data: nil}, {Name: "a", Data: nil}})); !errors.Is(err, wire.ErrDamaged) {
		t.Errorf("two sections of a name: %v", err)
	}
	pack[wire.HeaderSize-1] = wire.Version + 1
	if _, err := wire.Open(pack); !errors.Is(err, wire.ErrVersion) {
		t.Errorf("pack of another version: %v", err)
	}
}

// TestPackBounds writes the largest number of sections, with the longest names.
func TestPackBounds(t *testing.T) {
	sections := make([]wire.Section, 64)
	for i := range sections {
		sections[i] = wire.Section{Name: fmt.Sprintf("%032d", i), Data: []byte{byte(i)}}
	}
	p, err := wire.Open(wire.Append(nil, sections))
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range p.Names() {
		if b, err := p.Section(name); err != nil || name != sections[i].Name || !bytes.Equal(b, sections[i].Data) || cap(b) != 1 || !p.Has(name) {
			t.Errorf("section %d is %q: %x, %v", i, name, b, err)
		}
	}
	if len(p.Names()) != 64 || p.Has("0") {
		t.Errorf("sections %q", p.Names())
	}
	for name, bad := range map[string][]wire.Section{
		"one more":  append(sections, wire.Section{Name: "x"}),
		"long name": {{Name: strings.Repeat("x", 33)}},
	} {
		if _, err := wire.Open(wire.Append(nil, bad)); !errors.Is(err, wire.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPackThatLies reads impossible packs with right checksums.
func TestPackThatLies(t *testing.T) {
	forge := func(data, table string, size int) []byte {
		head := "OWPK" + string(rune(wire.Version))
		tail := binary.LittleEndian.AppendUint32([]byte(table), uint32(size))
		sum := wire.Checksum(append([]byte(head), tail...))
		return append(append([]byte(head+data), binary.LittleEndian.AppendUint32(tail, sum)...), "KPWO"...)
	}
	entry := func(name string, length int, data string) string {
		return string(binary.LittleEndian.AppendUint32(append([]byte{byte(len(name))}, name+string(rune(length))...), wire.Checksum([]byte(data))))
	}
	one := "\x01" + entry("a", 3, "one")
	if p, err := wire.Open(forge("one", one, len(one))); err != nil || !p.Has("a") {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"no table":                     forge("", "", 0),
		"bytes of no section":          forge("oneX", one, len(one)),
		"length above the bytes":       forge("one", "\x01"+entry("a", 4, "one"), len(one)),
		"lengths above the bytes":      forge("one", "\x02"+entry("a", 2, "on")+entry("b", 2, "ne"), 2*len(one)-1),
		"more sections than there are": forge("one", "\x02"+one[1:], len(one)),
		"fewer":                        forge("one", "\x00"+one[1:], len(one)),
		"a byte behind the table":      forge("one", one+"x", len(one)+1),
		"a table that is not all":      forge("one", one, len(one)-1),
		"a table of the header too":    forge("one", one, len(one)+3+1),
		"a table of more than all":     forge("one", one, 1<<31),
	} {
		if _, err := wire.Open(b); !errors.Is(err, wire.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A damaged section is reported when it is read, not before.
	p, err := wire.Open(forge("onx", one, len(one)))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := p.Section("a"); !errors.Is(err, wire.ErrDamaged) || b != nil {
		t.Errorf("section of other bytes: %q, %v", b, err)
	}
}

func FuzzPack(f *testing.F) {
	f.Add(wire.Append(nil, nil))
	f.Add(wire.Append(nil, []wire.Section{{Name: "a", Data: []byte("one")}, {Name: "b", Data: []byte("three")}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := readPack(data); err != nil && !isRefusal(err) {
			t.Fatal(err)
		}
	})
}
