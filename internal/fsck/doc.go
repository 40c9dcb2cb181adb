// Package fsck checks a crawl by what is stored of it: it derives the invariants again from
// records and objects alone, and shares no code with the frontier and the step that are to
// keep them.
//
// It stands beside everything else: operators run it as a command, and every test that
// crawls ends with it. The main function is [Check], over any [Store]: it finds violations
// of I1 to I9 and I11, by which each is named. It only reads, and may run while the crawl
// does: it looks at the commits that are visible when it begins. It can be asked for some
// slots or one partition, and leave a [State] for the check after it.
//
// [Repair] deletes what nothing names, which crashed steps and merges have left and which is
// no damage, and wakes partitions whose wake was lost; it does nothing else, and nothing at
// all to a crawl with violations.
//
// I5 and I9 it can only refute: mail in queues is not looked at, and requests that brought
// no answer leave no record. I10 compares crawls, which is the simulation's to do.
package fsck
