package rank

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

// Errors of [NewStart].
var (
	ErrNothing  = errors.New("the crawl has no commits yet: there is nothing to rank")
	ErrUnderWay = errors.New("ranks are being computed already, with other parameters")
)

// StartConfig describes the job to start. Its JSON is what an operator may choose.
type StartConfig struct {
	Crawl  blobschema.Crawl `json:"-"`
	Params ranks.Params     `json:"params"`
	// Same takes the parameters of the last finished job. Params, or the defaults if they are zero, are for the
	// first job only. If a job is running, its messages are not sent again.
	Same  bool `json:"-"`
	Join  bool `json:"join,omitempty"`  // continue a running job, whatever its parameters
	Fresh bool `json:"fresh,omitempty"` // use nothing of previous jobs: read all commits again
	Force bool `json:"force,omitempty"` // start a new job even if one is running, which then has no result
	// Rebuild starts a new job as Fresh and Force do. It also ends the use of previous results, which may be
	// damaged: there are no ranks until the job is done.
	Rebuild bool `json:"-"`
	// Alone is the number of nodes and links of both levels up to which one partition computes all ranks. 0: default; -1: none.
	Alone int64 `json:"-"`
}

// defaultAlone nodes and links take about 200 MB.
const defaultAlone = 8 << 20

// Start starts a job, or continues the running one if it has the same parameters: it sends the job's messages
// again, which is harmless. It is an [actor.Actor].
//
// A crash before the record is written leaves nothing. A crash after it leaves a job whose messages were not sent:
// the coordinator, or the next Start, sends them.
type Start struct {
	actor.Procedure
	job   ranks.Job
	begun bool
}

// NewStart returns the actor. Its errors are [ErrNothing] and [ErrUnderWay], and those of reading.
func NewStart(cfg StartConfig) *Start {
	s := &Start{}
	s.Body = func(t *actor.Task) error { return s.run(t, cfg) }
	return s
}

// Job returns the running job, and whether this actor has started it.
func (s *Start) Job() (job ranks.Job, begun bool) { return s.job, s.begun }

func (s *Start) run(t *actor.Task, cfg StartConfig) error {
	cfg.Fresh, cfg.Force = cfg.Fresh || cfg.Rebuild, cfg.Force || cfg.Rebuild
	if cfg.Same && sameParams(&cfg.Params, &ranks.Params{}) {
		cfg.Params = ranks.DefaultParams()
	}
	if err := cfg.Params.Check(); err != nil {
		return fmt.Errorf("begin ranks: %w", err)
	}
	id := cfg.Crawl.ID
	rec, err := t.Record(naming.MapKey(id))
	if err != nil {
		return err
	}
	m := blobschema.MapRecord{Epoch: 1, Partitions: cfg.Crawl.Partitions}
	if rec.Found {
		if m, err = actor.Decode[blobschema.MapRecord](rec, "partition map"); err != nil {
			return err
		}
	}
	inputs, err := readInputs(t, id, m.Partitions)
	if err != nil {
		return err
	}
	var refused error
	err = actor.Update(t, naming.RankKey(id), func(j *ranks.Job) bool {
		refused, s.begun = nil, false
		if j.Number > 0 && j.Done.IsZero() && !cfg.Force {
			s.job = *j
			if !cfg.Same && !cfg.Join && (!sameParams(&j.Params, &cfg.Params) || j.Fresh != cfg.Fresh) {
				refused = fmt.Errorf("job %d, since %s: %w", j.Number, j.Started.Format("2006-01-02 15:04:05 MST"), ErrUnderWay)
			}
			return false
		}
		if len(inputs) == 0 {
			refused = ErrNothing
			return false
		}
		params := cfg.Params
		if last := j.Finished(); cfg.Same && last != nil {
			params = last.Params
		}
		next := ranks.Job{
			Version: wire.Version, Number: j.Number + 1, Params: params, Fresh: cfg.Fresh, Inputs: inputs, Map: m.Object, Started: t.Now().Wall.UTC(),
			Alone: max(0, cmp.Or(cfg.Alone, defaultAlone)),
		}
		if f := j.Finished(); f != nil && !cfg.Rebuild {
			last := *f
			last.Inputs, last.Previous = nil, nil
			next.Previous = &last
		}
		*j, s.job, s.begun = next, next, true
		return true
	})
	if err == nil {
		err = refused
	}
	if err != nil || cfg.Same && !s.begun {
		return err
	}
	return send(t, id, partition.All(len(s.job.Inputs)))
}

// readInputs returns the commits that heads name, or nil if there is no commit.
func readInputs(t *actor.Task, id string, partitions int) ([]ranks.Input, error) {
	keys := make([]string, partitions)
	for p := range keys {
		keys[p] = naming.HeadKey(id, partition.ID(p))
	}
	recs, err := t.Records(keys...)
	if err != nil {
		return nil, err
	}
	some := false
	inputs := make([]ranks.Input, partitions)
	for p, rec := range recs {
		inputs[p].Partition = partition.ID(p)
		if !rec.Found {
			continue
		}
		h, err := actor.Decode[blobschema.Head](rec, "head")
		if err != nil {
			return nil, err
		}
		if h.Commit == "" {
			continue
		}
		_, seq, fence, err := naming.ParseCommit(h.Commit)
		if err != nil {
			return nil, err
		}
		inputs[p].Seq, inputs[p].Fence, some = seq, fence, true
	}
	if !some {
		return nil, nil
	}
	return inputs, nil
}

func sameParams(a, b *ranks.Params) bool {
	return a.Damping == b.Damping && a.Tolerance == b.Tolerance && a.MaxRounds == b.MaxRounds && slices.Equal(a.Personal, b.Personal)
}

// send wakes partitions. Their steps read the records to find the next round.
func send(t *actor.Task, id string, to []partition.ID) error {
	if len(to) == 0 {
		return nil
	}
	bodies := make([][]byte, len(to))
	for i, p := range to {
		bodies[i] = blobschema.EncodeJob(id, p)
	}
	for fails := 0; ; {
		_, err := t.Do(actor.Send{Queue: naming.RankQueue, Bodies: bodies})
		if err == nil {
			return nil
		}
		if fails, err = t.Failed("to queue "+naming.RankQueue, fails, err); err != nil {
			return err
		}
	}
}
