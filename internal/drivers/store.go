package drivers

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"gocloud.dev/blob/memblob"
	"gocloud.dev/gcerrors"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/drivers/bucket"
	"github.com/orbweaver/orbweaver/internal/drivers/embedded"
	"github.com/orbweaver/orbweaver/platform"
)

// Errors of a folder.
var (
	ErrInUse   = errors.New("another process owns the folder")
	ErrVersion = errors.New("the folder was written by another version, or another program")
	ErrClosed  = errors.New("the store is closed")
	// ErrDamaged and ErrStopped match [platform.ErrStopped].
	ErrDamaged error = stopped("the database is damaged")
	// ErrStopped says that a transaction has failed. Every later call returns it.
	ErrStopped error = stopped("the database has stopped")
)

// stopped is an error after which the store writes nothing.
type stopped string

func (s stopped) Error() string        { return string(s) }
func (s stopped) Is(target error) bool { return target == platform.ErrStopped }

// options configures a store. The zero value is ready to use.
type options struct {
	meter platform.Meter // nil for none
	// lock bounds the wait for another process that owns the folder; default one second.
	lock time.Duration
	// lazySync bounds how long an acknowledgement may stay in memory only; default 100 ms.
	lazySync time.Duration
}

func (o *options) lockWait() time.Duration { return cmp.Or(o.lock, time.Second) }

// store is the queues, the table and the bucket of a folder, or the same in memory. All methods are
// safe for concurrent use.
type store struct {
	dir    string // "" in memory
	meter  platform.Meter
	lazy   time.Duration
	file   *file // nil in memory
	bucket *bucket.Bucket
	stop   chan struct{} // closed when the store closes or fails

	writing sync.Mutex    // held during a transaction
	durable atomic.Uint64 // changes up to this number are in the file

	mu      sync.Mutex
	log     *embedded.Log // nil in memory
	queues  *embedded.Queues
	table   *embedded.Table
	waiting map[string]chan struct{} // by queue: closed when something may have become visible
	changes uint64                   // number of changes that were logged
	tables  uint64                   // number of the last change of the table
	timer   *time.Timer              // writes what is logged; nil while nothing waits for it
	err     error                    // why the store stopped: closed or broken
	broken  error                    // the failed transaction, if one failed
}

// openStore opens a folder; see [Local].
func openStore(dir string, opts options) (*store, error) {
	if err := CheckFolder(dir); err != nil {
		return nil, err
	}
	s := newStore(opts, embedded.NewLog())
	s.dir = dir
	if err := s.openFolder(opts.lockWait()); err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	return s, nil
}

// openMemory opens an empty store without a folder.
func openMemory(opts options) *store {
	s := newStore(opts, nil)
	s.bucket = &bucket.Bucket{Bucket: memblob.OpenBucket(nil)}
	return s
}

func newStore(opts options, log *embedded.Log) *store {
	s := &store{
		meter:   opts.meter,
		lazy:    cmp.Or(opts.lazySync, 100*time.Millisecond),
		stop:    make(chan struct{}),
		log:     log,
		queues:  embedded.NewQueues(log),
		table:   embedded.NewTable(log),
		waiting: map[string]chan struct{}{},
	}
	if s.meter == nil {
		s.meter = platform.NoMeter{}
	}
	return s
}

func (s *store) openFolder(wait time.Duration) (err error) {
	if err := bucket.MakeDir(s.dir); err != nil {
		return err
	}
	s.file, err = openFile(filepath.Join(s.dir, naming.DatabaseFile), wait, func(m embedded.Mutation) error {
		return embedded.Load(s.queues, s.table, m)
	})
	if err != nil {
		return err
	}
	err = bucket.SyncPath(s.dir) // the name of a new file
	if err == nil {
		err = checkWhole(s.dir, s.table)
	}
	if err == nil {
		err = s.openObjects()
	}
	if err != nil {
		return errors.Join(err, s.file.close())
	}
	return nil
}

// openObjects opens the bucket of the folder without the objects that a dead process left unfinished.
func (s *store) openObjects() (err error) {
	root := filepath.Join(s.dir, naming.ObjectsFolder)
	if s.bucket, err = bucket.Folder(root); err != nil {
		return err
	}
	if err := bucket.RemoveUnfinished(root); err != nil {
		return errors.Join(fmt.Errorf("open blobs: %w", err), s.bucket.Close())
	}
	return nil
}

// Close makes everything durable and releases the folder. Calls under way and later ones return
// [ErrClosed]. Closing again does nothing.
func (s *store) Close() error {
	s.mu.Lock()
	if errors.Is(s.err, ErrClosed) {
		s.mu.Unlock()
		return nil
	}
	if s.err == nil {
		close(s.stop)
	}
	s.err = ErrClosed
	last := s.changes
	s.mu.Unlock()

	// Nothing is logged any more.
	err := s.flush(last)
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.file != nil {
		err = errors.Join(err, s.file.close())
	}
	if err = errors.Join(err, s.bucket.Close()); err != nil {
		return fmt.Errorf("close %s: %w", s.dir, err)
	}
	return nil
}

// lock locks s.mu, unless the store has stopped.
func (s *store) lock() error {
	s.mu.Lock()
	if err := s.err; err != nil {
		s.mu.Unlock()
		return err
	}
	return nil
}

// change returns the number of a change that was just logged. s.mu is held.
func (s *store) change() uint64 {
	s.changes++
	return s.changes
}

// unlock unlocks s.mu after a change that nobody waits for, such as an acknowledgement. The change is durable
// within s.lazy.
func (s *store) unlock() {
	if s.log.Len() > 0 && s.timer == nil {
		n := s.change()
		s.timer = time.AfterFunc(s.lazy, func() { _ = s.flush(n) }) // later calls return its error
	}
	s.mu.Unlock()
}

// flush makes a change and all earlier ones durable. Calls that run at the same time share transactions: each writes
// what all of them have logged.
func (s *store) flush(change uint64) error {
	if s.file == nil || change <= s.durable.Load() {
		return nil
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if change <= s.durable.Load() { // by the call before
		return nil
	}
	s.mu.Lock()
	last, mutations, err := s.changes, s.log.Drain(), s.broken
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	s.mu.Unlock()
	if err == nil && len(mutations) > 0 {
		// A crash here leaves the previous transaction; no later change was confirmed.
		if err = s.file.apply(mutations); err != nil {
			err = fmt.Errorf("%w: write %s: %w", ErrStopped, s.dir, err)
			s.fail(err)
		}
	}
	if err == nil {
		s.durable.Store(last)
	}
	return err
}

// fail stops the store, because memory is ahead of the file.
func (s *store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = err
	if s.err == nil {
		s.err = err
		close(s.stop)
	}
}

// errorCode maps errors of queues to those of gocloud.
func errorCode(err error) gcerrors.ErrorCode {
	if errors.Is(err, embedded.ErrNoQueue) {
		return gcerrors.NotFound
	}
	return gcerrors.Internal
}
