package drivers

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/orbweaver/orbweaver/blobschema/naming"
)

func TestBucket(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		ctx := t.Context()
		b := s.bucket
		names := []string{"a", "crawl/1/warc/x.warc.gz", "crawl/1/odd ..//name"}
		for _, name := range names {
			must(t, b.WriteAll(ctx, name, []byte(name), &blob.WriterOptions{IfNotExist: true}))
		}
		wantCode(t, "again", b.WriteAll(ctx, "a", nil, &blob.WriterOptions{IfNotExist: true}), gcerrors.FailedPrecondition)
		if s.file != nil {
			must(t, s.syncObjects(names))
			must(t, s.syncObjects(nil))
			wantCode(t, "sync of nothing", s.syncObjects([]string{"a", "nope"}), gcerrors.NotFound)
		}
	})
}

func TestUnfinishedBlobsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	s, err := openStore(dir, options{})
	must(t, err)
	w, err := s.bucket.NewWriter(t.Context(), "crawl/unfinished", nil)
	must(t, err)
	_, err = w.Write(make([]byte, 1<<20))
	must(t, err)
	left, err := filepath.Glob(filepath.Join(dir, naming.ObjectsFolder, "crawl", "*"))
	must(t, err)
	if len(left) != 1 || !naming.Unfinished(filepath.Base(left[0])) {
		t.Fatalf("files while writing: %q", left)
	}
	must(t, os.WriteFile(filepath.Join(dir, naming.ObjectsFolder, "crawl", "notes.tmp"), nil, 0o600))
	must(t, s.Close()) // the writer is never closed, as if killed

	b := openDir(t, dir, options{}).bucket
	var got []string
	for it := b.List(nil); ; {
		o, err := it.Next(t.Context())
		if err == io.EOF {
			break
		}
		must(t, err)
		got = append(got, o.Key)
	}
	if diff := cmp.Diff([]string{"crawl/notes.tmp"}, got); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
}

// eachStore runs f on a store of each kind.
func eachStore(t *testing.T, f func(t *testing.T, s *store)) {
	for name, open := range stores() {
		t.Run(name, func(t *testing.T) { f(t, open(t, options{})) })
	}
}

func wantCode(t *testing.T, what string, err error, want gcerrors.ErrorCode) {
	t.Helper()
	if got := gcerrors.Code(err); got != want {
		t.Errorf("%s: %v: %v, want %v", what, err, got, want)
	}
}
