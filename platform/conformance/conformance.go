// Package conformance tests a driver of a platform. Each promise that steps rely on is one test:
// mailboxes deliver at least once, only one of two writers changes a record, an object is stored
// whole or not at all, and the meter counts what a cloud bills.
//
// A driver calls [Run] from its own test. Platforms may differ in their [Traits]; the suite logs the checks
// that it skips. Costs are counted in the units of AWS.
package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/platform"
)

// Partitions is the number of mailboxes that the suite uses.
const Partitions = 3

// Traits describe where platforms may differ.
type Traits struct {
	// Visibility is how long received messages are hidden. If it is too long to wait for, the suite does not
	// test redelivery.
	Visibility time.Duration
	// Batches is true if the queues use gocloud's pubsub, which fetches ahead, and sends and
	// acknowledges at some later time. Then requests to queues cannot be counted one by one.
	Batches bool
	// NoDelay is true if queues ignore the delays of messages.
	NoDelay bool
	// NoCounts is true if queues do not count deliveries. Delivery.Receives is then at least 2.
	NoCounts bool
	// Unmetered is true if the platform has no price list, so that the meter counts only calls of the bucket.
	Unmetered bool
	// MaxRecord is the largest record in bytes; 0 means that the suite tests no bound.
	MaxRecord int
	// Restart restarts what keeps the platform's state, such as a server or the process that owns a folder, and returns
	// the platform afterwards, which may be a new one. If it is nil, the suite does not test restarts.
	Restart func(t *testing.T, p *platform.Platform) *platform.Platform
}

// Open opens a platform with the queues of [Partitions] partitions, and closes it with t.Cleanup. The platform
// need not be empty, but nothing else may use it.
type Open func(t *testing.T, meter platform.Meter) *platform.Platform

// Opened returns a platform that a test has just opened, and closes it at the end of the test.
func Opened(t *testing.T, p *platform.Platform, err error) *platform.Platform {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// Run runs the suite.
func Run(t *testing.T, open Open, traits Traits) {
	ledger := &ledger.Ledger{}
	s := &suite{traits: traits, ledger: ledger, open: open, p: open(t, ledger)}
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
		{"mailbox has a late acknowledgement", (*suite).acknowledgesLate},
		{"mailbox ends a wait", (*suite).endsWait},
		{"mailbox missing", (*suite).missingQueue},
		{"record is created once", (*suite).createsOnce},
		{"record is replaced by revision", (*suite).replaces},
		{"record has one winner", (*suite).oneWinner},
		{"record is read as written", (*suite).readsWritten},
		{"records are read together", (*suite).readsMany},
		{"record is read twice at once", (*suite).readsTwice},
		{"records are shared by processes", (*suite).sharesRecords},
		{"records are large", (*suite).largeRecords},
		{"object names", (*suite).objectNames},
		{"object ranges", (*suite).objectRanges},
		{"object missing", (*suite).missingObject},
		{"object is large", (*suite).largeObject},
		{"objects are listed", (*suite).lists},
		{"object is put whole or not", (*suite).aborts},
		{"meter counts", (*suite).counts},
		{"restart loses nothing", (*suite).restarts},
	} {
		if !t.Run(c.name, func(t *testing.T) { c.test(s, t) }) && t.Context().Err() != nil {
			return
		}
	}
}

// suite is one run of all tests on one platform.
type suite struct {
	traits Traits
	ledger *ledger.Ledger
	open   Open
	p      *platform.Platform
}

func (s *suite) queue(t *testing.T, name string) platform.Queue {
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

func (s *suite) write(t *testing.T, key, value string, rev platform.Revision) platform.Revision {
	t.Helper()
	rev, err := s.p.WriteRecord(t.Context(), key, []byte(value), rev)
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

func (s *suite) read(t *testing.T, keys ...string) []platform.Record {
	t.Helper()
	recs, err := s.p.ReadRecords(t.Context(), keys)
	if err != nil {
		t.Fatal(err)
	}
	return recs
}

func (s *suite) put(t *testing.T, name string, parts ...[]byte) {
	t.Helper()
	if err := s.p.PutObject(t.Context(), name, parts...); err != nil {
		t.Fatal(err)
	}
}

func (s *suite) get(t *testing.T, name string, offset, length int64) []byte {
	t.Helper()
	b, err := s.p.GetObject(t.Context(), name, offset, length)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
