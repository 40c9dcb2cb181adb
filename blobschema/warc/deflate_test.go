package warc

import (
	"bytes"
	stdflate "compress/flate"
	"encoding/hex"
	"fmt"
	"io"
	"math/bits"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/flate"
)

// testShort deflates text as a whole stream and as the begin of one, and has two readers
// read both.
func testShort(t *testing.T, d *shortDeflater, text []byte) {
	t.Helper()
	stream := d.append([]byte("before"), text, true)[6:]
	begin := d.append([]byte("before"), text, false)
	if !bytes.HasPrefix(begin, []byte("before")) {
		t.Fatalf("wrote over what was before: %q", begin[:6])
	}
	begin = appendStored(begin[6:], []byte("after"), 1)
	for _, c := range []struct{ deflated, want []byte }{
		{stream, text},
		{begin, append(bytes.Clone(text), "after"...)},
	} {
		for name, open := range map[string]func(io.Reader) io.ReadCloser{"standard": stdflate.NewReader, "klauspost": flate.NewReader} {
			in := bytes.NewReader(c.deflated)
			got, err := io.ReadAll(open(in))
			if err != nil || !bytes.Equal(got, c.want) || in.Len() > 0 {
				t.Fatalf("%s reader: %d bytes, want %d; %d bytes not read; %v", name, len(got), len(c.want), in.Len(), err)
			}
		}
	}
	if fresh := newShortDeflater().append(nil, text, true); !bytes.Equal(fresh, stream) {
		t.Fatal("what was deflated before left a trace")
	}
}

// shortTexts are texts at the bounds of what can be said of a match.
func shortTexts() map[string][]byte {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	noise := make([]byte, 64<<10)
	for i, n := 0, uint32(1); i < len(noise); i++ {
		n = n*1664525 + 1013904223
		noise[i] = byte(n >> 24)
	}
	texts := map[string][]byte{"each byte": all, "noise": noise, "bytes of the longest codes": bytes.Repeat([]byte{9, 1, 7, 2, 8, 4, 0}, 40), "none": nil}
	for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 131, 132, 257, 258, 259, 260, 263, 515, 516, 517, 64 << 10} {
		texts[fmt.Sprint("run of ", n)] = bytes.Repeat([]byte("a"), n)
	}
	for _, back := range []int{4, 5, 6, 7, 8, 9, 12, 13, 3072, 3073, shortWindow - 1, shortWindow, shortWindow + 1} {
		for _, length := range []int{4, 5, 10, 11, 12} {
			text := append(bytes.Clone(noise[:back]), noise[:min(length, back)]...)
			texts[fmt.Sprintf("%d bytes from %d before", length, back)] = text
		}
	}
	for _, r := range benchRecords() {
		texts[string(r.Type)] = shortHead(r)
	}
	return texts
}

// shortHead returns what of a packed r is deflated.
func shortHead(r *Record) []byte {
	head := *r
	head.Body = nil
	text, _, _ := NewEncoder(None).Append(nil, &head)
	return text
}

func TestShortDeflater(t *testing.T) {
	d := newShortDeflater()
	for name, text := range shortTexts() {
		t.Run(name, func(t *testing.T) { testShort(t, d, text) })
	}
	t.Run("after a gigabyte", func(t *testing.T) {
		text := shortHead(benchRecords()[0])
		d.base = 1<<30 - uint32(len(text))
		for range 3 {
			testShort(t, d, text)
		}
		if d.base > 1<<20 {
			t.Errorf("base is %d", d.base)
		}
	})
}

// The bytes are pinned: what is stored again has the same.
func TestShortDeflaterGolden(t *testing.T) {
	const want = "" +
		"edb70380c4caf725fc19d9cddaac674dc5acb1dbccf0c74ae5066f628cd6b66ddbb66ddbb6eddd76ff6dff87d73aa775" +
		"733c39156541e6b999849d971c082aa168a0aa57365a0650e3ab499ba0b0ae73228af04c933c06212b0391e778ee7f02"
	got := newShortDeflater().append(nil, []byte("WARC/1.1\r\nWARC-Type: request\r\nWARC-Target-URI: http://example.org/\r\n\r\n"), true)
	if diff := cmp.Diff(want, hex.EncodeToString(got)); diff != "" {
		t.Error(diff)
	}
}

// Readers refuse codes that do not fill the space of codes, and the deflater makes room for
// two bytes a byte.
func TestShortCodes(t *testing.T) {
	longest := make([]int, 3)
	for i, c := range []struct {
		runs           []codeRun
		symbols, limit int
	}{
		{shortSymbols[:], 286, 15},
		{shortDistances[:], 24, 15},
		{shortLengths[:], 19, 7},
	} {
		symbols, filled := 0, 0
		for _, run := range c.runs {
			symbols += run.symbols
			longest[i] = max(longest[i], run.bits)
			if run.bits > 0 {
				filled += run.symbols << (15 - run.bits)
			}
		}
		if symbols != c.symbols || filled != 1<<15 || longest[i] > c.limit {
			t.Errorf("table %d: %d symbols fill %d of 32768, in up to %d bits", i, symbols, filled, longest[i])
		}
	}
	extra := bits.Len(shortWindow-1) - 2
	if longest[0] > 16 || longest[0]+5+longest[1]+extra > 16*shortMatch {
		t.Errorf("no room for codes of %d bits and distances of %d+%d", longest[0], longest[1], extra)
	}
}

// Records are not to grow for being made in less time.
func TestShortDeflaterSize(t *testing.T) {
	for _, r := range benchRecords() {
		text := shortHead(r)
		var general bytes.Buffer
		w, _ := flate.NewWriter(&general, flate.BestSpeed)
		w.Write(text)
		w.Close()
		if n := len(newShortDeflater().append(nil, text, true)); n > general.Len()*21/20 {
			t.Errorf("%s of %d bytes: %d, level 1 makes %d", r.Type, len(text), n, general.Len())
		}
	}
}

// FuzzShortDeflater: whatever is deflated, and after whatever, comes back.
func FuzzShortDeflater(f *testing.F) {
	for _, text := range shortTexts() {
		f.Add(text[:min(len(text), shortWindow)])
	}
	f.Add([]byte(strings.Repeat("WARC-Date: 2024-02-29T23:59:58Z\r\n", 2000)))
	d := newShortDeflater()
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) <= 64<<10 {
			testShort(t, d, text)
		}
	})
}

// BenchmarkHead deflates what a request and a packed response begin with.
func BenchmarkHead(b *testing.B) {
	for _, r := range benchRecords() {
		text := shortHead(r)
		b.Run("short/"+string(r.Type), func(b *testing.B) {
			d := newShortDeflater()
			var dst []byte
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				dst = d.append(dst[:0], text, true)
			}
			b.ReportMetric(float64(len(dst)), "stored-B")
		})
		b.Run("level1/"+string(r.Type), func(b *testing.B) {
			var sink sink
			w, _ := flate.NewWriter(&sink, flate.BestSpeed)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				sink.b = sink.b[:0]
				w.Reset(&sink)
				w.Write(text)
				w.Close()
			}
			b.ReportMetric(float64(len(sink.b)), "stored-B")
		})
	}
}
