// Package fsck checks a crawl by what is stored of it: it derives the invariants
// again from records and objects alone, and shares no code with the frontier and
// the step that are to keep them.
//
// It stands beside everything else: operators run it as a command, and every test
// that crawls ends with it. The main function is [Check], over any [Store]. It
// only reads, and may run while the crawl does: it looks at one moment, at which
// no head changed.
//
// What it finds of each invariant:
//
//	I1  every stored URL canonicalises to itself
//	I2  the slot stored with a host or URL is the host's
//	I3  a partition's state, pages and mail are of slots it owns; epochs never go back
//	I4  each commit is where and what its name says, fences never go back, commits
//	    follow one another without a gap, and nobody else names their WARC objects
//	I5  no more mail is applied than was sent, and marks never shrink
//	I6  every object that is named exists and reads back whole: checksums, order
//	    of runs, digests of all WARC records, and page records that agree with them
//	I7  every seed, every link followed and every URL in mail that was applied is
//	    known to its owner, or is on its way to it; what is settled has a page
//	    record that says how, and the other way round; no merge of runs lost
//	    anything; all counts are right
//	I8  of each URL and generation there is one visible page record at most, and none
//	    while it is pending
//	I9  no two answers of a host are closer than the delay
//
// I5 and I9 it can only refute: mail in queues is not looked at, and requests
// that brought no answer leave no record. I10 compares crawls, which is the
// simulation's to do. A violation of "limit" is about the page limit.
//
// Objects that nothing names are what crashed steps and merges left: they are
// counted, and are no damage.
package fsck
