package drivers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"
	"gocloud.dev/gcerrors"

	"github.com/orbweaver/orbweaver/blobschema/naming"
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

// stopped is an error after which nothing is written.
type stopped string

func (s stopped) Error() string        { return string(s) }
func (s stopped) Is(target error) bool { return target == platform.ErrStopped }

// options configures a store. The zero value is ready to use.
type options struct {
	meter platform.Meter // nil for none
	// lock bounds the wait for a process that has the folder; default one second.
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
	file   *file // nil in memory; only the committer writes
	bucket *blob.Bucket

	urgent  chan struct{} // capacity 1: somebody waits for the next commit
	unhasty chan struct{} // capacity 1: something is logged, nobody waits
	stop    chan struct{} // closed when the store closes or fails
	stopped chan struct{} // closed when the committer has ended

	mu      sync.Mutex
	log     *embedded.Log // nil in memory
	queues  *embedded.Queues
	table   *embedded.Table
	waiting map[string]chan struct{} // by queue: closed when something may have become visible
	next    *commit                  // what is logged now will be part of it
	tables  *commit                  // the one with the last write of the table; nil for none
	err     error                    // why the store stopped: closed or broken
	broken  error                    // the failed transaction, if one failed
}

// commit is one transaction: done is closed once it is durable or has failed.
type commit struct {
	done chan struct{}
	err  error // before done is closed: only the committer's
}

func newCommit() *commit { return &commit{done: make(chan struct{})} }

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
	go s.run()
	return s, nil
}

// openMemory opens an empty store without a folder.
func openMemory(opts options) *store {
	s := newStore(opts, nil)
	s.bucket = memblob.OpenBucket(nil)
	close(s.stopped)
	return s
}

func newStore(opts options, log *embedded.Log) *store {
	s := &store{
		meter:   opts.meter,
		lazy:    cmp.Or(opts.lazySync, 100*time.Millisecond),
		urgent:  make(chan struct{}, 1),
		unhasty: make(chan struct{}, 1),
		stop:    make(chan struct{}),
		stopped: make(chan struct{}),
		log:     log,
		queues:  embedded.NewQueues(log),
		table:   embedded.NewTable(log),
		waiting: map[string]chan struct{}{},
		next:    newCommit(),
	}
	if s.meter == nil {
		s.meter = platform.NoMeter{}
	}
	return s
}

func (s *store) openFolder(wait time.Duration) (err error) {
	if err := makeDir(s.dir); err != nil {
		return err
	}
	s.file, err = openFile(filepath.Join(s.dir, naming.DatabaseFile), wait, func(m embedded.Mutation) error {
		return embedded.Load(s.queues, s.table, m)
	})
	if err != nil {
		return err
	}
	err = syncDir(s.dir) // the name of a new file
	if err == nil {
		err = checkWhole(s.dir, s.table)
	}
	if err == nil {
		s.bucket, err = openBucket(filepath.Join(s.dir, naming.ObjectsFolder))
	}
	if err != nil {
		return errors.Join(err, s.file.close())
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
	s.mu.Unlock()
	<-s.stopped

	// Nothing logs any more, and the committer, which alone sets broken, is gone.
	var errs []error
	if s.file != nil {
		if s.broken != nil {
			errs = append(errs, s.broken)
		} else {
			errs = append(errs, s.commit())
		}
		errs = append(errs, s.file.close())
	}
	errs = append(errs, s.bucket.Close())
	if err := errors.Join(errs...); err != nil {
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

// soon requests a commit without delay and returns it. It will hold everything logged by now. In
// memory it is nil. s.mu is held.
func (s *store) soon() *commit {
	if s.file == nil {
		return nil
	}
	select {
	case s.urgent <- struct{}{}:
	default:
	}
	return s.next
}

// later requests a commit within s.lazy if anything is logged. s.mu is held.
func (s *store) later() {
	if s.log.Len() == 0 {
		return
	}
	select {
	case s.unhasty <- struct{}{}:
	default:
	}
}

// wait waits until c is durable.
func (s *store) wait(ctx context.Context, c *commit) error {
	if c == nil {
		return nil
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run is the committer: one transaction after the other, each with all that was
// logged while the one before was written.
func (s *store) run() {
	defer close(s.stopped)
	timer := time.NewTimer(s.lazy)
	defer timer.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-s.urgent:
		case <-s.unhasty:
			timer.Reset(s.lazy)
			select {
			case <-s.stop:
				return
			case <-s.urgent:
			case <-timer.C:
			}
		}
		if s.commit() != nil {
			return
		}
	}
}

// commit makes durable what is logged. If that fails the store stops, because
// memory is then ahead of the file.
func (s *store) commit() error {
	s.mu.Lock()
	c, mutations := s.next, s.log.Drain()
	s.next = newCommit()
	s.mu.Unlock()
	if len(mutations) > 0 {
		// A crash in here leaves the transaction before this one: nobody was told
		// of anything later.
		if err := s.file.apply(mutations); err != nil {
			c.err = fmt.Errorf("%w: write %s: %w", ErrStopped, s.dir, err)
			s.fail(c.err)
		}
	}
	close(c.done)
	return c.err
}

func (s *store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = err
	// Whoever logged since the drain waits for the next commit, and none will come.
	s.next.err = err
	close(s.next.done)
	if s.err == nil {
		s.err = err
		close(s.stop)
	}
}

// errorCode maps errors to those of gocloud.
func errorCode(err error) gcerrors.ErrorCode {
	switch {
	case errors.Is(err, embedded.ErrNoQueue):
		return gcerrors.NotFound
	case errors.Is(err, ErrClosed):
		return gcerrors.FailedPrecondition
	case errors.Is(err, errBadMessage):
		return gcerrors.InvalidArgument
	case errors.Is(err, context.Canceled):
		return gcerrors.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return gcerrors.DeadlineExceeded
	}
	return gcerrors.Internal
}

// makeDir creates dir and what is missing above it, and makes their names durable.
func makeDir(dir string) error {
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
		if err := syncDir(d); err != nil {
			return err
		}
	}
	return nil
}

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
