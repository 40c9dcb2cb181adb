package engine

import (
	"context"

	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/partition"
)

func (e *Engine) startRanks(rep *crawl.Report) error { return nil }

func (e *Engine) rankStep(ctx context.Context, p partition.ID) error { return nil }
