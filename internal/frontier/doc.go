// Package frontier holds what a partition knows: which URLs are settled, which are pending,
// and of what something may be asked next.
//
// It sits between mail and fetches: the step adds URLs, takes the next [Task] when a
// connection is free, and says how the task ended; what changed since the last commit comes
// out as a run ([Frontier.Delta]). The main type is [Frontier], which tells how URLs are
// ranked and kept. State is by slot; a slot that goes to another partition is frozen and then
// released, one that comes is awaited, taken and opened.
//
// De-duplication is exact (I7, I8): the fingerprints of all URLs of a loaded part are in
// memory. Pace and robots.txt decide when a unit is ready (I9).
//
// It is pure: no I/O, no clock, no goroutines, no locks.
package frontier
