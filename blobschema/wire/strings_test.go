package wire_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/orbweaver/orbweaver/blobschema/wire"
)

// unpack reads n texts and returns them.
func unpack(u *wire.TextUnpacker, b []byte, after string, n, each, whole int) (texts []string, err error) {
	c := &wire.Cursor{Rest: b}
	u.Read(c, n, each, whole)
	if c.Err != nil {
		return nil, c.Err
	}
	u.After(after)
	for i := 0; i < n && c.Err == nil; i++ {
		texts = append(texts, u.Next(c))
	}
	return texts, c.End()
}

func TestTextPacker(t *testing.T) {
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf("https://a.example/%d/page", i*7919))
	}
	var p wire.TextPacker // reused, like the unpacker
	var u wire.TextUnpacker
	for _, c := range []struct {
		name, after string
		texts       []string
		packed      int // bytes of text that are kept; -1: not checked
	}{
		{"nothing", "", nil, 0},
		{"one", "", []string{"abc"}, 3},
		{"after another", "abcd", []string{"abcx", "abcx", "ab", "", "abc"}, 4},
		{"beginnings", "ab", []string{"a", "abc", "b"}, 3},
		{"long", "", []string{strings.Repeat("x", 5000), strings.Repeat("x", 9000) + "y", "z"}, 9002},
		{"many", "https://a.example/", many, -1},
	} {
		p.Reset()
		p.After(c.after)
		each, whole := 0, 0
		for _, s := range c.texts {
			p.Add(s)
			each, whole = max(each, len(s)), whole+len(s)
		}
		if packed, size := p.Size(); size != whole || c.packed >= 0 && packed != c.packed {
			t.Errorf("%s: %d bytes packed, %d whole; want %d, %d", c.name, packed, size, c.packed, whole)
		}
		b := p.Append([]byte("before"))[len("before"):]
		got, err := unpack(&u, b, c.after, len(c.texts), each, whole)
		if err != nil || !slices.Equal(got, c.texts) {
			t.Errorf("%s: %.200q, %v", c.name, got, err)
		}
		if len(c.texts) == 0 {
			continue
		}
		if _, err := unpack(&u, b, c.after, len(c.texts), each-1, whole); !errors.Is(err, wire.ErrDamaged) {
			t.Errorf("%s: a text above its limit: %v", c.name, err)
		}
		if _, err := unpack(&u, b, c.after, len(c.texts), each, whole-1); !errors.Is(err, wire.ErrDamaged) {
			t.Errorf("%s: texts above their limit: %v", c.name, err)
		}
		for cut := range min(len(b), 10) {
			if _, err := unpack(&u, b[:len(b)-1-cut], c.after, len(c.texts), each, whole); !errors.Is(err, wire.ErrDamaged) {
				t.Errorf("%s: cut: %v", c.name, err)
			}
		}
	}
}

func TestTextsThatLie(t *testing.T) {
	var u wire.TextUnpacker
	for name, c := range map[string]struct {
		b, after string
		want     error
	}{
		"as it is":                     {"\x00\x02" + "\x01\x01" + "xy", "ab", nil},
		"shared with a shorter one":    {"\x00\x03" + "\x01\x01" + "xy", "ab", wire.ErrDamaged},
		"the second with the first":    {"\x01\x00\x03" + "\x01\x01" + "xy", "ab", wire.ErrDamaged},
		"shared and own above a limit": {"\x00\x07" + "\x03\x03" + "xyzxyz", "abcdefgh", wire.ErrDamaged},
		"less text than lengths":       {"\x00\x02" + "\x01\x02" + "xy", "ab", wire.ErrDamaged},
		"more text than lengths":       {"\x00\x02" + "\x01\x01" + "xyz", "ab", wire.ErrDamaged},
	} {
		got, err := unpack(&u, []byte(c.b), c.after, 2, 8, 16)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if c.want == nil && !slices.Equal(got, []string{"abx", "aby"}) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestTextsShareMemory checks that short texts share chunks, and that a few of them take little memory.
func TestTextsShareMemory(t *testing.T) {
	var p wire.TextPacker
	var u wire.TextUnpacker
	for i := range 1000 {
		p.Add(fmt.Sprintf("https://a.example/%016d", i))
	}
	b := p.Append(nil)
	_, whole := p.Size()
	if got := testing.AllocsPerRun(5, func() {
		c := &wire.Cursor{Rest: b}
		u.Read(c, 1000, 100, whole)
		for range 1000 {
			u.Next(c)
		}
		if c.End() != nil {
			t.Fatal(c.Err)
		}
	}); got > 20 {
		t.Errorf("1000 texts of %d bytes took %g allocations", whole, got)
	}
}
