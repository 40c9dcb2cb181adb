package view_test

import (
	"bytes"
	"compress/zlib"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/view"
)

func squeeze(t *testing.T, text string, make func(io.Writer) io.WriteCloser) []byte {
	t.Helper()
	var b bytes.Buffer
	w := make(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestBody decodes bodies, where they can be decoded.
func TestBody(t *testing.T) {
	text := strings.Repeat("all the same ", 100)
	zipped := squeeze(t, text, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
	deflated := squeeze(t, text, func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) })
	for _, tt := range []struct {
		name, coding string
		body         []byte
		cut          bool
		want, err    string
	}{
		{name: "plain", body: []byte(text), want: text},
		{name: "identity", coding: "identity", body: []byte(text), want: text},
		{name: "gzip", coding: "gzip", body: zipped, want: text},
		{name: "old name", coding: "X-GZIP", body: zipped, want: text},
		{name: "says gzip, is plain", coding: "gzip", body: []byte(text), want: text},
		{name: "cut when stored", coding: "gzip", body: zipped[:len(zipped)-10], cut: true, want: "all the same"},
		{name: "deflate", coding: "deflate", body: deflated, err: "cannot decompress"},
		{name: "twice", coding: "gzip, gzip", body: zipped, err: "(gzip, gzip)"},
		{name: "nothing", coding: "gzip", want: ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rec := &warc.Record{Header: []byte("HTTP/1.1 200 OK\r\nContent-Encoding: " + tt.coding + "\r\n\r\n"), Body: tt.body}
			if tt.coding == "" {
				rec.Header = []byte("HTTP/1.1 200 OK\r\n\r\n")
			}
			_, body, err := view.Body(rec)
			out := string(body)
			switch {
			case tt.err == "" && err != nil, tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("error %v, want %q", err, tt.err)
			case !strings.HasPrefix(out, tt.want) || !tt.cut && tt.err == "" && out != tt.want:
				t.Errorf("%q, want %q", out, tt.want)
			}
		})
	}
}
