package crawl

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/virtual"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

func urls(t testing.TB, raw ...string) (out []weburl.URL) {
	t.Helper()
	for _, r := range raw {
		out = append(out, parseURL(t, r))
	}
	return out
}

func newCrawl(partitions int) blobschema.Crawl {
	return blobschema.Crawl{
		ID: "test", HashKey: make([]byte, 16), Created: virtual.Epoch, Slots: 64, Partitions: partitions,
		Settings: blobschema.Settings{Scope: blobschema.ScopeAny, MaxDepth: -1, Delay: time.Second, UserAgent: "test"},
	}
}

// ofPartition returns a host that belongs to a partition.
func ofPartition(t testing.TB, c blobschema.Crawl, p partition.ID) string {
	t.Helper()
	h, err := c.Hash()
	if err != nil {
		t.Fatal(err)
	}
	m, err := partition.NewMap(c.Slots, c.Partitions)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		if host := fmt.Sprintf("h%d.example", i); m.Owner(h.Slot(host)) == p {
			return host
		}
	}
}

const pages = 50

// all returns the URLs of a site's pages.
func all(host string) (out []string) {
	for i := range pages {
		out = append(out, fmt.Sprintf("https://%s/%d", host, i))
	}
	return out
}

// TestStepCost pins what a small crawl costs: 50 pages of one host, a second apart, make two commits, one half a minute
// after the start and one at the end. A change to a number here changes the bill and needs a good reason.
func TestStepCost(t *testing.T) {
	c, host := newCrawl(1), "www.example"
	w := newWorld(t)
	w.web = site(t, host, pages, func(int) []string { return all(host) })

	b := NewBegin(c, Seeds(urls(t, all(host)[0])), nil)
	counts, err := w.run(b)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{
		"ReadRecords": 1, // the active crawl
		"PutObject":   1, // the seeds
		"WriteRecord": 2, // the crawl and the active crawl
	}
	if d := cmp.Diff(want, counts); d != "" {
		t.Errorf("to begin (-want +got):\n%s", d)
	}
	c, _, _ = b.Crawl()

	report, counts := w.tick(c.ID)
	want = map[string]int{
		"ReadRecords": 3, // the crawl, its desired state and its grants in one; all heads; the crawl to change it
		"GetObject":   1, // the seeds
		"Send":        2, // their mail and a wake
		"WriteRecord": 1, // that they were sent
	}
	if d := cmp.Diff(want, counts); d != "" || len(report.Woken) != 1 {
		t.Errorf("first tick wakes %v (-want +got):\n%s", report.Woken, d)
	}

	s, counts := w.step(StepConfig{Crawl: c, Process: "p"}, nil)
	delete(counts, "Sleep") // costs nothing
	want = map[string]int{
		"Fetch":       1 + pages, // robots.txt
		"ReadRecords": 4,         // the head; and at the start and with each commit the desired state
		"WriteRecord": 4,         // the lease, two commits, the end of the lease
		"PutObject":   4,         // a WARC and a commit, twice
		"Work":        2,         // to encode the commits
		"Receive":     4,         // the seeds; then every 20 s
		"Acknowledge": 1,
	}
	if d := cmp.Diff(want, counts); d != "" {
		t.Errorf("the step (-want +got):\n%s", d)
	}
	head := naming.HeadKey(c.ID, 0)
	if d := cmp.Diff([]string{head, head, head, head}, w.written); d != "" {
		t.Errorf("records written (-want +got):\n%s", d)
	}
	wantPut := []string{
		"test/warc/orbweaver-test-p00000-f00000001-000001.warc", "test/p00000/c0000000001-f00000001",
		"test/warc/orbweaver-test-p00000-f00000001-000002.warc", "test/p00000/c0000000002-f00000001",
	}
	if d := cmp.Diff(wantPut, w.put); d != "" {
		t.Errorf("objects put (-want +got):\n%s", d)
	}
	checkPages(t, w, c.ID, 0, all(host))
	h := w.head(c.ID, 0)
	if h.Owner != "" || h.Fence != 1 || h.Seq != 2 || h.Published != 2 || h.Applied != 1 || h.Totals.Pages != pages || h.Totals.Pending != 0 || !h.Due.IsZero() {
		t.Errorf("the head is %+v", h)
	}
	if len(w.mail) != 1 { // the wake, which the trigger acknowledges
		t.Errorf("%d messages are left", len(w.mail))
	}
	checkIdleSteps(t, w, c, s.Warm())
}

// TestFolderCommits checks that a folder commits its first pages within two seconds, and that commits soon become rare.
func TestFolderCommits(t *testing.T) {
	c, host := newCrawl(1), "www.example"
	c.Settings.Delay = 100 * time.Millisecond
	w := newWorld(t)
	w.web = site(t, host, 4000, func(i int) []string { return []string{fmt.Sprintf("https://%s/%d", host, i+1)} })
	c = w.begin(c, all(host)[0])
	began := w.Mono
	var at []float64 // seconds
	w.fault = func(e actor.Effect) (before, after error) {
		if p, ok := e.(actor.PutObject); ok && strings.Contains(p.Name, "/c0") {
			at = append(at, (w.Mono - began).Round(100*time.Millisecond).Seconds())
		}
		return nil, nil
	}
	w.step(StepConfig{Crawl: c, Process: "p", Exclusive: true, Deadline: 3 * time.Minute}, nil)
	want := []float64{1.1, 2.1, 3.1, 4.7, 7, 10.5, 15.7, 23.6, 35.4, 53.1, 79.6, 109.6, 139.6, 169.6, 180.1}
	if d := cmp.Diff(want, at); d != "" {
		t.Errorf("seconds at which commits are stored (-want +got):\n%s", d)
	}
}

// checkIdleSteps checks steps that were woken without work.
func checkIdleSteps(t *testing.T, w *world, c blobschema.Crawl, warm *Warm) {
	t.Helper()
	for _, k := range []struct {
		name string
		warm *Warm
		gets int
	}{{"warm", warm, 0}, {"cold", nil, 1}} { // the commit that the head names
		_, counts := w.step(StepConfig{Crawl: c, Process: "p"}, k.warm)
		delete(counts, "Sleep")
		want := map[string]int{"ReadRecords": 2, "WriteRecord": 2, "Receive": 2} // whether there is mail; then until it ends
		if k.gets > 0 {
			want["GetObject"] = k.gets
		}
		if d := cmp.Diff(want, counts); d != "" {
			t.Errorf("a %s step with nothing to do (-want +got):\n%s", k.name, d)
		}
	}
	report, counts := w.tick(c.ID)
	if d := cmp.Diff(map[string]int{"ReadRecords": 2}, counts); d != "" || !report.Quiet || report.Finished {
		t.Errorf("an idle tick: %+v (-want +got):\n%s", report, d)
	}
	report, counts = w.tick(c.ID)
	want := map[string]int{
		"ReadRecords": 4, // the crawl, its desired state and its grants; the heads; a pack of hosts; the coordinator's record
		"GetObject":   3, // the manifest, and the hosts of the two commits
		"WriteRecord": 2, // the pack and the coordinator's record
	}
	if d := cmp.Diff(want, counts); d != "" || !report.Finished {
		t.Errorf("the tick that finds the end, and copies hosts: %+v (-want +got):\n%s", report, d)
	}
	w.memory = TickMemory{} // another process
	w.tick(c.ID)
	if _, counts = w.tick(c.ID); cmp.Diff(map[string]int{"ReadRecords": 2}, counts) != "" {
		t.Errorf("a tick of another process does the work of the first again: %v", counts)
	}
	var pack HostPack
	w.record(naming.HostsKey(c.ID, 0, 0), &pack)
	if got := pack.Hosts["www.example"]; got.Commit != 2 || got.Requests != 1+pages || got.Resp != fetchTime {
		t.Errorf("the pack of hosts is %+v", pack)
	}
}

// checkPages checks that a partition shows exactly these pages, each once (I8).
func checkPages(t *testing.T, w *world, crawl string, p partition.ID, want []string) {
	t.Helper()
	once := map[string]int{}
	for _, u := range want {
		once[u] = 1
	}
	if d := cmp.Diff(once, w.visible(crawl, p)); d != "" {
		t.Errorf("pages of partition %d (-want +got):\n%s", p, d)
	}
}

// TestMailCost checks that links to another partition that are found one by one are buffered, and go into one message.
func TestMailCost(t *testing.T) {
	c := newCrawl(2)
	here, there := ofPartition(t, c, 0), ofPartition(t, c, 1)
	w := newWorld(t)
	w.web = site(t, here, pages, func(i int) []string { return append(all(here), all(there)[i]) })
	c = w.begin(c, all(here)[0])
	w.queues = map[string][]actor.Message{naming.MailboxQueue(0): w.queues[naming.MailboxQueue(0)]}

	_, counts := w.step(StepConfig{Crawl: c, Process: "p", MailEvery: time.Hour}, nil)
	delete(counts, "Sleep")
	want := map[string]int{
		"Fetch": 1 + pages, "ReadRecords": 4, "WriteRecord": 4, "PutObject": 4, "Work": 2, "Receive": 4, "Acknowledge": 1,
		"Send": 1,
	}
	if d := cmp.Diff(want, counts); d != "" {
		t.Errorf("the step (-want +got):\n%s", d)
	}
	checkPages(t, w, c.ID, 0, all(here))
	sent := w.queues[naming.MailboxQueue(1)]
	if len(sent) != 1 {
		t.Fatalf("%d messages", len(sent))
	}
	m, err := blobschema.DecodeMail(sent[0].Body)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, q := range m.URLs {
		got = append(got, q.URL)
		if want := uint16(2); q.Depth != want && q.URL != all(there)[0] {
			t.Errorf("%s has depth %d, not %d", q.URL, q.Depth, want)
		}
	}
	slices.Sort(got)
	if d := cmp.Diff(slices.Sorted(slices.Values(all(there))), got); d != "" || m.From != 0 || m.To != 1 || m.Number != 1 {
		t.Errorf("mail %d from %d to %d (-want +got):\n%s", m.Number, m.From, m.To, d)
	}
	if d := cmp.Diff([]uint64{0, 1}, w.head(c.ID, 0).Sent); d != "" {
		t.Errorf("mail sent as the head says (-want +got):\n%s", d)
	}
}

// TestRepeatedMail checks that mail that is delivered again is recognised by its number, acknowledged with the next commit,
// and changes nothing.
func TestRepeatedMail(t *testing.T) {
	c, host := newCrawl(1), "www.example"
	w := newWorld(t)
	w.web = site(t, host, pages, func(int) []string { return nil })
	c = w.begin(c, all(host)...)
	box := naming.MailboxQueue(0)
	mail := w.queues[box][0].Body
	for range 3 {
		if _, err := w.apply(actor.Send{Queue: box, Bodies: [][]byte{mail}}); err != nil {
			t.Fatal(err)
		}
	}
	w.step(StepConfig{Crawl: c, Process: "p"}, nil)
	checkPages(t, w, c.ID, 0, all(host))
	if _, err := w.apply(actor.Send{Queue: box, Bodies: [][]byte{mail}}); err != nil {
		t.Fatal(err)
	}
	_, counts := w.step(StepConfig{Crawl: c, Process: "p"}, nil)
	if counts["Fetch"] != 0 || counts["Acknowledge"] != 1 || len(w.queues[box]) != 0 || len(w.mail) != 1 {
		t.Errorf("%v, %d messages are left", counts, len(w.mail))
	}
	if h := w.head(c.ID, 0); h.Applied != 1 || h.Totals.Known != pages {
		t.Errorf("the head is %+v", h)
	}
}

// TestLease checks a lease that is valid, expired, released, or void because another process held it.
func TestLease(t *testing.T) {
	c := newCrawl(1)
	for _, k := range []struct {
		name      string
		owner     string
		until     time.Duration
		exclusive bool
		err       error
		crashed   bool // hosts rest for a pace, because nobody knows what was requested last
	}{
		{"held", "q/1", time.Second, false, ErrLeaseTaken, false},
		{"held by a step of this process", "p/1", time.Second, true, ErrLeaseTaken, false},
		{"held by another process that is gone", "q/1", time.Second, true, nil, true},
		{"of a process whose name begins alike", "pp/1", time.Second, true, nil, true},
		{"expired", "q/1", 0, false, nil, true},
		{"released", "", 0, false, nil, false},
	} {
		w := newWorld(t)
		c := w.begin(c, "https://www.example/0")
		w.web = site(t, "www.example", 1, func(int) []string { return nil })
		old := blobschema.Head{Fence: 7, Owner: k.owner, LeaseUntil: virtual.Epoch.Add(w.Mono + k.until)}
		if _, err := w.apply(actor.WriteRecord{Key: naming.HeadKey(c.ID, 0), Value: actor.Encode(old)}); err != nil {
			t.Fatal(err)
		}
		began, first := w.Mono, time.Duration(0)
		serve := w.web
		w.web = func(req actor.Request) *actor.Outcome {
			if first == 0 {
				first = w.Mono - fetchTime - began
			}
			return serve(req)
		}
		s, err := NewStep(StepConfig{Crawl: c, Process: "p", Exclusive: k.exclusive}, nil)
		if err != nil {
			t.Fatal(err)
		}
		counts, err := w.run(s)
		if !errors.Is(err, k.err) || k.err != nil && (counts["WriteRecord"] != 0 || s.Warm() != nil) {
			t.Errorf("%s: %v, %v", k.name, err, counts)
		}
		if k.err != nil {
			continue
		}
		if h := w.head(c.ID, 0); h.Fence != 8 || h.Owner != "" || h.Totals.Pages != 1 {
			t.Errorf("%s: the head is %+v", k.name, h)
		}
		if k.crashed != (first >= c.Settings.Delay) {
			t.Errorf("%s: the first request began after %v, the pace is %v", k.name, first, c.Settings.Delay)
		}
	}
}

// TestLeaseLost checks that a step whose head was replaced writes nothing more.
func TestLeaseLost(t *testing.T) {
	c, host := newCrawl(1), "www.example"
	w := newWorld(t)
	c = w.begin(c, all(host)...)
	serve := site(t, host, pages, func(int) []string { return nil })
	key, requests := naming.HeadKey(c.ID, 0), 0
	w.web = nil
	s, err := NewStep(StepConfig{Crawl: c, Process: "p"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	theirs := actor.Encode(blobschema.Head{Fence: 9, Owner: "q/9"})
	w.web = func(req actor.Request) *actor.Outcome {
		if requests++; requests == 10 {
			if _, err := w.apply(actor.WriteRecord{Key: key, Value: theirs, Revision: w.Table[key].Revision}); err != nil {
				t.Error(err)
			}
		}
		return serve(req)
	}
	if _, err := w.run(s); !errors.Is(err, ErrLeaseLost) || s.Warm() != nil {
		t.Errorf("the step ended with %v", err)
	}
	if got := w.Table[key].Value; string(got) != string(theirs) {
		t.Errorf("the head is %s", got)
	}
	if w.counts["Acknowledge"] != 0 {
		t.Error("mail was acknowledged without a commit")
	}
}

// TestStop checks that a stopped step aborts its requests, commits finished work and releases the lease.
func TestStop(t *testing.T) {
	c, host := newCrawl(1), "www.example"
	w := newWorld(t)
	w.web = site(t, host, pages, func(int) []string { return nil })
	c = w.begin(c, all(host)...)
	before := runtime.NumGoroutine()
	w.step(StepConfig{Crawl: c, Process: "p", Deadline: 10 * time.Second}, nil)
	for tries := 0; runtime.NumGoroutine() > before; tries++ { // a goroutine that has ended may be counted for a moment
		if tries == 10_000 {
			t.Errorf("%d coroutines are left", runtime.NumGoroutine()-before)
			break
		}
		runtime.Gosched()
	}
	h := w.head(c.ID, 0)
	if h.Owner != "" || h.Seq != 1 || h.Totals.Pages != 10 || h.Totals.Pending != pages-10 || h.Due.IsZero() {
		t.Errorf("the head is %+v", h)
	}
	if n := len(w.visible(c.ID, 0)); n != 10 {
		t.Errorf("%d pages are visible", n)
	}
	w.step(StepConfig{Crawl: c, Process: "p"}, nil) // the next step does the rest
	checkPages(t, w, c.ID, 0, all(host))
}

// TestFloorOutlivesStep checks that hosts rest for a pace after a takeover, even if the step that took over has ended
// meanwhile (I9).
func TestFloorOutlivesStep(t *testing.T) {
	c, host, w := newCrawl(1), "www.example", newWorld(t)
	serve := site(t, host, pages, func(int) []string { return nil })
	var takeover time.Duration
	w.web = func(r actor.Request) *actor.Outcome {
		if began := w.Mono - fetchTime; takeover > 0 && began < takeover+c.Settings.Delay {
			t.Errorf("%s %v after a takeover", r.URL, began-takeover)
		}
		return serve(r)
	}
	c = w.begin(c, all(host)...)
	w.step(StepConfig{Crawl: c, Process: "p1", Exclusive: true, Deadline: 10 * time.Second}, nil)
	w.Mono += 5 * time.Second
	key, h := naming.HeadKey(c.ID, 0), w.head(c.ID, 0) // a step of p2 took the lease, made requests, and crashed
	h.Fence, h.Owner, h.LeaseUntil = h.Fence+1, "p2/2", virtual.Epoch.Add(w.Mono+time.Minute)
	if _, err := w.apply(actor.WriteRecord{Key: key, Value: actor.Encode(h), Revision: w.Table[key].Revision}); err != nil {
		t.Fatal(err)
	}
	takeover = w.Mono
	w.step(StepConfig{Crawl: c, Process: "p3", Exclusive: true, Deadline: 100 * time.Millisecond}, nil)
	w.step(StepConfig{Crawl: c, Process: "p4", Exclusive: true, Deadline: 10 * time.Second}, nil)
}
