// Package embedded holds the semantics of the queue and the table of a folder as pure structures. It
// has no I/O, goroutines, locks or clock: callers pass the time, ids and revisions come from counters,
// and no result depends on the order of a Go map. So the same calls give the same answers.
//
// The simulation runs the structures as they are. Package drivers puts them behind gocloud's drivers and writes
// their mutations to a file.
//
// [Queues] is a set of named queues like those of a cloud: at least once, any order, visibility and
// delay. [Table] is a map with revisions. Both record their changes in a [Log]. A program that applies
// each [Log.Drain] atomically to a durable map can rebuild both with [Load] after a crash.
//
// Invariants:
//
//  1. A sent message is delivered until it is acknowledged.
//  2. A message is shown to one receiver at a time, until its visibility ends.
//  3. A revision is used for one write only, also after Load (no ABA).
//  4. After a crash, Load repeats deliveries at most. It loses no message that was drained.
//
// The package promises no order of delivery and bounds neither the number nor the size of messages;
// drivers do.
package embedded
