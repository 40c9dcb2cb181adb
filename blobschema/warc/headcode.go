package warc

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// A headCode deflates the heads of records, all with the same Huffman code (RFC 1951, section 3.2.7). A library makes a code for
// each head, which takes three times as long and saves next to nothing. Any number of goroutines may use a headCode.
type headCode struct {
	prefix bitString // begins a block that is not the last one, and says what the code is
	codes  [literals + distances]code
}

// A code is the bit string of a symbol. Its first bit is the lowest one.
type code struct {
	bits uint16
	n    uint8 // 0: the symbol has no code
}

const (
	maxHeads   = 1 << 12 // largest input, in bytes
	maxMatch   = 257     // largest match, in bytes; 258 has a length symbol of its own
	endOfBlock = 256
	literals   = 285 // number of symbols of bytes, the end of a block and lengths of matches
	distances  = 24  // number of symbols of distances; their codes follow the others
)

// A bitString is a sequence of bits. Bits fill bytes from the lowest to the highest (section 3.1.1).
type bitString struct {
	whole []byte
	bits  uint64
	n     uint8 // number of bits after whole
}

func (s *bitString) addCode(c code) { s.add(uint64(c.bits), c.n) }

func (s *bitString) add(value uint64, n uint8) {
	s.bits |= value << s.n
	for s.n += n; s.n >= 32; s.n -= 32 {
		s.whole = binary.LittleEndian.AppendUint32(s.whole, uint32(s.bits))
		s.bits >>= 32
	}
}

// end fills up the last byte with zeros, and returns all bytes.
func (s *bitString) end() []byte {
	for ; s.n > 0; s.n -= min(s.n, 8) {
		s.whole = append(s.whole, byte(s.bits))
		s.bits >>= 8
	}
	return s.whole
}

// A piece of a text is a byte, or a match: the number of bytes, 3 or more, and their distance from where they were before.
type piece struct{ byte, length, distance uint16 }

// symbol returns the symbol of a byte or of the length of a match, the bits after it, and their number (section 3.2.5).
func (p piece) symbol() (symbol int, extra uint64, n uint8) {
	if p.length == 0 {
		return int(p.byte), 0, 0
	}
	symbol, extra, n = scaled(p.length-3, 2)
	return endOfBlock + 1 + symbol, extra, n
}

// far returns the same of the distance of a match.
func (p piece) far() (symbol int, extra uint64, n uint8) {
	symbol, extra, n = scaled(p.distance-1, 1)
	return literals + symbol, extra, n
}

// scaled returns the symbol of a number, the low bits of the number, which follow the symbol, and how many they are. Each power of
// two has 2^k symbols.
func scaled(v uint16, k int) (symbol int, extra uint64, n uint8) {
	n = uint8(max(0, bits.Len16(v)-k-1))
	return int(n)<<k + int(v>>n), uint64(v) & (1<<n - 1), n
}

// appendPieces cuts a text of at most maxHeads bytes into pieces.
func appendPieces(dst []piece, text []byte) []piece {
	const hashBits = 10
	var last [1 << hashBits]uint16 // where four bytes with this hash were last, plus 1
	for at := 0; at < len(text); {
		p, n := piece{byte: uint16(text[at])}, 1
		if at+4 <= len(text) {
			four := binary.LittleEndian.Uint32(text[at:])
			hash := four * 0x9e3779b1 >> (32 - hashBits)
			before := int(last[hash]) - 1
			last[hash] = uint16(at + 1)
			if before >= 0 && binary.LittleEndian.Uint32(text[before:]) == four {
				for n = 4; n < maxMatch && at+n < len(text) && text[before+n] == text[at+n]; n++ {
				}
				p = piece{length: uint16(n), distance: uint16(at - before)}
			}
		}
		dst = append(dst, p)
		at += n
	}
	return dst
}

// newHeadCode returns a code for texts like the typical ones. It has all printable ASCII characters, tabs, line ends and matches.
func newHeadCode(typical ...string) *headCode {
	c := &headCode{}
	var count [len(c.codes)]int
	for _, r := range [][2]int{{' ', '~' + 1}, {'\t', '\n' + 1}, {'\r', '\r' + 1}, {endOfBlock, len(count)}} {
		for i := r[0]; i < r[1]; i++ {
			count[i] = 1
		}
	}
	for _, text := range typical {
		for _, p := range appendPieces(nil, []byte(text)) {
			symbol, _, _ := p.symbol()
			if count[symbol] += 4; p.length > 0 {
				symbol, _, _ = p.far()
				count[symbol] += 4
			}
		}
	}
	literal, distance := codeLengths(count[:literals]), codeLengths(count[literals:])
	assign(c.codes[:], literal)
	assign(c.codes[literals:], distance)
	c.prefix.add(2<<1, 3)
	c.prefix.add(uint64(len(literal)-257), 5)
	c.prefix.add(uint64(len(distance)-1), 5)
	c.prefix.addLengths(slices.Concat(literal, distance))
	return c
}

// addLengths adds the lengths of codes, which have a code too. Of the symbols for repetitions it uses those for zeros: 17 stands
// for 3 to 10 of them, 18 for 11 to 138.
func (s *bitString) addLengths(lengths []uint8) {
	order := [...]int{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}
	type run struct{ symbol, zeros int }
	var runs []run
	count := make([]int, len(order))
	for i := 0; i < len(lengths); {
		zeros := 0
		for i+zeros < len(lengths) && lengths[i+zeros] == 0 && zeros < 138 {
			zeros++
		}
		r := run{int(lengths[i]), max(zeros, 1)}
		switch {
		case zeros > 10:
			r.symbol = 18
		case zeros > 2:
			r.symbol = 17
		default:
			r.zeros = 1
		}
		runs = append(runs, r)
		count[r.symbol]++
		i += r.zeros
	}
	of := codeLengths(count)
	codes := make([]code, len(of))
	assign(codes, of)
	s.add(uint64(len(order)-4), 4)
	for _, symbol := range order {
		s.add(uint64(of[symbol]), 3)
	}
	for _, r := range runs {
		s.addCode(codes[r.symbol])
		switch r.symbol {
		case 17:
			s.add(uint64(r.zeros-3), 3)
		case 18:
			s.add(uint64(r.zeros-11), 7)
		}
	}
}

// codeLengths returns the best lengths of codes for symbols that occur count[symbol] times (Huffman, 1952). A symbol that does not
// occur has no code: its length is 0.
func codeLengths(count []int) []uint8 {
	type node struct {
		count   int
		symbols []int
	}
	var nodes []node
	for s, n := range count {
		if n > 0 {
			nodes = append(nodes, node{n, []int{s}})
		}
	}
	lengths := make([]uint8, len(count))
	for len(nodes) > 1 {
		slices.SortStableFunc(nodes, func(a, b node) int { return b.count - a.count })
		a, b := nodes[len(nodes)-2], nodes[len(nodes)-1]
		both := node{a.count + b.count, slices.Concat(a.symbols, b.symbols)}
		for _, s := range both.symbols {
			lengths[s]++
		}
		nodes = append(nodes[:len(nodes)-2], both)
	}
	return lengths
}

// assign gives symbols with codes of these lengths their codes (section 3.2.2).
func assign(codes []code, lengths []uint8) {
	next := uint16(0)
	for n := uint8(1); n <= 15; n++ {
		for s, l := range lengths {
			if l == n {
				codes[s] = code{bits.Reverse16(next) >> (16 - n), n}
				next++
			}
		}
		next <<= 1
	}
}

// append appends a text to dst as one block. It reports false, and appends nothing, if the text is longer than maxHeads or has
// a byte without a code. final is 1 if the block is the last one. If it is 0, an empty stored block follows, so that the end of
// the output is the end of a block.
func (c *headCode) append(dst []byte, text []byte, final byte) ([]byte, bool) {
	if len(text) > maxHeads {
		return dst, false
	}
	var room [1 << 10]piece
	s := bitString{whole: append(dst, c.prefix.whole...), bits: c.prefix.bits, n: c.prefix.n}
	s.whole[len(dst)] |= final
	for _, p := range appendPieces(room[:0], text) {
		symbol, extra, n := p.symbol()
		if c.codes[symbol].n == 0 {
			return dst, false
		}
		s.addCode(c.codes[symbol])
		if p.length > 0 {
			s.add(extra, n)
			symbol, extra, n = p.far()
			s.addCode(c.codes[symbol])
			s.add(extra, n)
		}
	}
	s.addCode(c.codes[endOfBlock])
	if final == 0 {
		s.add(0, 3)
		return append(s.end(), 0, 0, 0xff, 0xff), true
	}
	return s.end(), true
}

// heads is the code of all encoders. Its typical texts are a request and an answer.
var heads = newHeadCode(
	"WARC/1.1\r\nWARC-Type: request\r\nWARC-Record-ID: <urn:uuid:095e9098-e189-8b7c-9a2c-4b0764f93566>\r\nWARC-Date: 2026-01-29T14:27:03.412023Z\r\n"+
		"WARC-Target-URI: https://www.example.org/path/to/a-page/index.html?id=12345\r\nWARC-IP-Address: 192.168.70.81\r\n"+
		"WARC-Block-Digest: sha1:X4EZA3TZAE5WYULCIFGSW3P2GSO24NOZ\r\nContent-Type: application/http;msgtype=request\r\nContent-Length: 209\r\n\r\n"+
		"GET /path/to/a-page/index.html?id=12345 HTTP/1.1\r\nHost: www.example.org\r\nUser-Agent: orbweaver/0.1 (+https://github.com/orbweaver/orbweaver)\r\n"+
		"Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.5\r\nAccept-Encoding: gzip, br, zstd\r\n\r\n\r\n\r\n",
	"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:45ab8585-f778-8291-be31-79a9f49d4430>\r\nWARC-Date: 2026-01-29T14:27:03.536815Z\r\n"+
		"WARC-Target-URI: https://www.example.org/path/to/a-page/index.html?id=12345\r\nWARC-IP-Address: 192.168.70.81\r\n"+
		"WARC-Concurrent-To: <urn:uuid:095e9098-e189-8b7c-9a2c-4b0764f93566>\r\nWARC-Payload-Digest: sha1:EYLOBZUVJB7A6T6F3XAYYV647FOOLBI2\r\n"+
		"Content-Type: application/http;msgtype=response\r\nContent-Length: 12745\r\n\r\nHTTP/1.1 200 OK\r\nDate: Thu, 29 Jan 2026 14:27:03 GMT\r\nServer: nginx/1.26.2\r\n"+
		"Content-Type: text/html; charset=UTF-8\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\nVary: Accept-Encoding\r\n"+
		"Cache-Control: public, max-age=3600\r\nLast-Modified: Wed, 28 Jan 2026 09:50:16 GMT\r\nETag: \"6798a1c8-31c9\"\r\nX-Frame-Options: SAMEORIGIN\r\n"+
		"Strict-Transport-Security: max-age=31536000; includeSubDomains\r\nX-Content-Type-Options: nosniff\r\nSet-Cookie: session=Zk93bTQ0; path=/; secure; HttpOnly\r\n\r\n",
)
