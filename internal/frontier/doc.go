// Package frontier holds what a partition knows: which URLs it has seen, which
// are still to be asked for, and of which host something may be asked next.
//
// It sits between mail and fetches: the step adds URLs, takes the next [Task]
// when a connection is free, and says how the task ended. The main type is
// [Frontier]. Scheduling has two levels (Cao, Jiang, Singh): ready hosts stand in
// one queue, the URLs of each host in a queue of its own, and a [Policy] ranks
// both. Pace and robots.txt decide when a host is ready (invariant I9).
//
// State is kept by slot. A slot is loaded, with its URLs in memory, or unloaded,
// with only a summary; URLs for an unloaded slot are appended unexamined and
// de-duplicated when it is loaded, so that memory stays bounded however long the
// frontier grows. What changed since the last commit comes out as a run
// ([Frontier.Delta]); merging runs is a join, so nothing depends on their order.
//
// De-duplication is exact (I7, I8): the settled and pending fingerprints of a
// loaded slot are all in memory, and a Bloom filter only ever says "surely new".
//
// The package is pure: no I/O, no clock, no goroutines, no locks. A Frontier
// belongs to one step and is not safe for concurrent use.
package frontier
