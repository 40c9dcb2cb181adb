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

// Index runs one index step of a partition. After atMost it begins nothing except a first manifest; 0 is without bound.
func (j *Jobs) Index(p partition.ID, atMost time.Duration) (index.Report, error) {
	return j.index(context.Background(), p, index.Config{Deadline: atMost})
}

// index runs one index step; cfg holds what differs from step to step.
func (j *Jobs) index(ctx context.Context, p partition.ID, cfg index.Config) (index.Report, error) {
	if err := j.Check(p); err != nil {
		return index.Report{}, err
	}
	spent, done := j.Meter()
	defer done()
	cfg.Crawl, cfg.Partition, cfg.Processors, cfg.Spent = j.Current(), p, runtime.GOMAXPROCS(0), spent
	if mb := j.Config().MemoryMB; mb > 0 {
		cfg.Memory = mb << 20 / 16
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

// IndexForFunction is Index, and returns what the function's log line says of the step.
func (j *Jobs) IndexForFunction(p partition.ID, atMost time.Duration) ([]any, error) {
	did, err := j.Index(p, atMost)
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

// Follow brings index and ranks up to all that is crawled, and crawls nothing. Begin comes first. It ends
// when that is done, or ctx does; progress is called after each coordinator run, and may be nil.
func (j *Jobs) Follow(ctx context.Context, progress func(*crawl.Report)) error {
	return j.Service.Follow(ctx, j.beginAgain, progress)
}

// beginAgain has partitions whose indexes were made by another version begin them again: the coordinator only sees
// which are behind their commits.
func (j *Jobs) beginAgain(ctx context.Context) error {
	parts, err := j.Partitioning()
	for p := range parts.Record.Partitions {
		if err == nil {
			_, err = j.index(ctx, partition.ID(p), index.Config{Deadline: time.Nanosecond})
		}
	}
	return err
}

// Rebuild empties index and ranks, whatever state they are in, so that both are made again from what is crawled: by
// Follow, or by functions. Begin comes first. Ranks come first, because an index takes up the results of a rank job.
//
// A crash in here leaves some of it empty, and the rest as it was; Rebuild can be called again.
func (j *Jobs) Rebuild(ctx context.Context) error {
	if _, _, err := j.StartRanks(rank.StartConfig{Same: true, Rebuild: true}); err != nil && !errors.Is(err, rank.ErrNothing) {
		return err
	}
	parts, err := j.Partitioning()
	for p := 0; err == nil && p < parts.Record.Partitions; {
		var did index.Report
		did, err = j.index(ctx, partition.ID(p), index.Config{Deadline: time.Nanosecond, Rebuild: true})
		if !did.Lost { // to another step, which went on with what there was
			p++
		}
	}
	return err
}

// LookAtIndexes has the index steps of all partitions look for what they have to do, wherever they run.
func (j *Jobs) LookAtIndexes(ctx context.Context) error {
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
