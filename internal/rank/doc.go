// Package rank works out what pages and hosts are worth by the links to them: PageRank, by
// rounds of messages between the partitions of a crawl. What is computed, its formula and its
// sources, what each round does and what it takes are in docs/rank.md.
//
// [Start] creates a job: it freezes which commits go in, and which partition owns which slot.
// [Step] does one partition's next round, and the one after it where everybody else has
// finished too. Both are actors, as those of package crawl are, and do no I/O. A message on
// the queue only says "look"; what there is to do, the job's record and the partitions' heads
// say.
//
// Each round of a partition is one object with a part for each partition, and a
// compare-and-set of its head, which names it. All sums are made in the order of partitions,
// so the result is the same to the last bit, whatever crashed, came twice or ran at the same
// time; objects are named by their content (I6). A round ends when all heads have finished
// it: whoever sees that tells the others. Where one partition has it all, nothing is stored
// between rounds, as long as the step has time.
//
// It reads commits as they are, and does not crawl; the formats are in blobschema/ranks.
package rank
