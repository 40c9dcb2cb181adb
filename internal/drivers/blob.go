package drivers

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/platform"
)

// openBucket opens the bucket in a folder. It deletes what writers left when their process died, so a
// listing shows unfinished objects only while they are written: as keys that end in ".tmp".
func openBucket(root string) (*blob.Bucket, error) {
	err := makeDir(root)
	if err == nil {
		err = removeUnfinished(root)
	}
	if err != nil {
		return nil, fmt.Errorf("open blobs: %w", err)
	}
	// The temporary file lies beside its object: another folder might be on another file system, and
	// a rename would fail.
	b, err := fileblob.OpenBucket(root, &fileblob.Options{NoTempDir: true, Metadata: fileblob.MetadataDontWrite})
	if err != nil {
		return nil, fmt.Errorf("open blobs: %w", err)
	}
	return b, nil
}

// syncObjects makes objects durable, together with the folders that they are in. fileblob renames
// objects into place but syncs nothing, so this comes before a record may name them. A missing
// object is an error.
func (s *store) syncObjects(keys []string) error {
	root, err := filepath.Abs(filepath.Join(s.dir, naming.ObjectsFolder))
	if err != nil {
		return err
	}
	var dirs []string
	for _, key := range keys {
		path, err := (&platform.Platform{Bucket: s.bucket}).File(context.Background(), key)
		if err == nil {
			err = syncPath(path)
		}
		if err != nil {
			return fmt.Errorf("sync blob %s: %w", key, err)
		}
		for d := filepath.Dir(path); len(d) >= len(root); d = filepath.Dir(d) {
			dirs = append(dirs, d)
		}
	}
	// New folders are not known. Syncing an unchanged folder costs little.
	slices.Sort(dirs)
	for _, d := range slices.Compact(dirs) {
		if err := syncPath(d); err != nil {
			return fmt.Errorf("sync blobs: %w", err)
		}
	}
	return nil
}

// removeUnfinished deletes the files that a dead process was still writing.
// fileblob calls them key.<hexadecimal nanoseconds>.tmp.
func removeUnfinished(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !naming.Unfinished(d.Name()) {
			return err
		}
		return os.Remove(path)
	})
}
