package segment

import (
	"fmt"
	"testing"
)

// benchDocs returns documents of about 5 KB of text, 800 tokens.
func benchDocs(n int) []document {
	w := newWeb(1, n/20+1, 800)
	docs := make([]document, n)
	for i := range docs {
		docs[i] = w.page(uint64(i), 0)
	}
	return docs
}

func BenchmarkBuild(b *testing.B) {
	docs := benchDocs(3000)
	b.ReportAllocs()
	var sum Summary
	for b.Loop() {
		_, sum = build(b, docs)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(len(docs)), "µs/doc")
	b.ReportMetric(float64(sum.Bytes)/float64(len(docs)), "B/doc")
	b.ReportMetric(float64(sum.Bytes)/float64(sum.TextBytes), "B/textB")
}

func BenchmarkMerge(b *testing.B) {
	docs := benchDocs(3000)
	var inputs []Input
	for i := range 3 {
		data, _ := build(b, docs[i*1000:(i+1)*1000])
		r, _ := open(b, data)
		inputs = append(inputs, Input{Reader: r})
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Merge(inputs, 0); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(len(docs)), "µs/doc")
}

// BenchmarkQuery looks up terms in 100,000 short documents and reads lists of several lengths.
func BenchmarkQuery(b *testing.B) {
	w := newWeb(1, 5000, 40)
	bl := NewBuilder()
	for i := range 100_000 {
		d := w.page(uint64(i), 0)
		if err := bl.Add(d.Document, d.fields); err != nil {
			b.Fatal(err)
		}
	}
	r, _ := open(b, bl.Finish().Data)
	b.Run("lookup", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, err := r.Lookup(word(uint64(i % 10_000))); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("document", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, err := r.Document(uint32(i * 7919 % 100_000)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("text", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, err := r.Text(uint32(i * 7919 % 100_000)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("columns", func(b *testing.B) {
		for b.Loop() {
			if _, err := r.Columns(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, n := range []uint64{0, 1, 10, 100} {
		info, _, err := termIn(r, Body, word(n))
		if err != nil {
			b.Fatal(err)
		}
		for _, positions := range []bool{false, true} {
			b.Run(fmt.Sprintf("list-of-%d/positions=%t", info.Documents, positions), func(b *testing.B) {
				var buf []int32
				sum := 0
				for b.Loop() {
					p, err := r.Postings(info, positions)
					if err != nil {
						b.Fatal(err)
					}
					for p.Next() {
						sum += int(p.Doc()) + p.Freq()
						if positions {
							buf = p.Positions(buf[:0])
						}
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(info.Documents), "ns/posting")
			})
		}
	}
}
