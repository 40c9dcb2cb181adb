// Package search answers questions about what was crawled, from the segments that the
// index step stored: nothing is kept but a cache.
//
// It stands at the end of the flow: crawl → index and ranks → search. The main type is
// [Index], over a [stored.Store]. A query goes
//
//	text → Query → terms → their postings in every segment → scores → the best →
//	near-duplicates under one, sites spread → the page asked for, with snippets
//
// Visible means reachable from the records: an index head names a manifest, and that the
// segments; nothing is listed. Segments are never loaded whole. What is read of them goes
// through one cache bounded in bytes, and one query reads each range once.
//
// How documents are scored, and why so, is in docs/search.md; [Request].Explain shows it
// for a result.
//
// The package writes nothing, and crawls nothing.
package search
