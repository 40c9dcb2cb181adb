// Package drivers opens the platform at a location: the folder of a crawl or a deployment in a
// cloud. Package platform is the contract, and the subpackages hold the drivers. Only drivers
// import SDKs.
package drivers

import (
	"context"
	"fmt"
	"time"

	"gocloud.dev/pubsub"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/drivers/embedded"
	"github.com/orbweaver/orbweaver/partition"
	"github.com/orbweaver/orbweaver/platform"
)

// visibility is how long a received message is hidden: far longer than the longest time
// between two commits.
const visibility = 5 * time.Minute

// Local opens the embedded platform in a folder. This process owns the folder until Close. meter
// may be nil. The errors are those of [openStore].
func Local(dir string, meter platform.Meter) (*platform.Platform, error) {
	meter = orNone(meter)
	s, err := openWhole(dir, Options{Meter: meter}, openStore)
	if err != nil {
		return nil, err
	}
	return fromStore(s, meter, s.SyncBlobs)
}

// LocalCopy opens a copy in memory of the queues and the table in a folder. It only reads the
// folder, so it needs no permission to write there. The bucket is empty.
func LocalCopy(dir string) (*platform.Platform, error) {
	s, err := openWhole(dir, Options{}, copyStore)
	if err != nil {
		return nil, err
	}
	return fromStore(s, platform.NoMeter{}, nil)
}

// Memory opens an embedded platform that is gone when it is closed. meter may be nil.
func Memory(meter platform.Meter) (*platform.Platform, error) {
	meter = orNone(meter)
	return fromStore(OpenMemory(Options{Meter: meter}), meter, nil)
}

func orNone(m platform.Meter) platform.Meter {
	if m == nil {
		return platform.NoMeter{}
	}
	return m
}

func fromStore(s *Store, meter platform.Meter, sync func([]string) error) (*platform.Platform, error) {
	b, err := s.Bucket()
	if err != nil {
		return nil, fmt.Errorf("open blobs: %w", err)
	}
	table := s.Collection("records", platform.KeyField)
	return &platform.Platform{
		Table: table, Bucket: b, Sync: sync, Exclusive: true, Meter: meter,
		Close: func() error {
			_ = table.Close() // fails only if it was closed already
			return s.Close()
		},
		Queue: func(name string) (platform.Queue, error) {
			return &portable{
				name: name, topic: s.Topic(name),
				open: func() *pubsub.Subscription { return s.Subscription(name, SubscriptionOptions{}) },
			}, nil
		},
		CreateQueues: func(ctx context.Context, partitions int) error {
			names := []string{naming.WakesQueue, naming.IntakeQueue, naming.IndexQueue, naming.RankQueue}
			for p := range partitions {
				names = append(names, naming.MailboxQueue(partition.ID(p)))
			}
			for _, n := range names {
				// There is no dead-letter queue: a step stores what it cannot read as a dead
				// letter with the reason, and never gives up what it can read.
				if err := s.CreateQueue(ctx, n, embedded.QueueConfig{Visibility: visibility}); err != nil {
					return fmt.Errorf("create queue %s: %w", n, err)
				}
			}
			return nil
		},
		// CreateQueues makes them all, also for a crawl that was begun when there were fewer.
		CheckQueue: func(context.Context, string) error { return nil },
	}, nil
}
