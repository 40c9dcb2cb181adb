// Package segment is the stored inverted index: from terms to the documents that have
// them. A segment is one immutable object of documents in the order of slot, host and
// URL, made by a [Builder] or by [Merge], and searched through a [Reader] that reads
// ranges of it: a query that finds nothing in memory reads the tail, a block of the
// dictionary per term, the postings of that term, and the documents it shows.
package segment
