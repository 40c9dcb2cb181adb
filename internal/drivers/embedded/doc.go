// Package embedded holds the semantics of the local queue and the local table as
// pure structures: no I/O, no goroutines, no locks, no clock. Time comes in as an
// argument, ids and revisions come from counters, and no order of a Go map ever
// shows, so the same calls give the same answers.
//
// It sits under the step's queue and key-value effects twice: the deterministic
// simulation runs it as it is, and package local puts it behind gocloud's drivers
// and writes its mutations to a file.
//
// The types are [Queues], many named queues as every cloud's plain queue is (at
// least once, any order, visibility, delay, dead letters), and [Table], a sorted
// map with revisions and atomic batches. Both record what they change in a [Log];
// whoever applies the whole log to a durable map, one [Log.Drain] at a time and
// each drain atomically, can rebuild them with Load after a crash.
//
// Kept here:
//
//  1. A message that was sent is delivered until it is acknowledged, or moved to
//     its dead-letter queue: nothing else removes it.
//  2. A message is shown to one receiver at a time, until its visibility ends.
//  3. A revision is used once: never again for another write, not even after a
//     delete, nor after Load (no ABA).
//  4. A batch of table writes happens as a whole or not at all.
//  5. Load after a crash repeats deliveries at most. What a crash may cost is a
//     delivery count that was not drained, never a message.
//
// It promises no order of delivery, has no topics with several subscribers, and
// bounds neither the number nor the size of messages: that is the drivers' part.
// No type here may be used by two goroutines at once.
package embedded
