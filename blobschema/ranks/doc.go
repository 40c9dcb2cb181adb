// Package ranks holds the formats of PageRank: the records of a job ([Job], a [Head] for
// each partition), and the objects that partitions send one another by its rounds.
//
// Package rank works them out: commits become pieces of the link graph ([Graph]), these a
// [Layout] with what each partition links to ([Targets]), then numbers alone, and at the end
// a [Table] of ranks by fingerprint, which search and frontier read, and texts of links by
// their target ([AnchorTarget]), which the index reads.
//
// What it keeps: everything decoded is taken for hostile, and refused as wire.ErrDamaged or
// wire.ErrVersion; encoders are deterministic, so that two which make an object make the same
// one (I6). It computes nothing, and does no I/O.
package ranks
