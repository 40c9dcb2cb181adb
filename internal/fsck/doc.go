// Package fsck checks a stored crawl. It derives the invariants of
// docs/invariants.md again from records and objects alone, and shares no code with the
// frontier and the step that keep them: only formats, URLs and maps.
//
// Operators run it as a command, and every test that crawls ends with it. [Check] only
// reads, from any [Store], and may run while the crawl does: it checks the commits that
// are visible when it begins. [Repair] deletes objects that nothing names; it does nothing
// to a crawl with violations.
//
// One pass gathers facts (pass.go, facts.go): records and heads, batches of seeds and
// requests, blocks of runs, commits, and the joined state of partitions. It shows each
// fact to each invariant. An invariant is one function from a fact to violations, in a
// file of its own: i1.go to i9.go, i11.go, limit.go and ranks.go. Read check.go, then
// facts.go, then any of them beside docs/invariants.md.
//
// I5 and I9 it can only refute: it does not read mail in queues, and requests without an
// answer leave no record. I10 compares crawls, which only the simulation can do.
package fsck
