// Package drivers opens what a crawl runs on: queues, and a key-value table and blob
// storage as gocloud's portable types. Its subpackages hold the drivers; only they
// import SDKs.
package drivers

import (
	"context"
	"fmt"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/docstore"
	"gocloud.dev/pubsub"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/drivers/embedded"
	"github.com/orbweaver/orbweaver/internal/drivers/local"
	"github.com/orbweaver/orbweaver/partition"
	"github.com/orbweaver/orbweaver/platform"
)

// Platform is what engines and commands work on.
type Platform struct {
	Table  *docstore.Collection // of documents with a string field keyField
	Bucket *blob.Bucket
	// BucketName is the bucket's in the cloud; "" where objects are not put by others.
	BucketName string
	// Queue opens a queue, which the caller closes.
	Queue func(name string) (Queue, error)
	// CreateQueues makes sure that the queues of that many partitions exist. Where queues
	// are deployed beforehand it fails if they are too few.
	CreateQueues func(ctx context.Context, partitions int) error
	// CheckQueue says what is wrong if there is no queue of that name: deployments may have
	// been made without [naming.IndexQueue] and [naming.RankQueue].
	CheckQueue func(ctx context.Context, name string) error
	// Partitions is how many partitions a crawl may have here, because there are so many
	// mailboxes; 0 for any number.
	Partitions int
	// BeginWith is how many a crawl begins with here unless it is told; 0 where that is left
	// to whoever begins it.
	BeginWith int
	// Put stores an object as one request; nil where the bucket's own writer does.
	Put func(ctx context.Context, name string, parts [][]byte) error
	// Sync makes objects durable that were written before; nil where writing does.
	Sync func(names []string) error
	// Exclusive says that no other process works on the same platform.
	Exclusive bool
	// Meter is told of the calls of the bucket by who makes them; nil where the platform
	// tells its meter itself.
	Meter Meter
	Close func() error
}

// What drivers give; see package driver.
type (
	Queue    = platform.Queue
	Delivery = platform.Delivery
	Receipt  = platform.Receipt
	Meter    = platform.Meter
)

// NoMeter counts nothing.
type NoMeter struct{}

func (NoMeter) QueueRequest(string, int) {}
func (NoMeter) KVRead(int)               {}
func (NoMeter) KVWrite(int)              {}
func (NoMeter) BlobPut(int)              {}
func (NoMeter) BlobGet(int)              {}

// keyField is the field of a table's document that holds its key.
const keyField = "key"

// visibility is how long a message received is hidden: far above the longest time
// between two commits.
const visibility = 5 * time.Minute

// Local opens the embedded platform in a folder, which this process owns until Close.
// meter may be nil. The errors are those of [local.Open].
func Local(dir string, meter Meter) (*Platform, error) {
	meter = orNone(meter)
	s, err := openWhole(dir, local.Options{Meter: meter}, local.Open)
	if err != nil {
		return nil, err
	}
	return fromStore(s, meter, s.SyncBlobs)
}

// LocalCopy opens a copy in memory of the queues and the table in a folder, which it only reads:
// the process needs no permission to write there. The bucket is empty.
func LocalCopy(dir string) (*Platform, error) {
	s, err := openWhole(dir, local.Options{}, local.Copy)
	if err != nil {
		return nil, err
	}
	return fromStore(s, NoMeter{}, nil)
}

// Memory opens an embedded platform that is gone when it is closed. meter may be nil.
func Memory(meter Meter) (*Platform, error) {
	meter = orNone(meter)
	return fromStore(local.OpenMemory(local.Options{Meter: meter}), meter, nil)
}

func orNone(m Meter) Meter {
	if m == nil {
		return NoMeter{}
	}
	return m
}

func fromStore(s *local.Store, meter Meter, sync func([]string) error) (*Platform, error) {
	b, err := s.Bucket()
	if err != nil {
		return nil, fmt.Errorf("open blobs: %w", err)
	}
	table := s.Collection("records", keyField)
	return &Platform{
		Table: table, Bucket: b, Sync: sync, Exclusive: true, Meter: meter,
		Close: func() error {
			_ = table.Close() // fails only if it was closed already
			return s.Close()
		},
		Queue: func(name string) (Queue, error) {
			return &portable{
				name: name, topic: s.Topic(name),
				open: func() *pubsub.Subscription { return s.Subscription(name, local.SubscriptionOptions{}) },
			}, nil
		},
		CreateQueues: func(ctx context.Context, partitions int) error {
			names := []string{naming.WakesQueue, naming.IntakeQueue, naming.IndexQueue, naming.RankQueue}
			for p := range partitions {
				names = append(names, naming.MailboxQueue(partition.ID(p)))
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
		// CreateQueues makes them all, also for a crawl that was begun when there were fewer.
		CheckQueue: func(context.Context, string) error { return nil },
	}, nil
}
