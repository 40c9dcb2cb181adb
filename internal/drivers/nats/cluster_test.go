package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/platform"
)

// TestLosesTheLeader sends, receives and writes while the leader of all streams is killed and comes back. No message that was sent is lost, and no revision of a record is replaced twice.
func TestLosesTheLeader(t *testing.T) {
	t.Parallel()
	nodes := newCluster(t)
	location := locationOf(t, nodes...)
	p := open(t, location, nil)
	if _, err := Open(t.Context(), strings.Replace(location, ","+nodes[2].monitor(), "", 1), nil); err == nil || !strings.Contains(err.Error(), "has 3 servers, and parameter monitor names 2") {
		t.Errorf("two monitors: %v", err)
	}
	if err := p.CreateQueues(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	hide(t, nodes[0], 2*time.Second)
	q, err := p.Queue("mailbox-00000")
	if err != nil {
		t.Fatal(err)
	}
	u := &user{t: t, p: p, q: q, sent: map[string]bool{}, got: map[string]bool{}, wins: map[int]int{}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	for w := range 3 {
		all.Go(func() { u.send(ctx, w) })
		all.Go(func() { u.write(ctx, w) })
	}
	all.Go(func() {
		for ctx.Err() == nil {
			u.take()
		}
	})
	for _, stream := range []string{"orbweaver", "KV_orbweaver"} {
		lead(t, nodes[0], stream)
	}
	u.progress()
	nodes[0].kill()
	began := time.Now()
	u.progress() // without the killed server
	t.Logf("new leaders after %v", time.Since(began))
	nodes[0].start(t)
	u.progress()
	cancel()
	all.Wait()
	for end := time.Now().Add(20 * time.Second); len(u.missing()) > 0 && time.Now().Before(end); {
		u.take()
	}
	if lost := u.missing(); len(lost) > 0 {
		t.Errorf("%d messages of %d are lost: %v", len(lost), len(u.sent), lost)
	}
	last := 0
	for n, writers := range u.wins {
		if last = max(last, n); writers != 1 {
			t.Errorf("%d writers wrote %d", writers, n)
		}
	}
	if now, _ := u.read(); now < last {
		t.Errorf("the record is %d after %d was written", now, last)
	}
	t.Logf("%d messages sent, %d received, %d writes, %d of unknown result, %d conflicts", len(u.sent), len(u.got), len(u.wins), u.unsure, u.conflicts)
}

// newCluster starts three servers, and waits until each stream can have three replicas.
func newCluster(t *testing.T) (nodes []*node) {
	t.Helper()
	var routes []string
	list := make([]options, 3)
	for i := range list {
		list[i] = options{Name: fmt.Sprint("n", i), Cluster: freePort(t)}
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", list[i].Cluster))
	}
	for _, o := range list {
		o.Routes = strings.Join(routes, ",")
		nodes = append(nodes, newNode(t, o))
	}
	return nodes
}

// lead makes a server the leader of a stream.
func lead(t *testing.T, n *node, stream string) {
	t.Helper()
	streams, done := connect(t, n)
	defer done()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		// A busy cluster may not answer in time.
		if s, err := streams.Stream(t.Context(), stream); err == nil && s.CachedInfo().Cluster.Leader == n.Name {
			return
		}
		_, _ = streams.Conn().Request("$JS.API.STREAM.LEADER.STEPDOWN."+stream, fmt.Appendf(nil, `{"placement":{"preferred":%q}}`, n.Name), callTimeout)
	}
	t.Fatalf("%s does not lead stream %s", n.Name, stream)
}

// user uses a platform whose servers fail.
type user struct {
	t *testing.T
	p *platform.Platform
	q platform.Queue

	mu                sync.Mutex
	sent, got         map[string]bool
	wins              map[int]int // successful writes of each number
	unsure, conflicts int
}

// send sends messages until ctx ends, some of them with a delay.
func (u *user) send(ctx context.Context, w int) {
	for i := 0; ctx.Err() == nil; i++ {
		body := fmt.Sprintf("%d/%d", w, i)
		if err := u.q.Send(u.t.Context(), [][]byte{[]byte(body)}, time.Duration(i%2)*time.Second); err == nil {
			u.mu.Lock()
			u.sent[body] = true
			u.mu.Unlock()
		}
	}
}

// take receives and acknowledges some messages.
func (u *user) take() {
	list, err := u.q.Receive(u.t.Context(), 50, time.Second)
	if err != nil {
		return
	}
	var receipts []platform.Receipt
	u.mu.Lock()
	for _, d := range list {
		u.got[string(d.Body)] = true
		receipts = append(receipts, d.Receipt)
	}
	u.mu.Unlock()
	_ = u.q.Acknowledge(u.t.Context(), receipts) // otherwise they come again
}

// missing returns the messages that were sent and not received.
func (u *user) missing() (out []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for body := range u.sent {
		if !u.got[body] {
			out = append(out, body)
		}
	}
	return out
}

// write counts up in a record until ctx ends, as other writers do at the same time.
func (u *user) write(ctx context.Context, w int) {
	for ctx.Err() == nil {
		now, rev := u.read()
		value, err := json.Marshal(count{now + 1, w})
		if err != nil {
			u.t.Error(err)
		}
		_, err = u.p.WriteRecord(u.t.Context(), "counter", value, rev)
		u.mu.Lock()
		switch {
		case err == nil:
			u.wins[now+1]++
		case errors.Is(err, platform.ErrConflict):
			u.conflicts++
		default:
			u.unsure++
		}
		u.mu.Unlock()
	}
}

// count is a value of the record.
type count struct{ N, Writer int }

// read reads the record until it succeeds.
func (u *user) read() (n int, rev platform.Revision) {
	for u.t.Context().Err() == nil {
		recs, err := u.p.ReadRecords(u.t.Context(), []string{"counter"})
		if err != nil {
			continue
		}
		var c count
		if recs[0].Found {
			if err := json.Unmarshal(recs[0].Value, &c); err != nil {
				u.t.Error(err)
			}
		}
		return c.N, recs[0].Revision
	}
	return 0, nil
}

// progress waits until some more messages have been sent and received, and some more records written.
func (u *user) progress() {
	u.t.Helper()
	done := func() (sent, got, wins int) {
		u.mu.Lock()
		defer u.mu.Unlock()
		return len(u.sent), len(u.got), len(u.wins)
	}
	const some = 20
	sent, got, wins := done()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if s, g, w := done(); s >= sent+some && g >= got+some && w >= wins+some {
			return
		}
		if time.Now().After(end) {
			u.t.Fatal("nothing was sent, received or written for a minute")
		}
	}
}
