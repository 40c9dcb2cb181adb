package view

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"

	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/control"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/platform"
	"github.com/orbweaver/orbweaver/internal/platform/local"
)

// Store is where a crawl's records and objects are. It is what package fsck asks for,
// and ranges of objects. Implementations are safe for concurrent use.
type Store interface {
	// Record reads a record of the key-value table; found is false if there is none.
	Record(ctx context.Context, key string) (value []byte, found bool, err error)
	// Object reads a whole object.
	Object(ctx context.Context, name string) ([]byte, error)
	// ObjectRange reads length bytes of an object from an offset.
	ObjectRange(ctx context.Context, name string, offset, length int64) ([]byte, error)
	// List yields the names of all objects that begin with prefix, in order.
	List(ctx context.Context, prefix string) iter.Seq2[string, error]
}

// bucket is the objects of a Store.
type bucket struct{ b *blob.Bucket }

func (s bucket) Object(ctx context.Context, name string) ([]byte, error) {
	data, err := s.b.ReadAll(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("read object %s: %w", name, err)
	}
	return data, nil
}

func (s bucket) ObjectRange(ctx context.Context, name string, offset, length int64) ([]byte, error) {
	r, err := s.b.NewRangeReader(ctx, name, offset, length, nil)
	if err != nil {
		return nil, fmt.Errorf("read object %s: %w", name, err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err == nil && int64(len(data)) != length {
		err = fmt.Errorf("%w: it ends early", wire.ErrDamaged)
	}
	if err != nil {
		return nil, fmt.Errorf("read object %s at %d: %w", name, offset, err)
	}
	return data, nil
}

// List leaves out what is being written: fileblob shows it, under names that end in
// ".tmp", which no object's does.
func (s bucket) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		objects := s.b.List(&blob.ListOptions{Prefix: prefix})
		for {
			o, err := objects.Next(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield("", fmt.Errorf("list objects: %w", err))
				return
			}
			if !unfinished(o.Key) && !yield(o.Key, nil) {
				return
			}
		}
	}
}

// unfinished reports whether a name is that of an object being written.
func unfinished(name string) bool { return strings.HasSuffix(name, ".tmp") }

// file returns the path of an object's file, if the bucket is of files.
func (s bucket) file(ctx context.Context, name string) (path string, err error) {
	r, err := s.b.NewRangeReader(ctx, name, 0, 0, &blob.ReaderOptions{
		BeforeRead: func(as func(any) bool) error { // fileblob alone knows how it spells a name
			var f *os.File
			if as(&f) {
				path = f.Name()
			}
			return nil
		},
	})
	if err != nil {
		return "", fmt.Errorf("open object %s: %w", name, err)
	}
	return path, r.Close()
}

// platformStore is the Store of an open platform.
type platformStore struct {
	bucket
	p *platform.Platform
}

// OfPlatform returns the store of a platform that the caller keeps open.
func OfPlatform(p *platform.Platform) Store { return platformStore{bucket{p.Bucket}, p} }

// Records reads records in one call; a value is nil where there is none.
func (s platformStore) Records(ctx context.Context, keys []string) ([][]byte, error) {
	recs, err := engine.ReadRecords(ctx, s.p, keys)
	if err != nil {
		return nil, fmt.Errorf("read %d records: %w", len(keys), err)
	}
	values := make([][]byte, len(recs))
	for i := range recs {
		if recs[i].Found {
			values[i] = recs[i].Value
		}
	}
	return values, nil
}

func (s platformStore) Record(ctx context.Context, key string) ([]byte, bool, error) {
	recs, err := engine.ReadRecords(ctx, s.p, []string{key})
	if err != nil {
		return nil, false, fmt.Errorf("read record %s: %w", key, err)
	}
	return recs[0].Value, recs[0].Found, nil
}

// folderStore is the Store of a folder that this process does not own. While another
// does, it is asked for records; if none does, or the owner has ended since,
// records are those of the moment they were first asked for.
type folderStore struct {
	bucket
	dir   string
	owner *control.Socket

	mu       sync.Mutex
	snapshot map[string]string // nil while there is an owner
	written  time.Time         // when the records were written last, as of snapshot
}

// ErrNoFolder says that a folder holds no crawl.
var ErrNoFolder = errors.New("the folder holds no crawl")

// openFolder opens a folder for reading, and creates nothing but the folder of objects.
func openFolder(ctx context.Context, dir string) (*folderStore, error) {
	if err := platform.CheckFolder(dir); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, local.FileName)); errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoFolder
	} else if err != nil {
		return nil, err
	}
	s := &folderStore{dir: dir, owner: control.Dial(dir)}
	if err := s.look(ctx); err != nil {
		s.owner.Close()
		return nil, err
	}
	root := filepath.Join(dir, local.BlobFolder)
	if err := os.MkdirAll(root, 0o755); err != nil { // a crawl that never stored anything
		return nil, err
	}
	b, err := fileblob.OpenBucket(root, &fileblob.Options{NoTempDir: true, Metadata: fileblob.MetadataDontWrite})
	if err != nil {
		return nil, fmt.Errorf("open blobs: %w", err)
	}
	s.b = b
	return s, nil
}

// look finds out whether the folder has an owner that answers; if it has none it
// reads all records. An owner that has just begun may not answer yet, and one that
// ends may not have given the folder back: each is tried again.
func (s *folderStore) look(ctx context.Context) (err error) {
	for range 4 { // each waits up to a second for the folder
		if s.owned(ctx) {
			return nil
		}
		var p *platform.Platform
		if p, err = platform.LocalCopy(s.dir); err == nil {
			return s.take(ctx, p)
		}
		if !errors.Is(err, local.ErrInUse) {
			return err
		}
	}
	return err
}

// owned reports whether a process owns the folder and answers.
func (s *folderStore) owned(ctx context.Context) bool {
	_, err := s.owner.Live(ctx)
	return err == nil
}

func (s *folderStore) take(ctx context.Context, p *platform.Platform) (err error) {
	defer func() {
		err = errors.Join(err, p.Table.Close(), p.Close())
		s.written = s.lastWritten()
	}()
	records := map[string]string{}
	docs := p.Table.Query().Get(ctx)
	defer docs.Stop()
	for {
		var d engine.Document
		err := docs.Next(ctx, &d)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read records: %w", err)
		}
		records[d.Key] = d.Value
	}
	s.snapshot = records
	return nil
}

func (s *folderStore) Record(ctx context.Context, key string) ([]byte, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.snapshot == nil {
		v, found, err := s.owner.Record(ctx, key)
		if err == nil || ctx.Err() != nil {
			return v, found, err
		}
		if err := s.look(ctx); err != nil {
			return nil, false, fmt.Errorf("read record %s: %w", key, err)
		}
		if s.snapshot == nil { // another owner, or the same one after all
			return s.owner.Record(ctx, key)
		}
	}
	v, found := s.snapshot[key]
	return []byte(v), found, nil
}

// lastWritten is when a record was written last; the zero time if that is not known.
func (s *folderStore) lastWritten() time.Time {
	info, err := os.Stat(filepath.Join(s.dir, local.FileName))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// Renew is for those who look for long: an owner that has begun since the records were read is
// asked from now on, and what one has written that has ended is read. While the folder is in use by a
// process that does not answer, all stays as it is.
func (s *folderStore) Renew(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.snapshot == nil || s.lastWritten().Equal(s.written) {
		return nil
	}
	if s.owned(ctx) {
		s.snapshot = nil
		return nil
	}
	p, err := platform.LocalCopy(s.dir)
	if errors.Is(err, local.ErrInUse) {
		return nil
	}
	if err == nil {
		err = s.take(ctx, p)
	}
	if err != nil {
		return fmt.Errorf("read the folder again: %w", err)
	}
	return nil
}

// live returns the owner's figures, nil if there is no owner.
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
	s.owner.Close()
	return s.b.Close()
}
