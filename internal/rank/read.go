package rank

import (
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

// Progress is the progress of a job.
type Progress struct {
	Job   ranks.Job // Number is 0 if there never was one
	Round int       // last round that all partitions have finished; -1 for none
	Heads []ranks.Head
}

// NewProgress returns the progress that the record of a job and the heads of its partitions show.
func NewProgress(job ranks.Job, heads []ranks.Head) Progress {
	p := Progress{Job: job, Round: -1, Heads: heads}
	for i := range heads {
		if r := heads[i].Round(job.Number); i == 0 || r < p.Round {
			p.Round = r
		}
	}
	return p
}

// Totals returns the sizes of the graphs. They are known after round [ranks.Nodes].
func (p *Progress) Totals() (t ranks.Totals) {
	for i := range p.Heads {
		if p.Heads[i].Job == p.Job.Number {
			t.Add(&p.Heads[i].Totals)
		}
	}
	return t
}

// Residual returns the change of the ranks in the last round that all partitions have finished. ok is false
// before the first iteration.
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

// Iterations returns the number of finished iterations.
func (p *Progress) Iterations() int { return max(0, p.Round-ranks.Start) }

// Read reads the progress of the job of a crawl. It is an [actor.Actor].
type Read struct {
	actor.Procedure
	progress Progress
}

// NewRead returns the actor.
func NewRead(id string) *Read {
	r := &Read{}
	r.Body = func(t *actor.Task) (err error) {
		s := &Step{cfg: StepConfig{Crawl: blobschema.Crawl{ID: id}}}
		if err = s.readHeads(t); err == nil {
			r.progress = NewProgress(s.job, s.heads)
		}
		return err
	}
	return r
}

// Progress returns what was read.
func (r *Read) Progress() Progress { return r.progress }

// NewRemind returns an actor that wakes the partitions that others wait for, unless a round was finished within the idle
// time, because then their messages may be on the way. If a partition is running, its round is computed twice, which is
// harmless.
func NewRemind(id string, idle time.Duration) *Start {
	s := &Start{}
	s.Body = func(t *actor.Task) error {
		l := &Step{cfg: StepConfig{Crawl: blobschema.Crawl{ID: id}}}
		if err := l.readHeads(t); err != nil || l.job.Number == 0 || !l.job.Done.IsZero() {
			return err
		}
		s.job = l.job
		last := l.job.Started
		for p := range l.heads {
			if r := l.heads[p].At(l.heads[p].Round(l.job.Number)); r != nil && r.Time.After(last) {
				last = r.Time
			}
		}
		if t.Now().Wall.Sub(last) < idle {
			return nil
		}
		var to []partition.ID
		for p, least := 0, l.least(); p < len(l.heads); p++ {
			if l.heads[p].Round(l.job.Number) == least {
				to = append(to, partition.ID(p))
			}
		}
		if l.heads[0].Job == l.job.Number && l.heads[0].Final && len(to) == len(l.heads) {
			to = to[:1] // one partition makes the tables
		}
		return send(t, id, to)
	}
	return s
}
