package jobs

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/index"
	"github.com/orbweaver/orbweaver/internal/rank"
	"github.com/orbweaver/orbweaver/partition"
)

// Index runs one index step of a partition. cfg holds the settings that differ between steps. After its
// deadline the step begins nothing new except its first manifest.
func (j *Jobs) Index(ctx context.Context, p partition.ID, cfg index.Config) (index.Report, error) {
	if err := j.Check(p); err != nil {
		return index.Report{}, err
	}
	spent, done := j.Meter()
	defer done()
	cfg.Crawl, cfg.Partition, cfg.Processors, cfg.Spent = j.Current(), p, runtime.GOMAXPROCS(0), spent
	if mb := j.Config().MemoryMB; mb > 0 {
		cfg.Memory = mb << 20 / 8
		cfg.MaxMerged = int64(mb) << 20 / 5
	}
	s, err := index.NewStep(cfg)
	if err != nil {
		return index.Report{}, err
	}
	if err := j.RunUntil(ctx, s); err != nil {
		return index.Report{}, err
	}
	return s.Report(), nil
}

// IndexForFunction runs Index for at most atMost (0: no limit), and returns the fields of the function's log line.
func (j *Jobs) IndexForFunction(p partition.ID, atMost time.Duration) ([]any, error) {
	did, err := j.Index(context.Background(), p, index.Config{Deadline: atMost})
	outcome := "committed"
	switch {
	case did.Lost:
		outcome = "another step is at work, or was faster"
	case did.Behind:
		outcome = "time was up"
	case did.Manifests == 0:
		outcome = "nothing was new"
	}
	return []any{"outcome", outcome, "read", did.Pages, "repeated", did.Repeated, "documents", did.Head.Documents}, err
}

// Follow indexes and ranks everything that was crawled, and crawls nothing. Call Begin first. It returns when
// it is done or ctx ends. It calls progress, unless nil, after each coordinator run.
func (j *Jobs) Follow(ctx context.Context, progress func(*crawl.Report)) error {
	return j.Service.Follow(ctx, j.beginAgain, progress)
}

// beginAgain restarts the indexes that another version made. The coordinator would not notice them, because it only
// compares indexes with their commits.
func (j *Jobs) beginAgain(ctx context.Context) error {
	parts, err := j.Partitioning()
	for p := range parts.Record.Partitions {
		if err == nil {
			_, err = j.Index(ctx, partition.ID(p), index.Config{Deadline: time.Nanosecond})
		}
	}
	return err
}

// Rebuild empties index and ranks, whatever their state, so that Follow or functions build both again from the
// crawl. Call Begin first. It empties the ranks first, because indexes take the results of a rank job.
//
// A crash leaves some of them empty and the others unchanged. Call Rebuild again.
func (j *Jobs) Rebuild(ctx context.Context) error {
	if _, _, err := j.StartRanks(rank.StartConfig{Same: true, Rebuild: true}); err != nil && !errors.Is(err, rank.ErrNothing) {
		return err
	}
	parts, err := j.Partitioning()
	for p := 0; err == nil && p < parts.Record.Partitions; {
		var did index.Report
		did, err = j.Index(ctx, partition.ID(p), index.Config{Deadline: time.Nanosecond, Rebuild: true})
		if !did.Lost { // otherwise another step has changed the index: retry
			p++
		}
	}
	return err
}

// WakeIndexes wakes the index steps of all partitions, wherever they run.
func (j *Jobs) WakeIndexes(ctx context.Context) error {
	parts, err := j.Partitioning()
	if err != nil {
		return err
	}
	jobs := actor.Send{Queue: naming.IndexQueue}
	for p := range parts.Record.Partitions {
		jobs.Bodies = append(jobs.Bodies, blobschema.EncodeJob(j.Crawl().ID, partition.ID(p)))
	}
	return j.Send(ctx, jobs)
}
