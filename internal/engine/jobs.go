package engine

import (
	"context"
	"errors"

	"github.com/orbweaver/orbweaver/blobschema/naming"
)

// CheckJobs says what is wrong if there are no queues for the jobs of index and ranks: a
// deployment may have been made without. A crawl that is to be searchable must not begin there,
// since its ticks would fail.
func (e *Engine) CheckJobs(ctx context.Context) error {
	return errors.Join(e.platform.CheckQueue(ctx, naming.IndexQueue), e.platform.CheckQueue(ctx, naming.RankQueue))
}
