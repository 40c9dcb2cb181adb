package crawl

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/virtual"
	"github.com/orbweaver/orbweaver/partition"
)

// stored puts a commit that no step has made, and returns the name of its object.
func (w *world) stored(c blobschema.Crawl, com blobschema.Commit) string {
	w.t.Helper()
	h, err := c.Hash()
	if err != nil {
		w.t.Fatal(err)
	}
	m := &com.Manifest
	m.Crawl = c.ID
	name := naming.Commit(c.ID, m.Partition, m.Seq, m.Fence)
	if w.Objects[name], _, err = blobschema.EncodeCommit(&com, name, h); err != nil {
		w.t.Fatal(err)
	}
	return name
}

// hostPack reads a pack of hosts from the table.
func (w *world) hostPack(crawl string, p partition.ID, n int) (pack HostPack) {
	w.t.Helper()
	w.record(naming.HostsKey(crawl, p, n), &pack)
	return pack
}

// TestHostsTable checks that host figures of commits reach the table, in packs by slot, the newest of each host, and that
// copying again changes nothing.
func TestHostsTable(t *testing.T) {
	w, s := newScene(t)
	s.record = blobschema.TickRecord{Copied: map[partition.ID]uint64{0: 3}, CopiedAt: w.Now().Wall, ResentAt: w.Now().Wall}
	seen := func(seq uint64, dropped []string, hosts ...blobschema.HostObservation) string {
		man := blobschema.Manifest{Partition: 1, Fence: 4, Seq: seq, Epoch: 1, Dropped: dropped}
		if seq > 1 {
			man.Commits = []blobschema.CommitRange{{Fence: 4, From: 1, To: seq - 1}}
		}
		return w.stored(s.crawl, blobschema.Commit{Manifest: man, Hosts: hosts})
	}
	old := blobschema.HostObservation{Host: "old.example", Slot: 1, Requests: 1, Known: 1}
	new := blobschema.HostObservation{
		Host: "new.example", Slot: 3, Conn: 1, Resp: 2, PerConnection: 3, Requests: 4, Failures: 5, Score: 6, Known: 7, Pending: 8, Capped: 9,
	}
	both := old
	both.Requests = 10
	seen(1, []string{"a"}, old, new)
	seen(2, []string{"a", "b"}, both)
	h := s.heads[1]
	h.Commit, h.Totals.Hosts = seen(3, nil), hostsPerPack+1
	s.cfg.HostsEvery = time.Minute
	s.heads[0].Totals.Pending = 1 // otherwise everything is copied at once
	w.Mono += 59 * time.Second
	s.write(w)
	if s.tick(w); w.Table[naming.HostsKey(s.crawl.ID, 1, 0)].Found {
		t.Error("it is copied too early")
	}
	w.Mono += 2 * time.Second
	s.tick(w)
	want := []map[string]HostRecord{
		{"old.example": {2, blobschema.HostObservation{Requests: 10, Known: 1}}},
		{"new.example": {1, blobschema.HostObservation{Conn: 1, Resp: 2, PerConnection: 3, Requests: 4, Failures: 5, Score: 6, Known: 7, Pending: 8, Capped: 9}}},
	}
	look := func(when string) {
		t.Helper()
		for n := range want {
			if d := cmp.Diff(HostPack{Partition: 1, Hosts: want[n]}, w.hostPack(s.crawl.ID, 1, n)); d != "" {
				t.Errorf("%s: pack %d (-want +got):\n%s", when, n, d)
			}
		}
	}
	look("at first")
	s.remembered(w)
	if s.record.Copied[0] != 3 || s.record.Copied[1] != 3 || !slices.Equal(s.record.Sweep, []blobschema.Dropped{{Object: "a"}, {Object: "b"}}) {
		t.Errorf("the record is %+v", s.record)
	}
	s.record.Copied[1], s.record.CopiedAt = 0, virtual.Epoch
	s.write(w)
	if s.tick(w); slices.ContainsFunc(w.written, func(key string) bool { return key != naming.TickKey(s.crawl.ID) }) {
		t.Errorf("copied again: it writes %v", w.written)
	}
	look("when it was copied again")
	h.Commit = seen(4, []string{"c"}, blobschema.HostObservation{Host: "third.example", Slot: 2})
	h.Seq, h.Published = 4, 4
	want[1]["third.example"] = HostRecord{Commit: 4}
	s.remembered(w)
	s.write(w)
	w.Mono += time.Minute
	if s.tick(w); w.counts["GetObject"] != 2 { // the manifest and the one new commit
		t.Errorf("one more commit takes %d reads", w.counts["GetObject"])
	}
	look("after another commit")
}

// lost returns messages that a queue has lost.
func (w *world) lost(p partition.ID) (bodies []string) {
	for _, m := range w.queues[naming.MailboxQueue(p)] {
		bodies = append(bodies, string(m.Body))
	}
	delete(w.queues, naming.MailboxQueue(p))
	slices.Sort(bodies)
	return bodies
}

// TestResends checks that lost mail of any sender is resent unchanged, after a while and repeatedly, and only what is not
// applied.
func TestResends(t *testing.T) {
	c := newCrawl(2)
	here, there := ofPartition(t, c, 0), ofPartition(t, c, 1)
	w := newWorld(t)
	w.web = func(r actor.Request) *actor.Outcome {
		return site(t, string(r.URL.Host()), 4, func(i int) []string {
			return []string{fmt.Sprintf("https://%s/%d", here, i+1), fmt.Sprintf("https://%s/%d", there, i)}
		})(r)
	}
	c = w.begin(c, all(here)[0], all(there)[0])
	w.begin(c, all(here)[1]) // a second batch
	w.request(c.ID, blobschema.Request{ID: "r", Recrawl: []string{all(there)[1]}})
	cfg := StepConfig{Crawl: c, Process: "p", MailEvery: 2 * time.Second, CommitEvery: 2 * time.Second, Deadline: 10 * time.Second}
	w.step(cfg, nil)
	sent := w.lost(1)
	if len(sent) < 5 {
		t.Fatalf("only %d messages to lose", len(sent))
	}
	began := w.Mono
	for range 3 {
		w.tick(c.ID)
		if again := w.lost(1); len(again) > 0 {
			t.Fatalf("%d messages are sent again after %v", len(again), w.Mono-began)
		}
		w.Mono += 4 * time.Minute
	}
	again := 0
	for range 3 {
		w.tick(c.ID)
		got := w.lost(1)
		if len(got) > 0 {
			again++
			if d := cmp.Diff(sent, got); d != "" {
				t.Errorf("sent again (-want +got):\n%s", d)
			}
		}
		w.Mono += 6 * time.Minute
	}
	if again != 2 {
		t.Errorf("it was sent again %d times in 18 minutes", again)
	}
	// Half of it is applied: the seeds and one mail of partition 0.
	var half, rest [][]byte
	for i, body := range sent {
		if i%2 == 0 {
			half = append(half, []byte(body))
		} else {
			rest = append(rest, []byte(body))
		}
	}
	for _, k := range []struct{ give, missing [][]byte }{{half, rest}, {rest, nil}} {
		if _, err := w.apply(actor.Send{Queue: naming.MailboxQueue(1), Bodies: k.give}); err != nil {
			t.Fatal(err)
		}
		w.step(StepConfig{Crawl: c, Partition: 1, Process: "p"}, nil)
		w.Mono += 11 * time.Minute
		w.tick(c.ID)
		var want []string
		for _, b := range k.missing {
			want = append(want, string(b))
		}
		if d := cmp.Diff(want, w.lost(1)); d != "" {
			t.Errorf("sent again when half is applied (-want +got):\n%s", d)
		}
	}
	if n := len(w.requests().Outbox); n != 0 {
		t.Errorf("%d requests are remembered", n)
	}
}

// TestLooksForLostMail checks that lost mail is looked up in the newest commits first, and in no more than necessary. Seeds
// go only to the initial partitions.
func TestLooksForLostMail(t *testing.T) {
	w, s := newScene(t)
	const n = 6 // commits of partition 0, each with one mail to 1 and one to 2
	var com blobschema.Commit
	for seq := uint64(1); seq <= n; seq++ {
		com.Manifest = blobschema.Manifest{Partition: 0, Fence: 4, Seq: seq, Epoch: 1}
		if seq > 1 {
			com.Manifest.Commits = []blobschema.CommitRange{{Fence: 4, From: 1, To: seq - 1}}
		}
		com.Outbox = nil
		for p := partition.ID(1); p < 3; p++ {
			com.Outbox = append(com.Outbox, blobschema.OutMail{To: p, Number: seq, Body: fmt.Append(nil, p, seq)})
		}
		s.heads[0].Commit = w.stored(s.crawl, com)
	}
	s.heads[0].Seq, s.heads[0].Published, s.heads[0].Sent, s.record.Copied[0] = n, n, []uint64{0, n, n}, n
	applied := map[partition.ID]blobschema.Marks{partition.Intake: {Low: 1}, 0: {Low: 3, Above: []uint64{5, 6}}}
	s.heads[1].Commit = w.stored(s.crawl, blobschema.Commit{Manifest: blobschema.Manifest{Partition: 1, Fence: 4, Seq: 3, Epoch: 1, Applied: applied}})
	s.heads[1].Applied = 6
	s.moves = blobschema.MapRecord{Version: 1, Epoch: 2, Partitions: 3}
	s.desired.Map, s.record.ResentAt = 1, virtual.Epoch
	third := blobschema.Head{Partition: 2, Fence: 1, Seq: 1, Published: 1, Desired: 1, Applied: n - 1}
	applied = map[partition.ID]blobschema.Marks{0: {Low: n - 1}}
	third.Commit = w.stored(s.crawl, blobschema.Commit{Manifest: blobschema.Manifest{Partition: 2, Fence: 1, Seq: 1, Epoch: 1, Applied: applied}})
	s.record.Copied[2] = 1
	s.write(w)
	w.writeRecord(naming.HeadKey(s.crawl.ID, 2), third)
	w.queues = map[string][]actor.Message{}
	s.tick(w)
	want := []string{string(fmt.Append(nil, 1, 4))}
	if d := cmp.Diff(want, w.lost(1)); d != "" {
		t.Errorf("sent to 1 again (-want +got):\n%s", d)
	}
	want = []string{string(fmt.Append(nil, 2, n))}
	if d := cmp.Diff(want, w.lost(2)); d != "" {
		t.Errorf("sent to 2 again (-want +got):\n%s", d)
	}
	if n := w.counts["GetObject"]; n != 2+2+3+1 { // manifests of the receivers, and of the sender for each; commits 6, 5, 4; and 6
		t.Errorf("it took %d reads", n)
	}
}

// TestHostsOfMany checks that copying the estimates of many partitions continues in the next run if one run has no time for
// all.
func TestHostsOfMany(t *testing.T) {
	w, s := newScene(t)
	s.record.Copied, s.cfg.HostsEvery = nil, time.Minute
	for _, h := range s.heads {
		var com blobschema.Commit
		for seq := uint64(1); seq <= 3; seq++ {
			com.Manifest = blobschema.Manifest{Partition: h.Partition, Fence: 4, Seq: seq, Epoch: 1}
			if seq > 1 {
				com.Manifest.Commits = []blobschema.CommitRange{{Fence: 4, From: 1, To: seq - 1}}
			}
			h.Commit = w.stored(s.crawl, com)
		}
	}
	s.heads[0].Totals.Pending = 1 // the crawl is not over
	s.write(w)
	w.fault = func(e actor.Effect) (error, error) {
		if _, ok := e.(actor.GetObject); ok {
			w.Mono += copyFor/3 + time.Second
		}
		return nil, nil
	}
	var got []map[partition.ID]uint64
	for range 5 {
		s.tick(w)
		s.remembered(w)
		got = append(got, s.record.Copied)
		w.Mono += time.Second
	}
	want := []map[partition.ID]uint64{{0: 2}, {0: 3, 1: 1}, {0: 3, 1: 3}, {0: 3, 1: 3}, {0: 3, 1: 3}}
	if d := cmp.Diff(want, got); d != "" || s.record.CopiedAt.IsZero() {
		t.Errorf("copied at %v (-want +got):\n%s", s.record.CopiedAt, d)
	}
}
