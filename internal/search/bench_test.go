package search

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/partition"
)

// The corpus of the benchmarks has documents of about 5 KB, with word frequencies like those of
// a language, in 4 partitions of 3 segments, with anchor texts and ranks.
const (
	benchDocuments = 20_000
	benchWords     = 700 // per document
	benchParts     = 4
	benchSegments  = 3
)

// benchCorpus is made once, because it takes half a minute.
var benchCorpus = sync.OnceValue(func() *corpus {
	c := newCorpus(brittle{}, benchParts)
	rng := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rng, 1.1, 2.7, 200_000)
	word := func() string { return fmt.Sprintf("w%d", zipf.Uint64()) }
	text := func(n int) (string, []segment.TermPosition) {
		var b strings.Builder
		var out []segment.TermPosition
		for i := range n {
			w := word()
			b.WriteString(w)
			b.WriteByte(' ')
			out = append(out, segment.TermPosition{Term: w, Position: int32(i)})
		}
		return b.String(), out
	}
	for id := range partition.ID(benchParts) {
		var segs []blobschema.SegmentRef
		var all []*page
		anchors := segment.NewBuilder()
		for s := range benchSegments {
			b := segment.NewBuilder()
			for i := range benchDocuments / benchParts / benchSegments {
				p := &page{url: fmt.Sprintf("https://site%d.example/%d-%d", i%200*benchParts+int(id), s, i), lang: "en", rank: rng.ExpFloat64() / 1e5, time: time.Unix(1e9, 0), simHash: rng.Uint64()}
				all = append(all, p)
				d := c.document(p)
				var fields [segment.NumFields][]segment.TermPosition
				d.Title, fields[segment.Title] = text(6)
				d.Text, fields[segment.Body] = text(benchWords)
				_, fields[segment.Headings] = text(10)
				fields[segment.URL] = tokens(p.url, "")
				if err := b.Add(d, fields); err != nil {
					panic(err)
				}
				var linked [segment.NumFields][]segment.TermPosition
				_, linked[segment.Anchor] = text(8)
				if err := anchors.Add(segment.Document{Fingerprint: d.Fingerprint, Slot: d.Slot}, linked); err != nil {
					panic(err)
				}
			}
			segs = append(segs, c.finish(id, b))
		}
		c.commit(id, segs, []blobschema.SegmentRef{c.finish(id, anchors)})
		c.rank(id, 10*benchDocuments, all)
	}
	return c
})

// brittle is a testing.TB that panics, for use outside tests.
type brittle struct{ testing.TB }

func (brittle) Helper()           {}
func (brittle) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

var benchQueries = []struct{ name, query string }{
	{"rare", "w5000"},
	{"common", "w3"},
	{"two", "w30 w200"},
	{"three", "w1 w8 w40"},
	{"phrase", `"w2 w5"`},
	{"field", "title:w20"},
	{"either", "w100 OR w300 OR w900"},
	{"site", "site:site40.example w9"},
}

// BenchmarkCold measures a query on a new index with an empty cache. The time includes Open; the
// reads are those of the query.
func BenchmarkCold(b *testing.B) {
	c := benchCorpus()
	for _, q := range benchQueries {
		b.Run(q.name, func(b *testing.B) {
			var reads, bytes, total int64
			for b.Loop() {
				ix, err := Open(b.Context(), c.memory, testCrawl, Options{})
				if err != nil {
					b.Fatal(err)
				}
				a := ask(b, ix, Request{Query: q.query})
				reads, bytes, total = a.Reads, a.ReadBytes, a.Total
			}
			b.ReportMetric(float64(reads), "reads/query")
			b.ReportMetric(float64(bytes)/1024, "KiB/query")
			b.ReportMetric(float64(total), "hits")
		})
	}
}

// BenchmarkNext measures a query on an index that has answered another one. Common data is in
// memory, but not the query's own lists.
func BenchmarkNext(b *testing.B) {
	c := benchCorpus()
	for _, q := range benchQueries {
		b.Run(q.name, func(b *testing.B) {
			var reads, bytes int64
			for b.Loop() {
				b.StopTimer()
				ix, err := Open(b.Context(), c.memory, testCrawl, Options{})
				if err != nil {
					b.Fatal(err)
				}
				ask(b, ix, Request{Query: "w77777 w3000"})
				b.StartTimer()
				a := ask(b, ix, Request{Query: q.query})
				reads, bytes = a.Reads, a.ReadBytes
			}
			b.ReportMetric(float64(reads), "reads/query")
			b.ReportMetric(float64(bytes)/1024, "KiB/query")
		})
	}
}

// BenchmarkWarm measures a repeated query.
func BenchmarkWarm(b *testing.B) {
	c := benchCorpus()
	ix, err := Open(b.Context(), c.memory, testCrawl, Options{})
	if err != nil {
		b.Fatal(err)
	}
	for _, q := range benchQueries {
		b.Run(q.name, func(b *testing.B) {
			ask(b, ix, Request{Query: q.query})
			for b.Loop() {
				ask(b, ix, Request{Query: q.query})
			}
		})
	}
}
