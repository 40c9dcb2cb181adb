package rank

import (
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/actor"
)

// Rounds of iteration cost calls and waiting, whatever the size of the graph. So partition solver computes the ranks of a
// small graph alone, in the same steps and order of additions: the result is the same to the last bit.

const solver = 0

// alone reports whether one partition computes all ranks.
func (s *Step) alone(all ranks.Totals) bool {
	return all.Pages+all.Links+all.Hosts+all.HostLinks <= s.job.Alone
}

// solve computes the ranks of all partitions. The other partitions do nothing in this round.
func (s *Step) solve(t *actor.Task, sums ranks.Sums, all ranks.Totals) (*outcome, error) {
	if s.cfg.Partition != solver {
		return &outcome{}, nil
	}
	// Read the layouts and states of all partitions.
	of := make([]levels, len(s.heads))
	of[solver] = s.warm.levels
	for q := range of {
		if q != solver {
			l, err := s.readLayout(t, q)
			if err != nil {
				return nil, err
			}
			if of[q], err = s.state(t, l, q, ranks.Nodes, len(s.heads)); err != nil {
				return nil, err
			}
		}
		if err := of[q].size(sums, all); err != nil {
			return nil, s.fail(t, err)
		}
	}
	// Iterate, and encode the result of each partition.
	did := &outcome{parts: make([][]byte, len(of))}
	_, err := t.Do(actor.Work{Do: func() (any, error) {
		for _, l := range of {
			l.start(sums)
		}
		iterateAll(of, &s.job.Params)
		for q, l := range of {
			did.parts[q] = l.encode()
		}
		return nil, nil
	}})
	return did, err
}

// iterateAll does all rounds of iteration of all partitions.
func iterateAll(of []levels, p *ranks.Params) {
	changes := make([]ranks.Residual, len(of))
	for settled := false; !settled; {
		var sums ranks.Sums
		for _, l := range of {
			sums.Add(&ranks.Sums{Dangling: l.send()})
		}
		gifts := make([][2][][]float64, len(of))
		for q := range of {
			for i := range gifts[q] {
				for _, from := range of {
					gifts[q][i] = append(gifts[q][i], from[i].part(q))
				}
			}
		}
		for q, l := range of {
			changes[q] = l.receive(gifts[q], sums.Dangling, changes[q], p.Damping)
		}
		for q := range of {
			sums.Add(&ranks.Sums{Residual: changes[q]})
		}
		for _, l := range of {
			settled = l.settle(sums.Residual, p)
		}
	}
}

// adopt takes the ranks that the solver has computed, and makes the partition's tables.
func (s *Step) adopt(t *actor.Task) (*outcome, error) {
	w, own := s.warm, int(s.cfg.Partition)
	var err error
	if w.layout == nil {
		if w.layout, err = s.readLayout(t, own); err != nil {
			return nil, err
		}
	}
	if w.levels, err = s.state(t, w.layout, solver, ranks.Start, own); err != nil {
		return nil, err
	}
	return s.final(t)
}
