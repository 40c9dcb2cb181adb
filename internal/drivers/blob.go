package drivers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/memblob"

	"github.com/orbweaver/orbweaver/blobschema/naming"
)

// Bucket returns the Store's blobs: the same bucket each time, because fileblob
// keeps its promise of IfNotExist only within one. The Store closes it.
//
// What a write leaves when the process dies is removed when the next process gets
// the bucket, so unfinished objects show up in no listing but those made while
// they are written: there as keys that end in ".tmp", to be skipped.
func (s *Store) Bucket() (*blob.Bucket, error) {
	if err := s.lock(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if s.bucket != nil {
		return s.bucket, nil
	}
	if s.file == nil {
		s.bucket = memblob.OpenBucket(nil)
		return s.bucket, nil
	}
	root := filepath.Join(s.dir, naming.ObjectsFolder)
	err := makeDir(root)
	if err == nil {
		err = removeUnfinished(root)
	}
	if err == nil {
		// The temporary file lies beside its object: elsewhere might be another
		// file system, to which nothing can be renamed.
		s.bucket, err = fileblob.OpenBucket(root, &fileblob.Options{
			NoTempDir: true, Metadata: fileblob.MetadataDontWrite,
		})
	}
	if err != nil {
		return nil, fmt.Errorf("open blobs: %w", err)
	}
	return s.bucket, nil
}

// SyncBlobs makes the named objects durable, with the folders they are in up to
// the bucket's own. fileblob renames objects into place but syncs nothing, so
// this comes before anything durable may name them. A missing object is an error.
func (s *Store) SyncBlobs(keys []string) error {
	if s.file == nil {
		return nil
	}
	bucket, err := s.Bucket()
	if err != nil {
		return err
	}
	root, err := filepath.Abs(filepath.Join(s.dir, naming.ObjectsFolder))
	if err != nil {
		return err
	}
	var dirs []string
	for _, key := range keys {
		path, err := syncBlob(bucket, key)
		if err != nil {
			return fmt.Errorf("sync blob %s: %w", key, err)
		}
		for d := filepath.Dir(path); len(d) >= len(root); d = filepath.Dir(d) {
			dirs = append(dirs, d)
		}
	}
	// Which folders are new is not known, so all on the way are synced: it costs
	// little if nothing changed.
	slices.Sort(dirs)
	for _, d := range slices.Compact(dirs) {
		if err := syncDir(d); err != nil {
			return fmt.Errorf("sync blobs: %w", err)
		}
	}
	return nil
}

// syncBlob syncs an object's file and returns its path.
func syncBlob(bucket *blob.Bucket, key string) (path string, err error) {
	r, err := bucket.NewRangeReader(context.Background(), key, 0, 0, &blob.ReaderOptions{
		// fileblob alone knows how it spells a key as a path, so it opens the file.
		BeforeRead: func(as func(any) bool) error {
			var f *os.File
			if !as(&f) {
				return errors.New("not a file")
			}
			path = f.Name()
			return f.Sync()
		},
	})
	if err != nil {
		return "", err
	}
	return path, r.Close()
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
