package drivers

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/orbweaver/orbweaver/internal/drivers/embedded"
)

// The bucket and the key under which the file names its format.
const (
	bucketAbout = "about"
	keyFormat   = "format"
	fileFormat  = "orbweaver local 1"
)

// file is a bbolt file with one bucket for each map that the mutations of package embedded change. Only one
// process can have it open.
type file struct{ db *bbolt.DB }

// openFile opens or creates the file, waits at most wait for its lock, and passes each entry to load.
// The slices are valid only during the call of load.
func openFile(path string, wait time.Duration, load func(embedded.Mutation) error) (*file, error) {
	return open(path, &bbolt.Options{Timeout: wait}, load)
}

// readFile reads an existing file without changing it. Several readers share the lock.
func readFile(path string, wait time.Duration, load func(embedded.Mutation) error) error {
	if info, err := os.Stat(path); err != nil || info.Size() == 0 { // a crash before the first transaction
		return err
	}
	f, err := open(path, &bbolt.Options{Timeout: wait, ReadOnly: true}, load)
	if errors.Is(err, errFresh) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.close()
}

// errFresh says that a file has no buckets yet.
var errFresh = errors.New("the file is empty")

func open(path string, how *bbolt.Options, load func(embedded.Mutation) error) (f *file, err error) {
	var raw *os.File
	err = guard(func() error {
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{
			Timeout:      how.Timeout,
			ReadOnly:     how.ReadOnly,
			FreelistType: bbolt.FreelistMapType,
			NoStatistics: true,
			// Readers need the list too, because consistent checks it.
			PreLoadFreelist: true,
			OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
				var err error
				raw, err = os.OpenFile(name, flag, mode)
				return raw, err
			},
		})
		if err != nil {
			return openError(err)
		}
		f = &file{db}
		if err = f.prepare(); err == nil {
			err = f.whole(raw)
		}
		if err == nil {
			err = f.load(load)
		}
		if err == nil {
			err = f.consistent()
		}
		if err != nil {
			return errors.Join(err, db.Close())
		}
		return nil
	})
	if err != nil && raw != nil {
		// After a panic inside bbolt its locks may be held, so it cannot be closed, and its mapping of the file
		// stays until the process ends. The mapping also keeps the file lock unless that is released
		// explicitly.
		unlock(raw)
		_ = raw.Close()
	}
	return f, err
}

// guard runs f and turns a panic into [ErrDamaged], because bbolt checks little and panics on damage. It also
// catches the memory fault of reading a mapped page that the file does not have.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch p := recover().(type) {
		case nil:
		case runtime.Error: // its text names an address in memory
			err = fmt.Errorf("%w: its pages do not fit together", ErrDamaged)
		default:
			err = fmt.Errorf("%w: its pages do not fit together: %v", ErrDamaged, p)
		}
	}()
	return f()
}

func openError(err error) error {
	var errno syscall.Errno
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return ErrInUse
	case errors.Is(err, berrors.ErrVersionMismatch):
		return fmt.Errorf("%w: %w", ErrVersion, err)
	case errors.As(err, &errno):
		return err // the file system's
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// prepare checks the format of the file, and creates the buckets of a new one.
func (f *file) prepare() error {
	var format string
	fresh := true
	err := f.db.View(func(tx *bbolt.Tx) error {
		if b := tx.Bucket([]byte(bucketAbout)); b != nil {
			format = string(b.Get([]byte(keyFormat)))
		}
		return tx.ForEach(func([]byte, *bbolt.Bucket) error { fresh = false; return nil })
	})
	switch {
	case err != nil:
		return err
	case format == fileFormat:
		return nil
	case !fresh:
		return fmt.Errorf("%w: it says %.40q, want %q", ErrVersion, format, fileFormat)
	case f.db.IsReadOnly():
		return errFresh
	}
	// A crash before this transaction leaves an empty file, which counts as new when it is opened again.
	return f.db.Update(func(tx *bbolt.Tx) error {
		for _, name := range embedded.Buckets() {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		about, err := tx.CreateBucket([]byte(bucketAbout))
		if err != nil {
			return err
		}
		return about.Put([]byte(keyFormat), []byte(fileFormat))
	})
}

// whole checks that the file is as long as its header says. bbolt maps missing pages too, and reading one is a
// memory fault.
func (f *file) whole(raw *os.File) error {
	info, err := raw.Stat()
	if err != nil {
		return err
	}
	return f.db.View(func(tx *bbolt.Tx) error {
		if has, needs := info.Size(), tx.Size(); has < needs {
			return fmt.Errorf("%w: it was cut: it has %d bytes and needs %d", ErrDamaged, has, needs)
		}
		return nil
	})
}

// consistent checks that each page is either used once or free: a write would destroy data if a damaged list of
// free pages offered its page. It runs after load, because bbolt checks in its own goroutine, where a memory
// fault cannot be caught: load has read the same pages. A page that is neither used nor free is allowed,
// because it only wastes space.
func (f *file) consistent() (first error) {
	return f.db.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() { // must be read to its end
			if first == nil && !strings.HasSuffix(err.Error(), "unreachable unfreed") {
				first = fmt.Errorf("%w: %w", ErrDamaged, err)
			}
		}
		return first
	})
}

func (f *file) load(load func(embedded.Mutation) error) error {
	return f.db.View(func(tx *bbolt.Tx) error {
		for _, name := range embedded.Buckets() {
			b := tx.Bucket([]byte(name))
			if b == nil {
				return fmt.Errorf("%w: no bucket %s", ErrDamaged, name)
			}
			err := b.ForEach(func(k, v []byte) error {
				if v == nil {
					return fmt.Errorf("%w: a bucket within %s", ErrDamaged, name)
				}
				if err := load(embedded.Mutation{Bucket: name, Key: k, Value: v}); err != nil {
					return fmt.Errorf("%w: %w", ErrDamaged, err)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// apply makes all of ms durable, or nothing.
func (f *file) apply(ms []embedded.Mutation) error {
	return guard(func() error {
		return f.db.Update(func(tx *bbolt.Tx) error {
			for _, m := range ms {
				b := tx.Bucket([]byte(m.Bucket))
				var err error
				if m.Value == nil {
					err = b.Delete(m.Key)
				} else {
					err = b.Put(m.Key, m.Value)
				}
				if err != nil {
					return fmt.Errorf("%s %.100q: %w", m.Bucket, m.Key, err)
				}
			}
			return nil
		})
	})
}

func (f *file) close() error { return f.db.Close() }
