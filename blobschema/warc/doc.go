// Package warc encodes and reads the archive of answers: WARC 1.1 records (ISO 28500:2017), the HTTP
// headers and the chunked bodies in them, and the CDXJ lines that locate them.
//
// The fetcher makes a [Record] of each answer, and an [Encoder] turns it into bytes, which
// the step joins to objects. A page record names the object and the offset in it. Export, fsck
// and the index read archives with [Reader], or with [ReadAt] for one record. [ParseHTTPHead] and [Dechunk]
// read what a server sent, for the fetcher and for the reader of a stored record.
//
// Any WARC reader can read the records. The encoder checks each record before it
// writes it. Equal records have equal bytes (I6). Input may be hostile: the reader bounds every size
// before it allocates, and reports damage with its offset. Only [Record.Verify] verifies digests.
//
// The package does no I/O, follows no chain of revisits, and does not know which records
// are visible: the commits do.
//
// Read record.go first, then write.go and read.go.
package warc
