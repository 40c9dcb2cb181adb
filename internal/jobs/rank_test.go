package jobs_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/jobs"
	"github.com/orbweaver/orbweaver/internal/rank"
	"github.com/orbweaver/orbweaver/internal/rank/made"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/platform"
)

// madeOn stores a generated crawl on a platform.
type madeOn struct {
	t testing.TB
	p *platform.Platform
}

func (m madeOn) Put(name string, data []byte) error {
	return engine.PutObject(m.t.Context(), m.p, actor.PutObject{Name: name, Parts: [][]byte{data}})
}

func (m madeOn) Record(key string, value []byte) error {
	recs, err := engine.ReadRecords(m.t.Context(), m.p, []string{key})
	if err != nil {
		return err
	}
	_, err = engine.WriteRecord(m.t.Context(), m.p, actor.WriteRecord{Key: key, Value: value, Revision: recs[0].Revision})
	return err
}

func madeEngine(t testing.TB, pages []made.Page, partitions int) (*jobs.Jobs, *platform.Platform) {
	t.Helper()
	p, err := drivers.Memory(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	e, err := jobs.Open(p, service.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(t.Context()) })
	c, err := made.Begin(madeOn{t, p}, "c", 1024, partitions, blobschema.ByHost)
	if err == nil {
		err = c.Commit(madeOn{t, p}, pages, 1000)
	}
	if err != nil {
		t.Fatal(err)
	}
	e.Use(c.Record)
	return e, p
}

func TestRank(t *testing.T) {
	for partitions := 1; partitions <= 4; partitions++ {
		e, p := madeEngine(t, made.Sites(1, 500), partitions)
		var rounds []int
		job, err := e.Rank(t.Context(), rank.StartConfig{Params: ranks.DefaultParams()}, func(p rank.Progress) {
			rounds = append(rounds, p.Round)
		})
		if err != nil {
			t.Fatal(err)
		}
		if job.Done.IsZero() || job.Totals.Crawled != 500 || job.Rounds < 5 || job.Residuals[job.Rounds-1].Pages > 1e-8 {
			t.Errorf("job: %+v", job)
		}
		if partitions > 1 && len(rounds) < 3 {
			t.Errorf("progress was called with rounds %v", rounds)
		}
		if data, err := engine.GetObject(t.Context(), p, actor.GetObject{Name: job.HostRanks, Length: -1}); err != nil || len(data) == 0 {
			t.Errorf("table of hosts: %d bytes, %v", len(data), err)
		}
	}
}

// BenchmarkRank ranks 35,602 generated sites, like the measurement in the paper by Li, Ai and Wang.
func BenchmarkRank(b *testing.B) {
	pages := made.Sites(1, 35_602)
	for partitions := 1; partitions <= 4; partitions++ {
		b.Run(fmt.Sprint(partitions), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				e, _ := madeEngine(b, pages, partitions)
				b.StartTimer()
				began := time.Now()
				job, err := e.Rank(b.Context(), rank.StartConfig{Params: ranks.DefaultParams()}, nil)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(time.Since(began).Seconds(), "s")
				b.ReportMetric(float64(job.Rounds), "rounds")
			}
		})
	}
}
