package simweb

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"testing"
)

func BenchmarkNew(b *testing.B) {
	for name, cfg := range map[string]Config{"large": large(), "small": Small(1)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				mustNew(b, cfg)
			}
		})
	}
}

func BenchmarkPage(b *testing.B) {
	w := mustNew(b, large())
	var buf []byte
	bytes := 0
	i := 0
	for b.Loop() {
		buf = w.appendHTML(buf[:0], i%64, i%500, 0)
		bytes += len(buf)
		i++
	}
	b.SetBytes(int64(bytes / i))
}

func BenchmarkAnswer(b *testing.B) {
	w := mustNew(b, large())
	i := 0
	for b.Loop() {
		w.Answer(Request{URL: w.URL(i%64, i%500)})
		i++
	}
}

// BenchmarkServe measures client and server together: one client reads and drops answers over one connection.
func BenchmarkServe(b *testing.B) {
	cfg := large()
	cfg.Connection.MaxRequests = 1 << 30
	s, err := Serve(b.Context(), mustNew(b, cfg))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	w := s.Web()
	c, err := net.Dial("tcp", w.Host(0).Authority)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	in := bufio.NewReaderSize(c, 64<<10)
	i := 0
	for b.Loop() {
		path := w.appendPath(nil, 0, i%500)
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, w.Host(0).Authority)
		length := 0
		for {
			line, err := in.ReadSlice('\n')
			if err != nil {
				b.Fatal(err)
			}
			if len(line) == 2 {
				break
			}
			fmt.Sscanf(string(line), "Content-Length: %d", &length)
		}
		if _, err := io.CopyN(io.Discard, in, int64(length)); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

func BenchmarkTruth(b *testing.B) {
	w := mustNew(b, large())
	b.Run("digests", func(b *testing.B) {
		for b.Loop() {
			w.Truth(Scope{})
		}
	})
	b.Run("graph", func(b *testing.B) {
		for b.Loop() {
			w.Truth(Scope{SkipDigests: true})
		}
	})
}
