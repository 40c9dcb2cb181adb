package inflate

import (
	"hash/crc32"
	"io"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func crc(b []byte) uint32 { return crc32.ChecksumIEEE(b) }

// bitWriter writes DEFLATE by hand.
type bitWriter struct {
	b []byte
	n int // bits written
}

// put writes numbers and their numbers of bits in turns, lowest bit first.
func (w *bitWriter) put(pairs ...int) *bitWriter {
	for i := 0; i < len(pairs); i += 2 {
		for j := range pairs[i+1] {
			if w.n%8 == 0 {
				w.b = append(w.b, 0)
			}
			w.b[w.n/8] |= byte(pairs[i]>>j&1) << (w.n % 8)
			w.n++
		}
	}
	return w
}

// code writes a code, highest bit first.
func (w *bitWriter) code(c, n int) *bitWriter {
	return w.put(int(bits.Reverse16(uint16(c))>>(16-n)), n)
}

func (w *bitWriter) bytes() []byte { return w.b }

// dynamic begins a last block with codes of these lengths. The code of the lengths is four bits
// for each from 0 to 15.
func (w *bitWriter) dynamic(lits, dists []int) *bitWriter {
	w.put(1, 1, 2, 2, len(lits)-257, 5, len(dists)-1, 5, numLengths-4, 4, 0, 9)
	for range numLengths - 3 {
		w.put(4, 3)
	}
	for _, n := range slices.Concat(lits, dists) {
		w.code(n, 4)
	}
	return w
}

// lens returns n code lengths, 0 but for those given by symbol and length in turns.
func lens(n int, pairs ...int) []int {
	l := make([]int, n)
	for i := 0; i < len(pairs); i += 2 {
		l[pairs[i]] = pairs[i+1]
	}
	return l
}

func block() *bitWriter { return new(bitWriter) }

// fixed begins a last block of fixed codes with an "a".
func fixed() *bitWriter { return block().put(1, 1, 1, 2).code(0x30+'a', 8) }

// all returns n code lengths of bits each.
func all(n, bits int) []int { return slices.Repeat([]int{bits}, n) }

// codes are streams that only a hand writes, and what comes out.
var codes = []struct {
	name  string
	write func() *bitWriter
	want  string
	err   error
}{
	{"reserved type", func() *bitWriter { return block().put(1, 1, 3, 2) }, "", errCorrupt},
	{"stored", func() *bitWriter { return block().put(1, 3, 0, 5, 2, 16, ^2, 16, 'a', 8, 'b', 8) }, "ab", nil},
	{"stored, none", func() *bitWriter { return block().put(1, 3, 31, 5, 0, 16, ^0, 16) }, "", nil},
	{"stored, lengths that differ", func() *bitWriter { return block().put(1, 3, 0, 5, 2, 16, 2, 16, 'a', 8, 'b', 8) }, "", errCorrupt},
	{"stored, cut", func() *bitWriter { return block().put(1, 3, 0, 5, 3, 16, ^3, 16, 'a', 8, 'b', 8) }, "ab", io.ErrUnexpectedEOF},
	{"stored after fixed", func() *bitWriter {
		return block().put(0, 1, 1, 2).code(0x30+'a', 8).code(0, 7).put(1, 3, 0, 3, 1, 16, ^1, 16, 'b', 8)
	}, "ab", nil},
	{"no last block", func() *bitWriter { return block().put(0, 1, 1, 2).code(0x30+'a', 8).code(0, 7) }, "a", io.ErrUnexpectedEOF},
	{"fixed", func() *bitWriter { return fixed().code(0, 7) }, "a", nil},
	{"fixed, of nine bits", func() *bitWriter { return fixed().code(0x1ff, 9).code(0, 7) }, "a\xff", nil},
	{"fixed, match", func() *bitWriter { return fixed().code(2, 7).code(0, 5).code(0, 7) }, "aaaaa", nil},
	{"fixed, longest match", func() *bitWriter { return fixed().code(0xc5, 8).code(0, 5).code(0, 7) }, strings.Repeat("a", 259), nil},
	{"fixed, 284 and all its extra bits", func() *bitWriter { return fixed().code(0xc4, 8).put(31, 5).code(0, 5).code(0, 7) }, strings.Repeat("a", 259), nil},
	{"fixed, symbol 286", func() *bitWriter { return fixed().code(0xc6, 8).code(0, 5).code(0, 7) }, "a", errCorrupt},
	{"fixed, symbol 287", func() *bitWriter { return fixed().code(0xc7, 8).code(0, 5).code(0, 7) }, "a", errCorrupt},
	{"fixed, distance 30", func() *bitWriter { return fixed().code(2, 7).code(30, 5).put(0, 13).code(0, 7) }, "a", errCorrupt},
	{"fixed, distance 31", func() *bitWriter { return fixed().code(2, 7).code(31, 5).put(0, 13).code(0, 7) }, "a", errCorrupt},
	{"fixed, too far", func() *bitWriter { return fixed().code(2, 7).code(1, 5).code(0, 7) }, "a", errCorrupt},
	{"287 literals", func() *bitWriter { return block().put(1, 1, 2, 2, 30, 5, 0, 5, 0, 4).put(0, 200) }, "", errCorrupt},
	{"31 distances", func() *bitWriter { return block().put(1, 1, 2, 2, 0, 5, 30, 5, 0, 4).put(0, 200) }, "", errCorrupt},
	{"one of each", func() *bitWriter {
		return block().dynamic(lens(258, 'a', 2, 256, 2, 257, 1), []int{1}).code(2, 2).code(0, 1).code(0, 1).code(3, 2)
	}, "aaaa", nil},
	{"one distance, and another code", func() *bitWriter {
		return block().dynamic(lens(258, 'a', 2, 256, 2, 257, 1), []int{1}).code(2, 2).code(0, 1).code(1, 1).code(3, 2)
	}, "a", errCorrupt},
	{"one distance of two bits", func() *bitWriter {
		return block().dynamic(lens(258, 'a', 2, 256, 2, 257, 1), []int{2}).code(2, 2).code(3, 2)
	}, "", errCorrupt},
	{"no distance", func() *bitWriter {
		return block().dynamic(lens(257, 'a', 1, 256, 1), []int{0}).code(0, 1).code(0, 1).code(1, 1)
	}, "aa", nil},
	{"no distance, and a match", func() *bitWriter {
		return block().dynamic(lens(258, 'a', 2, 256, 2, 257, 1), []int{0}).code(2, 2).code(0, 1).put(0, 100)
	}, "a", errCorrupt},
	{"nothing but an end", func() *bitWriter { return block().dynamic(lens(257, 256, 1), []int{0}).code(0, 1) }, "", nil},
	{"nothing but an end, and another code", func() *bitWriter { return block().dynamic(lens(257, 256, 1), []int{0}).code(1, 1) }, "", errCorrupt},
	{"no literals", func() *bitWriter { return block().dynamic(lens(257), []int{0}).put(0, 100) }, "", errCorrupt},
	{"no end", func() *bitWriter {
		return block().dynamic(lens(257, 'a', 1, 'b', 1), []int{0}).code(0, 1).code(1, 1).code(1, 1)
	}, "abbaaa", io.ErrUnexpectedEOF},
	{"incomplete literals", func() *bitWriter { return block().dynamic(lens(257, 'a', 2, 256, 2), []int{0}).put(0, 100) }, "", errCorrupt},
	{"too many literals", func() *bitWriter { return block().dynamic(lens(257, 'a', 1, 'b', 1, 256, 1), []int{0}).put(0, 100) }, "", errCorrupt},
	{"incomplete distances", func() *bitWriter { return block().dynamic(lens(257, 'a', 1, 256, 1), []int{2, 2}).put(0, 100) }, "", errCorrupt},
	{"too many distances", func() *bitWriter { return block().dynamic(lens(257, 'a', 1, 256, 1), []int{1, 1, 1}).put(0, 100) }, "", errCorrupt},
	{"all of nine bits and eight", func() *bitWriter {
		return block().dynamic(slices.Concat(all(226, 8), all(60, 9)), slices.Concat(all(28, 5), all(2, 4))).code('a', 8).code(0xe2<<1+30, 9)
	}, "a", nil},
	{"no code of lengths", func() *bitWriter { return block().put(1, 1, 2, 2, 0, 5, 0, 5, 0, 4, 0, 12).put(0, 100) }, "", errCorrupt},
	{"repeat of nothing", func() *bitWriter {
		return block().put(1, 1, 2, 2, 0, 5, 0, 5, 0, 4, 1, 3, 1, 3, 0, 3, 0, 3).put(0, 100)
	}, "", errCorrupt},
	{"repeat beyond the end", func() *bitWriter {
		return block().put(1, 1, 2, 2, 0, 5, 0, 5, 0, 4, 0, 3, 0, 3, 1, 3, 1, 3).put(0xff, 8, 0xff, 8, 0xff, 8)
	}, "", errCorrupt},
}

func TestCodes(t *testing.T) {
	var d Decoder
	for _, c := range codes {
		for _, padding := range []int{0, 1, margin, 2 * margin} { // of which one has it done by run, one by symbol
			src := c.write().bytes()
			if c.err == io.ErrUnexpectedEOF && padding > 0 {
				continue
			}
			src = append(src, make([]byte, padding)...)
			got, err := equal(t, &d, "deflate", src, 1000)
			if string(got) != c.want || err != c.err {
				t.Errorf("%s: %q and %v, want %q and %v", c.name, got, err, c.want, c.err)
			}
		}
	}
}

// randomLens returns a complete code of n of the given symbols, of up to 15 bits, the deeper
// the more often the longest is split.
func randomLens(rnd *rand.Rand, symbols, n int) []int {
	leaves := []int{0}
	deep := rnd.IntN(3)
	for len(leaves) < n {
		i := rnd.IntN(len(leaves))
		if rnd.IntN(3) < deep {
			i = len(leaves) - 1
		}
		if leaves[i] == maxBits {
			continue
		}
		leaves[i]++
		leaves = append(leaves, leaves[i])
	}
	l := make([]int, symbols)
	for i, s := range rnd.Perm(symbols)[:n] {
		l[s] = leaves[i]
	}
	return l
}

// randomStream writes n symbols in random codes: literals at first, then matches too, of which
// few go too far back.
func randomStream(rnd *rand.Rand, n int) []byte {
	lits := randomLens(rnd, 257+rnd.IntN(30), 2+rnd.IntN(250))
	k := 2 + rnd.IntN(29)
	dists := randomLens(rnd, k, 2+rnd.IntN(k-1))
	w := block().dynamic(lits, dists)
	litCodes, distCodes := canonical(lits), canonical(dists)
	for i := range n {
		s := rnd.IntN(len(lits))
		if lits[s] == 0 || s == 256 && i < n-1 || s > 256 && i < n/4 {
			continue
		}
		w.code(litCodes[s], lits[s])
		if s <= 256 {
			continue
		}
		w.put(rnd.IntN(32), int(litEntries[s].size()))
		for {
			if s = rnd.IntN(len(dists)); dists[s] > 0 && (s < 12 || rnd.IntN(50) == 0) {
				break
			}
			if slices.Max(dists[:min(12, len(dists))]) == 0 {
				return w.put(0, 200).bytes()
			}
		}
		w.code(distCodes[s], dists[s]).put(rnd.IntN(1<<13), int(distEntries[s].size()))
	}
	if lits[256] > 0 {
		w.code(litCodes[256], lits[256])
	}
	return append(w.bytes(), make([]byte, rnd.IntN(2)*margin)...)
}

// canonical returns the codes that have these lengths, as RFC 1951 section 3.2.2 assigns them.
func canonical(lens []int) []int {
	codes := make([]int, len(lens))
	code := 0
	for n := 1; n <= maxBits; n++ {
		code <<= 1
		for s, l := range lens {
			if l == n {
				codes[s] = code
				code++
			}
		}
	}
	return codes
}

// TestRandomCodes has codes such as encoders do not write, up to 15 bits long.
func TestRandomCodes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	var d Decoder
	whole, longest := 0, 0
	for range 2000 {
		got, err := equal(t, &d, "deflate", randomStream(rnd, 2000), 1<<20)
		if err == nil {
			whole++
		}
		longest = max(longest, len(got))
	}
	if whole < 300 || longest < 10000 {
		t.Errorf("only %d streams were whole, the longest of %d bytes", whole, longest)
	}
}

// TestTables has the codes that need the most subtables.
func TestTables(t *testing.T) {
	for _, tt := range []struct {
		primary, symbols, size int
		of                     []entry
	}{
		{litBits, fixedLit, litSize, litEntries[:]},
		{distBits, fixedDist, distSize, distEntries[:]},
	} {
		rnd := rand.New(rand.NewPCG(7, 8))
		table := make([]entry, tt.size)
		for range 2000 {
			var l []uint8
			for _, n := range randomLens(rnd, tt.symbols, 1+rnd.IntN(tt.symbols)) {
				l = append(l, uint8(n))
			}
			if slices.Max(l) > 0 && !build(table, tt.primary, l, tt.of) {
				t.Fatalf("not complete: %v", l)
			}
		}
		if !build(table, tt.primary, mostSubtables(tt.primary, tt.symbols), tt.of) {
			t.Error("not complete")
		}
	}
}

// mostSubtables returns a complete code of up to n symbols with as many subtables as it can
// have: pairs of one bit more than are looked up first.
func mostSubtables(primary, n int) (lens []uint8) {
	pairs := n / 2
	for 2*pairs+bits.OnesCount(uint(1<<primary-pairs)) > n {
		pairs-- // for a short code, of which there is one for each bit of what is left
	}
	for range 2 * pairs {
		lens = append(lens, uint8(primary+1))
	}
	for bit := range primary {
		if (1<<primary-pairs)>>bit&1 != 0 {
			lens = append(lens, uint8(primary-bit))
		}
	}
	return lens
}
