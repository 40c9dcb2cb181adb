package inflate

import "math/bits"

const maxBits = 15 // of a code (RFC 1951 section 3.2.7)

// Codes are looked up by their first bits in a table, and if they are longer, by the rest in
// another that follows it. Codes of more than litBits are too rare to matter; a larger table
// takes longer to fill. Both have subtables for any complete code: at least two symbols share
// one.
const (
	litBits  = 11
	litMask  = 1<<litBits - 1
	litSub   = 1 << (maxBits - litBits)
	maxLit   = 286
	fixedLit = 288
	litSize  = 1<<litBits + fixedLit/2*litSub

	distBits  = 8
	distMask  = 1<<distBits - 1
	distSub   = 1 << (maxBits - distBits)
	maxDist   = 30
	fixedDist = 32
	distSize  = 1<<distBits + fixedDist/2*distSub

	lengthBits = 7 // of the code that code lengths are written in
	lengthMask = 1<<lengthBits - 1
	numLengths = 19
)

// An entry of a table says what a code means, from the lowest bit:
//
//	0-5    how many bits the symbol takes, its extra bits included; 0 for bad ones
//	8-11   of these, how many are the code
//	13-15  end of block, link to a subtable; either or none of them with special
//	16-30  a byte, the least length or distance, or where the subtable begins
//	31     a literal
type entry uint32

const (
	endOfBlock entry = 1 << 13
	link       entry = 1 << 14
	special    entry = 1 << 15 // neither literal nor length nor distance
	literal    entry = 1 << 31
	bad              = special
)

func (e entry) isLiteral() bool { return e&literal != 0 }
func (e entry) isLink() bool    { return e&link != 0 }
func (e entry) isEnd() bool     { return e&endOfBlock != 0 }
func (e entry) isBad() bool     { return e == bad }
func (e entry) size() uint      { return uint(e & 63) }
func (e entry) value() int      { return int(e &^ literal >> 16) }

// extra returns the extra bits out of those of the whole symbol.
func (e entry) extra(bits uint64) int {
	return int(bits & (1<<(e&63) - 1) >> (e >> 8 & 15))
}

// What symbols mean (section 3.2.5), without their codes.
var (
	litEntries    = newLitEntries()
	distEntries   = newDistEntries()
	lengthEntries = newLengthEntries()
)

func newLitEntries() (t [fixedLit]entry) {
	for s := range 256 {
		t[s] = literal | entry(s)<<16
	}
	t[256] = special | endOfBlock
	length := entry(3)
	for s := 257; s < 285; s++ {
		extra := entry(max(0, (s-261)/4))
		t[s] = length<<16 | extra
		length += 1 << extra
	}
	t[285] = 258 << 16
	t[286], t[287] = bad, bad // they have fixed codes
	return t
}

func newDistEntries() (t [fixedDist]entry) {
	dist := entry(1)
	for s := range maxDist {
		extra := entry(max(0, (s-2)/2))
		t[s] = dist<<16 | extra
		dist += 1 << extra
	}
	t[30], t[31] = bad, bad
	return t
}

func newLengthEntries() (t [numLengths]entry) {
	for s := range t {
		t[s] = entry(s) << 16
	}
	return t
}

// fixedCodes has the tables of fixed codes (section 3.2.6).
func (d *Decoder) fixedCodes() {
	if d.fixed {
		return
	}
	var lens [fixedLit]uint8
	for s := range lens {
		switch {
		case s < 144:
			lens[s] = 8
		case s < 256:
			lens[s] = 9
		case s < 280:
			lens[s] = 7
		default:
			lens[s] = 8
		}
	}
	build(d.lit[:], litBits, lens[:], litEntries[:])
	for s := range fixedDist {
		lens[s] = 5
	}
	build(d.dist[:], distBits, lens[:fixedDist], distEntries[:])
	d.fixed = true
}

// lengthOrder is the order of the code lengths of code lengths (section 3.2.7).
var lengthOrder = [numLengths]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// dynamicCodes reads the codes that a block begins with (section 3.2.7).
func (d *Decoder) dynamicCodes() error {
	d.fixed = false
	head, err := d.take(14)
	if err != nil {
		return err
	}
	lits, dists, lengths := head&31+257, head>>5&31+1, head>>10+4
	if lits > maxLit || dists > maxDist {
		return errCorrupt
	}
	var order [numLengths]uint8
	for _, s := range lengthOrder[:lengths] {
		n, err := d.take(3)
		if err != nil {
			return err
		}
		order[s] = uint8(n)
	}
	if !build(d.lit[:], lengthBits, order[:], lengthEntries[:]) {
		return errCorrupt
	}
	var all [maxLit + maxDist]uint8
	lens := all[:lits+dists]
	if err := d.codeLengths(lens); err != nil {
		return err
	}
	if !build(d.lit[:], litBits, lens[:lits], litEntries[:]) || !build(d.dist[:], distBits, lens[lits:], distEntries[:]) {
		return errCorrupt
	}
	return nil
}

// codeLengths reads the lengths of both codes in a row, by the code that d.lit holds.
func (d *Decoder) codeLengths(lens []uint8) error {
	for i := 0; i < len(lens); {
		if d.n < lengthBits+7 {
			d.refill()
		}
		e := d.lit[d.bits&lengthMask]
		if _, err := d.consume(e); err != nil {
			return err
		}
		s := e.value()
		if s < 16 {
			lens[i] = uint8(s)
			i++
			continue
		}
		repeat, extra, value := uint(3), uint(3), uint8(0)
		switch s {
		case 16:
			if i == 0 {
				return errCorrupt
			}
			extra, value = 2, lens[i-1]
		case 18:
			repeat, extra = 11, 7
		}
		more, err := d.take(extra)
		if err != nil {
			return err
		}
		repeat += more
		if int(repeat) > len(lens)-i {
			return errCorrupt
		}
		for range repeat {
			lens[i] = value
			i++
		}
	}
	return nil
}

// build fills a table for the canonical code (section 3.2.2) that has these lengths, 0 for
// symbols without a code. Its first 1<<primary entries are looked up first, with subtables
// behind them.
//
// It reports false for a code that is not complete, except one with nothing in it, and one with
// a single symbol of one bit, which encoders write for a single distance. What has no meaning in
// them is bad.
func build(table []entry, primary int, lens []uint8, symbols []entry) bool {
	var count [maxBits + 1]int
	for _, n := range lens {
		count[n]++
	}
	count[0] = 0
	var first [maxBits + 1]int // of each length, in sorted
	used, sum := 0, 0
	for n := 1; n <= maxBits; n++ {
		first[n] = used
		used += count[n]
		sum += count[n] << (maxBits - n)
	}
	if sum != 1<<maxBits && used > 0 && (used > 1 || count[1] != 1) {
		return false
	}
	var sorted [fixedLit]uint16
	for s, n := range lens {
		if n != 0 {
			sorted[first[n]] = uint16(s)
			first[n]++
		}
	}

	rest := sorted[:used]
	code := 0
	table[0] = bad
	for n := 1; n <= primary; n++ {
		// A longer prefix means as yet what it meant without its last bit.
		copy(table[1<<(n-1):1<<n], table[:1<<(n-1)])
		code <<= 1
		for _, s := range rest[:count[n]] {
			table[reverse(code, n)] = symbols[s].coded(n)
			code++
		}
		rest = rest[count[n]:]
	}
	sub, prefix := table[1<<primary:1<<primary], -1
	next := 1 << primary
	for n := primary + 1; n <= maxBits; n++ {
		code <<= 1
		for _, s := range rest[:count[n]] {
			r := reverse(code, n)
			code++
			if p := r & (1<<primary - 1); p != prefix {
				prefix = p
				table[p] = special | link | entry(next)<<16
				sub = table[next : next+1<<(maxBits-primary)]
				next += len(sub)
			}
			for i := r >> primary; i < len(sub); i += 1 << (n - primary) {
				sub[i] = symbols[s].coded(n)
			}
		}
		rest = rest[count[n]:]
	}
	return true
}

// coded returns what a symbol means with a code of n bits.
func (e entry) coded(n int) entry {
	if e == bad {
		return e
	}
	return e + entry(n)<<8 + entry(n)
}

// reverse returns a code of n bits as it is written: its highest bit first.
func reverse(code, n int) int {
	return int(bits.Reverse16(uint16(code)) >> (16 - n))
}
