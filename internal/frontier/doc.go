// Package frontier holds the URLs that one partition knows: the settled ones, the pending ones, and
// which of them are in memory. Package schedule decides whose turn it is.
//
// The main type is [Frontier]. The step adds links, takes the next [schedule.Task] when a connection is
// free, and reports how the task ended. [Frontier.Delta] returns the changes since the last commit as
// a run. State is stored by slot: a slot that leaves is frozen and then released; a slot that arrives is
// awaited, taken and opened.
//
// De-duplication is exact (I7, I8): all fingerprints of a loaded part are in memory. The package does no
// I/O and reads no clock. Read frontier.go, part.go, load.go and delta.go, in this order.
package frontier
