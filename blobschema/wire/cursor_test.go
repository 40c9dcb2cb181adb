package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/orbweaver/orbweaver/blobschema/wire"
)

func TestCompressed(t *testing.T) {
	noise := make([]byte, 5000)
	for i := range noise {
		noise[i] = byte(i * i >> 3)
	}
	for name, raw := range map[string][]byte{"nothing": {}, "a byte": {7}, "noise": noise, "zeros": make([]byte, 1<<20)} {
		frame := wire.AppendCompressed([]byte("before"), raw)
		if again := wire.AppendCompressed([]byte("before"), raw); !bytes.Equal(again, frame) {
			t.Errorf("%s: compressed again it is something else", name)
		}
		frame, ok := bytes.CutPrefix(frame, []byte("before"))
		if !ok {
			t.Fatalf("%s: what was there is gone", name)
		}
		for _, buf := range [][]byte{nil, make([]byte, 1), make([]byte, len(raw)), make([]byte, 3, len(raw)+100)} {
			got, err := wire.Decompress(buf, frame, len(raw))
			if err != nil || !bytes.Equal(got, raw) {
				t.Fatalf("%s: %d bytes, %v", name, len(got), err)
			}
			if cap(buf) >= max(len(raw), 1) && len(got) > 0 && &got[0] != &buf[0] {
				t.Errorf("%s: a buffer of %d bytes is not used", name, cap(buf))
			}
		}
		// A size that a frame of this length cannot hold is refused before it is allocated.
		for _, n := range []int{len(raw) + 1, len(raw) - 1, 1 << 45} {
			if n < 0 {
				continue
			}
			if got, err := wire.Decompress(nil, frame, n); !errors.Is(err, wire.ErrDamaged) || got != nil {
				t.Errorf("%s, %d bytes promised: %d, %v", name, n, len(got), err)
			}
		}
		for n := range min(len(frame), 20) {
			if got, err := wire.Decompress(nil, frame[:n], len(raw)); len(raw) > 0 && (!errors.Is(err, wire.ErrDamaged) || got != nil) {
				t.Errorf("%s, cut to %d bytes: %d, %v", name, n, len(got), err)
			}
		}
	}
}

func TestPacked(t *testing.T) {
	raw := bytes.Repeat([]byte("some text "), 20) // a length of two bytes
	packed := wire.AppendPacked([]byte("before"), raw)[len("before"):]
	if got, err := wire.Unpack(packed, uint64(len(raw))); err != nil || !bytes.Equal(got, raw) {
		t.Errorf("at the limit: %q, %v", got, err)
	}
	for name, c := range map[string]struct {
		b     []byte
		limit uint64
	}{
		"above the limit":     {packed, uint64(len(raw)) - 1},
		"nothing":             {nil, 10},
		"length cut":          {packed[:1], 1000},
		"length too long":     {bytes.Repeat([]byte{0xff}, 12), math.MaxUint64},
		"more than any frame": {append(binary.AppendUvarint(nil, 1<<45), packed[2:]...), 1 << 46},
		"one more":            {append(binary.AppendUvarint(nil, uint64(len(raw))+1), packed[2:]...), 1000},
		"one less":            {append(binary.AppendUvarint(nil, uint64(len(raw))-1), packed[2:]...), 1000},
	} {
		if got, err := wire.Unpack(c.b, c.limit); !errors.Is(err, wire.ErrDamaged) || got != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestUvarint(t *testing.T) {
	for _, c := range []struct {
		in    string
		limit uint64
		want  uint64
		rest  int // bytes; -1: refused
	}{
		{"\x00x", 0, 0, 1},
		{"\x05x", 5, 5, 1},
		{"\x05x", 4, 0, -1},
		{"\x7f", 127, 127, 0},
		{"\x80\x01x", 128, 128, 1},
		{"\x80\x01x", 127, 0, -1},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", math.MaxUint64, math.MaxUint64, 0},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", math.MaxUint64, 0, -1},
		{"\x80", math.MaxUint64, 0, -1},
		{"", math.MaxUint64, 0, -1},
	} {
		cur := &wire.Cursor{Rest: []byte(c.in)}
		got := cur.Uvarint(c.limit)
		if c.rest < 0 {
			if !errors.Is(cur.Err, wire.ErrDamaged) || got != 0 {
				t.Errorf("%x up to %d: %d, %v", c.in, c.limit, got, cur.Err)
			}
		} else if got != c.want || cur.Err != nil || len(cur.Rest) != c.rest {
			t.Errorf("%x up to %d: %d, %v, %d bytes left", c.in, c.limit, got, cur.Err, len(cur.Rest))
		}
	}
}

// TestCursor reads one value of each kind, from all of its bytes and from fewer.
func TestCursor(t *testing.T) {
	input := []byte("\x01\x02\x03\x04\x05\x06\x07\x08" + "\x09\x0a\x0b\x0c" + "\x03abc" + "de")
	read := func(c *wire.Cursor) string {
		return fmt.Sprintf("%x %x %s %s", c.Uint64(), c.Uint32(), c.Prefixed(3), c.Take(2))
	}
	c := &wire.Cursor{Rest: input}
	if got := read(c); got != "807060504030201 c0b0a09 abc de" || c.End() != nil {
		t.Errorf("got %s, %v", got, c.End())
	}
	for n := range input {
		c := &wire.Cursor{Rest: input[:n]}
		if read(c); !errors.Is(c.End(), wire.ErrDamaged) || c.Rest != nil {
			t.Errorf("cut to %d bytes: %v", n, c.End())
		}
		// After a failure nothing can be read, and the first error stays.
		first := c.Err
		if got := read(c); got != "0 0  " || c.Count(1) != 0 || c.Texts(9) != nil || c.End() != first {
			t.Errorf("after a failure: %s, %v", got, c.Err)
		}
		c.Column(3, 9, func(int, uint64) { t.Error("a column after a failure") })
		c.Values(3, 9, func(int, uint64) { t.Error("values after a failure") })
	}
	if c := (&wire.Cursor{Rest: []byte("\x03abc")}); c.Prefixed(2) != nil || !errors.Is(c.Err, wire.ErrDamaged) {
		t.Errorf("above its limit: %v", c.Err)
	}
	if c := (&wire.Cursor{Rest: []byte("ab")}); !errors.Is(c.End(), wire.ErrDamaged) {
		t.Errorf("bytes too many: %v", c.Err)
	}
	if c := (&wire.Cursor{Rest: []byte("ab")}); cap(c.Take(1)) != 1 {
		t.Error("appending to returned bytes overwrites the following ones")
	}
}

// TestCount checks that a count never exceeds what the following bytes can hold.
func TestCount(t *testing.T) {
	for _, c := range []struct{ claimed, follow, size, want int }{
		{0, 0, 8, 0},
		{2, 16, 8, 2},
		{2, 17, 8, 2},
		{2, 15, 8, -1}, // the count itself does not belong to them
		{3, 3, 1, 3},
		{4, 3, 1, -1},
		{1 << 40, 30, 1, -1},
	} {
		cur := &wire.Cursor{Rest: append(binary.AppendUvarint(nil, uint64(c.claimed)), make([]byte, c.follow)...)}
		got := cur.Count(c.size)
		if c.want < 0 {
			if got != 0 || !errors.Is(cur.Err, wire.ErrDamaged) {
				t.Errorf("%+v: %d, %v", c, got, cur.Err)
			}
		} else if got != c.want || cur.Err != nil {
			t.Errorf("%+v: %d, %v", c, got, cur.Err)
		}
	}
}

func TestTexts(t *testing.T) {
	for _, texts := range [][]string{{}, {""}, {"one", "", "three"}, {strings.Repeat("x", 300), "y"}} {
		longest := 0
		for _, s := range texts {
			longest = max(longest, len(s))
		}
		b := wire.AppendTexts([]byte("before"), len(texts), func(i int) string { return texts[i] })[len("before"):]
		c := &wire.Cursor{Rest: append(slices.Clone(b), "rest"...)}
		if got := c.Texts(uint64(longest)); c.Err != nil || !slices.Equal(got, texts) || string(c.Rest) != "rest" {
			t.Errorf("%q is %q, %v, before %q", texts, got, c.Err, c.Rest)
		}
		for n := range b {
			if c := (&wire.Cursor{Rest: b[:n]}); c.Texts(uint64(longest)) != nil || !errors.Is(c.Err, wire.ErrDamaged) {
				t.Errorf("%q cut to %d bytes: %v", texts, n, c.Err)
			}
		}
		if c := (&wire.Cursor{Rest: b}); longest > 0 && (c.Texts(uint64(longest-1)) != nil || !errors.Is(c.Err, wire.ErrDamaged)) {
			t.Errorf("%q with a text above the limit: %v", texts, c.Err)
		}
	}
}

func TestColumn(t *testing.T) {
	for _, c := range []struct {
		values []uint64
		want   string // bytes; "" if there is no value
	}{
		{nil, ""},
		{[]uint64{5}, "\x00\x05"},
		{[]uint64{300, 300, 300}, "\x00\xac\x02"},
		{[]uint64{1, 1, 2}, "\x01\x01\x01\x02"},
		{[]uint64{2, 1, 1}, "\x01\x02\x01\x01"},
		{[]uint64{0, 128}, "\x01\x00\x80\x01"},
	} {
		n := len(c.values)
		b := wire.AppendColumn(nil, n, func(i int) uint64 { return c.values[i] })
		if string(b) != c.want {
			t.Errorf("column of %d is %x, want %x", c.values, b, c.want)
		}
		read := func(b []byte, limit uint64) (got []uint64, err error) {
			cur := &wire.Cursor{Rest: b}
			got = make([]uint64, n)
			cur.Column(n, limit, func(i int, v uint64) { got[i] = v })
			return got, cur.End()
		}
		most := slices.Max(append([]uint64{0}, c.values...))
		if got, err := read(b, most); err != nil || !slices.Equal(got, c.values) {
			t.Errorf("column %x is %d, %v; want %d", b, got, err, c.values)
		}
		if n == 0 {
			continue
		}
		if _, err := read(b, most-1); !errors.Is(err, wire.ErrDamaged) {
			t.Errorf("column %x with a value above the limit: %v", b, err)
		}
		if _, err := read(append([]byte{2}, b[1:]...), most); !errors.Is(err, wire.ErrDamaged) {
			t.Errorf("column of an unknown kind: %v", err)
		}
		for cut := range b {
			if _, err := read(b[:cut], most); !errors.Is(err, wire.ErrDamaged) {
				t.Errorf("column %x cut to %d bytes: %v", b, cut, err)
			}
		}
	}
}

func TestHostTable(t *testing.T) {
	var table wire.HostTable
	var numbers []uint32
	for _, h := range []string{"b", "b", "a", "b", "a", "c", "c"} {
		numbers = append(numbers, table.Add(h))
	}
	if want := []uint32{0, 0, 1, 0, 1, 2, 2}; !slices.Equal(numbers, want) {
		t.Errorf("hosts are numbered %d, want %d", numbers, want)
	}
	c := &wire.Cursor{Rest: table.Append(nil)}
	names := c.Texts(wire.MaxHost)
	if err := c.End(); err != nil || !slices.Equal(names, []string{"b", "a", "c"}) {
		t.Fatalf("hosts are %q, %v", names, err)
	}
	read := func(names []string, numbers ...uint64) ([]string, error) {
		c := &wire.Cursor{Rest: wire.AppendColumn(nil, len(numbers), func(i int) uint64 { return numbers[i] })}
		hosts := make([]string, len(numbers))
		wire.ReadHostColumn(c, len(numbers), names, func(i int, host string) { hosts[i] = host })
		return hosts, c.End()
	}
	if got, err := read(names, 0, 2, 1); err != nil || !slices.Equal(got, []string{"b", "c", "a"}) {
		t.Errorf("hosts 0, 2, 1 are %q, %v", got, err)
	}
	for _, bad := range [][]uint64{{0, 3}, {3, 3}, {0, 4}} {
		if _, err := read(names, bad...); !errors.Is(err, wire.ErrDamaged) {
			t.Errorf("hosts %d of 3: %v", bad, err)
		}
	}
	if _, err := read(nil, 0); !errors.Is(err, wire.ErrDamaged) {
		t.Errorf("a host of none: %v", err)
	}
}
