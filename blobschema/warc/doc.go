// Package warc holds the archive of answers: WARC 1.1 records (ISO 28500:2017), the HTTP
// headers in them, and the CDXJ lines that locate them.
//
// The fetcher makes a [Record] of each answer, and an [Encoder] turns it into bytes, which
// the step joins to objects. A page record names the object and the place in it. Export, fsck
// and the index read archives by [Reader], or by [ReadAt] for one record.
//
// Any WARC reader can read the records. The encoder checks each record before it
// writes it. Equal records have equal bytes (I6). Input is hostile: the reader bounds every size
// before it allocates, and reports damage with its offset. Only [Record.Verify] verifies digests.
//
// The package does no I/O, follows no chain of revisits, and does not know which records
// are visible: the commits do.
//
// Read record.go first, then write.go and read.go.
package warc
