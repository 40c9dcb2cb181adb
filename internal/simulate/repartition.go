package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/partition"
)

// MapOrder is an order of the operator to move slots: ScaleUp, ScaleDown, MoveSlots, RollBack or TwoMaps. It is given at
// the time After. If After is 0, it is given when at most Pending URLs are pending; if Pending is 0 too, at the end of the
// crawl.
type MapOrder struct {
	Kind    Kind
	After   time.Duration
	Pending int64
}

// mapOrder is an order and its progress.
type mapOrder struct {
	MapOrder
	n     int
	begun bool
}

// repartitionOnTime schedules the orders whose time is known.
func (w *world) repartitionOnTime() {
	for i, o := range w.cfg.Maps {
		o := &mapOrder{MapOrder: o, n: i}
		w.orders = append(w.orders, o)
		if o.After > 0 {
			w.After(o.After, func() { w.repartition(o) })
		}
	}
}

// repartitionWhen gives the orders that wait until at most this many URLs are pending.
func (w *world) repartitionWhen(pending int64) {
	for _, o := range w.orders {
		if !o.begun && o.After == 0 && o.Pending > 0 && pending <= o.Pending {
			w.repartition(o)
		}
	}
}

// repartitionAtEnd gives the next order that waits for the end; false: there is no such order.
func (w *world) repartitionAtEnd() bool {
	for _, o := range w.orders {
		if !o.begun {
			w.repartition(o)
			return true
		}
	}
	return false
}

// repartition gives an order, and repeats it until it succeeds. The second map of TwoMaps comes some seconds after the
// first.
func (w *world) repartition(o *mapOrder) {
	if o.begun {
		return
	}
	o.begun = true
	w.count(o.Kind)
	if o.Kind != TwoMaps {
		w.wantMap(o.Kind, o.n, 0)
		return
	}
	r := w.mapRand(o.n, 0)
	w.wantMap(ScaleUp, o.n, 1)
	w.After(between(r, 0, 5*time.Second), func() { w.wantMap([]Kind{ScaleUp, ScaleDown, RollBack}[r.IntN(3)], o.n, 2) })
}

// blackout crashes all steps at once.
func (w *world) blackout() {
	for _, p := range slices.Clone(w.live) {
		if p.step != nil && !p.Ended() {
			p.crash()
		}
	}
}

func (w *world) mapRand(order, part int) *rand.Rand {
	id := newIdentity(w.cfg.Seed, fmt.Sprintf("map %d/%d", order, part))
	return id.rng
}

func (w *world) wantMap(k Kind, order, part int) {
	p := w.newProc("map", 0)
	p.Actor = crawl.NewRepartition(w.crawl.ID, func(cur crawl.Partitioning) (*partition.Map, error) {
		return w.wantedMap(k, cur, w.mapRand(order, part))
	})
	w.ordering++
	p.onEnd = func(err error) {
		w.ordering--
		if err != nil || p.dead {
			w.After(p.between(0, time.Minute), func() { w.wantMap(k, order, part) })
			return
		}
		w.taken = w.Mono
		if w.fault(&p.identity, CrashMoving) {
			w.After(between(p.detail(CrashMoving), 0, 2*time.Second), w.blackout)
		}
	}
	p.start()
}

// most returns the largest number of partitions that the run may reach.
func (w *world) most() int {
	if len(w.cfg.Maps) == 0 && !w.cfg.Elastic {
		return w.cfg.Partitions
	}
	return min(w.cfg.Slots, 2*w.cfg.Partitions+3)
}

// wantedMap returns the map that an order wants; nil: no change.
func (w *world) wantedMap(k Kind, cur crawl.Partitioning, r *rand.Rand) (*partition.Map, error) {
	owners := cur.Target.Partitions()
	switch k {
	case ScaleUp:
		for range 1 + r.IntN(w.most()) {
			if p := partition.ID(r.IntN(w.most())); !slices.Contains(owners, p) {
				owners = append(owners, p)
			}
		}
	case ScaleDown:
		r.Shuffle(len(owners), func(i, j int) { owners[i], owners[j] = owners[j], owners[i] })
		owners = owners[:1+r.IntN(len(owners))]
	case RollBack:
		if len(cur.Record.Previous) == 0 {
			return nil, nil
		}
		return w.openMap(cur.Record.Previous[0])
	default:
		to := cur.Target.Owners()
		for range 1 + r.IntN(3) {
			to[r.IntN(len(to))] = partition.ID(r.IntN(w.most()))
		}
		return cur.Target.WithOwners(to)
	}
	moves, err := cur.Target.Plan(owners)
	if err != nil {
		return nil, err
	}
	return cur.Target.Apply(moves)
}

// openMap reads a stored map.
func (w *world) openMap(object string) (*partition.Map, error) {
	if object == "" {
		return w.first, nil
	}
	m := &partition.Map{}
	return m, m.UnmarshalBinary(w.Objects[object])
}

// settledMap reports whether no slot is moving and no order is under way.
func (w *world) settledMap() bool {
	return w.ordering == 0 && len(w.mapRecord.Moving) == 0 && w.mapRecord.Target == ""
}
