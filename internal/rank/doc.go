// Package rank computes PageRank of pages and of hosts, by rounds of messages between the partitions of a crawl.
// docs/rank.md has the formula, its sources, the rounds and their costs.
//
// It follows the crawl: it reads commits, and fetches nothing. Search, index and frontier read its results.
//
// The main type is [Step], an actor that does the next round of one partition. Read the code in this order:
//
//	start.go    [Start] creates a job: it fixes the commits that go in, and the owner of each slot
//	step.go     one step: which round is next, the object and head that a round stores, what is deleted
//	rounds.go   the first rounds: commits become a graph (builder.go), its targets (targets.go), numbers (layout.go)
//	iterate.go  the other rounds: ranks go from partition to partition (level.go)
//	solve.go    instead of those: one partition computes the ranks of a small graph
//	final.go    the last round, and the tables of the whole job
//	read.go     the progress of a job, and new messages for lost ones
//
// A message on the queue only wakes a step. The record of the job and the heads of the partitions determine what it
// does. Each round of a partition stores one object, with a part for each partition, and sets the partition's head to it by
// compare-and-set. A round ends when all heads have it: the partition that finishes it last wakes the others.
//
// It keeps I6: objects are named by their content, and sums are added in the order of partitions. The result is the
// same to the last bit even if steps crash, repeat or run in parallel.
//
// The package does no I/O. The formats are in blobschema/ranks.
package rank
