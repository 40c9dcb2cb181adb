// Package segment is the stored inverted index: which documents have a term, and where.
//
// A segment is one immutable object in blob storage. A [Builder] makes it of documents
// and their tokens, [Merge] of other segments; a [Reader] searches it by reading ranges
// of it, never all. A query reads, with nothing in memory,
//
//	the index at the end of the object           once: Open, Reader.Columns
//	a block of the dictionary per term           Reader.Lookup: all fields at once
//	the lists of that term, fields side by side  Reader.Postings
//	a block of documents per result, and a text  Reader.Document, Reader.Text
//
// and each of these for all terms or results at once: a reader is immutable and caches
// nothing, a [Source] that caches does.
//
// # Order
//
// Documents are numbered from 0 on in order of slot, host and URL, hosts by their
// labels from the last on. So a site is a range of documents, and so are all hosts of
// a registrable domain where that is the crawl's unit ([Reader.Site], [Reader.Domain]);
// neighbours have few differences, which makes lists and columns short; and a merge can
// cut its output between two slots. Of one slot and fingerprint a segment has one
// document. What another segment has replaced is in a [Set] beside it, until a merge.
//
// # What it keeps
//
// Everything read is taken for hostile, as in blobschema: each piece that is read by
// itself has a CRC-32C, and errors wrap wire.ErrDamaged or wire.ErrVersion. Equal
// documents give equal bytes, built in any order, at once or merged.
//
// It is pure. What a token is, what a query means, and which segments make up an index is
// for internal/token, internal/search and internal/index to know.
package segment
