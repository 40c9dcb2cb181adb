package warc

import (
	"bytes"
	"compress/flate"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

// inflated decodes a block of heads with the standard library.
func inflated(t testing.TB, block []byte, final byte) string {
	t.Helper()
	if final == 0 {
		block = append(block, 1, 0, 0, 0xff, 0xff) // a last block, stored and empty
	}
	in := bytes.NewReader(block)
	text, err := io.ReadAll(flate.NewReader(in))
	if err != nil || in.Len() > 0 {
		t.Fatalf("%v; %d bytes left", err, in.Len())
	}
	return string(text)
}

func TestHeadCode(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	random := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(' ' + rng.IntN('~'-' '+1))
		}
		return string(b)
	}
	request := benchRecords()[1]
	for _, text := range []string{
		"", "a", "\t\r\n", random(1), random(maxHeads), string(request.Header), strings.Repeat("a", maxHeads), strings.Repeat("abc\r\n", 60),
		"abcd" + random(maxHeads-8) + "abcd", // the largest distance
		strings.Repeat(random(maxMatch), 2), strings.Repeat(random(maxMatch+1), 2), strings.Repeat(random(maxMatch+4), 2),
	} {
		for final := range byte(2) {
			got, ok := heads.append([]byte("before"), []byte(text), final)
			if !ok || string(got[:6]) != "before" || inflated(t, got[6:], final) != text {
				t.Errorf("%.40q of %d bytes: %t, %q", text, len(text), ok, inflated(t, got[6:], final))
			}
		}
	}
	for _, text := range []string{random(maxHeads + 1), "\x00", "caf\xc3\xa9", "\x7f"} {
		if got, ok := heads.append([]byte("before"), []byte(text), 1); ok || string(got) != "before" {
			t.Errorf("%.40q: %t, %q", text, ok, got)
		}
	}
}

// TestHeadsAreShort compares the size of heads with that of the library, which makes a code for each.
func TestHeadsAreShort(t *testing.T) {
	e := NewEncoder(GzipFast)
	for _, r := range benchRecords() {
		r.Body = nil
		if _, _, err := e.Append(nil, r); err != nil { // e.head is then the whole record
			t.Fatal(err)
		}
		var library bytes.Buffer
		z, _ := flate.NewWriter(&library, flate.BestSpeed)
		z.Write(e.head)
		z.Close()
		ours, ok := heads.append(nil, e.head, 1)
		if !ok || len(ours) > library.Len()*107/100 {
			t.Errorf("%s: %d bytes, the library %d", r.Type, len(ours), library.Len())
		}
	}
}

func FuzzHeadCode(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"), true)
	f.Fuzz(func(t *testing.T, text []byte, last bool) {
		final := byte(0)
		if last {
			final = 1
		}
		if got, ok := heads.append(nil, text, final); ok && inflated(t, got, final) != string(text) {
			t.Errorf("%q became %q", text, inflated(t, got, final))
		}
	})
}
