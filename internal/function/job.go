package function

import (
	"context"

	"github.com/orbweaver/orbweaver/internal/index"
	"github.com/orbweaver/orbweaver/partition"
)

// Index makes searchable what the partition that a job names has committed since, as far as
// that can be done before ctx ends; for what is left it sends another job.
func (f *Function) Index(ctx context.Context, job []byte) error {
	return f.turn(ctx, "index", job, func(p partition.ID, line *[]any) error {
		did, err := f.engine.Index(p, atMost(ctx))
		if err != nil {
			return err
		}
		*line = append(*line, "outcome", indexed(&did), "read", did.Pages, "repeated", did.Repeated, "documents", did.Head.Documents)
		return nil
	})
}

func indexed(did *index.Report) string {
	switch {
	case did.Lost:
		return "another step is at work, or was faster"
	case did.Behind:
		return "time was up"
	case did.Manifests == 0:
		return "nothing was new"
	}
	return "committed"
}

// Rank does the piece of work that is next for the partition that a job names, of the ranks
// that are being computed.
func (f *Function) Rank(ctx context.Context, job []byte) error {
	return f.turn(ctx, "rank", job, func(p partition.ID, line *[]any) error {
		did, err := f.engine.RankStep(p, atMost(ctx))
		if err != nil {
			return err
		}
		*line = append(*line, "job", did.Job, "round", did.Round, "rounds", did.Rounds, "done", did.Done)
		return nil
	})
}
