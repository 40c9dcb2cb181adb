package drivers

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"
	"gocloud.dev/pubsub"
	"gocloud.dev/pubsub/driver"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/platform"
)

// fill puts messages of each state, records and objects into the store.
func fill(t *testing.T, s *store) {
	t.Helper()
	ctx := t.Context()
	must(t, s.createQueues(ctx, time.Hour, "q"))
	topic := s.openTopic("q")
	defer topic.Shutdown(ctx)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if err := topic.Send(ctx, &pubsub.Message{Body: fmt.Append(nil, i), Metadata: map[string]string{"i": fmt.Sprint(i)}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range 300 {
		wg.Go(func() {
			if _, err := s.Write(ctx, fmt.Sprintf("%03d", i), bytes.Repeat([]byte("x"), 100), nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// contents lists the contents of the store in a comparable form.
func contents(t *testing.T, s *store) []string {
	t.Helper()
	var out []string
	for _, name := range s.queues.Names() {
		sub := newSubscription(s, name, time.Nanosecond)
		for {
			ms, err := sub.ReceiveBatch(t.Context(), 10)
			must(t, err)
			if len(ms) == 0 {
				break
			}
			for _, m := range ms {
				out = append(out, fmt.Sprint(name, " ", string(m.Body), " ", m.Metadata))
			}
		}
		must(t, sub.Close())
	}
	for key, value := range s.table.All() {
		_, rev := s.table.Get(key)
		out = append(out, fmt.Sprint(key, " ", len(value), " ", rev))
	}
	slices.Sort(out)
	return out
}

func TestReopen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	s, err := openStore(dir, options{})
	must(t, err)
	fill(t, s)
	want := contents(t, s)
	if len(want) != 350 {
		t.Fatalf("%d things", len(want))
	}
	sub := s.openSubscription("q", pollTime)
	m, err := sub.Receive(t.Context()) // in flight for an hour
	must(t, err)
	must(t, s.Close())
	m.Ack() // too late
	_ = sub.Shutdown(t.Context())

	s = openDir(t, dir, options{})
	if diff := cmp.Diff(want, contents(t, s)); diff != "" {
		t.Fatalf("after reopening (-want +got):\n%s", diff)
	}
}

func TestOneOwner(t *testing.T) {
	dir := t.TempDir()
	s, err := openStore(dir, options{})
	must(t, err)
	if _, err := openStore(dir, options{lock: time.Millisecond}); !errors.Is(err, ErrInUse) {
		t.Fatalf("second open: %v", err)
	}
	must(t, s.Close())
	openDir(t, dir, options{lock: time.Millisecond})
}

// TestRecords checks that several readers can read a folder at once without changing it.
func TestRecords(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, naming.DatabaseFile)
	soon := options{lock: time.Millisecond}
	if _, err := readRecords(dir, soon); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("records of nothing: %v", err)
	}
	// A crash leaves these before the first page of the file, and before the first transaction.
	must(t, os.WriteFile(path, nil, 0o600))
	for _, name := range []string{"empty file", "no buckets"} {
		if got, err := readRecords(dir, soon); err != nil || len(got) != 0 {
			t.Fatalf("%s: %v, %v", name, got, err)
		}
		db, err := bbolt.Open(path, 0o600, nil)
		must(t, err)
		must(t, db.Close())
	}
	s, err := openStore(dir, options{})
	must(t, err)
	fill(t, s)
	if _, err := readRecords(dir, soon); !errors.Is(err, ErrInUse) {
		t.Errorf("records of a folder that has an owner: %v", err)
	}
	must(t, s.Close())

	before, err := os.ReadFile(path)
	must(t, err)
	reader, err := bbolt.Open(path, 0, &bbolt.Options{ReadOnly: true})
	must(t, err)
	got, err := readRecords(dir, soon)
	must(t, err)
	must(t, reader.Close())
	if len(got) != 300 || string(got["007"]) != strings.Repeat("x", 100) {
		t.Errorf("%d records, one is %q", len(got), got["007"])
	}
	after, err := os.ReadFile(path)
	must(t, err)
	if !bytes.Equal(before, after) {
		t.Error("reading changed the file")
	}
}

// TestRecordFormat pins the bytes of a record in the file.
func TestRecordFormat(t *testing.T) {
	stored, err := encodeDocument("k", []byte("v"))
	must(t, err)
	if want := "\xa3\x63key\x61k\x65value\x61v\x70DocstoreRevision\xf6"; string(stored) != want {
		t.Errorf("%q, want %q", stored, want)
	}
}

func FuzzDocument(f *testing.F) {
	seed, err := encodeDocument("k", []byte("v"))
	must(f, err)
	f.Add(seed)
	f.Fuzz(func(t *testing.T, stored []byte) {
		if value, err := decodeDocument(stored); err == nil && len(value) > len(stored) {
			t.Errorf("%q", value)
		}
	})
}

// TestRecordBounds checks that a record that the table or DynamoDB cannot hold is an error other than a
// conflict.
func TestRecordBounds(t *testing.T) {
	s := openDir(t, t.TempDir(), options{})
	for name, err := range map[string]error{
		"long key":     second(s.Write(t.Context(), strings.Repeat("k", maxKeyBytes+1), nil, nil)),
		"large":        second(s.Write(t.Context(), "k", bytes.Repeat([]byte("x"), maxDocumentBytes), nil)),
		"not UTF-8":    second(s.Write(t.Context(), "k", []byte{0xff}, nil)),
		"bad key":      second(s.Write(t.Context(), "\xff", nil, nil)),
		"bad revision": second(s.Write(t.Context(), "k", nil, "first")),
	} {
		if err == nil || errors.Is(err, platform.ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if recs, err := s.Read(t.Context(), []string{"k"}); err != nil || recs[0].Found {
		t.Errorf("read %v, %v", recs, err)
	}
}

func TestAcksAreLazy(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, dir, options{lazySync: 5 * time.Millisecond})
	must(t, s.createQueues(t.Context(), time.Minute, "q"))
	must(t, (&topic{s, "q"}).SendBatch(t.Context(), []*driver.Message{{Body: []byte("a")}}))
	if n := messagesOnDisk(t, s); n != 1 {
		t.Fatalf("%d messages on disk", n)
	}
	sub := newSubscription(s, "q", pollTime)
	ms, err := sub.ReceiveBatch(t.Context(), 1)
	must(t, err)
	must(t, sub.SendAcks(t.Context(), []driver.AckID{ms[0].AckID}))
	for messagesOnDisk(t, s) != 0 { // ends when the timer has written the acknowledgement
		time.Sleep(time.Millisecond)
	}
}

func messagesOnDisk(t *testing.T, s *store) int {
	t.Helper()
	n := 0
	must(t, s.file.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("message")).ForEach(func(_, _ []byte) error { n++; return nil })
	}))
	return n
}

// TestConfirmedIsOnDisk checks that everything confirmed is in the file while the store is still open.
func TestConfirmedIsOnDisk(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, dir, options{lazySync: time.Hour})
	fill(t, s)
	copied := t.TempDir()
	data, err := os.ReadFile(filepath.Join(dir, "orbweaver.db"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(copied, "orbweaver.db"), data, 0o600))
	must(t, os.Mkdir(filepath.Join(copied, naming.ObjectsFolder), 0o700))
	if s.file.db.NoSync {
		t.Fatal("transactions are not synced")
	}
	if diff := cmp.Diff(contents(t, s), contents(t, openDir(t, copied, options{}))); diff != "" {
		t.Fatalf("in memory and on disk (-want +got):\n%s", diff)
	}
}

// TestGroupCommit checks that changes made during a transaction share the next one.
func TestGroupCommit(t *testing.T) {
	s := openDir(t, t.TempDir(), options{})
	ctx := t.Context()
	must(t, s.createQueues(ctx, time.Minute, "q"))
	tx, err := s.file.db.Begin(true) // blocks transactions
	must(t, err)
	first := tx.ID()
	var wg sync.WaitGroup
	started := make(chan struct{}, 100)
	for i := range 100 {
		wg.Go(func() {
			started <- struct{}{}
			if _, err := s.Write(ctx, fmt.Sprint(i), nil, nil); err != nil {
				t.Error(err)
			}
		})
	}
	for range 100 {
		<-started
	}
	for tables := 0; tables < 100; { // until all are logged
		s.mu.Lock()
		tables = s.table.Len()
		s.mu.Unlock()
	}
	must(t, tx.Rollback())
	wg.Wait()
	must(t, s.file.db.View(func(tx *bbolt.Tx) error {
		if n := tx.ID() - first + 1; n > 3 {
			t.Errorf("%d transactions for 100 concurrent writes", n)
		}
		return nil
	}))
}

// TestFailedWriteStopsTheStore checks that after a failed write nothing is confirmed or read any more, because
// memory is ahead of the file. Everything confirmed before is still in the file.
func TestFailedWriteStopsTheStore(t *testing.T) {
	dir := t.TempDir()
	s, err := openStore(dir, options{})
	must(t, err)
	fill(t, s)
	must(t, s.createQueues(t.Context(), time.Minute, "empty"))
	want := contents(t, s)
	sub := s.openSubscription("empty", time.Hour)
	waiting := make(chan error)
	go func() {
		_, err := sub.Receive(context.Background())
		waiting <- err
	}()
	s.file.db.MaxSize = 1 // as if the disk were full
	p := s.platform()
	var failed error
	for i := 0; failed == nil; i++ {
		_, failed = p.WriteRecord(t.Context(), fmt.Sprint("big", i), make([]byte, 200_000), nil)
	}
	if !platform.Permanent(failed) {
		t.Errorf("the failed write: %v", failed)
	}
	for name, err := range map[string]error{
		"write": second(p.WriteRecord(t.Context(), "x", nil, nil)), "read": second(p.ReadRecords(t.Context(), []string{"000"})),
		"create": s.createQueues(t.Context(), time.Minute, "p"), "receiver": <-waiting, "close": s.Close(),
	} {
		if err == nil || errors.Is(err, ErrClosed) {
			t.Errorf("%s after a failed write: %v", name, err)
		}
	}
	_ = sub.Shutdown(t.Context())
	got := contents(t, openDir(t, dir, options{}))
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Fatalf("lost %s", w)
		}
	}
}

func TestOtherFormats(t *testing.T) {
	for name, write := range map[string]func(*bbolt.Tx) error{
		"another program": func(tx *bbolt.Tx) error {
			_, err := tx.CreateBucket([]byte("theirs"))
			return err
		},
		"another version": func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucket([]byte(bucketAbout))
			if err != nil {
				return err
			}
			return b.Put([]byte(keyFormat), []byte("orbweaver local 2"))
		},
	} {
		dir := t.TempDir()
		db, err := bbolt.Open(filepath.Join(dir, "orbweaver.db"), 0o600, nil)
		must(t, err)
		must(t, db.Update(write))
		must(t, db.Close())
		for range 2 { // a refused open releases the lock
			if _, err := openStore(dir, options{lock: time.Millisecond}); !errors.Is(err, ErrVersion) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if _, err := openStore(filepath.Join(os.DevNull, "x"), options{}); err == nil || errors.Is(err, ErrDamaged) {
		t.Errorf("a folder that cannot be made: %v", err)
	}
}

// TestDamage checks that opening a damaged file returns an error, or succeeds if no used byte is damaged. It
// must never panic, and must release the lock.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	s, err := openStore(dir, options{})
	must(t, err)
	fill(t, s)
	must(t, s.Close())
	good, err := os.ReadFile(filepath.Join(dir, "orbweaver.db"))
	must(t, err)
	used := 0 // used bytes; the file grows in larger pieces
	db, err := bbolt.Open(filepath.Join(dir, naming.DatabaseFile), 0o600, nil)
	must(t, err)
	must(t, db.View(func(tx *bbolt.Tx) error { used = int(tx.Size()); return nil }))
	must(t, db.Close())
	page := os.Getpagesize()
	rng := rand.New(rand.NewPCG(1, 2))
	damages := map[string]func([]byte) []byte{
		"text":        func([]byte) []byte { return []byte("not a database\n") },
		"zeros":       func(b []byte) []byte { clear(b); return b },
		"both metas":  func(b []byte) []byte { clear(b[:2*page]); return b },
		"first page":  func(b []byte) []byte { return b[:page] },
		"half":        func(b []byte) []byte { return b[:used/2] },
		"all but one": func(b []byte) []byte { return b[:used-page] },
		"no data":     func(b []byte) []byte { clear(b[2*page:]); return b },
		"last byte":   func(b []byte) []byte { return b[:used-1] },
		"free list":   func(b []byte) []byte { return freeUsed(b[:used], page) },
	}
	always := slices.Collect(maps.Keys(damages)) // the others may be in pages that nothing uses
	for i := range 12 {
		damages[fmt.Sprint("page ", i, " zero")] = func(b []byte) []byte { clear(b[i*page:][:page]); return b }
		damages[fmt.Sprint("page ", i, " header")] = func(b []byte) []byte {
			binary.LittleEndian.PutUint64(b[i*page+8:], rng.Uint64()&^(1<<63)) // flags, count, overflow
			return b
		}
	}
	refused := 0
	for name, damage := range damages {
		broken := t.TempDir()
		must(t, os.WriteFile(filepath.Join(broken, "orbweaver.db"), damage(slices.Clone(good)), 0o600))
		must(t, os.Mkdir(filepath.Join(broken, naming.ObjectsFolder), 0o700))
		open := func() error {
			s, err := openStore(broken, options{lock: time.Millisecond})
			if err == nil {
				err = s.Close()
			}
			return err
		}
		read := func() error { return second(readRecords(broken, options{lock: time.Millisecond})) }
		for _, use := range []func() error{read, open, open} {
			switch err := use(); {
			case err == nil:
				if slices.Contains(always, name) {
					t.Errorf("%s: it opens", name)
				}
			case strings.Contains(err.Error(), "runtime error"):
				t.Errorf("%s: an error for programmers: %v", name, err)
			case errors.Is(err, ErrDamaged), errors.Is(err, ErrVersion):
				refused++
			default:
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if refused < len(damages) {
		t.Errorf("only %d of %d opens of damaged files were refused", refused, 3*len(damages))
	}
}

// freeUsed adds the leaves of a bbolt file, which are in use, to all its lists of free pages.
func freeUsed(b []byte, page int) []byte {
	const leaf, free = 0x02, 0x10 // flags of pages
	var leaves []uint64
	for at := 0; at < len(b); at += page {
		if binary.LittleEndian.Uint16(b[at+8:]) == leaf {
			leaves = append(leaves, uint64(at/page))
		}
	}
	for at := 0; at < len(b); at += page {
		if binary.LittleEndian.Uint16(b[at+8:]) == free {
			binary.LittleEndian.PutUint16(b[at+10:], uint16(len(leaves)))
			for i, id := range leaves {
				binary.LittleEndian.PutUint64(b[at+16+8*i:], id)
			}
		}
	}
	return b
}

// TestErrorsThatEndAll checks after which errors a retry is useless.
func TestErrorsThatEndAll(t *testing.T) {
	for err, want := range map[error]bool{ErrDamaged: true, ErrStopped: true, ErrInUse: false, ErrClosed: false} {
		if platform.Permanent(err) != want {
			t.Errorf("%v: %v", err, !want)
		}
	}
}
