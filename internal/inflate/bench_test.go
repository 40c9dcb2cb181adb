package inflate

import (
	"bytes"
	stdgzip "compress/gzip"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/orbweaver/orbweaver/internal/simweb"
)

// pages returns n pages of the web that crawls are measured on.
func pages(t testing.TB, n int) (plain [][]byte) {
	t.Helper()
	w, err := simweb.New(simweb.W1G())
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		plain = append(plain, w.Answer(simweb.Request{URL: w.URL(i%64, i)}).Body)
	}
	return plain
}

// noise returns n bytes that do not compress.
func noise(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{}).Read(b)
	return b
}

// BenchmarkGzip decodes at level 6, as servers send it, beside the streaming decoders.
func BenchmarkGzip(b *testing.B) {
	web := pages(b, 64)
	size := 0
	for _, p := range web {
		size += len(p)
	}
	long := bytes.Join(web, nil)
	for len(long) < 1<<20 {
		long = append(long, long...)
	}
	for _, c := range []struct {
		name   string
		bodies [][]byte
	}{
		{"web", web},
		{"10KB", [][]byte{long[:10<<10]}},
		{"30KB", [][]byte{long[:30<<10]}},
		{"1MB", [][]byte{long[:1<<20]}},
		{"noise30KB", [][]byte{noise(30 << 10)}},
		{"spaces1MB", [][]byte{bytes.Repeat([]byte(" "), 1<<20)}},
	} {
		var packed [][]byte
		n := 0
		for _, p := range c.bodies {
			packed = append(packed, zipped(b, p, 6))
			n += len(p)
		}
		out := make([]byte, 0, 2<<20)
		run := func(name string, decode func(src []byte) (int, error)) {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(n / len(packed)))
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					k := i % len(packed)
					if got, err := decode(packed[k]); err != nil || got != len(c.bodies[k]) {
						b.Fatalf("%d of %d bytes: %v", got, len(c.bodies[k]), err)
					}
					i++
				}
			})
		}
		var d Decoder
		run("inflate", func(src []byte) (int, error) {
			got, err := d.Gzip(out, src, 2<<20)
			return len(got), err
		})
		var source bytes.Reader
		var k gzip.Reader
		run("klauspost", func(src []byte) (int, error) {
			source.Reset(src)
			if err := k.Reset(&source); err != nil {
				return 0, err
			}
			return read(&k, out[:cap(out)])
		})
		var s stdgzip.Reader
		run("standard", func(src []byte) (int, error) {
			source.Reset(src)
			if err := s.Reset(&source); err != nil {
				return 0, err
			}
			return read(&s, out[:cap(out)])
		})
	}
}

// BenchmarkBlocks decodes what costs the most for its size: blocks that declare codes and hold
// nothing.
func BenchmarkBlocks(b *testing.B) {
	var w bitWriter
	for range 10000 {
		w.put(0, 1, 2, 2, 0, 5, 0, 5, 14, 4, 0, 6, 1, 3, 0, 42, 1, 3) // codes of one bit for 18 and 1
		w.put(1, 1, 127, 7, 1, 1, 107, 7, 0, 2, 0, 1)                 // 256 lengths of 0, and 1, 1
	}
	src := w.put(1, 3, 0, 7).bytes()
	out := make([]byte, 0, 1<<10)
	b.Run("inflate", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		var d Decoder
		for b.Loop() {
			if _, err := d.raw(out, src, 1<<10); err != io.ErrUnexpectedEOF {
				b.Fatal(err)
			}
		}
	})
	b.Run("standard", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		for b.Loop() {
			if _, err := decoders["deflate"].standard(src, 1<<10); err != io.ErrUnexpectedEOF {
				b.Fatal(err)
			}
		}
	})
}

// read reads into b to the end.
func read(r io.Reader, b []byte) (n int, err error) {
	for err == nil {
		var k int
		k, err = r.Read(b[n:])
		n += k
	}
	if err == io.EOF {
		err = nil
	}
	return n, err
}

func zipped(t testing.TB, p []byte, level int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := stdgzip.NewWriterLevel(&b, level)
	if err != nil {
		t.Fatal(err)
	}
	w.Write(p)
	w.Close()
	return b.Bytes()
}
