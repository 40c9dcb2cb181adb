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

// encode returns the partition's state.
func (w *Warm) encode() []byte {
	p, h := w.levels[0], w.levels[1]
	return ranks.EncodeValues(p.x, h.x, p.weight, h.weight, []float64{p.nodes, p.sum, h.nodes, h.sum}, p.past, h.past)
}

// resume loads the layout and the state of a stored round, unless they are in memory.
func (s *Step) resume(t *actor.Task, round int) error {
	w := s.warm
	if w.job == s.job.Number && w.round == round && w.layout != nil {
		return nil
	}
	l, err := read(t, s.own().Next.Layout, func(data []byte) (*ranks.Layout, error) {
		return ranks.DecodeLayout(data, len(s.heads))
	})
	if err != nil {
		return err
	}
	data, err := s.state(t, round)
	if err != nil {
		return err
	}
	v, err := ranks.DecodeValues(data, stateLists)
	if err != nil {
		return err
	}
	levels := newLevels(l)
	for i, level := range levels {
		x, weight := v[i], v[2+i]
		if len(x) != level.size() || len(weight) != 0 && len(weight) != len(x) || len(v[4]) != 4 || len(v[5]) != len(v[6]) {
			return fmt.Errorf("state of round %d: %w", round, wire.ErrDamaged)
		}
		level.x, level.nodes, level.sum, level.past = x, v[4][2*i], v[4][2*i+1], v[5+i]
		if len(s.job.Params.Personal) > 0 {
			level.weight = weight
		}
	}
	w.layout, w.levels = l, levels
	return nil
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
	// Note the sizes of both graphs, which the shares of nodes depend on.
	w := s.warm
	for i, nodes := range [...]int64{all.Pages, all.Hosts} {
		l := w.levels[i]
		if l.nodes, l.sum = float64(nodes), *sums.Weight.Level(i); nodes > 0 && l.sum == 0 {
			return nil, s.fail(t, errPersonal)
		}
	}
	// Make the first ranks and distribute them. The graph is not needed until the last round.
	did := &outcome{}
	_, err = t.Do(actor.Work{Do: func() (any, error) {
		for i, l := range w.levels {
			l.start(*sums.Known.Level(i), *sums.New.Level(i))
		}
		w.graph = nil
		s.send(did)
		return nil, nil
	}})
	return did, err
}

// send encodes the rank that the nodes give to each partition, and the state for the next round.
func (s *Step) send(did *outcome) {
	w := s.warm
	for i, l := range w.levels {
		if !l.done {
			*did.sums.Dangling.Level(i) = l.send()
		}
	}
	did.parts = make([][]byte, len(s.heads))
	for q := range did.parts {
		if pages, hosts := w.levels[0].part(q), w.levels[1].part(q); len(pages)+len(hosts) > 0 {
			did.parts[q] = ranks.EncodeValues(pages, hosts)
		}
	}
	did.state = w.encode()
}

// iterate computes the next ranks. It ends the rounds if no level has changed by more than the tolerance, or at MaxRounds.
func (s *Step) iterate(t *actor.Task, round int) (*outcome, error) {
	if err := s.resume(t, round-1); err != nil {
		return nil, err
	}
	sums, _, err := s.sums(round - 1)
	if err != nil {
		return nil, err
	}
	// Decide by the sums of the previous round whether a level has settled.
	w, p := s.warm, &s.job.Params
	if round > ranks.Iterate {
		settled := true
		for i, l := range w.levels {
			change := *sums.Residual.Level(i)
			l.past, l.done = append(l.past, change), change <= p.Tolerance
			settled = settled && l.done
		}
		if settled || len(w.levels[0].past) >= p.MaxRounds {
			return s.final(t)
		}
	}
	// Receive the rank that all partitions give, and give in turn.
	gifts, err := s.gifts(t, round-1)
	if err != nil {
		return nil, err
	}
	did := &outcome{}
	did.sums.Residual = s.own().At(round - 1).Sums.Residual // stays for a level that has settled
	_, err = t.Do(actor.Work{Do: func() (any, error) {
		for i, l := range w.levels {
			if !l.done {
				*did.sums.Residual.Level(i) = l.receive(gifts[i], *sums.Dangling.Level(i), p.Damping)
			}
		}
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
