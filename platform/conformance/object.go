package conformance

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"gocloud.dev/blob"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/platform"
)

// objectNames stores an object under every kind of name that is in use.
func (s *suite) objectNames(t *testing.T) {
	for _, name := range []string{
		naming.Commit("c1", 4095, 1<<33, 1<<27),
		naming.Run("c1", 0, 7, 3, 2),
		naming.WARC("c1", 12, 5, 1, true),
		naming.WARC("a-crawl-of-thirty-two-characters", 12, 5, 1, false),
		naming.Seeds("c1", []byte("seeds")),
		naming.Dead("c1", []byte("dead")),
		naming.CDXJIndex("c1"),
		"lists/seeds/a list of 2026-11-21 (1).txt",
	} {
		s.put(t, name, []byte("is "), nil, []byte(name))
		if got := s.get(t, name, 0, -1); string(got) != "is "+name {
			t.Errorf("%s holds %q", name, got)
		}
	}
}

// objectRanges reads parts of objects.
func (s *suite) objectRanges(t *testing.T) {
	s.put(t, "c1/ranges", []byte("0123"), []byte("456789"))
	for _, c := range []struct {
		offset, length int64
		want           string
	}{{0, -1, "0123456789"}, {0, 10, "0123456789"}, {0, 1, "0"}, {3, 4, "3456"}, {9, 1, "9"}, {4, -1, "456789"}, {8, 5, "89"}} {
		if got := s.get(t, "c1/ranges", c.offset, c.length); string(got) != c.want {
			t.Errorf("%d+%d: %q, want %q", c.offset, c.length, got, c.want)
		}
	}
	s.put(t, "c1/empty")
	if got := s.get(t, "c1/empty", 0, -1); len(got) != 0 {
		t.Errorf("an empty object has %d bytes", len(got))
	}
}

// missingObject checks that a missing object, and no other error, is [platform.ErrNotFound].
func (s *suite) missingObject(t *testing.T) {
	for _, length := range []int64{-1, 5} {
		_, err := s.p.GetObject(t.Context(), "c1/none", 0, length)
		if !errors.Is(err, platform.ErrNotFound) {
			t.Errorf("length %d: %v", length, err)
		}
	}
	s.put(t, "c1/there", []byte("there"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.p.GetObject(ctx, "c1/there", 0, -1); errors.Is(err, platform.ErrNotFound) {
		t.Errorf("with an ended context: %v", err)
	}
}

// largeObject puts an object of many parts and 20 MiB twice.
func (s *suite) largeObject(t *testing.T) {
	parts := make([][]byte, 300)
	for i := range parts {
		parts[i] = bytes.Repeat([]byte{byte(i), byte(i >> 8), 7}, (20<<20)/300/3)
	}
	want := slices.Concat(parts...)
	for range 2 {
		s.put(t, "c1/large", parts...)
		if got := s.get(t, "c1/large", 0, -1); !bytes.Equal(got, want) {
			t.Fatalf("%d bytes read are not the %d put", len(got), len(want))
		}
	}
	if got := s.get(t, "c1/large", 17<<20, 1<<20); !bytes.Equal(got, want[17<<20:18<<20]) {
		t.Error("a range differs")
	}
}

// lists checks that a bucket lists by prefix, in the order of bytes.
func (s *suite) lists(t *testing.T) {
	names := []string{"ls/p00001/c-2", "ls/p00001/c-1", "ls/p00002/c-1", "ls/p00001/r-1", "ls/p00001-x", "lsx/p00001/c-3"}
	for _, n := range names {
		s.put(t, n, []byte(n))
	}
	var got []string
	for it := s.p.Bucket.List(&blob.ListOptions{Prefix: "ls/p00001/"}); ; {
		o, err := it.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if o.Size != int64(len(o.Key)) {
			t.Errorf("%s has %d bytes", o.Key, o.Size)
		}
		got = append(got, o.Key)
	}
	if want := []string{"ls/p00001/c-1", "ls/p00001/c-2", "ls/p00001/r-1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// aborts checks that a canceled write leaves no object.
func (s *suite) aborts(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w, err := s.p.Bucket.NewWriter(ctx, "c1/aborted", &blob.WriterOptions{ContentType: "text/plain"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(bytes.Repeat([]byte("half"), 1<<18)); err != nil {
		t.Fatal(err)
	}
	cancel() // before Close: that would complete it
	if err := w.Close(); err == nil {
		t.Error("an aborted write succeeded")
	}
	if err := s.p.PutObject(ctx, "c1/ended", []byte("x")); err == nil {
		t.Error("a put with an ended context succeeded")
	}
	for _, name := range []string{"c1/aborted", "c1/ended"} {
		if _, err := s.p.GetObject(t.Context(), name, 0, -1); !errors.Is(err, platform.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
