package view_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/fsck"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/partition"
	"github.com/orbweaver/orbweaver/platform"
)

// shared returns a platform in memory that others may use too, as in a cloud.
func shared(t *testing.T) *platform.Platform {
	t.Helper()
	p, err := drivers.Memory(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	p.Exclusive = false
	return p
}

func write(t *testing.T, p *platform.Platform, key string, v any) {
	t.Helper()
	recs, err := engine.ReadRecords(t.Context(), p, []string{key})
	if err != nil {
		t.Fatal(err)
	}
	value, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.WriteRecord(t.Context(), p, actor.WriteRecord{Key: key, Value: value, Revision: recs[0].Revision}); err != nil {
		t.Fatal(err)
	}
}

// TestStateOfShared checks that the state of a crawl on a shared platform follows from its records alone.
func TestStateOfShared(t *testing.T) {
	type head = blobschema.Head
	later, earlier := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	pending := blobschema.Totals{Pages: 5, Pending: 3, Known: 8}
	done := blobschema.Totals{Pages: 5, Known: 5}
	for _, tt := range []struct {
		name  string
		limit int64
		wish  blobschema.DesiredState
		reqs  blobschema.Requests
		head  *head
		want  view.State
	}{
		{"nothing yet", 0, blobschema.DesiredState{}, blobschema.Requests{}, nil, view.Running},
		{"nothing yet, stopped", 0, blobschema.DesiredState{Stop: true}, blobschema.Requests{}, nil, view.Stopped},
		{"at work", 0, blobschema.DesiredState{}, blobschema.Requests{}, &head{Owner: "a", LeaseUntil: later, Applied: 1, Totals: done}, view.Running},
		{"at work, to be stopped", 0, blobschema.DesiredState{Stop: true}, blobschema.Requests{}, &head{Owner: "a", LeaseUntil: later, Applied: 1, Totals: pending}, view.Running},
		{"crashed", 0, blobschema.DesiredState{}, blobschema.Requests{}, &head{Owner: "a", LeaseUntil: earlier, Applied: 1, Totals: pending}, view.Running},
		{"due", 0, blobschema.DesiredState{}, blobschema.Requests{}, &head{Due: earlier, Applied: 1, Totals: pending}, view.Running},
		{"due later", 0, blobschema.DesiredState{}, blobschema.Requests{}, &head{Due: later, Applied: 1, Totals: pending}, view.Idle},
		{"paused", 0, blobschema.DesiredState{Pause: true}, blobschema.Requests{}, &head{Due: earlier, Applied: 1, Totals: pending}, view.Paused},
		{"stopped", 0, blobschema.DesiredState{Stop: true}, blobschema.Requests{}, &head{Due: earlier, Applied: 1, Totals: pending}, view.Stopped},
		{"finished", 0, blobschema.DesiredState{}, blobschema.Requests{}, &head{Applied: 1, Totals: done}, view.Finished},
		{"finished, and stopped", 0, blobschema.DesiredState{Stop: true}, blobschema.Requests{}, &head{Applied: 1, Totals: done}, view.Finished},
		{"the limit", 5, blobschema.DesiredState{}, blobschema.Requests{}, &head{Due: earlier, Applied: 1, Totals: pending}, view.Limited},
		{"the limit, and a request", 5, blobschema.DesiredState{}, blobschema.Requests{Sent: map[partition.ID]uint64{0: 1}}, &head{Due: earlier, Applied: 1, Totals: pending}, view.Running},
		{"the limit, and an old request", 5, blobschema.DesiredState{}, blobschema.Requests{Sent: map[partition.ID]uint64{0: 1}}, &head{Due: earlier, Applied: 2, Requests: 1, Totals: pending}, view.Limited},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := shared(t)
			write(t, p, naming.ActiveKey, map[string]string{"crawl": "x"})
			write(t, p, naming.CrawlKey("x"), blobschema.Crawl{
				Version: wire.Version, ID: "x", HashKey: make([]byte, 16), Slots: 8, Partitions: 1, Settings: blobschema.Settings{MaxPages: tt.limit},
				SeedBatches: []string{"s"}, Published: 1,
			})
			write(t, p, naming.DesiredKey("x"), tt.wish)
			tt.reqs.Calls.BlobGets = 100
			write(t, p, naming.RequestsKey("x"), tt.reqs)
			write(t, p, naming.TickKey("x"), blobschema.TickRecord{Calls: blobschema.Calls{BlobGets: 20}})
			if tt.head != nil {
				tt.head.Calls.BlobGets = 3
				write(t, p, naming.HeadKey("x", 0), tt.head)
			}
			v, err := view.New(t.Context(), engine.Store{Platform: p})
			if err != nil {
				t.Fatal(err)
			}
			s, err := v.Status(t.Context())
			if err != nil || s.State != tt.want {
				t.Errorf("%s, %v, want %s", s.State, err, tt.want)
			}
			if want := int64(120 + 3*len(s.Heads)); s.Calls.BlobGets != want {
				t.Errorf("%d gets, want %d", s.Calls.BlobGets, want)
			}
		})
	}
}

// TestStatusOfFollowers checks that the progress of index and ranks follows from the records.
func TestStatusOfFollowers(t *testing.T) {
	p := shared(t)
	write(t, p, naming.ActiveKey, map[string]string{"crawl": "x"})
	c := blobschema.Crawl{Version: wire.Version, ID: "x", HashKey: make([]byte, 16), Slots: 8, Partitions: 3, Settings: blobschema.Settings{Index: true}}
	write(t, p, naming.CrawlKey("x"), c)
	for i, seq := range []uint64{7, 5, 2} {
		write(t, p, naming.HeadKey("x", partition.ID(i)), blobschema.Head{Partition: partition.ID(i), Seq: seq})
	}
	calls := blobschema.Calls{BlobGets: 10}
	write(t, p, naming.IndexKey("x", 0), blobschema.IndexHead{Partition: 0, Number: 3, Seq: 7, Calls: calls})
	write(t, p, naming.IndexKey("x", 1), blobschema.IndexHead{Partition: 1, Number: 1, Seq: 4, Calls: calls})
	write(t, p, naming.RankKey("x"), ranks.Job{Version: wire.Version, Number: 2, Started: time.Now(), Inputs: make([]ranks.Input, 3)})
	for i := range partition.ID(3) {
		h := ranks.Head{Partition: i, Job: 2, Calls: calls, Rounds: []ranks.Round{{Number: int(i) + 4}}}
		write(t, p, naming.RankHeadKey("x", i), h)
	}
	v, err := view.New(t.Context(), engine.Store{Platform: p})
	if err != nil {
		t.Fatal(err)
	}
	s, err := v.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Index) != 2 || s.Index[1].Partition != 1 || s.Behind() != 3 || s.Calls.BlobGets != 50 || s.Ranks.Job.Number != 2 || s.Ranks.Round != 4 {
		t.Errorf("index %+v, %d commits behind, %d gets, ranks %+v", s.Index, s.Behind(), s.Calls.BlobGets, s.Ranks)
	}
	c.Settings.Index = false
	write(t, p, naming.CrawlKey("x"), c)
	if s, err = v.Status(t.Context()); err != nil || len(s.Index) != 0 || s.Ranks.Job.Number != 2 {
		t.Errorf("without an index: %+v, %v", s.Index, err)
	}
}

// TestReadsAhead checks that reading several objects at a time returns the same pages as reading one by one.
func TestReadsAhead(t *testing.T) {
	p := shared(t)
	p.Exclusive = true
	crawlInto(t, p, 0)
	slow, err := view.New(t.Context(), engine.Store{Platform: p})
	if err != nil {
		t.Fatal(err)
	}
	cloud := *p
	cloud.Exclusive = false
	fast, err := view.New(t.Context(), engine.Store{Platform: &cloud})
	if err != nil {
		t.Fatal(err)
	}
	want := all(t, slow, view.EveryRecord)
	if d := cmp.Diff(want, all(t, fast, view.EveryRecord)); d != "" || len(want) < 50 {
		t.Errorf("%d pages (-want +got):\n%s", len(want), d)
	}
	n := 0
	for range fast.Pages(t.Context(), view.EveryRecord) { // an early stop leaves no goroutine behind
		if n++; n == 7 {
			break
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range fast.Pages(ctx, view.EveryRecord) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v after the end", err)
		}
	}
}

// TestDeadLetters lists dead letters and those that were sent again.
func TestDeadLetters(t *testing.T) {
	p := shared(t)
	p.Exclusive = true
	crawlInto(t, p, 5)
	v, err := view.New(t.Context(), engine.Store{Platform: p})
	if err != nil {
		t.Fatal(err)
	}
	put := func(name string, data []byte) {
		t.Helper()
		if err := engine.PutObject(t.Context(), p, actor.PutObject{Name: name, Parts: [][]byte{data}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Millisecond) // times of puts differ
	}
	letter := func(body string) string {
		b, err := json.Marshal(crawl.DeadLetter{Crawl: crawlID, Partition: 3, Reason: "why " + body, Body: []byte(body)})
		if err != nil {
			t.Fatal(err)
		}
		name := naming.Dead(crawlID, []byte(body))
		put(name, b)
		return name
	}
	a, b, c := letter("a"), letter("b"), letter("c")
	put(naming.Replayed(b), nil)
	put(naming.Replayed(c), nil)
	letter("c") // it came back
	put(naming.Dead(crawlID, []byte("d")), []byte("{"))
	got, err := v.DeadLetters(t.Context())
	if err != nil || len(got) != 4 {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, want := range []struct {
		name, reason string
		replayed     bool
	}{{a, "why a", false}, {b, "why b", true}, {c, "why c", false}} {
		if l := got[i]; l.Name != want.name || l.Reason != want.reason || l.Replayed.IsZero() == want.replayed || l.Partition != 3 || l.At.IsZero() {
			t.Errorf("letter %d: %+v, want %+v", i, l, want)
		}
	}
	if l := got[3]; l.Reason == "" || string(l.Body) != "{" {
		t.Errorf("a letter that is none: %+v", l)
	}
	rep, err := fsck.Check(t.Context(), v.Store(), fsck.Options{})
	if err != nil || rep.Dead != 4 || rep.Orphans != 0 || !rep.Clean() {
		t.Errorf("check: %+v, %v", rep, err)
	}
}
