package view

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"gocloud.dev/blob/fileblob"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/control"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/platform"
)

// folderStore is the Store of a folder that this process does not own. If another process owns
// the folder, that process returns the records. Otherwise all records are read at once, and
// again when the folder has changed.
type folderStore struct {
	engine.Store
	dir   string
	owner *control.Socket

	mu       sync.Mutex
	snapshot map[string][]byte // nil while a process owns the folder
	written  time.Time         // last write of the records when snapshot was read
}

// ErrNoFolder means that a folder contains no crawl.
var ErrNoFolder = errors.New("the folder holds no crawl")

// openFolder opens a folder for reading, and creates nothing but the folder of objects.
func openFolder(ctx context.Context, dir string) (*folderStore, error) {
	if err := drivers.CheckFolder(dir); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, naming.DatabaseFile)); errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoFolder
	} else if err != nil {
		return nil, err
	}
	s := &folderStore{dir: dir, owner: control.Dial(dir)}
	if err := s.findOwner(ctx); err != nil {
		return nil, err
	}
	root := filepath.Join(dir, naming.ObjectsFolder)
	if err := os.MkdirAll(root, 0o755); err != nil { // a crawl that never stored anything
		return nil, err
	}
	b, err := fileblob.OpenBucket(root, &fileblob.Options{NoTempDir: true, Metadata: fileblob.MetadataDontWrite})
	if err != nil {
		return nil, fmt.Errorf("open blobs: %w", err)
	}
	s.Platform = &platform.Platform{Bucket: b, Exclusive: true}
	return s, nil
}

// findOwner finds out whether the folder has an owner that answers; if not, it reads all
// records. An owner that has just begun may not answer yet, and one that ends may still
// have the folder, so each is tried again. Records that were read before stay while a
// process uses the folder and does not answer.
func (s *folderStore) findOwner(ctx context.Context) (err error) {
	for range 4 { // each waits up to a second for the folder
		if _, err := s.owner.Live(ctx); err == nil {
			s.snapshot = nil
			return nil
		}
		var records map[string][]byte
		if records, err = drivers.Records(s.dir); err == nil {
			s.snapshot, s.written = records, s.lastWritten()
			return nil
		}
		if !errors.Is(err, drivers.ErrInUse) {
			return err
		}
		if s.snapshot != nil {
			return nil
		}
	}
	return err
}

// Records asks the owner for one record after another: they are on the same machine. If
// there was no owner and the folder has changed since, another process has begun, or has
// ended again: s looks again.
func (s *folderStore) Records(ctx context.Context, keys ...string) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.snapshot != nil && !s.lastWritten().Equal(s.written) {
		if err := s.findOwner(ctx); err != nil {
			return nil, fmt.Errorf("read the folder again: %w", err)
		}
	}
	values := make([][]byte, len(keys))
	for i, key := range keys {
		var err error
		if values[i], err = s.record(ctx, key); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// record returns nil if there is no such record.
func (s *folderStore) record(ctx context.Context, key string) ([]byte, error) {
	if s.snapshot == nil {
		v, err := s.owner.Record(ctx, key)
		if err == nil || ctx.Err() != nil {
			return v, err
		}
		if err := s.findOwner(ctx); err != nil {
			return nil, fmt.Errorf("read record %s: %w", key, err)
		}
		if s.snapshot == nil { // another owner, or the same one after all
			return s.owner.Record(ctx, key)
		}
	}
	return s.snapshot[key], nil
}

// lastWritten returns the time of the last write of a record; zero if it is not known.
func (s *folderStore) lastWritten() time.Time {
	info, err := os.Stat(filepath.Join(s.dir, naming.DatabaseFile))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// live returns the figures of the owner; nil if no process owns the folder.
func (s *folderStore) live(ctx context.Context) *control.Live {
	s.mu.Lock()
	owned := s.snapshot == nil
	s.mu.Unlock()
	if !owned {
		return nil
	}
	l, err := s.owner.Live(ctx)
	if err != nil {
		return nil
	}
	return l
}

func (s *folderStore) close() error {
	return s.Platform.Bucket.Close()
}
