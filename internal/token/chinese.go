package token

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// packed is the dictionary of Chinese words that internal/token/makedict writes: a gzip file with
// one entry per word, in order of UTF-16 units. An entry holds the number of units shared with the
// previous word, the number of further units, these units in big endian, and the cost of the word.
//
//go:embed chinese.gz
var packed []byte

const (
	maxHan      = 16  // characters of a word
	unknownCost = 255 // cost of a character that is not a word
)

// A dictionary is a list of words with costs. The cost of a word is
// 14 ln(all / frequency), at most 254. Words are sorted, so the words with a common prefix are a
// range.
type dictionary struct {
	text  []uint16 // all words, one after another
	ends  []uint32 // word i is text[ends[i]:ends[i+1]]
	costs []uint8
	first []uint32 // words that begin with the character c are [first[c], first[c+1])
}

// chinese returns the dictionary. The first call unpacks it, which takes about 30 ms and 8 MB,
// so programs without Chinese text do not pay for it.
var chinese = sync.OnceValue(func() *dictionary {
	d, err := openDictionary(packed)
	if err != nil {
		panic(err) // unreachable: the dictionary is embedded
	}
	return d
})

// openDictionary unpacks a dictionary.
func openDictionary(packed []byte) (*dictionary, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("dictionary: %w", err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("dictionary: %w", err)
	}
	// An entry has at least five bytes. The capacity of text is an estimate.
	d := &dictionary{
		text: make([]uint16, 0, len(b)/2), ends: make([]uint32, 1, 1+len(b)/5), costs: make([]uint8, 0, len(b)/5), first: make([]uint32, 1<<16+1),
	}
	var word []uint16
	next := 0 // of first
	for len(b) > 0 {
		if len(b) < 2 {
			return nil, fmt.Errorf("dictionary: cut off")
		}
		shared, more := int(b[0]), int(b[1])
		if shared > len(word) || more == 0 || shared+more > maxHan || len(b) < 2+2*more+1 {
			return nil, fmt.Errorf("dictionary: damaged at word %d", len(d.costs))
		}
		word = word[:shared]
		for i := range more {
			word = append(word, binary.BigEndian.Uint16(b[2+2*i:]))
		}
		for ; next <= int(word[0]); next++ {
			d.first[next] = uint32(len(d.costs))
		}
		d.text = append(d.text, word...)
		d.ends = append(d.ends, uint32(len(d.text)))
		d.costs = append(d.costs, b[2+2*more])
		b = b[2+2*more+1:]
	}
	for ; next < len(d.first); next++ {
		d.first[next] = uint32(len(d.costs))
	}
	return d, nil
}

func (d *dictionary) length(word uint32) int { return int(d.ends[word+1] - d.ends[word]) }

// each calls f for each word that s begins with, from the shortest, with its length.
func (d *dictionary) each(s []uint16, f func(n int, cost uint8)) {
	if len(s) == 0 {
		return
	}
	lo, hi := d.first[s[0]], d.first[int(s[0])+1]
	for n := 1; lo < hi; n++ { // words lo to hi begin with s[:n]; the one that ends there is the first
		if d.length(lo) == n {
			f(n, d.costs[lo])
			lo++
		}
		if n == len(s) {
			return
		}
		lo, hi = d.bound(lo, hi, n, s[n]), d.bound(lo, hi, n, s[n]+1)
	}
}

// bound returns the index of the first of the words [lo, hi), all longer than n, whose unit n is
// at least c, or hi if there is no such word.
func (d *dictionary) bound(lo, hi uint32, n int, c uint16) uint32 {
	if c == 0 {
		return hi
	}
	for lo < hi {
		mid := lo + (hi-lo)/2
		if d.text[int(d.ends[mid])+n] < c {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// cut appends the ends of the words of a run of at most maxRun characters, for the division
// with the lowest cost.
func (d *dictionary) cut(dst []int, run []uint16) []int {
	var costs [maxRun + 1]uint32
	var steps [maxRun]uint8
	for i := len(run) - 1; i >= 0; i-- {
		costs[i], steps[i] = costs[i+1]+unknownCost, 1
		d.each(run[i:], func(n int, cost uint8) {
			// Of two divisions with equal cost the one with the longer word is better.
			if c := costs[i+n] + uint32(cost); c <= costs[i] {
				costs[i], steps[i] = c, uint8(n)
			}
		})
	}
	for i := 0; i < len(run); {
		i += int(steps[i])
		dst = append(dst, i)
	}
	return dst
}
