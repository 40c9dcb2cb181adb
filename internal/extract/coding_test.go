package extract

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// TestDecode decodes all codings with one decoder, as a whole and in steps.
func TestDecode(t *testing.T) {
	var d Decoder
	page := htmlPage(100 << 10)
	for _, text := range []string{page, "", "x", page[:600]} {
		for _, coding := range codings {
			body := encode(t, coding, text)
			for _, steps := range [][]int{{1 << 20}, {0, 1, 512, 513, 4096, 1 << 20}, {512, 10}} {
				d.Open(body, coding)
				for _, limit := range steps {
					if got, want := string(d.UpTo(limit)), text[:min(limit, len(text))]; got != want {
						t.Errorf("%q: %d of %d bytes, want %d", coding, len(got), len(text), len(want))
					}
				}
			}
			if coding == "" {
				continue
			}
			// Damaged input gives a beginning of the text, or everything that was decoded from it.
			for cut := 0; cut < len(body); cut += 1 + len(body)/50 {
				d.Open(body[:cut], coding)
				if got := string(d.UpTo(1 << 20)); !strings.HasPrefix(text, got) && got != string(body[:cut]) {
					t.Errorf("%s cut at %d: %q", coding, cut, got)
				}
			}
		}
	}
	for coding, body := range map[string]string{
		"br, gzip": string(encode(t, "br", page)), "gzip,gzip": string(encode(t, "gzip", page)), "deflate": page, "nonsense": page,
		"zstd": page, "br": "\xff\xff\xff" + page,
	} {
		d.Open([]byte(body), coding)
		if got := d.UpTo(1 << 20); len(got) != 0 {
			t.Errorf("%s: %d bytes of what cannot be decoded", coding, len(got))
		}
	}
	d.Close()
	if d.source.Len() != 0 || d.plain != nil || d.stream != nil {
		t.Error("the body is held on to")
	}
}

// TestDecodeGzip decodes files of several members and damaged files, to a limit too.
func TestDecodeGzip(t *testing.T) {
	member := string(encode(t, "gzip", "text"))
	empty := string(encode(t, "gzip", ""))
	deflated := member[10:]
	header := func(flags, fields string) string { return "\x1f\x8b\x08" + flags + "\x00\x00\x00\x00\x00\xff" + fields }
	var d Decoder
	for _, tt := range []struct{ name, body, want string }{
		{"one member", member, "text"},
		{"two members", member + member, "texttext"},
		{"empty members", strings.Repeat(empty, 100_000) + member + empty, "text"},
		{"name and comment", header("\x18", "n\xe4me\x00comment\x00"+deflated), "text"},
		{"extra field", header("\x04", "\x03\x00abc"+deflated), "text"},
		{"extra field cut off", header("\x04", "\xff\xffabc"+deflated), ""},
		{"name without end", header("\x08", "name"), ""},
		{"name too long", header("\x08", strings.Repeat("n", 1<<10)+"\x00"+deflated), ""},
		{"wrong header checksum", header("\x02", "\x3f\xae"+deflated), ""},
		{"other method", "\x1f\x8b\x07" + member[3:], ""},
		{"header cut off", member[:9], ""},
		{"wrong checksum", member[:len(member)-8] + "\x00" + member[len(member)-7:], "text"},
		{"wrong size, then another member", member[:len(member)-1] + "\x01" + member, "text"},
		{"trailer cut off", member[:len(member)-1], "text"},
		{"trailing zero", member + "\x00", "text"},
		{"trailing text", member + "and something else", "text"},
		{"reference into the previous member", member + header("\x00", "\x03\x02\x00"+strings.Repeat("\x00", 8)), "text"},
	} {
		for limit := range 10 {
			d.Open([]byte(tt.body), "gzip")
			if got, want := string(d.UpTo(limit)), tt.want[:min(limit, len(tt.want))]; got != want {
				t.Errorf("%s, at most %d bytes: %q, want %q", tt.name, limit, got, want)
			}
		}
	}
	text := htmlPage(100 << 10)
	body := encode(t, "gzip", text)
	d.Open(body[:len(body)/2], "gzip")
	if n := len(d.UpTo(1 << 20)); n < len(text)*2/5 {
		t.Errorf("half of a gzip file gives %d of %d bytes", n, len(text))
	}
}

// TestDecodeBomb checks that the limit bounds the memory, and that a body costs no allocation after the first.
func TestDecodeBomb(t *testing.T) {
	for _, coding := range codings[1:] {
		bomb := encode(t, coding, strings.Repeat(" ", 16<<20))
		for _, limit := range []int{0, 1, 1000, 1 << 20} {
			var d Decoder
			d.Open(bomb, coding)
			if got := d.UpTo(limit); len(got) != limit || cap(d.out) > max(limit, firstDecoded) {
				t.Errorf("%s, at most %d bytes: %d in a buffer of %d", coding, limit, len(got), cap(d.out))
			}
		}
	}
	var d Decoder
	d.Open(encode(t, "gzip", strings.Repeat(" ", 16<<20)), "gzip")
	if n := len(d.UpTo(16 << 20)); n != 16<<20 {
		t.Errorf("%d bytes", n)
	}
	if d.Close(); cap(d.out) > KeptBuffer {
		t.Errorf("buffer of %d bytes kept", cap(d.out))
	}
	page := encode(t, "gzip", htmlPage(30<<10))
	if n := testing.AllocsPerRun(10, func() { d.Open(page, "gzip"); d.UpTo(1 << 20) }); n > 1 {
		t.Errorf("%v allocations for a gzip body", n)
	}
}

// TestDecodeWindows decodes streams that claim large windows.
func TestDecodeWindows(t *testing.T) {
	text := strings.Repeat("some text and more ", 1<<20) // more than a window of 8 MiB
	frame := func(window int) []byte {
		var b bytes.Buffer
		w, err := zstd.NewWriter(&b, zstd.WithWindowSize(window), zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, text)
		w.Close()
		return b.Bytes()
	}
	var d Decoder
	for window, want := range map[int]int{1 << 20: 1 << 20, maxWindow: 1 << 20, 2 * maxWindow: 0} {
		d.Open(frame(window), "zstd")
		if n := len(d.UpTo(1 << 20)); n != want {
			t.Errorf("zstd window of %d: %d bytes", window, n)
		}
	}
	text = text[:1<<20]
	for bits, kept := range map[int]bool{10: true, 16: true, 17: true, 22: true, 23: false, 24: false} {
		var b bytes.Buffer
		w := brotli.NewWriterOptions(&b, brotli.WriterOptions{Quality: 1, LGWin: bits})
		io.WriteString(w, text)
		w.Close()
		d.Open(b.Bytes(), "br")
		if got := d.UpTo(len(text)); string(got) != text || (d.brotli != nil) != kept {
			t.Errorf("brotli window of %d bits: %d bytes, reader kept %v", bits, len(got), d.brotli != nil)
		}
	}
}

// TestDecodeLongBrotli checks that a text longer than the bound is decoded up to the bound.
func TestDecodeLongBrotli(t *testing.T) {
	noise := make([]byte, maxBrotli+1<<20)
	for i, n := 0, uint32(1); i < len(noise); i++ {
		n = n*1664525 + 1013904223
		noise[i] = byte(n >> 24)
	}
	var b bytes.Buffer
	w := brotli.NewWriterLevel(&b, 0)
	w.Write(noise)
	w.Close()
	var d Decoder
	d.Open(b.Bytes(), "br")
	if got := d.UpTo(len(noise)); !bytes.HasPrefix(noise, got) || len(got) < maxBrotli/2 || len(got) > maxBrotli {
		t.Errorf("%d bytes of %d", len(got), len(noise))
	}
}

// FuzzDecode decodes any body in any coding, with a used decoder and with a new one.
func FuzzDecode(f *testing.F) {
	for i, coding := range codings {
		f.Add(byte(i), encode(f, coding, htmlPage(500)), uint16(100))
	}
	f.Add(byte(2), []byte("\x0d\x00\x80"), uint16(1))
	var used Decoder
	f.Fuzz(func(t *testing.T, which byte, body []byte, step uint16) {
		coding := codings[int(which)%len(codings)]
		const limit = 1 << 20
		used.Open(body, coding)
		first := bytes.Clone(used.UpTo(int(step)))
		all := used.UpTo(limit)
		var fresh Decoder
		fresh.Open(body, coding)
		if want := fresh.UpTo(limit); !bytes.Equal(all, want) || !bytes.Equal(first, want[:min(len(want), int(step))]) || len(all) > limit {
			t.Errorf("%q: %d bytes, then %d; at once %d", coding, len(first), len(all), len(want))
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	html := htmlPage(30 << 10)
	for _, coding := range codings[1:] {
		b.Run(coding, func(b *testing.B) {
			var d Decoder
			body := encode(b, coding, html)
			b.SetBytes(int64(len(html)))
			b.ReportAllocs()
			for b.Loop() {
				d.Open(body, coding)
				if n := len(d.UpTo(MaxDecoded)); n != len(html) {
					b.Fatal(fmt.Sprint(n, " bytes"))
				}
			}
			b.ReportMetric(float64(len(body)), "wire-B")
		})
	}
}

// codings lists all content codings; "" means no coding.
var codings = []string{"", "gzip", "br", "zstd"}

// encode returns s in a content coding.
func encode(t testing.TB, coding, s string) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "":
		return []byte(s)
	case "gzip":
		w = gzip.NewWriter(&b)
	case "br":
		w = brotli.NewWriter(&b)
	case "zstd":
		w, _ = zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
	default:
		t.Fatalf("no encoder of %q", coding)
	}
	if _, err := io.WriteString(w, s); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// htmlPage returns about n bytes of HTML with 0.7 links per 500 bytes, as pages of the web have.
func htmlPage(n int) string {
	var b strings.Builder
	b.WriteString("<!DOCTYPE html><html><head><title>A page</title><meta charset=utf-8></head><body>")
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, `<div class="item c%d"><p>Words of paragraph %d, %x %x %x and so on and on.</p>`, i%7, i, i*7919, i*104729, i*1299709)
		if i%3 == 0 {
			fmt.Fprintf(&b, `<a href="/section/%d/article-%x.html" class="link">Read more about %d</a>`, i%11, i*7919, i)
		}
		b.WriteString("</div>\n")
	}
	b.WriteString("</body></html>")
	return b.String()
}
