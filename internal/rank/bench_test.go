package rank

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/rank/made"
)

// BenchmarkSites measures a whole job for 35,602 sites, one step after another.
func BenchmarkSites(b *testing.B) {
	pages := made.Sites(1, 35_602)
	for partitions := 1; partitions <= 4; partitions++ {
		b.Run(fmt.Sprint(partitions), func(b *testing.B) {
			empty := newWorld(b)
			c, err := made.Begin(empty, "c", 1024, partitions, blobschema.ByHost)
			if err == nil {
				err = c.Commit(empty, pages, 1000)
			}
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				w := empty.clone()
				w.compute(StartConfig{Params: ranks.DefaultParams()})
				j := w.job()
				b.ReportMetric(float64(j.Rounds), "rounds")
				b.ReportMetric(float64(j.Totals.Links), "links")
			}
		})
	}
}

// BenchmarkMemory ranks two webs with one partition: pages of 50 links on 200 hosts, and sites of one page. It reports
// the peak memory of a step without the objects stored before, and the bytes kept for the next job.
func BenchmarkMemory(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	at := func(i int) string { return fmt.Sprintf("https://host%d.example/pages/%d", i%200, i) }
	pages := make([]made.Page, 16_400)
	for i := range pages {
		pages[i].URL = at(i)
		for range 50 {
			pages[i].Links = append(pages[i].Links, made.Link{URL: at(r.IntN(4 * len(pages))), Text: "some words"})
		}
	}
	for name, pages := range map[string][]made.Page{"pages": pages, "sites": made.Sites(1, 35_602)} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b)
			c, err := made.Begin(w, "c", 1024, 1, blobschema.ByHost)
			if err == nil {
				err = c.Commit(w, pages, 1000)
			}
			if err != nil {
				b.Fatal(err)
			}
			before := live()
			done, most := make(chan struct{}), make(chan uint64)
			go func() { most <- highest(done) }()
			old := debug.SetGCPercent(5) // keeps garbage out of the peak
			w.compute(StartConfig{Params: ranks.DefaultParams()})
			debug.SetGCPercent(old)
			close(done)
			links, graph := float64(w.job().Totals.Links), 0
			for name, data := range w.Objects {
				if strings.Contains(name, "-graph-") {
					graph += len(data)
				}
			}
			b.ReportMetric(links, "links")
			b.ReportMetric(float64(<-most-before)/links, "B/link")
			b.ReportMetric(float64(graph)/links, "B-kept/link")
		})
	}
}

// live returns the memory in use.
func live() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// highest returns the peak memory until done.
func highest(done <-chan struct{}) (most uint64) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return most
		case <-tick.C:
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
		}
	}
}
