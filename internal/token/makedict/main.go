// Command makedict packs the dictionary of Chinese words that internal/token embeds.
//
//	go run ./internal/token/makedict s_1.txt t_1.txt > internal/token/chinese.gz
//
// Its input is the dictionaries of github.com/go-ego/gse, v0.80.3 (data/dict/zh; Apache License 2.0), which
// stem from that of jieba (MIT License): a word, its frequency and its kind on a line. Words of anything but
// Han, or of characters beyond 16 bits, are left out. internal/token/chinese.go describes the format.
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

const maxHan = 16

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "makedict:", err)
		os.Exit(1)
	}
}

func run(files []string) error {
	words, total := map[string]float64{}, 0.0
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		here := map[string]bool{}
		for line := range strings.Lines(string(data)) {
			f := strings.Fields(line)
			if len(f) < 2 || !han(f[0]) {
				continue
			}
			n, err := strconv.ParseFloat(f[1], 64)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", name, f[0], err)
			}
			// The frequencies of one dictionary fit together, those of two do not.
			if _, ok := words[f[0]]; !ok || here[f[0]] {
				words[f[0]] = max(words[f[0]], n, 1)
				here[f[0]] = true
			}
		}
	}
	for _, n := range words {
		total += n
	}
	var b bytes.Buffer
	var before []uint16
	for _, w := range slices.SortedFunc(maps.Keys(words), func(a, b string) int {
		return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
	}) {
		u := utf16.Encode([]rune(w))
		shared := 0
		for shared < min(len(u)-1, len(before)) && u[shared] == before[shared] {
			shared++
		}
		b.WriteByte(byte(shared))
		b.WriteByte(byte(len(u) - shared))
		for _, c := range u[shared:] {
			b.Write(binary.BigEndian.AppendUint16(nil, c))
		}
		b.WriteByte(byte(min(254, math.Round(14*math.Log(total/words[w])))))
		before = u
	}
	out := bufio.NewWriter(os.Stdout)
	z, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(b.Bytes()); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d words, %d bytes, total frequency %.0f\n", len(words), b.Len(), total)
	return out.Flush()
}

// han reports whether a word is of Han only, and not too long.
func han(w string) bool {
	n := 0
	for _, r := range w {
		if !unicode.Is(unicode.Han, r) || r > 0xFFFF {
			return false
		}
		n++
	}
	return 0 < n && n <= maxHan
}
