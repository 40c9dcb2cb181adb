package frontier

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// benchHosts and benchURLs are the size of the benchmarks' frontier.
const (
	benchHosts = 2_000
	benchURLs  = 300_000
)

// benchLinks returns links to the URLs of all hosts, one host after another.
func benchLinks(b *testing.B, r *rig) []Link {
	links := make([]Link, benchURLs)
	for i := range links {
		host := fmt.Sprintf("h%d.example", i%benchHosts)
		u := mustParse(b, fmt.Sprintf("https://%s/%d/page.html", host, i))
		links[i] = r.link(u, blobschema.Queued{Key: host, Depth: uint16(i % 7), Rank: 2 + uint32(i%7)})
	}
	return links
}

// BenchmarkAdd measures new and known links.
func BenchmarkAdd(b *testing.B) {
	for _, known := range []bool{false, true} {
		b.Run(fmt.Sprintf("known=%v", known), func(b *testing.B) {
			r := newRig(b, Config{})
			links := benchLinks(b, r)
			all := func() {
				for _, l := range links {
					r.f.Add(r.now, l)
				}
			}
			if known {
				all()
			}
			for b.Loop() {
				if !known {
					b.StopTimer()
					r = newRig(b, Config{})
					runtime.GC()
					b.StartTimer()
				}
				all()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*benchURLs), "ns/link")
		})
	}
}

// BenchmarkNextDone measures requests, from Next to Done.
func BenchmarkNextDone(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		r := newRig(b, Config{})
		for _, l := range benchLinks(b, r) {
			r.f.Add(r.now, l)
		}
		runtime.GC()
		b.StartTimer()
		for n := 0; n < benchURLs; {
			task, ok := r.f.Next(r.now, false)
			if !ok {
				r.now = r.now.Add(100 * time.Millisecond)
				continue
			}
			r.f.Done(r.now, task, answer{keep: true}.reply(task, r.now, 0))
			n++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*benchURLs), "ns/request")
}
