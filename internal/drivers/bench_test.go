package drivers

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"gocloud.dev/pubsub"
	"gocloud.dev/pubsub/driver"

	"github.com/orbweaver/orbweaver/platform"
)

// benchBody is the size of the benchmarks' messages, which is that of typical mail.
const benchBody = 20 << 10

func benchStore(b *testing.B) *store {
	s := openDir(b, b.TempDir(), options{})
	must(b, s.createQueues(b.Context(), time.Hour, "q"))
	return s
}

func perSecond(b *testing.B, what string) {
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), what+"/s")
}

func parallel(b *testing.B, workers int, f func(i int64)) {
	var n atomic.Int64
	b.SetParallelism(workers / 2) // times GOMAXPROCS
	if workers == 1 {
		for b.Loop() {
			f(n.Add(1))
		}
		return
	}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			f(n.Add(1))
		}
	})
}

func BenchmarkSend(b *testing.B) {
	for _, workers := range []int{1, 64} {
		b.Run(fmt.Sprintf("driver/senders=%d", workers), func(b *testing.B) {
			s := benchStore(b)
			t := &topic{s, "q"}
			body := make([]byte, benchBody)
			parallel(b, workers, func(int64) { must(b, t.SendBatch(b.Context(), []*driver.Message{{Body: body}})) })
			perSecond(b, "sends")
		})
		b.Run(fmt.Sprintf("topic/senders=%d", workers), func(b *testing.B) {
			s := benchStore(b)
			t := s.openTopic("q")
			body := make([]byte, benchBody)
			parallel(b, workers, func(int64) { must(b, t.Send(b.Context(), &pubsub.Message{Body: body})) })
			perSecond(b, "sends")
			must(b, t.Shutdown(b.Context()))
		})
	}
}

func BenchmarkReceiveAck(b *testing.B) {
	s := benchStore(b)
	body := make([]byte, benchBody)
	t := &topic{s, "q"}
	for sent := 0; sent < b.N; sent += 1000 {
		ms := make([]*driver.Message, 1000)
		for i := range ms {
			ms[i] = &driver.Message{Body: body}
		}
		must(b, t.SendBatch(b.Context(), ms))
	}
	sub := s.openSubscription("q", pollTime)
	b.ResetTimer()
	for range b.N {
		m, err := sub.Receive(b.Context())
		must(b, err)
		m.Ack()
	}
	must(b, sub.Shutdown(b.Context()))
	perSecond(b, "messages")
}

func BenchmarkConditionalWrite(b *testing.B) {
	for _, workers := range []int{1, 64} {
		b.Run(fmt.Sprintf("writers=%d", workers), func(b *testing.B) {
			p := benchStore(b).platform()
			value := bytes.Repeat([]byte("x"), 1000)
			type head struct {
				key string
				rev platform.Revision
			}
			free := make(chan head, workers)
			for i := range workers {
				free <- head{key: fmt.Sprint("head", i)}
			}
			parallel(b, workers, func(int64) {
				h := <-free
				var err error
				h.rev, err = p.WriteRecord(b.Context(), h.key, value, h.rev)
				must(b, err)
				free <- h
			})
			perSecond(b, "writes")
		})
	}
}

func BenchmarkGet(b *testing.B) {
	p := benchStore(b).platform()
	must(b, second(p.WriteRecord(b.Context(), "k", bytes.Repeat([]byte("x"), 1000), nil)))
	for b.Loop() {
		must(b, second(p.ReadRecords(b.Context(), []string{"k"})))
	}
}
