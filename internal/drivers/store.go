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
	"gocloud.dev/gcerrors"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/drivers/embedded"
	"github.com/orbweaver/orbweaver/platform"
)

// What opening and using a [Store] may end with, beside the errors of package
// embedded.
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

// errArgument marks what the caller got wrong.
var errArgument = errors.New("invalid argument")

// The operations that a [Meter] is told of.
const (
	OpSend    = "send"
	OpReceive = "receive"
	OpAck     = "ack"
	OpNack    = "nack"
)

// Meter is told of every call in the units that clouds bill. It is called by many
// goroutines at once, and should be quick.
type Meter interface {
	// QueueRequest is one call of a queue, with up to ten messages of bytes
	// payload together, bodies and attributes. Clouds bill one request per
	// started 64 KB, and at least one: a receive that finds nothing counts.
	QueueRequest(op string, bytes int)
	// KVRead is a strongly consistent read of bytes: of one document, or of all
	// that a query looked at. Billed per started 4 KB, at least one unit.
	KVRead(bytes int)
	// KVWrite is a write, also a refused one, of a document that is bytes long
	// before or after it, whichever is more. Billed per started 1 KB, at least
	// one unit. A document in an atomic list of writes counts twice, as DynamoDB
	// bills it.
	KVWrite(bytes int)
}

// Options configures a [Store]. The zero value is ready to use.
type Options struct {
	// Meter is told of every call; nil for none.
	Meter Meter
	// LockWait is how long Open waits for another process to let go of the
	// folder. 0 stands for one second.
	LockWait time.Duration
	// LazySync bounds how long an acknowledgement may stay in memory only. 0
	// stands for 100 ms.
	LazySync time.Duration
}

func (o *Options) lockWait() time.Duration { return cmp.Or(o.LockWait, time.Second) }

// Store is a folder's queues, table and blobs, or the same in memory. All methods
// are safe for concurrent use, and so is what they return.
type Store struct {
	dir   string // "" in memory
	meter Meter
	codec codec
	lazy  time.Duration
	file  *file // nil in memory; only the committer writes

	urgent  chan struct{} // capacity 1: somebody waits for the next commit
	unhasty chan struct{} // capacity 1: something is logged, nobody waits
	stop    chan struct{} // closed when the Store closes or fails
	stopped chan struct{} // closed when the committer has ended

	mu      sync.Mutex
	log     *embedded.Log // nil in memory
	queues  *embedded.Queues
	table   *embedded.Table
	waiting map[string]chan struct{} // by queue: closed when something may have become visible
	next    *commit                  // what is logged now will be part of it
	tables  *commit                  // the one with the last write of the table; nil for none
	err     error                    // why the Store stopped: closed or broken
	broken  error                    // the failed transaction, if one failed
	bucket  *blob.Bucket
}

// commit is one transaction: done is closed once it is durable or has failed.
type commit struct {
	done chan struct{}
	err  error // before done is closed: only the committer's
}

func newCommit() *commit { return &commit{done: make(chan struct{})} }

// openStore opens the folder, and creates it if need be. The errors are [ErrInUse],
// [ErrVersion] and [ErrDamaged], or those of the file system.
func openStore(dir string, opts Options) (*Store, error) {
	s := newStore(opts, embedded.NewLog())
	s.dir = dir
	if err := s.openFile(opts.lockWait()); err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	go s.run()
	return s, nil
}

// copyStore opens a copy in memory of the queues and the table of a folder, without the blobs. It only
// reads the folder, which other processes may do at the same time. The errors are those of openStore.
func copyStore(dir string, opts Options) (*Store, error) {
	s := OpenMemory(opts)
	err := readFile(filepath.Join(dir, naming.DatabaseFile), opts.lockWait(), func(m embedded.Mutation) error {
		return embedded.Load(s.queues, s.table, m)
	})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	return s, nil
}

// OpenMemory opens an empty Store without a folder: the same semantics, and gone
// when it is closed.
func OpenMemory(opts Options) *Store {
	s := newStore(opts, nil)
	close(s.stopped)
	return s
}

func newStore(opts Options, log *embedded.Log) *Store {
	s := &Store{
		meter:   opts.Meter,
		codec:   newCodec(),
		lazy:    opts.LazySync,
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
		s.meter = noMeter{}
	}
	if s.lazy == 0 {
		s.lazy = 100 * time.Millisecond
	}
	return s
}

func (s *Store) openFile(wait time.Duration) error {
	if err := makeDir(s.dir); err != nil {
		return err
	}
	f, err := openFile(filepath.Join(s.dir, naming.DatabaseFile), wait, func(m embedded.Mutation) error {
		return embedded.Load(s.queues, s.table, m)
	})
	if err != nil {
		return err
	}
	if err := syncDir(s.dir); err != nil { // a new file's name
		return errors.Join(err, f.close())
	}
	s.file = f
	return nil
}

// Empty reports whether the table has no document.
func (s *Store) Empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.Len() == 0
}

// Close writes what is not durable yet, waits for it and gives the folder back.
// Calls under way, and later ones, get [ErrClosed]. Closing again does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	if errors.Is(s.err, ErrClosed) {
		s.mu.Unlock()
		return nil
	}
	if s.err == nil {
		close(s.stop)
	}
	s.err = ErrClosed
	bucket := s.bucket
	s.bucket = nil
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
	if bucket != nil {
		errs = append(errs, bucket.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close %s: %w", s.dir, err)
	}
	return nil
}

// lock locks s.mu, unless the Store has stopped.
func (s *Store) lock() error {
	s.mu.Lock()
	if err := s.err; err != nil {
		s.mu.Unlock()
		return err
	}
	return nil
}

// soon returns the commit that will hold all that is logged by now, and asks for
// it without delay. In memory there is none to wait for. s.mu is held.
func (s *Store) soon() *commit {
	if s.file == nil {
		return nil
	}
	select {
	case s.urgent <- struct{}{}:
	default:
	}
	return s.next
}

// later asks for a commit within s.lazy, if anything is logged. s.mu is held.
func (s *Store) later() {
	if s.log.Len() == 0 {
		return
	}
	select {
	case s.unhasty <- struct{}{}:
	default:
	}
}

// wait waits until c is durable.
func (s *Store) wait(ctx context.Context, c *commit) error {
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
func (s *Store) run() {
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

// commit makes durable what is logged. If that fails the Store stops, because
// memory is then ahead of the file.
func (s *Store) commit() error {
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

func (s *Store) fail(err error) {
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

// errorCode maps this package's errors, and those of package embedded, to
// gocloud's.
func errorCode(err error) gcerrors.ErrorCode {
	for _, m := range []struct {
		err  error
		code gcerrors.ErrorCode
	}{
		{embedded.ErrNoQueue, gcerrors.NotFound},
		{embedded.ErrNotFound, gcerrors.NotFound},
		{embedded.ErrExists, gcerrors.AlreadyExists},
		{embedded.ErrConflict, gcerrors.FailedPrecondition},
		{ErrClosed, gcerrors.FailedPrecondition},
		{embedded.ErrName, gcerrors.InvalidArgument},
		{embedded.ErrConfig, gcerrors.InvalidArgument},
		{embedded.ErrRepeated, gcerrors.InvalidArgument},
		{errArgument, gcerrors.InvalidArgument},
		{context.Canceled, gcerrors.Canceled},
		{context.DeadlineExceeded, gcerrors.DeadlineExceeded},
	} {
		if errors.Is(err, m.err) {
			return m.code
		}
	}
	if code := gcerrors.Code(err); code != gcerrors.Unknown {
		return code // from gocloud's codec
	}
	return gcerrors.Internal
}

type noMeter struct{}

func (noMeter) QueueRequest(string, int) {}
func (noMeter) KVRead(int)               {}
func (noMeter) KVWrite(int)              {}

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
