package fetch

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/orbweaver/orbweaver/blobschema"
)

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

var codings = []string{"", "gzip", "br", "zstd"}

// TestDecode decodes in turns with one decoder, at once and in steps.
func TestDecode(t *testing.T) {
	var d decoder
	page := somePage(100 << 10)
	for _, text := range []string{page, "", "x", page[:600]} {
		for _, coding := range codings {
			body := encode(t, coding, text)
			for _, steps := range [][]int{{1 << 20}, {0, 1, 512, 513, 4096, 1 << 20}, {512, 10}} {
				d.open(body, coding)
				for _, limit := range steps {
					if got, want := string(d.upTo(limit)), text[:min(limit, len(text))]; got != want {
						t.Errorf("%q: %d of %d bytes, want %d", coding, len(got), len(text), len(want))
					}
				}
			}
			if coding == "" {
				continue
			}
			// Damaged anywhere it gives a beginning of the text, or all that came out of the damage.
			for cut := 0; cut < len(body); cut += 1 + len(body)/50 {
				d.open(body[:cut], coding)
				if got := string(d.upTo(1 << 20)); !strings.HasPrefix(text, got) && got != string(body[:cut]) {
					t.Errorf("%s cut at %d: %q", coding, cut, got)
				}
			}
		}
	}
	for coding, body := range map[string]string{
		"br, gzip": string(encode(t, "br", page)), "gzip,gzip": string(gzipped(page)), "deflate": page, "nonsense": page,
		"zstd": page, "br": "\xff\xff\xff" + page,
	} {
		d.open([]byte(body), coding)
		if got := d.upTo(1 << 20); len(got) != 0 {
			t.Errorf("%s: %d bytes of what cannot be decoded", coding, len(got))
		}
	}
	d.close()
	if d.source.Len() != 0 || d.plain != nil || d.stream != nil || d.deflate != nil {
		t.Error("the body is held on to")
	}
}

// TestDecodeBombs has bodies that blow up: no more than the limit comes out, and little is kept.
func TestDecodeBombs(t *testing.T) {
	const html = `<!DOCTYPE html><a href="/x">x</a>`
	text := html + strings.Repeat(" ", 8<<20) + `<a href="/late">`
	for _, coding := range codings[1:] {
		s := testScratch()
		body := encode(t, coding, text)
		out := Assemble(s, ask(t, "http://example.org/"), made(200, fields("Content-Encoding", coding), string(body)))
		wantOutcome(t, out, blobschema.OutcomeOK)
		if len(out.Links) != 1 || cap(s.body.out) > keptBuffer {
			t.Errorf("%s: %d links, buffer of %d bytes kept", coding, len(out.Links), cap(s.body.out))
		}
		s.body.open(body, coding)
		if n := len(s.body.upTo(s.decodedLimit(len(body)))); n > s.decodedLimit(len(body)) || n < alwaysDecoded {
			t.Errorf("%s: %d bytes decoded of %d", coding, n, len(body))
		}
	}
}

// TestDecodeWindows has streams that claim large windows.
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
	var d decoder
	for window, want := range map[int]int{1 << 20: 1 << 20, maxWindow: 1 << 20, 2 * maxWindow: 0} {
		d.open(frame(window), "zstd")
		if n := len(d.upTo(1 << 20)); n != want {
			t.Errorf("zstd window of %d: %d bytes", window, n)
		}
	}
	text = text[:1<<20]
	for bits, kept := range map[int]bool{10: true, 16: true, 17: true, 22: true, 23: false, 24: false} {
		var b bytes.Buffer
		w := brotli.NewWriterOptions(&b, brotli.WriterOptions{Quality: 1, LGWin: bits})
		io.WriteString(w, text)
		w.Close()
		d.open(b.Bytes(), "br")
		if got := d.upTo(len(text)); string(got) != text || (d.brotli != nil) != kept {
			t.Errorf("brotli window of %d bits: %d bytes, reader kept %v", bits, len(got), d.brotli != nil)
		}
	}
}

// TestDecodeLongBrotli has more than is worth decoding: what is within the bound comes out.
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
	var d decoder
	d.open(b.Bytes(), "br")
	if got := d.upTo(len(noise)); !bytes.HasPrefix(noise, got) || len(got) < maxBrotli/2 || len(got) > maxBrotli {
		t.Errorf("%d bytes of %d", len(got), len(noise))
	}
}

func TestPacked(t *testing.T) {
	for _, tt := range []struct {
		coding, body string
		want         bool
	}{
		{"", "<!DOCTYPE html>", false},
		{"", "", false},
		{"", "\x1f", false},
		{"gzip", "<!DOCTYPE html>", false}, // says so and is not
		{"gzip", string(gzipped("x")), true},
		{"zstd", string(encode(t, "zstd", "x")), true},
		{"br", "any bytes", true},
		{"deflate", "any bytes", true},
		{"gzip, br", "any bytes", true},
		{"", string(gzipped("x")), true}, // a file
		{"", "\x89PNG\r\n\x1a\n", true},
		{"", "\xff\xd8\xff\xe0\x00\x10JFIF", true},
		{"", "GIF89a", true},
		{"", "RIFF\x10\x00\x00\x00WEBPVP8 ", true},
		{"", "RIFF\x10\x00\x00\x00WAVEfmt ", false},
		{"", "RIFF", false},
		{"", "\x00\x00\x00\x20ftypavif", true},
		{"", "wOF2\x00\x01\x00\x00", true},
		{"", "PK\x03\x04", true},
		{"", "%PDF-1.7", false},
		{"", "BM6\x00", false},
	} {
		if got := packed([]byte(tt.body), tt.coding); got != tt.want {
			t.Errorf("packed(%q, %q) = %v", tt.body, tt.coding, got)
		}
	}
}

// TestAssemblePacked looks for bodies within the stored bytes.
func TestAssemblePacked(t *testing.T) {
	for _, tt := range []struct {
		coding, body string
		want         bool
	}{
		{"", formerBody, false},
		{"gzip", formerBody, false},
		{"gzip", string(gzipped(formerBody)), true},
		{"br", string(encode(t, "br", formerBody)), true},
		{"", "\x89PNG\r\n\x1a\n and so on and so on and so on", true},
	} {
		out := Assemble(testScratch(), ask(t, "http://example.org/"), made(200, fields("Content-Encoding", tt.coding), tt.body))
		if got := bytes.Contains(out.Record[out.ResponseAt:], []byte(tt.body)); got != tt.want {
			t.Errorf("%q %q: stored as received %v", tt.coding, tt.body, got)
		}
		if _, response := records(t, out); payload(t, response) != tt.body {
			t.Errorf("%q %q: read back\n%s", tt.coding, tt.body, response)
		}
	}
}

// FuzzDecode gives any body in any coding, to one decoder that goes on and to a fresh one.
func FuzzDecode(f *testing.F) {
	for i, coding := range codings {
		f.Add(byte(i), encode(f, coding, formerBody), uint16(100))
	}
	f.Add(byte(2), []byte("\x0d\x00\x80"), uint16(1))
	var used decoder
	f.Fuzz(func(t *testing.T, which byte, body []byte, step uint16) {
		coding := codings[int(which)%len(codings)]
		const limit = 1 << 20
		used.open(body, coding)
		first := bytes.Clone(used.upTo(int(step)))
		all := used.upTo(limit)
		var fresh decoder
		fresh.open(body, coding)
		if want := fresh.upTo(limit); !bytes.Equal(all, want) || !bytes.Equal(first, want[:min(len(want), int(step))]) || len(all) > limit {
			t.Errorf("%q: %d bytes, then %d; at once %d", coding, len(first), len(all), len(want))
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	html := somePage(30 << 10)
	for _, coding := range codings[1:] {
		b.Run(coding, func(b *testing.B) {
			var d decoder
			body := encode(b, coding, html)
			b.SetBytes(int64(len(html)))
			b.ReportAllocs()
			for b.Loop() {
				d.open(body, coding)
				if n := len(d.upTo(maxDecoded)); n != len(html) {
					b.Fatal(fmt.Sprint(n, " bytes"))
				}
			}
			b.ReportMetric(float64(len(body)), "wire-B")
		})
	}
}
