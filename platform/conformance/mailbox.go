package conformance

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/platform"
)

// patience bounds the wait for a message that was sent.
const patience = 20 * time.Second

// collect receives until it has n different messages, and acknowledges them.
func collect(t *testing.T, q platform.Queue, n int) []platform.Delivery {
	t.Helper()
	seen := map[string]bool{}
	var out []platform.Delivery
	for deadline := time.Now().Add(patience); len(out) < n; {
		if time.Now().After(deadline) {
			t.Fatalf("%d messages of %d after %v", len(out), n, patience)
		}
		got, err := q.Receive(t.Context(), 10, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) > 10 {
			t.Errorf("%d messages, want at most 10", len(got))
		}
		for _, d := range got {
			if !seen[d.ID] {
				seen[d.ID] = true
				out = append(out, d)
			}
		}
	}
	acknowledge(t, q, out)
	return out
}

func acknowledge(t *testing.T, q platform.Queue, ds []platform.Delivery) {
	t.Helper()
	if err := q.Acknowledge(t.Context(), receipts(ds)); err != nil {
		t.Error(err)
	}
}

func receipts(ds []platform.Delivery) (out []platform.Receipt) {
	for _, d := range ds {
		out = append(out, d.Receipt)
	}
	return out
}

func send(t *testing.T, q platform.Queue, delay time.Duration, bodies ...[]byte) {
	t.Helper()
	if err := q.Send(t.Context(), bodies, delay); err != nil {
		t.Fatal(err)
	}
}

func empty(t *testing.T, q platform.Queue) {
	t.Helper()
	got, err := q.Receive(t.Context(), 10, time.Second)
	if err != nil || len(got) > 0 {
		t.Errorf("%d messages left (%v)", len(got), err)
	}
}

// delivers sends more messages than fit one call, of all bytes and sizes. Each must be delivered, and not again
// once it is acknowledged.
func (s *suite) delivers(t *testing.T) {
	q := s.queue(t, naming.MailboxQueue(0))
	var bodies [][]byte
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
		bodies = append(bodies, []byte{byte(i)})
	}
	bodies = append(bodies[:40:40], all, []byte("{\"Message\":\"as from elsewhere\"}"), bytes.Repeat(all, blobschema.MaxMailBytes/256), bytes.Repeat(all[:251], 700))
	send(t, q, 0, bodies...)
	got := collect(t, q, len(bodies))
	var have [][]byte
	for _, d := range got {
		have = append(have, d.Body)
		if d.ID == "" || d.Receives < 1 {
			t.Errorf("message %q has %d receives", d.ID, d.Receives)
		}
	}
	slices.SortFunc(have, bytes.Compare)
	slices.SortFunc(bodies, bytes.Compare)
	if !slices.EqualFunc(have, bodies, bytes.Equal) {
		t.Errorf("the %d messages received are not the %d sent", len(have), len(bodies))
	}
	empty(t, q)
}

// shared sends from several goroutines at once.
func (s *suite) shared(t *testing.T) {
	q := s.queue(t, naming.MailboxQueue(1))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			var bodies [][]byte
			for j := range 11 {
				bodies = append(bodies, fmt.Appendf(nil, "%d %d", i, j))
			}
			if err := q.Send(t.Context(), bodies, 0); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	texts := map[string]bool{}
	for _, d := range collect(t, q, 88) {
		texts[string(d.Body)] = true
	}
	if len(texts) != 88 {
		t.Errorf("%d different messages of 88", len(texts))
	}
	empty(t, q)
}

// delays checks that no message comes before its delay, and that a delay above the queue's limit is no error. A queue that
// cannot delay must deliver at once.
func (s *suite) delays(t *testing.T) {
	if s.traits.NoDelay {
		q := s.queue(t, naming.WakesQueue)
		send(t, q, 24*time.Hour, []byte("a delay that is ignored"))
		collect(t, q, 1)
		return
	}
	const delay = 2 * time.Second
	q := s.queue(t, naming.WakesQueue)
	sent := time.Now()
	send(t, q, delay, []byte("later"))
	if got, err := q.Receive(t.Context(), 10, 0); err != nil || len(got) > 0 {
		t.Errorf("at once: %d messages (%v)", len(got), err)
	}
	collect(t, q, 1)
	if d := time.Since(sent); d < delay*9/10 {
		t.Errorf("it came after %v, before its delay of %v", d, delay)
	}
	send(t, q, 24*time.Hour, []byte("a delay beyond the limit of every queue"))
}

// takesBack checks that a released message comes again soon, with the number of its deliveries.
func (s *suite) takesBack(t *testing.T) {
	q := s.queue(t, naming.MailboxQueue(2))
	send(t, q, 0, []byte("again"))
	var first platform.Delivery
	for i := 1; i <= 3; i++ {
		got := receive(t, q)
		if len(got) != 1 {
			t.Fatalf("receive %d brought %d messages", i, len(got))
		}
		if i == 1 {
			first = got[0]
		}
		if d := got[0]; !s.counted(d, i) || d.ID != first.ID || string(d.Body) != "again" {
			t.Errorf("receive %d: %d receives, id %s after %s, %q", i, d.Receives, d.ID, first.ID, d.Body)
		}
		if i == 3 {
			acknowledge(t, q, got)
			break
		}
		if err := q.Release(t.Context(), receipts(got)); err != nil {
			t.Fatal(err)
		}
	}
	empty(t, q)
}

// counted reports whether a delivery has the right number of deliveries.
func (s *suite) counted(d platform.Delivery, n int) bool {
	return d.Receives == n || s.traits.NoCounts && d.Receives >= 2
}

// receive waits for messages.
func receive(t *testing.T, q platform.Queue) []platform.Delivery {
	t.Helper()
	for start := time.Now(); time.Since(start) < patience; {
		got, err := q.Receive(t.Context(), 10, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) > 0 {
			return got
		}
	}
	t.Fatalf("no message came within %v", patience)
	return nil
}

// deliversAgain checks that an unacknowledged message comes again after its visibility, and that the old
// receipt does no harm.
func (s *suite) deliversAgain(t *testing.T) {
	if s.traits.Visibility > 5*time.Second {
		t.Skipf("messages are hidden for %v here", s.traits.Visibility)
	}
	q := s.queue(t, naming.MailboxQueue(2))
	send(t, q, 0, []byte("lost"))
	late := receive(t, q)
	hidden := time.Now()
	again := receive(t, q)
	if d := time.Since(hidden); d < s.traits.Visibility*8/10 {
		t.Errorf("hidden for %v, not %v", d, s.traits.Visibility)
	}
	if again[0].ID != late[0].ID || !s.counted(again[0], 2) {
		t.Errorf("%s came %d times, after %s", again[0].ID, again[0].Receives, late[0].ID)
	}
	if err := q.Release(t.Context(), receipts(late)); err != nil {
		t.Errorf("release late: %v", err)
	}
	acknowledge(t, q, again)
	if err := q.Acknowledge(t.Context(), receipts(late)); err != nil {
		t.Errorf("acknowledge late: %v", err)
	}
	if err := q.Release(t.Context(), receipts(again)); err != nil {
		t.Errorf("release what was deleted: %v", err)
	}
	empty(t, q)
}

// acknowledgesLate acknowledges a message by an old receipt while another receiver has it. This is no error. It may delete the
// message, as in SQS, because the first receiver has done the work. The second receiver's acknowledgement is no error either.
func (s *suite) acknowledgesLate(t *testing.T) {
	q := s.queue(t, naming.MailboxQueue(1))
	send(t, q, 0, []byte("for two"))
	first := receive(t, q)
	if err := q.Release(t.Context(), receipts(first)); err != nil {
		t.Fatal(err)
	}
	second := receive(t, q)
	if len(first) != 1 || len(second) != 1 || first[0].ID != second[0].ID {
		t.Fatalf("received %v, then %v", first, second)
	}
	acknowledge(t, q, first)
	empty(t, q)
	acknowledge(t, q, second)
	empty(t, q)
}

// endsWait checks that the end of a context ends a wait without an error. A message that arrives at that moment
// must be delivered at once, not only after its visibility.
func (s *suite) endsWait(t *testing.T) {
	q := s.queue(t, naming.MailboxQueue(0))
	empty(t, q)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	got, err := q.Receive(ctx, 10, 20*time.Second)
	if err != nil || len(got) > 0 || time.Since(start) > 3*time.Second {
		t.Errorf("%d messages, %v, after %v", len(got), err, time.Since(start))
	}
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			got, err := q.Receive(ctx, 10, 20*time.Second)
			if err != nil {
				t.Error(err)
			}
			if err := q.Release(t.Context(), receipts(got)); err != nil { // it came just in time
				t.Error(err)
			}
		})
		time.Sleep(200 * time.Millisecond)
		cancel()
		send(t, q, 0, []byte("as the wait ends"))
		wg.Wait()
		sent := time.Now()
		collect(t, q, 1)
		if d := time.Since(sent); d > 1500*time.Millisecond {
			t.Errorf("it came after %v", d)
		}
	}
}

// missingQueue checks that calls of a queue that was not deployed return errors.
func (s *suite) missingQueue(t *testing.T) {
	q, err := s.p.Queue(naming.MailboxQueue(Partitions + 1))
	if err != nil {
		t.Log(err)
		return
	}
	t.Cleanup(func() { _ = q.Close(context.Background()) }) // it never worked
	sendErr := q.Send(t.Context(), [][]byte{[]byte("nowhere")}, 0)
	_, receiveErr := q.Receive(t.Context(), 1, time.Second)
	if sendErr == nil || receiveErr == nil {
		t.Errorf("send: %v; receive: %v", sendErr, receiveErr)
	}
	t.Log(sendErr)
}

// restarts restarts the platform between a receive and its acknowledgement. The message comes again, an acknowledged one does
// not, and records and objects are as before.
func (s *suite) restarts(t *testing.T) {
	if s.traits.Restart == nil {
		t.Log("not tested: the test cannot restart the platform")
		return
	}
	q, err := s.p.Queue(naming.MailboxQueue(2))
	if err != nil {
		t.Fatal(err)
	}
	send(t, q, 0, []byte("done"))
	acknowledge(t, q, collect(t, q, 1))
	send(t, q, 0, []byte("received"))
	received := receive(t, q)
	send(t, q, 0, []byte("sent"))
	rev := s.write(t, "restart/a", "as written", nil)
	s.put(t, "restart/object", []byte("as put"))
	if err := q.Close(t.Context()); err != nil {
		t.Error(err)
	}
	s.p = s.traits.Restart(t, s.p)
	q = s.queue(t, naming.MailboxQueue(2))
	bodies := map[string]bool{}
	for _, d := range collect(t, q, 2) {
		bodies[string(d.Body)] = true
		if string(d.Body) == "received" && d.ID != received[0].ID {
			t.Errorf("message %s comes again as %s", received[0].ID, d.ID)
		}
	}
	if !bodies["received"] || !bodies["sent"] {
		t.Errorf("messages after the restart: %v", bodies)
	}
	empty(t, q)
	s.write(t, "restart/a", "replaced", rev)
	if got := s.get(t, "restart/object", 0, -1); string(got) != "as put" {
		t.Errorf("the object holds %q", got)
	}
}
