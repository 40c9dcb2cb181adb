// Package jobs runs what follows a crawl: the steps of its index and of its ranks, one at a time of each kind, on
// messages of their queues. Programs that need them register them with a service, so that others do not carry the text
// extraction and the dictionaries. See packages index and rank for the steps themselves.
package jobs

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/index"
	"github.com/orbweaver/orbweaver/internal/rank"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/partition"
	"github.com/orbweaver/orbweaver/platform"
)

// Jobs is a service that runs index and rank steps too.
type Jobs struct {
	*service.Service
	remindAfter time.Duration

	mu       sync.Mutex
	warm     map[partition.ID]*rank.Warm // what rank steps left in memory
	reminded time.Time                   // when lost messages were made up for last, or a rank job was seen first
}

// Open returns a service on an open platform, with the jobs.
func Open(p *platform.Platform, cfg service.Config) (*Jobs, error) {
	s, err := service.New(p, cfg)
	if err != nil {
		return nil, err
	}
	return New(s), nil
}

// New registers the jobs with a service.
func New(s *service.Service) *Jobs {
	j := &Jobs{Service: s, remindAfter: cmp.Or(s.Config().RemindJobs, remindAfter)}
	s.Register(j.startRanks,
		service.Job{Queue: naming.IndexQueue, Step: func(ctx context.Context, p partition.ID) error {
			_, err := j.index(ctx, p, index.Config{})
			return err
		}},
		service.Job{Queue: naming.RankQueue, Step: func(ctx context.Context, p partition.ID) error {
			_, err := j.stepRanks(ctx, p, 0)
			return err
		}},
	)
	return j
}
