package rank

import (
	"fmt"
	"testing"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/rank/made"
)

// BenchmarkSites ranks 35,602 sites, one step after another: gathering, joining and all rounds.
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
				w.compute(StartConfig{Params: blobschema.DefaultRankParams()})
				j := w.job()
				b.ReportMetric(float64(j.Rounds), "rounds")
				b.ReportMetric(float64(j.Totals.Links), "links")
			}
		})
	}
}
