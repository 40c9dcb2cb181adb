package crawl

import (
	"errors"
	"testing"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/actor"
)

// TestAnother: a crawl takes the place of another only where that is at its end, with no
// step at work.
func TestAnother(t *testing.T) {
	const host = "www.example"
	lease := func(t *testing.T, w *world) {
		head := w.head("test", 0)
		head.Owner, head.LeaseUntil = "p/1", w.clocks().Wall.Add(1e9)
		w.table[naming.HeadKey("test", 0)] = actor.Record{Found: true, Value: actor.Encode(head), Revision: -1}
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
		seeds     int   // of which one more is given after the step
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
			w.table[naming.CrawlKey("test")] = actor.Record{Found: true, Value: []byte(`{"version":99,"id":"test"}`), Revision: -1}
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

// TestAnotherFirst: where there is no crawl, another one is the first.
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
