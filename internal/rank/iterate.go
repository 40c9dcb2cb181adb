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
	return ranks.EncodeValues(w.pages.x, w.hosts.x, w.pages.weight, w.hosts.weight,
		[]float64{w.pages.nodes, w.pages.sum, w.hosts.nodes, w.hosts.sum}, w.past[0], w.past[1])
}

// resume loads the layout and the state of a stored round, unless they are in memory.
func (s *Step) resume(t *actor.Task, round int) error {
	w := s.warm
	if w.job == s.job.Number && w.round == round && w.pages != nil {
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
	if err == nil && (len(v[0]) != len(l.Nodes) || len(v[1]) != len(l.HostNames) || len(v[4]) != 4 || len(v[5]) != len(v[6]) ||
		len(v[2]) != 0 && len(v[2]) != len(v[0]) || len(v[3]) != 0 && len(v[3]) != len(v[1])) {
		err = fmt.Errorf("state of round %d: %w", round, wire.ErrDamaged)
	}
	if err != nil {
		return err
	}
	w.layout, w.past = l, [2][]float64{v[5], v[6]}
	w.pages = &level{Level: &l.Pages, x: v[0], nodes: v[4][0], sum: v[4][1]}
	w.hosts = &level{Level: &l.Hosts, x: v[1], nodes: v[4][2], sum: v[4][3]}
	if len(s.job.Params.Personal) > 0 {
		w.pages.weight, w.hosts.weight = v[2], v[3]
	}
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
	w := s.warm
	w.pages.nodes, w.pages.sum = float64(all.Pages), sums.Weight.Pages
	w.hosts.nodes, w.hosts.sum = float64(all.Hosts), sums.Weight.Hosts
	if all.Pages > 0 && (w.pages.sum == 0 || w.hosts.sum == 0) {
		return nil, s.fail(t, errPersonal)
	}
	did := &outcome{}
	_, err = t.Do(actor.Work{Do: func() (any, error) {
		w.pages.start(sums.Known.Pages, sums.New.Pages)
		w.hosts.start(sums.Known.Hosts, sums.New.Hosts)
		w.graph = nil
		s.send(did)
		return nil, nil
	}})
	return did, err
}

// send computes what the nodes give, and encodes it for each partition, with the state for the next round.
func (s *Step) send(did *outcome) {
	w := s.warm
	if !w.pages.done {
		did.sums.Dangling.Pages = w.pages.send()
	}
	if !w.hosts.done {
		did.sums.Dangling.Hosts = w.hosts.send()
	}
	did.parts = make([][]byte, len(s.heads))
	for q := range did.parts {
		if pages, hosts := w.pages.part(q), w.hosts.part(q); len(pages)+len(hosts) > 0 {
			did.parts[q] = ranks.EncodeValues(pages, hosts)
		}
	}
	did.state = w.encode()
}

// iterate multiplies once more, or ends the rounds if no level has changed by more than the tolerance.
func (s *Step) iterate(t *actor.Task, round int) (*outcome, error) {
	if err := s.resume(t, round-1); err != nil {
		return nil, err
	}
	sums, _, err := s.sums(round - 1)
	if err != nil {
		return nil, err
	}
	// Decide by the sums of the round before whether a level has settled.
	w, p := s.warm, &s.job.Params
	if round > ranks.Iterate {
		w.past[0], w.past[1] = append(w.past[0], sums.Residual.Pages), append(w.past[1], sums.Residual.Hosts)
		w.pages.done, w.hosts.done = sums.Residual.Pages <= p.Tolerance, sums.Residual.Hosts <= p.Tolerance
		if w.pages.done && w.hosts.done || len(w.past[0]) >= p.MaxRounds {
			return s.final(t)
		}
	}
	// Receive what all partitions give, and give in turn.
	gifts, err := s.gifts(t, round-1)
	if err != nil {
		return nil, err
	}
	own := s.own().At(round - 1).Sums.Residual
	did := &outcome{}
	did.sums.Residual = own // stays for a level that has settled
	_, err = t.Do(actor.Work{Do: func() (any, error) {
		if !w.pages.done {
			did.sums.Residual.Pages = w.pages.receive(gifts[0], sums.Dangling.Pages, p.Damping)
		}
		if !w.hosts.done {
			did.sums.Residual.Hosts = w.hosts.receive(gifts[1], sums.Dangling.Hosts, p.Damping)
		}
		s.send(did)
		return nil, nil
	}})
	return did, err
}

// gifts reads what each partition gives to the nodes of this one, by level.
func (s *Step) gifts(t *actor.Task, round int) (gifts [2][][]float64, err error) {
	n := len(s.heads)
	gifts[0], gifts[1] = make([][]float64, n), make([][]float64, n)
	w := s.warm
	parts, err := s.parts(t, round)
	if err != nil {
		return gifts, err
	}
	for q, part := range parts {
		var pages, hosts []float64
		if part != nil {
			v, err := ranks.DecodeValues(part, 2)
			if err != nil {
				return gifts, fmt.Errorf("what partition %d gives in round %d: %w", q, round, err)
			}
			pages, hosts = v[0], v[1]
		}
		if !w.pages.fits(q, pages) || !w.hosts.fits(q, hosts) {
			return gifts, fmt.Errorf("what partition %d gives in round %d: %w: %d and %d numbers", q, round, wire.ErrDamaged, len(pages), len(hosts))
		}
		gifts[0][q], gifts[1][q] = pages, hosts
	}
	return gifts, nil
}

// fail ends the job without a result.
func (s *Step) fail(t *actor.Task, why error) error {
	now := t.Now().Wall.UTC()
	return actor.Update(t, naming.RankKey(s.cfg.Crawl), func(j *ranks.Job) bool {
		if j.Number != s.job.Number || !j.Done.IsZero() {
			return false
		}
		j.Done, j.Failed = now, why.Error()
		return true
	})
}
