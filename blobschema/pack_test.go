package blobschema

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"
)

// isOurs says whether an error is one that decoders may return.
func isOurs(err error) bool { return errors.Is(err, ErrDamaged) || errors.Is(err, ErrVersion) }

// eachDamage calls f with every way of changing one byte of data, and every way of
// cutting it.
func eachDamage(data []byte, f func(what string, damaged []byte)) {
	for i := range data {
		for _, x := range []byte{0x01, 0x80} {
			b := bytes.Clone(data)
			b[i] ^= x
			f("byte "+hex.EncodeToString([]byte{byte(i >> 8), byte(i)})+" changed", b)
		}
		f("cut", bytes.Clone(data[:i]))
	}
	f("longer", append(bytes.Clone(data), 0))
}

func TestPackGolden(t *testing.T) {
	got := AppendPack([]byte("before"), []Section{{"a", []byte("one")}, {"empty", nil}, {"b", []byte("three")}})
	const want = "6265666f7265" + // what was there
		"4f57504b05" + "6f6e65" + "7468726565" + // header, sections
		"03" + "016103" + "e9b2942a" + "05656d70747900" + "00000000" + "016205" + "bc51441c" + // table
		"1a000000" + "1f9d235d" + "4b50574f" // tail
	if hex.EncodeToString(got) != want {
		t.Fatalf("pack is\n%x\nwant\n%s", got, want)
	}
	p, err := OpenPack(got[len("before"):])
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
	if _, err := p.Section("none"); !errors.Is(err, ErrDamaged) {
		t.Errorf("section that is not there: %v", err)
	}
	if off, n := p.SectionAt("none"); off != 0 || n != 0 {
		t.Errorf("section that is not there is at %d, %d", off, n)
	}
}

// readPack opens a pack and all its sections.
func readPack(b []byte) error {
	p, err := OpenPack(b)
	if err != nil {
		return err
	}
	for _, s := range p.sections {
		if _, err := p.Section(s.name); err != nil {
			return err
		}
	}
	return nil
}

func TestPackDamage(t *testing.T) {
	pack := AppendPack(nil, []Section{{"a", []byte("one")}, {"b", []byte("three")}})
	if err := readPack(pack); err != nil {
		t.Fatal(err)
	}
	eachDamage(pack, func(what string, b []byte) {
		if err := readPack(b); !isOurs(err) {
			t.Errorf("%s: error %v", what, err)
		}
	})
	if err := readPack(AppendPack(nil, []Section{{"a", nil}, {"a", nil}})); !errors.Is(err, ErrDamaged) {
		t.Errorf("two sections of a name: %v", err)
	}
	pack[packHeader-1] = Version + 1
	if _, err := OpenPack(pack); !errors.Is(err, ErrVersion) {
		t.Errorf("pack of another version: %v", err)
	}
}

func FuzzPack(f *testing.F) {
	f.Add(AppendPack(nil, nil))
	f.Add(AppendPack(nil, []Section{{"a", []byte("one")}, {"b", []byte("three")}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := readPack(data); err != nil && !isOurs(err) {
			t.Fatal(err)
		}
	})
}
