package crawl

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

// says changes a partition's head.
func (w *world) says(c blobschema.Crawl, p partition.ID, h blobschema.Head) {
	w.t.Helper()
	key := naming.HeadKey(c.ID, p)
	if _, err := w.apply(actor.WriteRecord{Key: key, Value: actor.Encode(h), Revision: w.Table[key].Revision}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) desired(c blobschema.Crawl) (desired blobschema.DesiredState) {
	w.t.Helper()
	w.tick(c.ID)
	if w.Table[naming.DesiredKey(c.ID)].Found {
		w.record(naming.DesiredKey(c.ID), &desired)
	}
	return desired
}

// TestMinimum checks that a topic that has reached its minimum of pages has a shorter slice until its period ends, and that
// periods follow one another.
func TestMinimum(t *testing.T) {
	c := newCrawl(2)
	c.Settings.Topics = []blobschema.Topic{
		{Name: "a", MaxDepth: -1, Minimum: 10, Period: time.Hour, Slice: 8 * time.Second}, {Name: "b", MaxDepth: -1, Minimum: 10},
		{Name: "c", MaxDepth: -1}, {Name: "d", MaxDepth: -1, Minimum: 5, Period: time.Hour, Slice: 2 * minSlice},
		{Name: "e", MaxDepth: -1, Minimum: 5, Period: time.Hour, Slice: time.Millisecond}, // shorter than any slice that the watcher sets
	}
	w := newWorld(t)
	c = w.begin(c, "https://"+ofPartition(t, c, 0)+"/0", "https://"+ofPartition(t, c, 1)+"/0")
	pages := func(a, b, d int64) {
		w.says(c, 0, blobschema.Head{Fence: 1, Totals: blobschema.Totals{Topics: map[uint8]blobschema.TopicTotals{1: {Pages: a}, 3: {Pages: 1000}}}})
		w.says(c, 1, blobschema.Head{Fence: 1, Totals: blobschema.Totals{Topics: map[uint8]blobschema.TopicTotals{1: {Pages: 2}, 2: {Pages: b}, 4: {Pages: d}, 5: {Pages: d}}}})
	}
	const day = blobschema.DefaultSlice / 8 // of the topic without period and slice
	for _, step := range []struct {
		after   time.Duration
		a, b, d int64
		want    map[uint8]time.Duration
	}{
		{0, 1, 1, 0, nil},
		{20 * time.Minute, 7, 9, 4, nil},
		{0, 8, 9, 4, map[uint8]time.Duration{1: time.Second}},
		{0, 8, 10, 5, map[uint8]time.Duration{1: time.Second, 2: day, 4: minSlice, 5: time.Millisecond}},
		{41 * time.Minute, 8, 10, 5, map[uint8]time.Duration{2: day}}, // the second period has begun
		{0, 17, 10, 9, map[uint8]time.Duration{2: day}},
		{0, 18, 10, 9, map[uint8]time.Duration{1: time.Second, 2: day}},
		{58 * time.Minute, 18, 10, 9, map[uint8]time.Duration{1: time.Second, 2: day}},
		{2 * time.Minute, 18, 10, 9, map[uint8]time.Duration{2: day}},
		{10 * time.Hour, 30, 10, 9, map[uint8]time.Duration{2: day}}, // hours later a new period begins
		{59 * time.Minute, 40, 10, 9, map[uint8]time.Duration{1: time.Second, 2: day}},
		{24 * time.Hour, 40, 10, 9, nil},
	} {
		w.Mono += step.after
		pages(step.a, step.b, step.d)
		if d := cmp.Diff(step.want, w.desired(c).Slices); d != "" {
			t.Errorf("%+v (-want +got):\n%s", step, d)
		}
	}
}

// TestWhatPartitionsFind checks that hosts that seeds redirect to, and domains with too many URLs in all partitions
// together, are in the desired state once.
func TestWhatPartitionsFind(t *testing.T) {
	c := newCrawl(2)
	c.Settings.MaxDomainURLs = 10
	w := newWorld(t)
	c = w.begin(c, "https://"+ofPartition(t, c, 0)+"/0", "https://"+ofPartition(t, c, 1)+"/0")
	before := w.desired(c)
	w.says(c, 0, blobschema.Head{Fence: 1, Scope: []string{"a.example", "1/b.example"}, Domains: map[string]int64{"few.example": 5, "many.example": 5, "more.example": 11}})
	w.says(c, 1, blobschema.Head{Fence: 1, Scope: []string{"a.example"}, Domains: map[string]int64{"few.example": 4, "many.example": 5}})
	for range 2 {
		got := w.desired(c)
		want := blobschema.DesiredState{Version: before.Version + 1, Scope: []string{"a.example", "1/b.example"}, Capped: []string{"many.example", "more.example"}}
		half := []string{"few.example", "many.example", "more.example"}
		if d := cmp.Diff(want.Scope, got.Scope) + cmp.Diff(want.Capped, got.Capped) + cmp.Diff(half, got.HalfCapped); d != "" || got.Version != want.Version {
			t.Errorf("version %d, want %d (-want +got):\n%s", got.Version, want.Version, d)
		}
	}
}

// TestScopeEntries checks that a host enters the scope of a topic by its entry.
func TestScopeEntries(t *testing.T) {
	c := newCrawl(1)
	c.Settings.Scope = blobschema.ScopeHost
	c.Settings.Topics = []blobschema.Topic{{Name: "a", MaxDepth: -1, Scope: blobschema.ScopeHost}}
	l, err := newScopes(&c.Settings)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []struct {
		topic uint8
		host  string
	}{{0, "a.example"}, {0, "a.example"}, {1, "a.example"}, {1, "b.example:81"}, {2, "c.example"}, {255, "c.example"}} {
		h := parseURL(t, "https://"+e.host+"/").Host()
		l.add(ScopeEntry(e.topic, h))
	}
	for _, bad := range []string{"", "/a.example", "256/d.example", "x/d.example", "1/"} {
		l.add(bad)
	}
	for topic, want := range map[uint8]string{0: "+--", 1: "++-", 2: "+--"} { // an unknown topic has the crawl's own scope
		got := ""
		for _, host := range []string{"a.example", "b.example:81", "c.example"} {
			if l.of(topic).host(parseURL(t, "https://"+host+"/").Host()) {
				got += "+"
			} else {
				got += "-"
			}
		}
		if got != want {
			t.Errorf("topic %d: %s, want %s", topic, got, want)
		}
	}
}

// TestBadMail checks that an unreadable message is left in the queue once and then becomes a dead letter with its reason,
// once. Mail of another crawl is deleted.
func TestBadMail(t *testing.T) {
	c := newCrawl(2)
	w := newWorld(t)
	here := ofPartition(t, c, 0)
	w.web = site(t, here, 1, func(int) []string { return nil })
	c = w.begin(c, "https://"+here+"/0")
	box := naming.MailboxQueue(0)
	encode := func(crawl string, to partition.ID) []byte {
		b, err := blobschema.EncodeMail(blobschema.Mail{Crawl: crawl, From: 1, To: to, Number: 1, Epoch: 1})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var acknowledged []any
	w.fault = func(e actor.Effect) (before, after error) {
		if a, ok := e.(actor.Acknowledge); ok {
			for _, r := range a.Receipts {
				if _, ok := w.mail[r]; !ok {
					acknowledged = append(acknowledged, r)
					delete(w.mail, r)
				}
			}
			return errLost, nil
		}
		return nil, nil
	}
	w.queues[box] = append(w.queues[box],
		actor.Message{Body: []byte("first time"), Receipt: "first", Receives: 1},
		actor.Message{Body: []byte("second time"), Receipt: "second", Receives: 2},
		actor.Message{Body: []byte("second time"), Receipt: "repeated", Receives: 2},
		actor.Message{Body: encode("older", 0), Receipt: "older", Receives: 1},
		actor.Message{Body: encode(c.ID, 1), Receipt: "misled", Receives: 1},
	)
	w.step(StepConfig{Crawl: c, Process: "p"}, nil)
	if d := cmp.Diff([]any{"second", "repeated", "older", "misled"}, acknowledged); d != "" {
		t.Errorf("acknowledged (-want +got):\n%s", d)
	}
	reasons := map[string]int{}
	for name, b := range w.Objects {
		if len(name) > len(naming.DeadPrefix(c.ID)) && name[:len(naming.DeadPrefix(c.ID))] == naming.DeadPrefix(c.ID) {
			d, err := actor.Decode[DeadLetter](actor.Record{Value: b, Found: true}, "dead letter")
			if err != nil || d.Crawl != c.ID || d.Partition != 0 || d.Reason == "" {
				t.Errorf("%s: %+v, %v", name, d, err)
			}
			reasons[string(d.Body)]++
		}
	}
	if d := cmp.Diff(map[string]int{"second time": 1, string(encode(c.ID, 1)): 1}, reasons); d != "" {
		t.Errorf("put aside (-want +got):\n%s", d)
	}
	if n := w.head(c.ID, 0).Totals.DeadMail; n != 2 {
		t.Errorf("%d messages are counted", n)
	}
}
