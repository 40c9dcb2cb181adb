// Package jobs runs what follows a crawl: the steps of its index and of its ranks. A service runs one step of each
// kind at a time, on the messages of their queues.
//
// The main type is [Jobs], a service with these steps. jobs.go registers them; index.go and rank.go run them,
// start rank jobs and replace lost messages. Only programs that need the steps import the package, because it
// carries the text extraction and the dictionaries. It decides nothing about a step: see packages index and rank.
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

// Jobs is a service that also runs index and rank steps.
type Jobs struct {
	*service.Service
	remindAfter time.Duration

	mu       sync.Mutex
	warm     map[partition.ID]*rank.Warm // states that rank steps left in memory
	reminded time.Time                   // time when lost messages were last replaced, or a rank job first seen
}

// Open returns a service with the jobs, on an open platform.
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
			_, err := j.Index(ctx, p, index.Config{})
			return err
		}},
		service.Job{Queue: naming.RankQueue, Step: func(ctx context.Context, p partition.ID) error {
			_, err := j.RankStep(ctx, p, 0)
			return err
		}},
	)
	return j
}
