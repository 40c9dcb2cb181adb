// Package segment is the stored inverted index: it maps each term to the documents that contain it, and to its
// positions.
//
// A segment is one immutable object in blob storage. A [Builder] makes it of documents and their tokens, [Merge] of other
// segments. internal/index stores segments, internal/search reads them. A [Reader] reads ranges of a segment, never all of
// it. A query with nothing in memory reads
//
//	the index at the end of the object, and columns   once: Open, Reader.Columns
//	a block of the dictionary for each term           Reader.Lookup, for all fields together
//	the lists of the term                             Reader.Postings
//	a block of documents for each result, and a text  Reader.Document, Reader.Text
//
// A reader is immutable and caches nothing; a [Source] may cache. Read segment.go first, for the types, then reader.go
// for the parts of a segment. Each part has a file: documents.go, columns.go, dict.go for the terms, and list.go with
// pack.go for their lists. builder.go, merge.go and check.go work on whole segments.
//
// # Order
//
// Documents are numbered from 0, in order of slot, host and URL; hosts are compared by their labels from the last one on. So
// the documents of a site are a range, and so are those of a registrable domain if that is the crawl's politeness key
// ([Reader.Site], [Reader.Domain]). Neighbours are alike, which makes lists and columns short, and a merge can split its
// output between two slots. A segment has one document of a slot and fingerprint. A [Set] beside the segment has
// the documents that newer segments have replaced, until a merge drops them.
//
// All data read is treated as hostile: each piece has a CRC-32C, and errors wrap wire.ErrDamaged or wire.ErrVersion.
// Equal documents give equal bytes (I6), in any order, built at once or merged. The package does no I/O of its own. It
// does not know what a token is, what a query means, or which segments make up an index.
package segment
