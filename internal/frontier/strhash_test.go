package frontier

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestPublished compares with what Partow's General Purpose Hash Function Algorithms print for
// their key, and with sums made by hand.
func TestPublished(t *testing.T) {
	const key = "abcdefghijklmnopqrstuvwxyz1234567890"
	for _, c := range []struct {
		s               string
		bkdr, elf, sdbm uint32
	}{
		{"", 0, 0, 0},
		{"a", 97, 97, 97},
		{"ab", 97*131 + 98, 97*16 + 98, 97*65_599 + 98},
		{"\xff", 255, 255, 255}, // bytes have no sign
		{key, 3_153_586_616, 126_631_744, 3_449_571_336},
	} {
		for _, h := range []struct {
			name      string
			got, want uint32
		}{{"BKDR", BKDR(c.s), c.bkdr}, {"ELF", ELF(c.s), c.elf}, {"SDBM", SDBM(c.s), c.sdbm}} {
			if h.got != h.want {
				t.Errorf("%s of %q: got %d, want %d", h.name, c.s, h.got, h.want)
			}
		}
	}
}

// TestReduce: each number below k comes, none above, and about as often as the others, where
// the hash modulo k is always the same.
func TestReduce(t *testing.T) {
	const n = 20_000
	for _, hash := range []struct {
		name string
		of   func(string) uint32
	}{{"BKDR", BKDR}, {"ELF", ELF}, {"SDBM", SDBM}} {
		for _, k := range []int{1, 2, 3, 7, 16, 32, 64} {
			counts := make([]int, k)
			for i := range n {
				counts[Reduce(hash.of(fmt.Sprintf("https://www.portal.example/d%d/p%d.html", i%8, i)), k)]++
			}
			mean := float64(n) / float64(k)
			for q, c := range counts {
				if math.Abs(float64(c)-mean) > 6*math.Sqrt(mean) {
					t.Errorf("%s of %d: queue %d has %d of %d", hash.name, k, q, c, n)
				}
			}
		}
	}
	for _, h := range []uint32{0, 1, math.MaxUint32} {
		for _, k := range []int{1, 64, math.MaxInt32} {
			if q := Reduce(h, k); q < 0 || q >= k {
				t.Errorf("%d of %d: %d", h, k, q)
			}
		}
	}
}

// TestWeakBits: what the documentation says of ELF and SDBM is so.
func TestWeakBits(t *testing.T) {
	a, b := ELF("https://a.example/1.html"), ELF("https://b.example/another.html")
	if a == b || a%16 != b%16 {
		t.Errorf("ELF: %#x and %#x", a, b)
	}
	if s := "https://a.example/" + strings.Repeat("xy", 9); SDBM(s)%64 != SDBM(strings.ReplaceAll(s, "xy", "yz"))%64 || SDBM(s) == SDBM(strings.ReplaceAll(s, "xy", "yz")) {
		t.Error("SDBM: equal differences of sums do not give equal low bits")
	}
}
