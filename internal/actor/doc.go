// Package actor holds procedures without I/O: what they ask of the world, and the loop
// that carries them.
//
// It is the floor that all of Orbweaver's work stands on. An [Actor] is started, issues
// [Effect]s (Fetch, PutObject, WriteRecord, Send and so on), and is handed the replies one
// at a time until it has ended. Whoever does that is an executor: package engine, over
// sockets and a platform, or package simulate, on a virtual clock with faults between any
// two instructions. Package crawl has the actors of a crawl, index and rank those that
// follow it.
//
// An actor embeds [Loop]. What is sequential by nature (take the lease, load, commit) is a
// [Task], a coroutine that waits for replies as if they were return values; an actor that
// is one task from beginning to end embeds [Procedure].
//
// Nothing here runs in parallel, so actors need no locks, and the same replies always
// bring the same effects. Reads, and writes that anybody may repeat, are tried again here;
// what a record may say, and what an object holds, this package does not know.
package actor
