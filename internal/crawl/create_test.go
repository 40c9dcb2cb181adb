package crawl

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/internal/virtual"
	"github.com/orbweaver/orbweaver/partition"
)

// TestAnother checks that another crawl can be created only if the current one has ended and has no running step.
func TestAnother(t *testing.T) {
	const host = "www.example"
	lease := func(t *testing.T, w *world) {
		head := w.head("test", 0)
		head.Owner, head.LeaseUntil = "p/1", w.Now().Wall.Add(1e9)
		w.Table[naming.HeadKey("test", 0)] = actor.Record{Found: true, Value: actor.Encode(head), Revision: -1}
	}
	order := func(o Order) func(*testing.T, *world) {
		return func(t *testing.T, w *world) {
			if _, err := w.run(NewCommand("test", o)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tt := range []struct {
		name      string
		limit     int64 // pages
		seeds     int   // seeds, one of which is added after the step
		change    func(*testing.T, *world)
		exclusive bool
		want      error
	}{
		{"finished", 0, 1, nil, false, nil},
		{"the limit is reached", 2, 3, nil, false, nil},
		{"more seeds", 0, 2, nil, false, ErrUnfinished},
		{"paused", 0, 2, order(OrderPause), false, ErrUnfinished},
		{"stopped", 0, 2, order(OrderStop), false, nil},
		{"at work", 0, 1, lease, false, ErrAtWork},
		{"at work before us", 0, 1, lease, true, nil},
		{"of another version", 0, 1, func(t *testing.T, w *world) {
			w.Table[naming.CrawlKey("test")] = actor.Record{Found: true, Value: []byte(`{"version":99,"id":"test"}`), Revision: -1}
		}, false, wire.ErrVersion},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCrawl(1)
			c.Settings.MaxPages = tt.limit
			w := newWorld(t)
			w.web = site(t, host, pages, func(int) []string { return nil })
			c = w.begin(c, all(host)[:tt.seeds]...)
			w.step(StepConfig{Crawl: c, Process: "p"}, nil)
			if tt.limit == 0 && tt.seeds > 1 {
				if _, err := w.run(NewBegin(blobschema.Crawl{}, Seeds(urls(t, all(host)[:tt.seeds+1]...)), nil)); err != nil {
					t.Fatal(err)
				}
			}
			if tt.change != nil {
				tt.change(t, w)
			}
			next := newCrawl(2)
			next.ID = "next"
			b := NewAnother(next, Seeds(urls(t, all(host)[0])), tt.exclusive)
			_, err := w.run(b)
			if !errors.Is(err, tt.want) {
				t.Fatalf("%v, want %v", err, tt.want)
			}
			var now active
			w.record(naming.ActiveKey, &now)
			if wantID := map[bool]string{true: "next", false: "test"}[tt.want == nil]; now.Crawl != wantID {
				t.Errorf("active is %s, want %s", now.Crawl, wantID)
			}
			if _, created, added := b.Crawl(); created != (tt.want == nil) || created && added != 1 {
				t.Errorf("created %v, %d seeds", created, added)
			}
		})
	}
}

// TestAnotherFirst checks that NewAnother creates the first crawl if there is none.
func TestAnotherFirst(t *testing.T) {
	w := newWorld(t)
	if _, err := w.run(NewAnother(newCrawl(1), nil, false)); !errors.Is(err, ErrNoCrawl) {
		t.Errorf("without seeds: %v", err)
	}
	if _, err := w.run(NewAnother(newCrawl(1), Seeds(urls(t, "http://a.example/")), false)); err != nil {
		t.Error(err)
	}
	if _, err := w.run(NewAnother(newCrawl(1), Seeds(urls(t, "http://a.example/")), false)); !errors.Is(err, ErrUnfinished) {
		t.Errorf("again: %v", err)
	}
}

// TestBegin checks that seeds are stored in batches, and that an invalid crawl is not created.
func TestBegin(t *testing.T) {
	var many []string
	for i := range seedsPerBatch + 1 {
		many = append(many, fmt.Sprintf("https://www%d.example/", i))
	}
	topics := []blobschema.Topic{{Name: "a", MaxDepth: -1}}
	one := Seeds(urls(t, "https://www.example/"))
	byRanks := func(c *blobschema.Crawl) {
		c.Settings.Policy, c.Settings.Quality = "quality", schedule.HostRank
	}
	for _, k := range []struct {
		name    string
		set     func(*blobschema.Crawl)
		seeds   []Seed
		batches int // 0: no crawl is created
		err     error
	}{
		{"one seed", nil, one, 1, nil},
		{"a batch", nil, Seeds(urls(t, many[1:]...)), 1, nil},
		{"more than a batch", nil, Seeds(urls(t, many...)), 2, nil},
		{"no seed", nil, nil, 0, ErrNoCrawl},
		{"a topic", func(c *blobschema.Crawl) { c.Settings.Topics = topics }, []Seed{{URL: one[0].URL, Topic: 1}}, 1, nil},
		{"a topic that there is not", func(c *blobschema.Crawl) { c.Settings.Topics = topics }, []Seed{{URL: one[0].URL, Topic: 2}}, 0, nil},
		{"no partition", func(c *blobschema.Crawl) { c.Partitions = 0 }, one, 0, nil},
		{"by ranks that there are not", byRanks, one, 0, errNoRanks},
		{"by ranks that are given", func(c *blobschema.Crawl) { byRanks(c); c.Settings.HostRanks = "ranks" }, one, 1, nil},
		{"by ranks that will be computed", func(c *blobschema.Crawl) { byRanks(c); c.Settings.Index = true }, one, 1, nil},
		{"with a limit", func(c *blobschema.Crawl) { c.Settings.MaxPages = 7 }, one, 1, nil},
	} {
		t.Run(k.name, func(t *testing.T) {
			w, c := newWorld(t), newCrawl(2)
			if k.set != nil {
				k.set(&c)
			}
			b := NewBegin(c, k.seeds, nil)
			_, err := w.run(b)
			got, created, added := b.Crawl()
			if k.batches == 0 {
				if err == nil || k.err != nil && !errors.Is(err, k.err) || created || len(w.Table)+len(w.Objects) > 0 {
					t.Errorf("%v; created %v, records %v, objects %v", err, created, w.written, w.put)
				}
				return
			}
			var rec blobschema.Crawl
			w.record(naming.CrawlKey(c.ID), &rec)
			if d := cmp.Diff(rec, got); err != nil || d != "" || !created || added != len(k.seeds) || rec.Version != wire.Version || len(rec.SeedBatches) != k.batches {
				t.Errorf("%v; created %v with %d seeds in %d batches (-record +crawl):\n%s", err, created, added, len(rec.SeedBatches), d)
			}
			for i, name := range rec.SeedBatches {
				batch, err := blobschema.DecodeSeeds(w.Objects[name])
				if err != nil || batch.Number != uint64(i+1) || batch.URLs[0].Topic != k.seeds[0].Topic || batch.URLs[0].Flags != blobschema.FlagSeed {
					t.Errorf("batch %d: %v, %+v", i, err, batch)
				}
			}
			var g blobschema.Grants
			if limit := c.Settings.MaxPages; w.Table[naming.GrantsKey(c.ID)].Found != (limit > 0) {
				t.Errorf("a limit of %d, and grants %v", limit, w.Table[naming.GrantsKey(c.ID)].Found)
			} else if limit > 0 {
				if w.record(naming.GrantsKey(c.ID), &g); g.Limit != limit {
					t.Errorf("the limit is %d", g.Limit)
				}
			}
		})
	}
}

// TestGoOn checks that opening an existing crawl adds the seeds that are new, each once, and tells steps and coordinator
// runs exactly what changes for them.
func TestGoOn(t *testing.T) {
	for _, k := range []struct {
		name  string
		check func(*blobschema.Crawl) error
		seeds []string
		added int
		told  bool // steps
	}{
		{"nothing", nil, nil, 0, false},
		{"a look", func(*blobschema.Crawl) error { return nil }, nil, 0, false},
		{"known seeds", nil, []string{"https://www.example/"}, 0, false},
		{"new seeds", nil, []string{"https://www.example/", "https://b.example/", "https://b.example/", "https://c.example/"}, 2, true},
		{"topics", func(c *blobschema.Crawl) error {
			c.Settings.Topics = []blobschema.Topic{{Name: "a", MaxDepth: -1}}
			return nil
		}, nil, 0, true},
		{"hosts", func(c *blobschema.Crawl) error {
			c.Settings.Hosts = []blobschema.HostRule{{Host: "a.example", Connections: 2}}
			return nil
		}, nil, 0, true},
		{"looks", func(c *blobschema.Crawl) error { c.Settings.RecrawlPerHour = 3; return nil }, nil, 0, true},
		{"queues", func(c *blobschema.Crawl) error {
			c.Settings.QueueBy, c.Settings.Queues = blobschema.QueueByELF, 3
			return nil
		}, nil, 0, true},
		{"partitions to come", func(c *blobschema.Crawl) error { c.Settings.MostPartitions = 3; return nil }, nil, 0, false},
	} {
		t.Run(k.name, func(t *testing.T) {
			w, c := newWorld(t), newCrawl(2)
			c = w.begin(c, "https://www.example/")
			before := w.Table[naming.CrawlKey(c.ID)]
			b := NewBegin(blobschema.Crawl{}, Seeds(urls(t, k.seeds...)), k.check)
			if _, err := w.run(b); err != nil {
				t.Fatal(err)
			}
			got, created, added := b.Crawl()
			var rec blobschema.Crawl
			w.record(naming.CrawlKey(c.ID), &rec)
			if d := cmp.Diff(rec, got); created || added != k.added || d != "" {
				t.Errorf("created %v, %d seeds (-record +crawl):\n%s", created, added, d)
			}
			if w.Table[naming.DesiredKey(c.ID)].Found != k.told || w.Table[naming.GrantsKey(c.ID)].Found {
				t.Errorf("it writes %v", w.written)
			}
			if changed := w.Table[naming.CrawlKey(c.ID)].Revision != before.Revision; changed != (string(actor.Encode(rec)) != string(before.Value)) {
				t.Errorf("the record is written: %v", changed)
			}
			if k.name == "nothing" && w.counts["ReadRecords"] != 2 { // the active crawl and its record
				t.Errorf("only to open takes %v", w.counts)
			}
		})
	}
	w := newWorld(t)
	c := w.begin(newCrawl(2), "https://www.example/")
	if _, err := w.run(NewBegin(blobschema.Crawl{}, nil, func(*blobschema.Crawl) error { return errLost })); !errors.Is(err, errLost) || len(w.written) > 0 {
		t.Errorf("it is not to be: %v; it writes %v", err, w.written)
	}
	delete(w.Table, naming.CrawlKey(c.ID))
	if _, err := w.run(NewBegin(blobschema.Crawl{}, nil, nil)); err == nil {
		t.Error("a crawl without a record was opened")
	}
}

// TestLimitThatComesLater checks that stored pages count, also those of partitions added later, and that grants are not
// taken back.
func TestLimitThatComesLater(t *testing.T) {
	w, s := newScene(t)
	s.heads[0].Totals.Pages, s.heads[1] = 5, nil
	s.moves = blobschema.MapRecord{Version: 1, Epoch: 2, Partitions: 3}
	s.write(w)
	w.writeRecord(naming.HeadKey(s.crawl.ID, 2), blobschema.Head{Partition: 2, Totals: blobschema.Totals{Pages: 3}})
	limit := func(n int64) (g blobschema.Grants) {
		t.Helper()
		if _, err := w.run(NewBegin(blobschema.Crawl{}, nil, func(c *blobschema.Crawl) error { c.Settings.MaxPages = n; return nil })); err != nil {
			t.Fatal(err)
		}
		w.record(naming.GrantsKey(s.crawl.ID), &g)
		return g
	}
	want := blobschema.Grants{Limit: 20, Granted: map[partition.ID]int64{0: 5, 2: 3}}
	if d := cmp.Diff(want, limit(20)); d != "" {
		t.Errorf("a limit (-want +got):\n%s", d)
	}
	if limit(20); slices.Contains(w.written, naming.GrantsKey(s.crawl.ID)) {
		t.Error("the same limit is written again")
	}
	want.Granted[0], want.Granted[1] = 9, 1
	w.writeRecord(naming.GrantsKey(s.crawl.ID), want)
	want.Limit = 30
	if d := cmp.Diff(want, limit(30)); d != "" {
		t.Errorf("another limit (-want +got):\n%s", d)
	}
}

// TestCrawlID checks that ids sort like the times they are made of.
func TestCrawlID(t *testing.T) {
	if got := CrawlID(virtual.Epoch.Add(25*time.Hour + time.Second).In(time.FixedZone("east", 3600))); got != "20260102-010001" || naming.CheckCrawlID(got) != nil {
		t.Errorf("%s", got)
	}
}
