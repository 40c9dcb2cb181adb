package experiment

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/jobs"
	"github.com/orbweaver/orbweaver/internal/rank"
	"github.com/orbweaver/orbweaver/internal/rank/made"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/partition"
	"github.com/orbweaver/orbweaver/platform"
)

// Targets of ranking.
const (
	redisRankMost = time.Second // on one machine
	redisTenfold  = 10
)

// madeStore stores a made crawl on a platform.
type madeStore struct{ *platform.Platform }

func (s madeStore) Put(name string, data []byte) error {
	return engine.PutObject(context.Background(), s.Platform, actor.PutObject{Name: name, Parts: [][]byte{data}})
}

func (s madeStore) Record(key string, value []byte) error {
	recs, err := engine.ReadRecords(context.Background(), s.Platform, []string{key})
	if err == nil {
		_, err = engine.WriteRecord(context.Background(), s.Platform, actor.WriteRecord{Key: key, Value: value, Revision: recs[0].Revision})
	}
	return err
}

// rankTrial is the ranking of a web of sites.
type rankTrial struct {
	workers  int
	sites    int
	measured bool // runs in this process, two steps at once

	job   ranks.Job
	took  time.Duration
	busy  time.Duration // processor time of all workers
	steps int
	calls int // number of calls of table, queue and objects
}

// crawl makes a crawl of the sites, with one page each.
func (t *rankTrial) crawl(p *platform.Platform, pages []made.Page) (*made.Crawl, error) {
	c, err := made.Begin(madeStore{p}, "sites", archiveSlots, t.workers, blobschema.ByHost)
	if err != nil {
		return nil, err
	}
	return c, c.Commit(madeStore{p}, pages, 5000)
}

// run ranks a made web.
func (t *rankTrial) run(pages []made.Page) (err error) {
	p, err := drivers.Memory(nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	c, err := t.crawl(p, pages)
	if err != nil {
		return err
	}
	runtime.GC()
	if t.measured {
		began, before := time.Now(), processorTime()
		t.job, err = rankAll(p, c.Record)
		t.took, t.busy = time.Since(began), processorTime()-before
		return err
	}
	f := &farm{platform: p}
	if t.took, err = f.rank(c.Record); err != nil {
		return err
	}
	t.busy, t.calls, t.steps = f.busy, f.calls, f.steps
	if t.job, err = ranked(p, c.Record.ID); err != nil {
		return fmt.Errorf("%s sites by %d workers: %w", grouped(t.sites), t.workers, err)
	}
	return nil
}

// rankAll computes the ranks of a crawl in this process, two steps at once.
func rankAll(p *platform.Platform, c blobschema.Crawl) (ranks.Job, error) {
	e, err := jobs.Open(p, service.Config{})
	if err != nil {
		return ranks.Job{}, err
	}
	e.Use(c)
	job, err := e.Rank(context.Background(), rank.StartConfig{Params: ranks.DefaultParams()}, nil)
	if err == nil && job.Failed != "" {
		err = fmt.Errorf("the ranks are not there: %s", job.Failed)
	}
	return job, err
}

// rank computes the ranks of a crawl. A step of a partition starts when a message for it arrives and no step of it is
// running. It starts with the memory of the previous step.
func (f *farm) rank(c blobschema.Crawl) (time.Duration, error) {
	warm, atWork, asked := map[partition.ID]*rank.Warm{}, map[partition.ID]bool{}, map[partition.ID]bool{}
	var look func(p partition.ID)
	look = func(p partition.ID) {
		if atWork[p] {
			asked[p] = true
			return
		}
		atWork[p] = true
		f.steps++
		s := rank.NewStep(rank.StepConfig{Crawl: c, Partition: p}, warm[p])
		f.start(s, func() {
			warm[p], atWork[p] = s.Warm(), false
			if asked[p] {
				asked[p] = false
				look(p)
			}
		})
	}
	f.sent = func(body []byte) error {
		_, p, err := blobschema.DecodeJob(body)
		if err == nil {
			look(p)
		}
		return err
	}
	f.start(rank.NewStart(rank.StartConfig{Crawl: c, Params: ranks.DefaultParams()}), nil)
	return f.run()
}

// ranked returns a crawl's rank job, which must be finished.
func ranked(p *platform.Platform, id string) (job ranks.Job, err error) {
	recs, err := engine.ReadRecords(context.Background(), p, []string{naming.RankKey(id)})
	if err != nil {
		return job, err
	}
	job, err = actor.Decode[ranks.Job](recs[0], "rank job")
	if err == nil && (job.Done.IsZero() || job.Failed != "") {
		err = fmt.Errorf("the ranks are not there: %s", job.Failed)
	}
	return job, err
}

// redisRanks holds the trials of the section on ranks.
type redisRanks struct {
	sites               int
	measured, simulated []*rankTrial
	large               []*rankTrial // simulated, ten times the sites
}

func newRedisRanks(s redisScale) *redisRanks {
	r := &redisRanks{sites: s.sites}
	for _, n := range s.workers {
		r.measured = append(r.measured, &rankTrial{workers: n, sites: s.sites, measured: true})
		r.simulated = append(r.simulated, &rankTrial{workers: n, sites: s.sites})
		r.large = append(r.large, &rankTrial{workers: n, sites: redisTenfold * s.sites})
	}
	return r
}

func (r *redisRanks) run(seed uint64, log func(string, ...any)) error {
	for _, trials := range [][]*rankTrial{r.measured, r.simulated, r.large} {
		pages := made.Sites(seed, trials[0].sites)
		for _, t := range trials {
			if err := t.run(pages); err != nil {
				return err
			}
			log("ranks of %s sites by %d workers: %d rounds in %v, %v of a processor", grouped(t.sites), t.workers, t.job.Rounds, t.took.Round(time.Millisecond), t.busy.Round(time.Millisecond))
		}
	}
	return nil
}

func (r *redisRanks) section() Section {
	first := r.measured[0]
	sec := Section{
		Title: "PageRank", Breaks: "all partitions rank a small graph together (`defaultAlone` in `internal/rank/start.go` is 0).",
		Text: fmt.Sprintf(redisRankText, grouped(r.sites), grouped(int(first.job.Totals.HostLinks)), first.job.Params.Tolerance, redisTenfold, redisRankMost),
	}
	tab := Table{
		Name: "rank", Caption: "Seconds until the ranks are computed",
		Columns: []string{
			"workers", "paper, s", "times as fast", "rounds", "measured, s", "simulated, s", "of a processor, s", "steps", "calls",
			fmt.Sprintf("%d times the sites, simulated, s", redisTenfold), "times as fast",
		},
	}
	for i, t := range r.simulated {
		n, large := t.workers, r.large[i].took
		tab.Rows = append(tab.Rows, []any{
			n, redisPaperRank[n], redisPaperRank[1] / redisPaperRank[n], t.job.Rounds, r.measured[i].took.Seconds(), t.took.Seconds(), t.busy.Seconds(), t.steps, t.calls,
			large.Seconds(), r.large[0].took.Seconds() / large.Seconds(),
		})
		sec.Checks = append(sec.Checks, Check{fmt.Sprintf("%d workers: the same ranks in as many rounds, by a tenth of the paper's time", n),
			t.job.Rounds == first.job.Rounds && t.job.Totals == first.job.Totals && t.took.Seconds() <= redisPaperRank[n]/10})
	}
	few, many := r.simulated, r.large
	for i := 1; i < len(few); i++ {
		n := few[i].workers
		sec.Checks = append(sec.Checks,
			Check{fmt.Sprintf("%d workers: faster than one", n), few[i].took < few[0].took},
			Check{fmt.Sprintf("%d workers, %d times the sites: faster than one, by the paper's factor", n, redisTenfold),
				many[0].took.Seconds()/many[i].took.Seconds() >= redisPaperRank[1]/redisPaperRank[n]})
	}
	sec.Checks = append(sec.Checks, Check{fmt.Sprintf("one process: at most %v", redisRankMost), first.took <= redisRankMost})
	sec.Tables = []Table{tab}
	return sec
}

const redisRankText = `The paper says of its web only that it has 35,602 sites. Here a generated web has %s sites with one page each and %s links, whose numbers per site follow power laws in both directions. The figures include all
of the work: reading commits, sending links to the owners of their targets, rounds until the ranks of both levels (pages and hosts, equal here) change by at most %g in all, and
tables of the results.

One process that runs two steps at once is measured over a store in memory. The simulation has steps on machines with one processor each, started by messages, with the call times of a cloud. All workers
read the commits and number the nodes. A graph of up to 8 million nodes and links is then ranked by one of them, in memory; for a larger one, each round
is an object and a record for each partition ([ADR 32](../adr/0032-pagerank.md)). The last columns are for %d times as many sites.

One process must compute the ranks of as many sites as the paper's within %v.`
