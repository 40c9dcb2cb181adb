package bucket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"gocloud.dev/blob/fileblob"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/platform"
)

// Folder opens a bucket that consists of the files below a folder, and creates the folder if it does not exist.
// Each object is written to a temporary file beside it and then renamed.
func Folder(root string) (*Bucket, error) {
	root, err := filepath.Abs(root)
	if err == nil {
		err = MakeDir(root)
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
	objects := &platform.Platform{Bucket: b}
	return &Bucket{Bucket: b, Sync: func(names []string) error { return syncObjects(root, objects, names) }}, nil
}

// syncObjects makes objects durable, together with the folders that they are in. fileblob renames
// objects into place but syncs nothing, so this comes before a record may name them. A missing
// object is an error.
func syncObjects(root string, objects *platform.Platform, names []string) error {
	var dirs []string
	for _, name := range names {
		path, err := objects.File(context.Background(), name)
		if err == nil {
			err = SyncPath(path)
		}
		if err != nil {
			return fmt.Errorf("sync blob %s: %w", name, err)
		}
		for d := filepath.Dir(path); len(d) >= len(root); d = filepath.Dir(d) {
			dirs = append(dirs, d)
		}
	}
	// New folders are not known. Syncing an unchanged folder costs little.
	slices.Sort(dirs)
	for _, d := range slices.Compact(dirs) {
		if err := SyncPath(d); err != nil {
			return fmt.Errorf("sync blobs: %w", err)
		}
	}
	return nil
}

// RemoveUnfinished deletes the files that a dead process was still writing, which a listing shows as keys that end in
// ".tmp": fileblob calls them key.<hexadecimal nanoseconds>.tmp. Only the single owner of a folder may call it.
func RemoveUnfinished(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !naming.Unfinished(d.Name()) {
			return err
		}
		return os.Remove(path)
	})
}

// MakeDir creates dir and its missing parents, and makes their names durable.
func MakeDir(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	var above []string
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil || d == filepath.Dir(d) {
			break
		}
		above = append(above, filepath.Dir(d))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, d := range above {
		if err := SyncPath(d); err != nil {
			return err
		}
	}
	return nil
}

// SyncPath makes a file durable, or the names in a folder.
func SyncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
