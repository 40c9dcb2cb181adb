package fetch

import (
	"bytes"
	"strings"
	"testing"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/extract"
)

// TestDecodeBombs decodes bodies that expand enormously. The result must keep to the limit, and little memory
// may be kept.
func TestDecodeBombs(t *testing.T) {
	const html = `<!DOCTYPE html><a href="/x">x</a>`
	text := html + strings.Repeat(" ", 8<<20) + `<a href="/late">`
	for _, coding := range codings[1:] {
		s := testScratch()
		body := encode(t, coding, text)
		out := Assemble(s, ask(t, "http://example.org/"), made(200, fields("Content-Encoding", coding), string(body)))
		wantOutcome(t, out, blobschema.OutcomeOK)
		if len(out.Links) != 1 {
			t.Errorf("%s: %d links", coding, len(out.Links))
		}
		s.body.Open(body, coding)
		if n := len(s.body.UpTo(extract.DecodedLimit(len(body), s.maxBody))); n > extract.DecodedLimit(len(body), s.maxBody) || n < 1<<20 {
			t.Errorf("%s: %d bytes decoded of %d", coding, n, len(body))
		}
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
		{"gzip", "<!DOCTYPE html>", false}, // declared but not encoded
		{"gzip", string(gzipped("x")), true},
		{"zstd", string(encode(t, "zstd", "x")), true},
		{"br", "any bytes", true},
		{"deflate", "any bytes", true},
		{"gzip, br", "any bytes", true},
		{"", string(gzipped("x")), true}, // a gzip file
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

// TestAssemblePacked checks which bodies are stored without compression.
func TestAssemblePacked(t *testing.T) {
	for _, tt := range []struct {
		coding, body string
		want         bool
	}{
		{"", previousBody, false},
		{"gzip", previousBody, false},
		{"gzip", string(gzipped(previousBody)), true},
		{"br", string(encode(t, "br", previousBody)), true},
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
