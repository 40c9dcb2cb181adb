package warc

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// A shortDeflater deflates (RFC 1951) short texts such as the heads of records, each by
// itself. A general compressor spends most of its time for some hundred bytes on working
// out Huffman codes that fit them. Here the codes are the same for every text: they fit
// record and HTTP headers, and are told in few bytes. Any bytes may be deflated, but those
// beyond ASCII get longer.
//
// What comes again is found by a hash of four bytes, the latest place only. The bytes
// written depend on the text alone.
//
// It holds 11 KiB, and is for one goroutine at a time.
type shortDeflater struct {
	codes deflateCodes
	start bitWriter // what a block begins with: the codes' lengths
	// seen has, by hash, base plus the position where four bytes were met last. What is
	// below base is of an earlier text, so nothing has to be cleared between texts.
	seen [1 << shortHashBits]uint32
	base uint32
}

const (
	shortHashBits = 11
	shortWindow   = 4 << 10 // bytes a match lies back at most: as far as shortDistances reach
	shortMatch    = 4       // bytes of the shortest match: those that are hashed
	deflateMatch  = 258     // bytes of the longest match (section 3.2.5)
	deflateEnd    = 256     // symbol that ends a block
)

// A codeRun is a row of symbols with codes of the same length.
type codeRun struct{ symbols, bits int }

// The codes' lengths come from the heads of records of many servers. From the lengths
// best for them, rows of symbols were joined wherever telling them apart took more bits
// than it saved, since up to six equal lengths are told in three bits. No code is left
// unused, which readers may refuse.
var (
	shortSymbols = [...]codeRun{
		{10, 14}, {1, 6}, {2, 13}, {1, 6}, {18, 13}, // "\n"; "\r"
		{1, 5}, {11, 10}, {1, 8}, {1, 5}, // " "; "!" to "+"; ","; "-"
		{12, 6}, {1, 5}, {13, 8}, {12, 7}, {1, 6}, {6, 8}, // "." to "9"; ":"; to "G"; to "S"; "T"; to "Z"
		{6, 11}, {1, 5}, {1, 6}, {1, 5}, {1, 6}, {1, 4}, // "[" to "`"; "a"; "b"; "c"; "d"; "e"
		{4, 6}, {1, 10}, {1, 8}, {10, 6}, {5, 8}, // "f" to "i"; "j"; "k"; to "u"; to "z"
		{135, 13}, {8, 7}, {20, 12}, // the end and matches of 3 bytes too; matches of 4 to 11 bytes; longer ones
	}
	shortDistances = [...]codeRun{{6, 8}, {11, 4}, {2, 3}, {5, 7}}

	// Lengths of the codes that tell these lengths and their repetition (section 3.2.7).
	shortLengths = [...]codeRun{{3, 0}, {2, 5}, {1, 4}, {1, 3}, {2, 4}, {1, 0}, {1, 5}, {2, 7}, {1, 4}, {1, 6}, {1, 0}, {1, 1}, {2, 0}}
)

func newShortDeflater() *shortDeflater {
	d := &shortDeflater{base: 1}
	symbols, distances := newHuffmanCodes(shortSymbols[:]), newHuffmanCodes(shortDistances[:])
	copy(d.codes.literal[:], symbols)
	for n := shortMatch; n <= deflateMatch; n++ {
		symbol, extra := matchSymbol(n)
		d.codes.length[n] = symbols[deflateEnd+1+symbol].with(extra)
	}
	copy(d.codes.distance[:], distances)

	lengths := newHuffmanCodes(shortLengths[:])
	w := &d.start
	w.b = make([]byte, 256)
	w.put(newHuffmanCode(0b100, 3)) // dynamic codes; not the last block
	w.put(newHuffmanCode(uint32(len(symbols)-257), 5))
	w.put(newHuffmanCode(uint32(len(distances)-1), 5))
	order := [...]int{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14}
	w.put(newHuffmanCode(uint32(len(order)-4), 4))
	for _, symbol := range order {
		w.put(newHuffmanCode(uint32(lengths[symbol].bits()), 3))
	}
	for _, runs := range [...][]codeRun{shortSymbols[:], shortDistances[:]} {
		for _, run := range runs {
			left := run.symbols
			for first := true; left > 0; first = false {
				if again := min(left, 6); again >= 3 && !first {
					w.put(lengths[16].with(newHuffmanCode(uint32(again-3), 2)))
					left -= again
				} else {
					w.put(lengths[run.bits])
					left--
				}
			}
		}
	}
	return d
}

// deflateCodes is what is written for literals and the end, by symbol; for the lengths of
// matches, by length and with extra bits; for their distances, by symbol.
type deflateCodes struct {
	literal  [deflateEnd + 1]huffmanCode
	length   [deflateMatch + 1]huffmanCode
	distance [24]huffmanCode
}

// append appends text, deflated, to dst: as a whole stream if last, else so that more
// blocks may follow at a whole byte.
func (d *shortDeflater) append(dst, text []byte, last bool) []byte {
	if d.base > 1<<30 {
		d.base = 1
		clear(d.seen[:])
	}
	w := d.begin(dst, len(text), last)
	at := 0
	for at+shortMatch <= len(text) {
		next := binary.LittleEndian.Uint32(text[at:])
		seen := &d.seen[next*0x9e3779b1>>(32-shortHashBits)] // 2^32 divided by the golden ratio
		here := d.base + uint32(at)
		back := int(here - *seen)
		*seen = here
		if back > at || back > shortWindow || binary.LittleEndian.Uint32(text[at-back:]) != next {
			w.put(d.codes.literal[text[at]])
			at++
			continue
		}
		n := matchLength(text, at-back, at)
		w.put(d.codes.length[n])
		symbol, extra := distanceSymbol(back)
		w.put(d.codes.distance[symbol].with(extra))
		at += n
	}
	for ; at < len(text); at++ {
		w.put(d.codes.literal[text[at]])
	}
	d.base += uint32(len(text))
	w.put(d.codes.literal[deflateEnd])
	if !last {
		w.put(newHuffmanCode(0, 3)) // a stored block with nothing in it
	}
	w.align()
	if !last {
		w.b = append(w.b[:w.at], 0, 0, 0xff, 0xff)
		w.at += 4
	}
	return w.b[:w.at]
}

// begin returns a writer that has begun a block at the end of dst. It has room for n
// bytes, of which none takes more than two: codes have 14 bits at most, those of a match
// and its distance 35 together.
func (d *shortDeflater) begin(dst []byte, n int, last bool) bitWriter {
	w := d.start
	begun := w.b[:w.at]
	dst = slices.Grow(dst, len(begun)+2*n+24)
	w.b = dst[:cap(dst)]
	w.at = len(dst) + copy(w.b[len(dst):], begun)
	if last {
		w.b[len(dst)] |= 1
	}
	return w
}

// matchLength returns how many bytes, up to deflateMatch, are the same at a and b in text.
// The first four are, and a is less than b.
func matchLength(text []byte, a, b int) int {
	limit := min(deflateMatch, len(text)-b)
	n := shortMatch
	for ; n+8 <= limit; n += 8 {
		if x := binary.LittleEndian.Uint64(text[a+n:]) ^ binary.LittleEndian.Uint64(text[b+n:]); x != 0 {
			return n + bits.TrailingZeros64(x)/8
		}
	}
	for n < limit && text[a+n] == text[b+n] {
		n++
	}
	return n
}

// matchSymbol returns the symbol, counted from 257 on, and the extra bits for a match of n
// bytes (section 3.2.5): from 11 bytes on four symbols for each power of two.
func matchSymbol(n int) (symbol int, extra huffmanCode) {
	if n == deflateMatch {
		return 28, 0
	}
	x := uint32(n - 3)
	count := max(bits.Len32(x), 3) - 3
	return 4*count + int(x>>count), newHuffmanCode(x&(1<<count-1), count)
}

// distanceSymbol returns the symbol and the extra bits for a match that lies n bytes back:
// from 5 bytes on two symbols for each power of two.
func distanceSymbol(n int) (symbol int, extra huffmanCode) {
	x := uint32(n - 1)
	count := max(bits.Len32(x), 2) - 2
	return 2*count + int(x>>count), newHuffmanCode(x&(1<<count-1), count)
}

// A huffmanCode is some bits to be written, the lowest first, and above huffmanMax of
// them, how many they are.
type huffmanCode uint32

const huffmanMax = 24

func newHuffmanCode(value uint32, n int) huffmanCode {
	return huffmanCode(value | uint32(n)<<huffmanMax)
}

func (c huffmanCode) bits() int { return int(c >> huffmanMax) }

// with returns c followed by more. Together they have at most huffmanMax bits.
func (c huffmanCode) with(more huffmanCode) huffmanCode {
	value := more & (1<<huffmanMax - 1)
	return c + value<<c.bits() + (more - value)
}

// newHuffmanCodes returns the codes that follow from their lengths, by symbol (section 3.2.2).
func newHuffmanCodes(runs []codeRun) []huffmanCode {
	var codes []huffmanCode
	for _, run := range runs {
		codes = append(codes, slices.Repeat([]huffmanCode{newHuffmanCode(0, run.bits)}, run.symbols)...)
	}
	next := uint16(0)
	for n := 1; n <= 15; n++ {
		for symbol, c := range codes {
			if c.bits() == n {
				codes[symbol] += huffmanCode(bits.Reverse16(next << (16 - n)))
				next++
			}
		}
		next <<= 1
	}
	return codes
}

// A bitWriter writes bits to b from byte at on. It needs 8 bytes more than it fills.
type bitWriter struct {
	b       []byte
	at      int
	pending uint64 // bits that do not fill a byte yet
	n       int    // how many they are
}

func (w *bitWriter) put(c huffmanCode) {
	w.pending |= uint64(c&(1<<huffmanMax-1)) << (w.n & 7)
	w.n += c.bits()
	binary.LittleEndian.PutUint64(w.b[w.at:], w.pending)
	w.at += w.n >> 3
	w.pending >>= w.n &^ 7 & 63
	w.n &= 7
}

// align goes on to the next whole byte. The bits skipped are zero.
func (w *bitWriter) align() {
	w.at += (w.n + 7) >> 3
	w.pending, w.n = 0, 0
}
