package rank

import (
	"errors"
	"fmt"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/actor"
)

// stateLists is the number of lists that a round leaves for the next one of its partition: ranks of both levels, weights,
// sizes and sums, residuals of each round so far.
const stateLists = 7

// levels are the two levels of a partition: of pages and of hosts.
type levels [2]*level

// encode returns the state of a partition.
func (l levels) encode() []byte {
	p, h := l[0], l[1]
	return ranks.EncodeValues(p.x, h.x, p.weight, h.weight, []float64{p.nodes, p.sum, h.nodes, h.sum}, p.past, h.past)
}

// decode reads a state that encode has made.
func (l levels) decode(data []byte, personal bool) error {
	v, err := ranks.DecodeValues(data, stateLists)
	if err != nil {
		return err
	}
	for i, level := range l {
		x, weight := v[i], v[2+i]
		if len(x) != level.size() || len(weight) != 0 && len(weight) != len(x) || len(v[4]) != 4 || len(v[5]) != len(v[6]) {
			return wire.ErrDamaged
		}
		level.x, level.nodes, level.sum, level.past = x, v[4][2*i], v[4][2*i+1], v[5+i]
		if personal {
			level.weight = weight
		}
	}
	return nil
}

// resume loads the layout and the state of a stored round, unless they are in memory.
func (s *Step) resume(t *actor.Task, round int) (err error) {
	w := s.warm
	if w.layout != nil {
		return nil
	}
	if w.layout, err = s.readLayout(t, int(s.cfg.Partition)); err == nil {
		w.levels, err = s.state(t, w.layout, int(s.cfg.Partition), round, len(s.heads))
	}
	return err
}

func (s *Step) readLayout(t *actor.Task, q int) (*ranks.Layout, error) {
	return read(t, s.heads[q].Next.Layout, func(data []byte) (*ranks.Layout, error) {
		return ranks.DecodeLayout(data, len(s.heads))
	})
}

// state reads the state of a layout from a part of what partition q has stored for a round.
func (s *Step) state(t *actor.Task, l *ranks.Layout, q, round, part int) (levels, error) {
	data, err := s.part(t, q, round, part)
	if err != nil {
		return levels{}, err
	}
	of := newLevels(l)
	if err := of.decode(data, len(s.job.Params.Personal) > 0); err != nil {
		return levels{}, fmt.Errorf("state in round %d of partition %d: %w", round, q, err)
	}
	return of, nil
}

// sums adds up the figures of all partitions for a round, in their order.
func (s *Step) sums(round int) (sums ranks.Sums, all ranks.Totals, err error) {
	for q := range s.heads {
		r := s.heads[q].At(round)
		if r == nil {
			return sums, all, fmt.Errorf("partition %d has forgotten round %d: %w", q, round, actor.ErrNotFound)
		}
		sums.Add(&r.Sums)
		all.Add(&s.heads[q].Totals)
	}
	return sums, all, nil
}

// errPersonal ends a job whose personalisation names nothing in the graph.
var errPersonal = errors.New("none of the hosts and URLs of the personalisation is in the graph")

// start makes the first ranks. It returns nil if the job has failed.
func (s *Step) start(t *actor.Task) (*outcome, error) {
	if err := s.resume(t, ranks.Nodes); err != nil {
		return nil, err
	}
	sums, all, err := s.sums(ranks.Nodes)
	if err != nil {
		return nil, err
	}
	if s.alone(all) {
		return s.solve(t, sums, all)
	}
	// Make the first ranks and distribute them. The graph is not needed until the last round.
	w := s.warm
	if err := w.levels.size(sums, all); err != nil {
		return nil, s.fail(t, err)
	}
	did := &outcome{}
	_, err = t.Do(actor.Work{Do: func() (any, error) {
		w.levels.start(sums)
		w.graph = nil
		s.send(did)
		return nil, nil
	}})
	return did, err
}

// size notes the sizes of both graphs, which the shares of nodes depend on.
func (l levels) size(sums ranks.Sums, all ranks.Totals) error {
	for i, nodes := range [...]int64{all.Pages, all.Hosts} {
		if l[i].nodes, l[i].sum = float64(nodes), *sums.Weight.Level(i); nodes > 0 && l[i].sum == 0 {
			return errPersonal
		}
	}
	return nil
}

// start makes the first ranks.
func (l levels) start(sums ranks.Sums) {
	for i, l := range l {
		l.start(*sums.Known.Level(i), *sums.New.Level(i))
	}
}

// send computes the rank that the nodes give, and returns the sum of the ranks of nodes without links.
func (l levels) send() (dangling ranks.Residual) {
	for i, l := range l {
		if !l.done {
			*dangling.Level(i) = l.send()
		}
	}
	return dangling
}

// receive computes the next ranks from the gifts of all partitions, by level. It returns the change; that of a level that
// has settled stays.
func (l levels) receive(gifts [2][][]float64, dangling, change ranks.Residual, damping float64) ranks.Residual {
	for i, l := range l {
		if !l.done {
			*change.Level(i) = l.receive(gifts[i], *dangling.Level(i), damping)
		}
	}
	return change
}

// settle notes the change of the last round. It reports whether no level has changed by more than the tolerance, or
// there were MaxRounds.
func (l levels) settle(change ranks.Residual, p *ranks.Params) bool {
	settled := true
	for i, l := range l {
		is := *change.Level(i)
		l.past, l.done = append(l.past, is), is <= p.Tolerance
		settled = settled && l.done
	}
	return settled || len(l[0].past) >= p.MaxRounds
}

// send encodes the rank that the nodes give to each partition, and the state for the next round.
func (s *Step) send(did *outcome) {
	w := s.warm
	did.sums.Dangling = w.levels.send()
	did.parts = make([][]byte, len(s.heads))
	for q := range did.parts {
		if pages, hosts := w.levels[0].part(q), w.levels[1].part(q); len(pages)+len(hosts) > 0 {
			did.parts[q] = ranks.EncodeValues(pages, hosts)
		}
	}
	did.state = w.levels.encode()
}

// iterate computes the next ranks. It ends the rounds if no level has changed by more than the tolerance, or at MaxRounds.
func (s *Step) iterate(t *actor.Task, round int) (*outcome, error) {
	sums, all, err := s.sums(round - 1)
	if err != nil {
		return nil, err
	}
	if s.alone(all) {
		return s.adopt(t)
	}
	if err := s.resume(t, round-1); err != nil {
		return nil, err
	}
	if round > ranks.Iterate && s.warm.levels.settle(sums.Residual, &s.job.Params) {
		return s.final(t)
	}
	// Receive the rank that all partitions give, and give in turn.
	gifts, err := s.gifts(t, round-1)
	if err != nil {
		return nil, err
	}
	did := &outcome{}
	_, err = t.Do(actor.Work{Do: func() (any, error) {
		did.sums.Residual = s.warm.levels.receive(gifts, sums.Dangling, s.own().At(round-1).Sums.Residual, s.job.Params.Damping)
		s.send(did)
		return nil, nil
	}})
	return did, err
}

// gifts reads the rank that each partition gives to the nodes of this one, by level.
func (s *Step) gifts(t *actor.Task, round int) (gifts [2][][]float64, err error) {
	parts, err := s.parts(t, round)
	if err != nil {
		return gifts, err
	}
	for q, part := range parts {
		v := make([][]float64, len(gifts))
		if part != nil {
			if v, err = ranks.DecodeValues(part, len(gifts)); err != nil {
				return gifts, fmt.Errorf("what partition %d gives in round %d: %w", q, round, err)
			}
		}
		for i, l := range s.warm.levels {
			if !l.fits(q, v[i]) {
				return gifts, fmt.Errorf("what partition %d gives in round %d: %w: %d numbers", q, round, wire.ErrDamaged, len(v[i]))
			}
			gifts[i] = append(gifts[i], v[i])
		}
	}
	return gifts, nil
}

// fail ends the job without a result.
func (s *Step) fail(t *actor.Task, why error) error {
	now := t.Now().Wall.UTC()
	return actor.Update(t, naming.RankKey(s.cfg.Crawl.ID), func(j *ranks.Job) bool {
		if j.Number != s.job.Number || !j.Done.IsZero() {
			return false
		}
		j.Done, j.Failed = now, why.Error()
		return true
	})
}
