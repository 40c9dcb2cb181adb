package blobschema

import (
	"testing"

	"github.com/orbweaver/orbweaver/partition"
)

func benchRun(b *testing.B, run *Run) {
	h := testHash(b)
	n := float64(run.Len())
	data, ref := EncodeRun(run, h)
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			data, ref = EncodeRun(run, h)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/entry")
		b.ReportMetric(float64(ref.Index)/n, "B/entry")
		b.ReportMetric(float64(ref.Length)/n, "B/entry+filter")
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := DecodeRun(data, ref, &Run{}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/entry")
	})
}

func BenchmarkRunSettled1M(b *testing.B) { benchRun(b, newWeb(b, 1).run(1e6, 0, 0)) }
func BenchmarkRunQueued1M(b *testing.B)  { benchRun(b, newWeb(b, 1).run(0, 1e6, 0)) }

// BenchmarkRunCommit encodes the run of one commit: small, over all its slots.
func BenchmarkRunCommit(b *testing.B) { benchRun(b, newWeb(b, 1).run(2_000, 28_000, 300)) }

func BenchmarkMerge1M(b *testing.B) {
	h := testHash(b)
	var runs []*Run
	for i := range 4 {
		r := newWeb(b, uint64(i)).run(125_000, 125_000, 100)
		r.Sort()
		runs = append(runs, r)
	}
	for b.Loop() {
		MergeRuns(h, runs)
	}
}

func BenchmarkMayContain(b *testing.B) {
	h := testHash(b)
	data, ref := EncodeRun(newWeb(b, 1).run(1e6, 0, 0), h)
	x, err := OpenRun(data[ref.Index:], ref)
	if err != nil {
		b.Fatal(err)
	}
	fp := uint64(0)
	for b.Loop() {
		fp += 0x9e3779b97f4a7c15
		x.MayContain(fp)
	}
}

func BenchmarkMail(b *testing.B) {
	urls := newWeb(b, 1).mailURLs(20_000)
	pieces := SplitMail(urls, 0)
	m := Mail{Crawl: "test", From: 1, To: 2, Number: 3, Epoch: 1, URLs: pieces[0]}
	n := float64(len(m.URLs))
	data, err := EncodeMail(m)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("split", func(b *testing.B) {
		for b.Loop() {
			SplitMail(urls, 0)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(urls)), "ns/URL")
	})
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			data, _ = EncodeMail(m)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/URL")
		b.ReportMetric(float64(len(data))/n, "B/URL")
		b.ReportMetric(n, "URLs")
	})
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			if _, err := DecodeMail(data); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/URL")
	})
}

func benchCommit(b testing.TB) *Commit {
	w := newWeb(b, 1)
	return &Commit{
		Manifest: Manifest{Crawl: "test", Partition: 3, Seq: 17, Fence: 2, Epoch: 1},
		Pages:    w.pages(2_000),
		Links:    w.links(2_000, 50),
		Buffered: map[partition.ID][]Queued{1: w.mailURLs(2_000), 2: w.mailURLs(2_000)},
		Outbox:   []OutMail{{To: 1, Number: 1, Body: make([]byte, 40_000)}},
		State:    w.run(2_000, 28_000, 300),
	}
}

func BenchmarkCommit(b *testing.B) {
	h := testHash(b)
	c := benchCommit(b)
	data, _, err := EncodeCommit(c, "test/p00003/c0000000017-f00000002", h)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := EncodeCommit(c, "test/p00003/c0000000017-f00000002", h); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(data)), "B")
	})
	r, err := OpenCommit(data)
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range r.pack.Names() {
		_, length := r.pack.SectionAt(name)
		b.Logf("%-10s %8d B", name, length)
	}
	b.Run("pages", func(b *testing.B) {
		for b.Loop() {
			if _, err := r.Pages(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("links", func(b *testing.B) {
		for b.Loop() {
			if _, err := r.Links(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("manifest", func(b *testing.B) {
		for b.Loop() {
			if _, err := r.Manifest(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
