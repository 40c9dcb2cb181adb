// Package actor defines actors, procedures without I/O, and the loop that runs them.
//
// All work of Orbweaver is done by actors. An executor starts an [Actor], carries out the
// [Effect]s that it issues (Fetch, PutObject, WriteRecord, Send and so on), and passes it the replies, one
// at a time, until it has ended. There are two executors: package engine, over
// sockets and a platform, and package simulate, on a virtual clock with faults between any
// two instructions. Package crawl holds the actors of a crawl; packages index and rank hold those that
// follow it.
//
// An actor embeds [Loop]. Sequential work (take the lease, load, commit) is a
// [Task], a coroutine that waits for replies as if they were return values. An actor
// of a single task embeds [Procedure].
//
// Nothing here runs in parallel, so actors need no locks, and the same replies always
// lead to the same effects. The package retries reads, and writes that can be repeated. It does
// not know the content of records and objects.
//
// Read effect.go and loop.go first, then task.go.
package actor
