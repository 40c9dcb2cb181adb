// Package ranks holds the formats of PageRank: the records of a job ([Job], and a [Head] for each partition), and the
// objects that partitions send each other in its rounds. Read records.go first.
// internal/rank computes them, in this order: commits become pieces of the link graph ([Graph]), then a [Layout] and the
// pages and hosts that each partition links to ([Targets]), then rounds exchange numbers ([EncodeValues]). The results
// are a [Table] of ranks, for search and frontier, and the texts of links ([AnchorTarget]), for the index.
// Decoders treat input as hostile and refuse it as wire.ErrDamaged or wire.ErrVersion. Equal content has equal bytes
// (I6). The package computes nothing, and does no I/O.
package ranks
