// Package conformance says by tests what steps rely on in a platform: mailboxes that
// deliver at least once, records that only one of two writers changes, objects that are
// there whole or not at all, and a meter that counts what a cloud bills. One suite runs
// over all platforms, through the functions that steps use; where one differs, its
// [Traits] say so, and the suite says what it left out.
package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/ledger"
)

// Partitions is how many mailboxes a platform under test needs.
const Partitions = 3

// Traits say where platforms may differ.
type Traits struct {
	// Visibility is how long received messages are hidden. Where it is longer than a test
	// may wait, what comes of its end is not tested.
	Visibility time.Duration
	// Batches says that gocloud's pubsub lies under the queues as it is: it fetches ahead and
	// sends and acknowledges when it likes, so that requests to queues cannot be counted one
	// by one.
	Batches bool
	// MaxRecord is the largest record, in bytes; 0 for no bound below a megabyte.
	MaxRecord int
	// Unfaithful are sentences on where an emulator differs from what it stands for; the
	// suite logs them.
	Unfaithful []string
}

// Open opens a platform with the queues of [Partitions] partitions. It is closed by the
// test's cleanup. Platforms need not be empty, but may not be shared.
type Open func(t *testing.T, meter drivers.Meter) *drivers.Platform

// Run runs the suite.
func Run(t *testing.T, open Open, traits Traits) {
	for _, s := range traits.Unfaithful {
		t.Log("the emulator differs: " + s)
	}
	ledger := &ledger.Ledger{}
	s := &suite{traits: traits, ledger: ledger, p: open(t, ledger)}
	if err := s.p.CreateQueues(t.Context(), Partitions); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		test func(*suite, *testing.T)
	}{
		{"mailbox delivers all", (*suite).delivers},
		{"mailbox is safe for many", (*suite).shared},
		{"mailbox delays", (*suite).delays},
		{"mailbox takes back", (*suite).takesBack},
		{"mailbox delivers again", (*suite).deliversAgain},
		{"mailbox ends a wait", (*suite).endsWait},
		{"mailbox missing", (*suite).missingQueue},
		{"record is created once", (*suite).createsOnce},
		{"record is replaced by revision", (*suite).replaces},
		{"record has one winner", (*suite).oneWinner},
		{"record is read as written", (*suite).readsWritten},
		{"records are read together", (*suite).readsMany},
		{"records are large", (*suite).largeRecords},
		{"object names", (*suite).objectNames},
		{"object ranges", (*suite).objectRanges},
		{"object missing", (*suite).missingObject},
		{"object is large", (*suite).largeObject},
		{"objects are listed", (*suite).lists},
		{"object is put whole or not", (*suite).aborts},
		{"meter counts", (*suite).counts},
	} {
		if !t.Run(c.name, func(t *testing.T) { c.test(s, t) }) && t.Context().Err() != nil {
			return
		}
	}
}

// suite is a run over one platform.
type suite struct {
	traits Traits
	ledger *ledger.Ledger
	p      *drivers.Platform
}

func (s *suite) queue(t *testing.T, name string) drivers.Queue {
	t.Helper()
	q, err := s.p.Queue(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return q
}

func (s *suite) write(t *testing.T, key, value string, rev actor.Revision) actor.Revision {
	t.Helper()
	rev, err := engine.WriteRecord(t.Context(), s.p, actor.WriteRecord{Key: key, Value: []byte(value), Revision: rev})
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

func (s *suite) read(t *testing.T, keys ...string) []actor.Record {
	t.Helper()
	recs, err := engine.ReadRecords(t.Context(), s.p, keys)
	if err != nil {
		t.Fatal(err)
	}
	return recs
}

func (s *suite) put(t *testing.T, name string, parts ...[]byte) {
	t.Helper()
	if err := engine.PutObject(t.Context(), s.p, actor.PutObject{Name: name, Parts: parts}); err != nil {
		t.Fatal(err)
	}
}

func (s *suite) get(t *testing.T, name string, offset, length int64) []byte {
	t.Helper()
	b, err := engine.GetObject(t.Context(), s.p, actor.GetObject{Name: name, Offset: offset, Length: length})
	if err != nil {
		t.Fatal(err)
	}
	return b
}
