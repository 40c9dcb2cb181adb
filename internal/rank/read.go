package rank

import (
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

// Progress is how far a job is.
type Progress struct {
	Job   ranks.Job // Number 0: there never was one
	Round int       // that all partitions have finished; -1 for none
	Heads []ranks.Head
}

// NewProgress is the progress that a job's record and its partitions' heads show.
func NewProgress(job ranks.Job, heads []ranks.Head) Progress {
	p := Progress{Job: job, Round: -1, Heads: heads}
	for i := range heads {
		if r := heads[i].Round(job.Number); i == 0 || r < p.Round {
			p.Round = r
		}
	}
	return p
}

// Totals are the sizes of the graphs, from the round on in which they are known.
func (p *Progress) Totals() (t ranks.Totals) {
	for i := range p.Heads {
		if p.Heads[i].Job == p.Job.Number {
			t.Add(&p.Heads[i].Totals)
		}
	}
	return t
}

// Residual is by how much the last round that all have finished changed the ranks; false before the
// first iteration.
func (p *Progress) Residual() (sum ranks.Residual, ok bool) {
	if p.Round < ranks.Iterate {
		return sum, false
	}
	for i := range p.Heads {
		r := p.Heads[i].At(p.Round)
		if r == nil || p.Heads[i].Final && p.Heads[i].Round(p.Job.Number) == p.Round {
			return ranks.Residual{}, false
		}
		sum.Pages += r.Sums.Residual.Pages
		sum.Hosts += r.Sums.Residual.Hosts
	}
	return sum, true
}

// Iterations is how often the ranks were multiplied.
func (p *Progress) Iterations() int { return max(0, p.Round-ranks.Start) }

// Read reads how far the job of a crawl is. It is an [actor.Actor].
type Read struct {
	actor.Procedure
	progress Progress
}

// NewRead returns the actor.
func NewRead(id string) *Read {
	r := &Read{}
	r.Body = func(t *actor.Task) (err error) {
		s := &Step{cfg: StepConfig{Crawl: id}}
		if err = s.look(t); err == nil {
			r.progress = NewProgress(s.job, s.heads)
		}
		return err
	}
	return r
}

// Progress is what was read.
func (r *Read) Progress() Progress { return r.progress }

// NewRemind returns an actor that has the partitions look that have not finished a round which others
// wait for. It is harmless, but if they are at work the round is worked out twice.
func NewRemind(id string) *Start {
	s := &Start{}
	s.Body = func(t *actor.Task) error {
		l := &Step{cfg: StepConfig{Crawl: id}}
		if err := l.look(t); err != nil || l.job.Number == 0 || !l.job.Done.IsZero() {
			return err
		}
		s.job = l.job
		var to []partition.ID
		for p, least := 0, l.least(); p < len(l.heads); p++ {
			if l.heads[p].Round(l.job.Number) == least {
				to = append(to, partition.ID(p))
			}
		}
		if l.heads[0].Job == l.job.Number && l.heads[0].Final && len(to) == len(l.heads) {
			to = to[:1] // one makes the tables
		}
		return send(t, id, to)
	}
	return s
}
