// Package platform opens what a crawl runs on: queues, a key-value table and blob
// storage, as gocloud's portable types. Its subpackages hold the drivers; only they
// import SDKs.
package platform

import (
	"context"
	"fmt"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/docstore"
	"gocloud.dev/pubsub"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/platform/embedded"
	"github.com/orbweaver/orbweaver/internal/platform/local"
	"github.com/orbweaver/orbweaver/partition"
)

// Platform is what engines and commands work on.
type Platform struct {
	Table        *docstore.Collection // of documents with a string field KeyField
	Bucket       *blob.Bucket
	Topic        func(queue string) (*pubsub.Topic, error)
	Subscription func(queue string) (*pubsub.Subscription, error)
	// CreateQueues makes sure that the queues of that many partitions exist.
	CreateQueues func(ctx context.Context, partitions int) error
	// Sync makes objects durable that were written before; nil where writing does.
	Sync func(names []string) error
	// Receives tells how often a message was delivered, this time included.
	Receives func(*pubsub.Message) int
	// Exclusive says that no other process works on the same platform.
	Exclusive bool
	Close     func() error
}

// KeyField is the field of a table's document that holds its key.
const KeyField = "key"

// visibility is how long a message received is hidden: far above the longest time
// between two commits.
const visibility = 5 * time.Minute

// Local opens the embedded platform in a folder, which this process owns until Close.
func Local(dir string, meter local.Meter) (*Platform, error) {
	s, err := local.Open(dir, local.Options{Meter: meter})
	if err != nil {
		return nil, err
	}
	return fromStore(s, s.SyncBlobs)
}

// Memory opens an embedded platform that is gone when it is closed.
func Memory(meter local.Meter) (*Platform, error) {
	return fromStore(local.OpenMemory(local.Options{Meter: meter}), nil)
}

func fromStore(s *local.Store, sync func([]string) error) (*Platform, error) {
	b, err := s.Bucket()
	if err != nil {
		return nil, fmt.Errorf("open blobs: %w", err)
	}
	table := s.Collection("records", KeyField)
	return &Platform{
		Table: table, Bucket: b, Sync: sync, Exclusive: true,
		Close: func() error {
			_ = table.Close() // fails only if it was closed already
			return s.Close()
		},
		Topic: func(q string) (*pubsub.Topic, error) { return s.Topic(q), nil },
		Subscription: func(q string) (*pubsub.Subscription, error) {
			return s.Subscription(q, local.SubscriptionOptions{}), nil
		},
		CreateQueues: func(ctx context.Context, partitions int) error {
			names := []string{blobschema.WakesQueue, blobschema.IntakeQueue}
			for p := range partitions {
				names = append(names, blobschema.MailboxQueue(partition.ID(p)))
			}
			for _, n := range names {
				// No dead-letter queue: the step itself puts aside what it cannot read, with
				// its reason; what it can read is never given up.
				if err := s.CreateQueue(ctx, n, embedded.QueueConfig{Visibility: visibility}); err != nil {
					return fmt.Errorf("create queue %s: %w", n, err)
				}
			}
			return nil
		},
		Receives: func(m *pubsub.Message) int {
			n, ok := local.Receives(m)
			if !ok {
				return 1
			}
			return n
		},
	}, nil
}
