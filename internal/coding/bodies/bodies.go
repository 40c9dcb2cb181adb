// Package bodies makes bodies in the content codings that package coding decodes, for tests.
package bodies

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

// Codings are those that there are; "" is none.
var Codings = []string{"", "gzip", "br", "zstd"}

// Encode returns s in a content coding.
func Encode(t testing.TB, coding, s string) []byte {
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

// Page returns HTML of about n bytes that is somewhat like the web's: 0.7 links per 500 bytes.
func Page(n int) string {
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
