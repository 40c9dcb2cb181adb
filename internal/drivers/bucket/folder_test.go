package bucket

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

func TestFolder(t *testing.T) {
	ctx := t.Context()
	b, err := Open(ctx, "file://"+filepath.ToSlash(filepath.Join(t.TempDir(), "new", "blobs")))
	must(t, err)
	names := []string{"a", "crawl/1/warc/x.warc.gz", "crawl/1/odd ..//name"}
	for _, name := range names {
		must(t, b.WriteAll(ctx, name, []byte(name), &blob.WriterOptions{IfNotExist: true}))
	}
	wantCode(t, "again", b.WriteAll(ctx, "a", nil, &blob.WriterOptions{IfNotExist: true}), gcerrors.FailedPrecondition)
	must(t, b.Sync(names))
	must(t, b.Sync(nil))
	wantCode(t, "sync of nothing", b.Sync([]string{"a", "nope"}), gcerrors.NotFound)
	must(t, b.Close())
}

func TestUnfinishedObjectsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	b, err := Folder(dir)
	must(t, err)
	w, err := b.NewWriter(t.Context(), "crawl/unfinished", nil)
	must(t, err)
	_, err = w.Write(make([]byte, 1<<20))
	must(t, err)
	left, err := filepath.Glob(filepath.Join(dir, "crawl", "*"))
	must(t, err)
	if len(left) != 1 || !naming.Unfinished(filepath.Base(left[0])) {
		t.Fatalf("files while writing: %q", left)
	}
	must(t, os.WriteFile(filepath.Join(dir, "crawl", "notes.tmp"), nil, 0o600))
	must(t, b.Close()) // the writer is never closed, as if killed

	must(t, RemoveUnfinished(dir))
	b, err = Folder(dir)
	must(t, err)
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

func TestBadURLs(t *testing.T) {
	for _, url := range []string{"", "folder", "file://host/path", "file:relative", "s3://", "s3://b/path", "s3://b?prefix=x", "s3://b?region=", "gs://b", "%"} {
		if _, err := Open(t.Context(), url); err == nil {
			t.Errorf("%q opens", url)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t *testing.T, what string, err error, want gcerrors.ErrorCode) {
	t.Helper()
	if got := gcerrors.Code(err); got != want {
		t.Errorf("%s: %v: %v, want %v", what, err, got, want)
	}
}
