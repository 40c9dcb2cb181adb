package bucket

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/aws/aws-sdk-go-v2/aws"
)

func TestPieces(t *testing.T) {
	for _, parts := range [][]string{{}, {""}, {"a"}, {"ab", "", "c", ""}, {"", "abc"}, {strings.Repeat("x", 5000), "y", strings.Repeat("z", 3)}} {
		var b [][]byte
		for _, p := range parts {
			b = append(b, []byte(p))
		}
		p := newPieces(b)
		want := strings.Join(parts, "")
		if p.size != int64(len(want)) {
			t.Errorf("%q: %d bytes", parts, p.size)
		}
		if err := iotest.TestReader(io.NewSectionReader(p, 0, p.size), []byte(want)); err != nil {
			t.Errorf("%q: %v", parts, err)
		}
	}
}

func TestLocalEndpoint(t *testing.T) {
	for endpoint, want := range map[string]bool{
		"": false, "https://s3.amazonaws.com": false, "http://127.0.0.1:4566": true, "http://[::1]:4566": true,
		"http://localhost:4566": true, "http://s3.localhost:1": true, "http://localhost.example.org": false, "%": false,
	} {
		if got := LocalEndpoint(aws.String(endpoint)); got != want {
			t.Errorf("%s: %v", endpoint, got)
		}
	}
}
