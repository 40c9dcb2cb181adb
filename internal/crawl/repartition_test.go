package crawl

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

// TestPlanFitsItsRecord checks that the record never exceeds a table item, and that the target is reached in the end.
func TestPlanFitsItsRecord(t *testing.T) {
	m, err := partition.NewMap(partition.MaxSlots, partition.MaxPartitions)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	owners := m.Owners()
	for s := range owners {
		owners[s] = partition.ID(rng.IntN(partition.MaxPartitions))
	}
	target, err := m.WithOwners(owners)
	if err != nil {
		t.Fatal(err)
	}
	p := Partitioning{Record: blobschema.MapRecord{Epoch: 1, Partitions: partition.MaxPartitions}, Map: m, Target: target}
	plans := 0
	for p.plan() {
		b, err := json.Marshal(p.Record)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > 300<<10 {
			t.Fatalf("a record of %d KB", len(b)>>10)
		}
		if plans++; plans%2 == 0 {
			p.Record.Moving = nil // all are confirmed
		}
		if plans > 1000 {
			t.Fatal("the target is never reached")
		}
	}
	p.Record.Moving = nil
	for p.plan() {
		p.Record.Moving = nil
	}
	if moves := p.Map.Toward(target, func(partition.Slot) bool { return false }); len(moves) > 0 {
		t.Errorf("%d slots are not where they are wanted", len(moves))
	}
}

// partitioning reads the current partitioning.
func (w *world) partitioning(crawl string) Partitioning {
	w.t.Helper()
	r := ReadPartitioning(crawl)
	if _, err := w.run(r); err != nil {
		w.t.Fatal(err)
	}
	before, after := r.Result()
	if !slices.Equal(before.Target.Owners(), after.Target.Owners()) || before.Record.Version != after.Record.Version {
		w.t.Error("reading the map changes it")
	}
	return after
}

// readMap reads a map as a rollback does.
func (w *world) readMap(c *blobschema.Crawl, object string) (m *partition.Map, err error) {
	p := &actor.Procedure{Body: func(t *actor.Task) (err error) {
		m, err = blobschema.ReadMap(t.Object, c, object)
		return err
	}}
	_, err = w.run(p)
	return m, err
}

// TestPreviousMaps checks that previous desired maps are remembered, the last first, up to a bound, even if they were never
// reached.
func TestPreviousMaps(t *testing.T) {
	w := newWorld(t)
	c := w.begin(newCrawl(2), "https://www.example/")
	wanted := [][]partition.ID{w.partitioning(c.ID).Target.Owners()}
	for i := range 2 * blobschema.MaxPrevious {
		slot, to := partition.Slot(i/2%3), partition.ID(3+i)
		w.give(c.ID, to, slot) // the slot may be moving already
		p := w.partitioning(c.ID)
		owners := slices.Clone(wanted[0])
		owners[slot] = to
		if !slices.Equal(p.Target.Owners(), owners) || p.Record.Partitions < 3 || p.Record.Epoch != p.Map.Epoch() {
			t.Fatalf("change %d: %+v", i, p.Record)
		}
		if n := len(p.Record.Previous); n != min(i+1, blobschema.MaxPrevious) {
			t.Fatalf("change %d: %d former maps", i, n)
		}
		for k, name := range p.Record.Previous {
			if m, err := w.readMap(&c, name); err != nil || !slices.Equal(m.Owners(), wanted[k]) {
				t.Fatalf("change %d: former map %d (%s) is another, or %v", i, k, name, err)
			}
		}
		wanted = slices.Insert(wanted, 0, owners)
	}
	var moving partition.Slots
	p := w.partitioning(c.ID)
	for _, m := range p.Record.Moving {
		moving = append(moving, m.Slots...)
		if p.Map.Owner(m.Slots[0]) != m.To || int(m.To) >= p.Record.Partitions {
			t.Errorf("%+v, but the owner is %d of %d", m, p.Map.Owner(m.Slots[0]), p.Record.Partitions)
		}
	}
	if slices.Sort(moving); !slices.Equal(moving, partition.Slots{0, 1, 2}) || p.Record.Target == "" {
		t.Errorf("on the move are %v; %+v", moving, p.Record)
	}
}

// TestRepartitionNothing checks that a request for no change, the current map or an impossible map changes nothing.
func TestRepartitionNothing(t *testing.T) {
	for _, k := range []struct {
		name string
		want func(Partitioning) (*partition.Map, error)
		ok   bool
	}{
		{"nothing", func(Partitioning) (*partition.Map, error) { return nil, nil }, true},
		{"what is", func(p Partitioning) (*partition.Map, error) { return p.Map, nil }, true},
		{"an error", func(p Partitioning) (*partition.Map, error) { return nil, errLost }, false},
		{"other slots", func(Partitioning) (*partition.Map, error) { return partition.NewMap(128, 3) }, false},
	} {
		w := newWorld(t)
		c := w.begin(newCrawl(2), "https://www.example/")
		r := NewRepartition(c.ID, k.want)
		_, err := w.run(r)
		before, after := r.Result()
		if (err == nil) != k.ok || len(w.written)+len(w.put) > 0 || w.Table[naming.MapKey(c.ID)].Found {
			t.Errorf("%s: %v; it writes %v and puts %v", k.name, err, w.written, w.put)
		}
		if k.ok && (before.Record.Partitions != 2 || after.Record.Partitions != 2 || after.Record.Epoch != 1) {
			t.Errorf("%s: %+v became %+v", k.name, before.Record, after.Record)
		}
	}
}

// TestRepartitionRaces checks that a change that was stored despite an error is made once, that the second of two
// concurrent changes is based on the first, and that the next change tells what a dead process could not tell.
func TestRepartitionRaces(t *testing.T) {
	begin := func() (*world, string) {
		w := newWorld(t)
		return w, w.begin(newCrawl(2), "https://www.example/").ID
	}
	check := func(w *world, id, name string, version uint64, owners ...partition.ID) {
		t.Helper()
		var desired blobschema.DesiredState
		w.record(naming.DesiredKey(id), &desired)
		p := w.partitioning(id)
		if got := p.Map.Owners()[:len(owners)]; p.Record.Version != version || desired.Map != version || len(p.Record.Previous) != int(version) || !slices.Equal(got, owners) {
			t.Errorf("%s: the desired state is %+v, the record %+v; owners %v", name, desired, p.Record, got)
		}
	}
	for _, with := range []error{errLost, actor.ErrConflict} {
		w, id := begin()
		w.fault = once(naming.MapKey(id), with)
		w.give(id, 1, 0)
		check(w, id, with.Error(), 1, 1, 1)
	}
	w, id := begin()
	w.fault = func(e actor.Effect) (error, error) {
		if wr, ok := e.(actor.WriteRecord); ok && wr.Key == naming.MapKey(id) {
			w.aside(func() { w.give(id, 1, 0) })
			w.fault = nil
		}
		return nil, nil
	}
	w.give(id, 1, 2)
	check(w, id, "two at once", 2, 1, 1, 1, 1)
	w, id = begin()
	w.fault = func(e actor.Effect) (error, error) {
		if wr, ok := e.(actor.WriteRecord); ok && wr.Key == naming.DesiredKey(id) {
			return errLost, nil
		}
		return nil, nil
	}
	r := NewRepartition(id, func(Partitioning) (*partition.Map, error) { return partition.NewMap(64, 1) })
	if _, err := w.run(r); !errors.Is(err, errLost) {
		t.Errorf("it could not be told: %v", err)
	}
	w.fault = nil
	w.partitioning(id)
	check(w, id, "told by the next", 1, 0, 0, 0, 0)
	w.partitioning(id)
	if len(w.written) > 0 {
		t.Errorf("told again: %v", w.written)
	}
}

// TestOtherMaps checks that a map with another number of slots is refused.
func TestOtherMaps(t *testing.T) {
	w := newWorld(t)
	c := w.begin(newCrawl(2), "https://www.example/")
	for _, slots := range []int{64, 128} {
		m, err := partition.NewMap(slots, 2)
		if err != nil {
			t.Fatal(err)
		}
		name, data, err := blobschema.MapObjectName(c.ID, m)
		if err != nil {
			t.Fatal(err)
		}
		w.Objects[name] = data
		if _, err := w.readMap(&c, name); (err == nil) != (slots == 64) {
			t.Errorf("%d slots: %v", slots, err)
		}
	}
}

// TestTicksMoveOn checks that a coordinator run removes exactly the moves that have arrived, and begins those that waited
// for them.
func TestTicksMoveOn(t *testing.T) {
	for _, k := range []struct {
		name          string
		epoch, awaits partition.Epoch // of the receiver's head
		arrived       bool
	}{{"not begun", 1, 0, false}, {"arrived", 2, 0, true}, {"long ago", 7, 0, true}, {"awaited", 2, 2, false}, {"an older one is awaited", 3, 2, false}, {"a later one is awaited", 3, 3, true}} {
		t.Run(k.name, func(t *testing.T) {
			w, s := newScene(t)
			s.write(w)
			w.give(s.crawl.ID, 1, 0, 2)
			w.give(s.crawl.ID, 0, 0)
			s.heads[1].Epoch, s.heads[1].Awaits = k.epoch, k.awaits
			w.writeRecord(naming.HeadKey(s.crawl.ID, 1), s.heads[1])
			before := w.partitioning(s.crawl.ID).Record
			rep := s.tick(w)
			rec := w.partitioning(s.crawl.ID).Record
			want := blobschema.Moving{Epoch: 2, From: 0, To: 1, Slots: partition.Slots{0, 2}}
			if k.arrived {
				want = blobschema.Moving{Epoch: 3, From: 1, To: 0, Slots: partition.Slots{0}}
			}
			if d := cmp.Diff([]blobschema.Moving{want}, rec.Moving); d != "" || (rec.Target == "") != k.arrived || (rec.Version > before.Version) != k.arrived {
				t.Errorf("the record is %+v (-want +got):\n%s", rec, d)
			}
			var desired blobschema.DesiredState
			w.record(naming.DesiredKey(s.crawl.ID), &desired)
			if d := cmp.Diff(rec, rep.Map); d != "" || desired.Map != rec.Version || rep.Desired.Map != rec.Version {
				t.Errorf("the tick reports desired state %+v, map %+v", rep.Desired, rep.Map)
			}
		})
	}
}
