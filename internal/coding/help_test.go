package coding

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

// codings are all content codings; "" is none.
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
