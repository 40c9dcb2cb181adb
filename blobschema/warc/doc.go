// Package warc holds the archive of answers: WARC 1.1 records (ISO 28500:2017), the HTTP
// messages in them, and the CDXJ lines that find them.
//
// The fetcher makes a [Record] of each answer and an [Encoder] turns it into bytes, which
// the step joins to objects; a page record says where in which. Everything that reads an
// archive again (export, fsck, the index) does so by [Reader], or [ReadAt] for one record.
//
// What it keeps: records are what any WARC reader takes, checked as they are written, so
// that none is stored that could not be read; equal records have equal bytes (I6); what is
// read is taken for hostile, bounded before anything is allocated, and damage is an error
// that says where. Digests are verified only when asked for ([Record.Verify]).
//
// It does no I/O of its own, follows no chain of revisits, and does not know which records
// are visible: that the commits say.
package warc
