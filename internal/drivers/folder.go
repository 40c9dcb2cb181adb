// The driver of a folder: queues, a key-value table and a blob
// bucket in one folder of one machine, behind gocloud.dev's portable types, with
// nothing to install and nothing running besides.
//
// It sits where package aws sits in a cloud. Package drivers opens it, and makes a queue of a
// *pubsub.Topic and a *pubsub.Subscription. The semantics are those of package embedded, which
// the simulation runs too. This package adds the clock, the waiting, the file and the codecs.
//
// The main type is [Store]: a folder that one process owns while it has it open.
//
//	orbweaver.db   queues and table, a bbolt file, locked by its owner
//	blobs/         the bucket, one file per object
//
// # Durability
//
// A send, a created queue and every write of the table are on disk (fsync) when
// the call returns; calls that run at the same time share a transaction. The
// whole state lives in memory and each transaction writes what changed since the
// one before, so the file is always a prefix of what happened:
//
//  1. A crash loses nothing that was confirmed. What was not yet confirmed may be
//     there or not.
//  2. A crash never keeps a later change and loses an earlier one, in queues and
//     table together. So a message may be delivered before its send is durable:
//     whatever its receiver writes comes after it.
//  3. Reads of the table wait for the writes before them, so nobody acts on a
//     value that a crash takes back.
//  4. Acknowledgements and delivery counts are durable within
//     [Options].LazySync: a crash before that means one more delivery, which at
//     least once allows anyway. Receiving writes nothing, unless the queue bounds
//     deliveries.
//  5. Opening the folder ends all visibilities: nobody from before is alive.
//
// If a transaction fails (full disk, failing disk) the Store stops: every later
// call returns that error, and only opening the folder again tells what is there.
//
// # What it does not do
//
// No two processes share a folder, except to read it (copyStore), and blobs are not synced by writing them: see
// [Store.SyncBlobs]. Messages waiting in queues and the table are held in memory.
// bbolt's pages carry no checksums: damage that breaks the file's structure is
// reported, a flipped bit inside a value is not.

package drivers
