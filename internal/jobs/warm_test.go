package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/rank"
	"github.com/orbweaver/orbweaver/internal/rank/made"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/platform"
)

// store stores a generated crawl on a platform.
type store struct {
	t *testing.T
	p *platform.Platform
}

func (s store) Put(name string, data []byte) error {
	return engine.PutObject(s.t.Context(), s.p, actor.PutObject{Name: name, Parts: [][]byte{data}})
}

func (s store) Record(key string, value []byte) error {
	recs, err := engine.ReadRecords(s.t.Context(), s.p, []string{key})
	if err == nil {
		_, err = engine.WriteRecord(s.t.Context(), s.p, actor.WriteRecord{Key: key, Value: value, Revision: recs[0].Revision})
	}
	return err
}

// TestLostWithTheirProcess checks that the first tick of a process that owns the platform replaces rank
// messages that a previous process did not send. Later ticks wait.
func TestLostWithTheirProcess(t *testing.T) {
	p, err := drivers.Memory(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	if err := p.CreateQueues(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	c, err := made.Begin(store{t, p}, "c", 64, 3, blobschema.ByHost)
	if err == nil {
		err = c.Commit(store{t, p}, made.Sites(1, 50), 10)
	}
	if err != nil {
		t.Fatal(err)
	}
	messages := func(e *Jobs, wait time.Duration) (n int) {
		for {
			msgs, err := e.Receive(t.Context(), actor.Receive{Queue: naming.RankQueue, Max: 10, Wait: wait})
			if err != nil {
				t.Fatal(err)
			}
			if len(msgs) == 0 {
				return n
			}
			n += len(msgs)
			e.Acknowledge(t.Context(), naming.RankQueue, msgs)
		}
	}
	for i, want := range []int{3, 3} { // messages of the process that begins the job, and of the next one
		e, err := Open(p, service.Config{})
		if err != nil {
			t.Fatal(err)
		}
		e.Use(c.Record)
		rep := crawl.Report{WantsRanks: i == 0, Ranking: i > 0}
		for range 2 {
			if err := e.startRanks(&rep); err != nil {
				t.Fatal(err)
			}
			if got := messages(e, 100*time.Millisecond); got != want {
				t.Errorf("process %d: %d messages, want %d", i+1, got, want)
			}
			rep, want = crawl.Report{Ranking: true}, 0
		}
		if err := e.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOneWarmGraph checks that a process with memory for one partition's graph drops that of another partition before
// the next step begins.
func TestOneWarmGraph(t *testing.T) {
	var r Jobs
	one, two := &rank.Warm{}, &rank.Warm{}
	r.give(1, one, 1)
	if r.take(1, 1) != one || r.take(1, 1) != nil {
		t.Error("kept state can be taken only once")
	}
	r.give(1, one, 1)
	if r.take(2, 1) != nil || len(r.warm) != 0 {
		t.Errorf("%d graphs stay beside that of a step", len(r.warm))
	}
	r.give(1, one, 2)
	r.give(2, two, 2)
	if r.take(2, 2) != two || r.take(1, 2) != one {
		t.Error("with memory for two, two are kept")
	}
}

// TestFollowSaysWhatIsDamaged checks that Follow soon returns an error if the links to rank are damaged.
func TestFollowSaysWhatIsDamaged(t *testing.T) {
	p, err := drivers.Memory(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	if err := p.CreateQueues(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	bad := damaging{store: store{t, p}}
	c, err := made.Begin(&bad, "c", 64, 1, blobschema.ByHost)
	if err == nil {
		err = c.Commit(&bad, made.Sites(1, 50), 100)
	}
	c.Record.Settings.Index = true
	rec, jsonErr := json.Marshal(c.Record)
	if err = errors.Join(err, jsonErr, bad.Record(naming.CrawlKey("c"), rec)); err != nil || bad.name == "" {
		t.Fatal(err, bad.name)
	}
	e, err := Open(p, service.Config{TickEvery: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	e.Use(c.Record)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := e.Follow(ctx, nil); !errors.Is(err, wire.ErrDamaged) || !strings.Contains(err.Error(), bad.name) || !strings.HasPrefix(err.Error(), naming.RankQueue) {
		t.Errorf("it ends with %v", err)
	}
}

// damaging stores commits with damaged links, whose pages can be read.
type damaging struct {
	store
	name string
}

func (d *damaging) Record(key string, value []byte) error {
	if key == naming.HeadKey("c", 0) {
		var h blobschema.Head
		if err := json.Unmarshal(value, &h); err != nil {
			return err
		}
		h.Totals.Pages = 50
		value, _ = json.Marshal(h)
	}
	return d.store.Record(key, value)
}

func (d *damaging) Put(name string, data []byte) error {
	if _, _, _, err := naming.ParseCommit(name); err == nil {
		for i := range data {
			bad := bytes.Clone(data)
			bad[i] ^= 1
			c, err := blobschema.OpenCommit(bad)
			if err != nil {
				continue
			}
			_, pagesErr := c.Pages()
			_, manErr := c.Manifest()
			if _, err := c.Links(); err != nil && pagesErr == nil && manErr == nil {
				d.name, data = name, bad
				break
			}
		}
	}
	return d.store.Put(name, data)
}
