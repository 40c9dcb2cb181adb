package conformance

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/platform"
)

// counts checks what each operation costs. Record sizes stay well below the bounds of units, so that what a
// store adds to a record does not matter.
func (s *suite) counts(t *testing.T) {
	q := s.queue(t, naming.MailboxQueue(1))
	send(t, q, 0, []byte("opens the queue"))
	collect(t, q, 1)
	var rev platform.Revision
	for _, c := range []struct {
		what string
		do   func()
		want ledger.Counts
	}{
		{"create", func() { rev = s.write(t, "count/a", "v", nil) }, ledger.Counts{KVWriteUnits: 1}},
		{"create again", func() { conflict(t, "create", s.tryWrite(t, "count/a", "v", nil)) }, ledger.Counts{KVWriteUnits: 1}},
		{"replace by 2.5 KB", func() { rev = s.write(t, "count/a", strings.Repeat("v", 2560), rev) }, ledger.Counts{KVWriteUnits: 3}},
		{"read", func() { s.read(t, "count/a") }, ledger.Counts{KVReadUnits: 1}},
		{"read three, one missing", func() { s.read(t, "count/a", "count/b", "c1/wish") }, ledger.Counts{KVReadUnits: 3}},
		{"send ten", func() { send(t, q, 0, tens(10)...) }, ledger.Counts{QueueRequests: 1}},
		{"send eleven", func() { send(t, q, 0, tens(11)...) }, ledger.Counts{QueueRequests: 2}},
		{"put", func() { s.put(t, "count/put", []byte("12"), []byte("345")) }, ledger.Counts{BlobPuts: 1, BlobPutBytes: 5}},
		{"put 20 MiB", func() { s.put(t, "count/large", make([]byte, 20<<20)) }, ledger.Counts{BlobPuts: 1, BlobPutBytes: 20 << 20}},
		{"get", func() { s.get(t, "count/put", 0, -1) }, ledger.Counts{BlobGets: 1, BlobGetBytes: 5}},
		{"get a range", func() { s.get(t, "count/large", 100, 1000) }, ledger.Counts{BlobGets: 1, BlobGetBytes: 1000}},
	} {
		before := s.ledger.Counts()
		c.do()
		got := s.ledger.Counts().Minus(before)
		if s.traits.Batches || s.traits.Unmetered {
			got.QueueRequests = c.want.QueueRequests
		}
		if s.traits.Unmetered {
			got.KVReadUnits, got.KVWriteUnits = c.want.KVReadUnits, c.want.KVWriteUnits
		}
		if got != c.want {
			t.Errorf("%s: counted %+v, want %+v", c.what, got, c.want)
		}
	}
	before := s.ledger.Counts()
	_, err := s.p.GetObject(t.Context(), "count/none", 0, -1)
	if c := s.ledger.Counts().Minus(before); !errors.Is(err, platform.ErrNotFound) || c.BlobGets != 1 {
		t.Errorf("get none: %v, %d gets", err, c.BlobGets)
	}
	s.countReceives(t, q)
}

func (s *suite) countReceives(t *testing.T, q platform.Queue) {
	collect(t, q, 21)
	if s.traits.Batches || s.traits.Unmetered {
		t.Log("requests to queues are not counted one by one: gocloud makes them when it likes, or nobody bills them")
		return
	}
	count := func(what string, want int64, do func()) {
		t.Helper()
		before := s.ledger.Counts()
		do()
		if c := s.ledger.Counts().Minus(before); c.QueueRequests != want {
			t.Errorf("%s: %d requests, want %d", what, c.QueueRequests, want)
		}
	}
	body := bytes.Repeat([]byte{0xff}, 150<<10) // 200 KB in base64
	count("receive nothing", 1, func() { empty(t, q) })
	count("send 150 KB", 4, func() { send(t, q, 0, body) })
	var got []platform.Delivery
	count("receive 150 KB", 4, func() {
		var err error
		if got, err = q.Receive(t.Context(), 10, 5*time.Second); err != nil || len(got) != 1 {
			t.Errorf("%d messages (%v)", len(got), err)
		}
	})
	count("release", 1, func() {
		if err := q.Release(t.Context(), receipts(got)); err != nil {
			t.Error(err)
		}
	})
	got, err := q.Receive(t.Context(), 10, 5*time.Second)
	if err != nil {
		t.Error(err)
	}
	count("acknowledge", 1, func() { acknowledge(t, q, got) })
}

func tens(n int) (out [][]byte) {
	for i := range n {
		out = append(out, []byte{byte(i)})
	}
	return out
}
