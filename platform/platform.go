// Package platform defines what a crawl runs on: queues, a table of records and a bucket of
// objects. It is the contract between Orbweaver and its drivers.
//
// A driver opens its queues, a table as a gocloud docstore collection and a bucket as a gocloud
// bucket, and returns them as a [Platform]. [NewTable] makes the collection for a database without
// a gocloud driver. Package conformance tests a driver: each promise that
// Orbweaver relies on is one test.
//
// A [Queue] delivers at least once, in any order. Of two writers that read the same revision of a record only
// one succeeds, and a read sees the last write. An object is stored whole or not at all, and never changes. A
// [Meter] counts every call that costs money.
//
// Steps read and write records and objects through the methods of Platform, which hide the remaining
// differences between gocloud's drivers. Names of queues, records and objects come from package
// blobschema/naming. The package knows nothing of crawling.
package platform

import (
	"context"

	"gocloud.dev/blob"
	"gocloud.dev/docstore"
)

// Platform is an open platform. A driver fills all fields except those that are marked optional.
type Platform struct {
	// Table holds a [Document] for each record. Its key is the field [KeyField]. Its reads are
	// strongly consistent, and its documents have revisions.
	Table *docstore.Collection
	// Bucket holds the objects.
	Bucket *blob.Bucket
	// BucketName is the bucket's name in the cloud. It is optional, and tells operators where
	// objects can be put.
	BucketName string
	// Queue opens a queue, which the caller closes. If there is no such queue, either Queue or
	// the first call of the queue returns an error.
	Queue func(name string) (Queue, error)
	// CreateQueues makes sure that the queues for that many partitions exist. A driver whose queues are
	// deployed beforehand returns an error if there are too few.
	CreateQueues func(ctx context.Context, partitions int) error
	// CheckQueue returns an error that says what to do if a queue does not exist. Deployments
	// may lack naming.IndexQueue and naming.RankQueue.
	CheckQueue func(ctx context.Context, name string) error
	// Partitions is the number of deployed mailboxes, which bounds the number of partitions; 0 means no bound.
	Partitions int
	// BeginWith is the default number of partitions of a new crawl; 0 means that the platform has no default.
	BeginWith int
	// Put stores an object durably with one request. It is optional: without it, the bucket's
	// own writer stores objects.
	Put func(ctx context.Context, name string, parts [][]byte) error
	// Sync makes objects durable that the bucket's writer has written. It is optional: without
	// it, they are durable once they are written.
	Sync func(names []string) error
	// Exclusive reports that no other process works on the same platform.
	Exclusive bool
	// Functions reports that deployed functions serve the queues, those of jobs too. Then workers leave the jobs to
	// them by default.
	Functions bool
	// Meter counts puts and gets of objects in the methods of Platform. It is nil if the driver
	// counts them itself. Drivers count all other calls.
	Meter Meter
	// Close releases what the driver has opened.
	Close func() error
}
