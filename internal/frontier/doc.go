// Package frontier holds the knowledge of one partition: the settled URLs, the pending
// URLs, and which of them are in memory. Package schedule decides whose turn it is.
//
// The step adds links that mail brings, takes the next [schedule.Task] when a connection is free, and
// reports how the task ended. [Frontier.Delta] returns the changes since the last commit as
// a run. The main type is [Frontier]. State is stored by slot: a slot that moves away is
// frozen and then released; one that arrives is awaited, taken and opened.
//
// De-duplication is exact (I7, I8): all fingerprints of a loaded part are in memory. It is pure.
package frontier
