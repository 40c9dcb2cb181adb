package schedule

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/orbweaver/orbweaver/blobschema"
)

// TestPublished compares with the output of Partow's General Purpose Hash Function Algorithms for its key, and with sums
// computed by hand.
func TestPublished(t *testing.T) {
	const key = "abcdefghijklmnopqrstuvwxyz1234567890"
	for _, c := range []struct {
		s               string
		bkdr, elf, sdbm uint32
	}{
		{"", 0, 0, 0},
		{"a", 97, 97, 97},
		{"ab", 97*131 + 98, 97*16 + 98, 97*65_599 + 98},
		{"\xff", 255, 255, 255}, // bytes are unsigned
		{key, 3_153_586_616, 126_631_744, 3_449_571_336},
	} {
		for by, want := range map[blobschema.QueueBy]uint32{
			blobschema.QueueByBKDR: c.bkdr, blobschema.QueueByELF: c.elf, blobschema.QueueBySDBM: c.sdbm, blobschema.QueueByHost: 0,
		} {
			if got := HashString(by, c.s); got != want {
				t.Errorf("%s of %q: got %d, want %d", by, c.s, got, want)
			}
		}
	}
}

// TestReduce checks that all numbers below k occur about equally often, even if the hash
// modulo k is always the same.
func TestReduce(t *testing.T) {
	const n = 20_000
	for _, by := range []blobschema.QueueBy{blobschema.QueueByBKDR, blobschema.QueueByELF, blobschema.QueueBySDBM} {
		for _, k := range []int{1, 2, 3, 7, 16, 32, 64} {
			counts := make([]int, k)
			for i := range n {
				counts[Reduce(HashString(by, fmt.Sprintf("https://www.portal.example/d%d/p%d.html", i%8, i)), k)]++
			}
			mean := float64(n) / float64(k)
			for q, c := range counts {
				if math.Abs(float64(c)-mean) > 6*math.Sqrt(mean) {
					t.Errorf("%s of %d: queue %d has %d of %d", by, k, q, c, n)
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

// TestWeakBits checks the weaknesses of ELF and SDBM that HashString documents.
func TestWeakBits(t *testing.T) {
	a, b := HashString(blobschema.QueueByELF, "https://a.example/1.html"), HashString(blobschema.QueueByELF, "https://b.example/another.html")
	if a == b || a%16 != b%16 {
		t.Errorf("ELF: %#x and %#x", a, b)
	}
	s := "https://a.example/" + strings.Repeat("xy", 9)
	c, d := HashString(blobschema.QueueBySDBM, s), HashString(blobschema.QueueBySDBM, strings.ReplaceAll(s, "xy", "yz"))
	if c == d || c%64 != d%64 {
		t.Error("SDBM: equal differences of sums do not give equal low bits")
	}
}
