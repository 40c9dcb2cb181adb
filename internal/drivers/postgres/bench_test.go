package postgres

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/orbweaver/orbweaver/internal/servers"
	"github.com/orbweaver/orbweaver/platform"
)

var figures = flag.Bool("figures", false, "pass a million messages through a queue and print rates and sizes")

func benchmark(b *testing.B) (*platform.Platform, platform.Queue) {
	b.Helper()
	s, err := servers.NewPostgres(b.Context())
	if errors.Is(err, servers.ErrMissing) {
		b.Skip(err)
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	p, err := Open(b.Context(), s.URL()+"?pool_max_conns=16&blobs=file://"+b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = p.Close() })
	if err := p.CreateQueues(b.Context(), 1); err != nil {
		b.Fatal(err)
	}
	q, err := p.Queue("mailbox-00000")
	if err != nil {
		b.Fatal(err)
	}
	b.SetParallelism(8) // times two processors
	return p, q
}

func BenchmarkSend(b *testing.B) {
	_, q := benchmark(b)
	body := bytes.Repeat([]byte{0xff}, 20<<10)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := q.Send(b.Context(), [][]byte{body}, 0); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}

func BenchmarkReceive(b *testing.B) {
	_, q := benchmark(b)
	bodies := slices.Repeat([][]byte{bytes.Repeat([]byte{0xff}, 20<<10)}, 100)
	for range b.N/len(bodies) + 1 {
		if err := q.Send(b.Context(), bodies, 0); err != nil {
			b.Fatal(err)
		}
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() { // an iteration is a message; calls receive tens
			if left.Load() <= 0 {
				continue
			}
			got, err := q.Receive(b.Context(), 10, 0)
			if err == nil {
				err = q.Acknowledge(b.Context(), receiptsOf(got))
			}
			if err != nil {
				b.Error(err)
			}
			left.Add(-int64(len(got)))
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}

func receiptsOf(got []platform.Delivery) (out []platform.Receipt) {
	for _, d := range got {
		out = append(out, d.Receipt)
	}
	return out
}

// BenchmarkWrite replaces records of 4 KB by revision, each goroutine its own.
func BenchmarkWrite(b *testing.B) {
	p, _ := benchmark(b)
	value := bytes.Repeat([]byte("abcdefghij"), 400)
	var keys atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		key := fmt.Sprintf("key/%d", keys.Add(1))
		var rev platform.Revision
		for pb.Next() {
			now, err := p.WriteRecord(b.Context(), key, value, rev)
			if err != nil {
				b.Error(err)
			}
			rev = now
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
}

// TestMillion passes a million messages of 1 KB through a queue, and prints how rate and size of the table change. Vacuum
// must keep up: the last tenth may not be much slower than the first, and the table may not grow with the messages.
func TestMillion(t *testing.T) {
	if !*figures {
		t.Skip("it takes minutes: -figures")
	}
	s := serve(t)
	p := open(t, locationOf(t, s), nil)
	if err := p.CreateQueues(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	q, err := p.Queue("mailbox-00000")
	if err != nil {
		t.Fatal(err)
	}
	c, err := pgx.Connect(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	bodies := make([][]byte, 100)
	for i := range bodies {
		bodies[i] = bytes.Repeat([]byte{byte(i)}, 1<<10)
	}
	for tenth := range 10 {
		began := time.Now()
		for range 1000 {
			if err := q.Send(t.Context(), bodies, 0); err != nil {
				t.Fatal(err)
			}
			for left := len(bodies); left > 0; {
				got, err := q.Receive(t.Context(), 50, time.Second)
				if err == nil {
					err = q.Acknowledge(t.Context(), receiptsOf(got))
				}
				if err != nil {
					t.Fatal(err)
				}
				left -= len(got)
			}
		}
		var size, dead int64
		if err := c.QueryRow(t.Context(), `select pg_total_relation_size('orbweaver.messages'),
			(select n_dead_tup from pg_stat_user_tables where relid = 'orbweaver.messages'::regclass)`).Scan(&size, &dead); err != nil {
			t.Fatal(err)
		}
		t.Logf("tenth %d: %.0f messages/s; the table has %d MB and %d dead rows", tenth+1, 1e5/time.Since(began).Seconds(), size>>20, dead)
	}
}
