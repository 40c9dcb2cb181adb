// Package search answers queries about the pages of a crawl, from the segments that index steps have stored.
//
// It is the end of the flow: crawl → index and ranks → search. The main type is [Index], over a [blobschema.Store]. A query
// passes through these files; read the code in the same order:
//
//	query.go    the text becomes a Query: clauses of words
//	index.go    the snapshot to search: manifests and the segments that they name
//	eval.go     the terms of the query are looked up in all segments; anchor texts are matched with their documents
//	cursor.go   cursors go through the lists of terms
//	scorer.go   each segment's matching documents are scored, by the weights of score.go; the best stay
//	results.go  near-duplicates are grouped and sites spread
//	snippet.go  the requested page of results gets its texts
//
// site.go finds the documents of a site, open.go reads the other parts of a segment, cache.go reads objects, suggest.go
// proposes other queries, and page.go serves the search page.
//
// It keeps I6 and I11 as a reader: only objects reachable from records are visible. An index head names a manifest, and the
// manifest its segments; nothing is listed. Segments are never loaded whole. All reads go through one cache that is bounded
// in bytes, and a query reads each range once.
//
// docs/search.md explains the scores; [Request].Explain shows the score of a result in parts.
//
// The package writes nothing, and fetches nothing.
package search
