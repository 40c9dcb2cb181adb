// Package index makes the pages of a crawl searchable: it turns the commits of a partition into segments of an
// inverted index.
//
// It follows the crawl and reads what the crawl has committed; it fetches nothing. Its results are read by
// internal/search.
//
// The main type is [Step], an actor. One step does the following; read the code in this order:
//
//	step.go      reads the index head and its manifest, and the commits after that manifest
//	batch.go     decides which answer of each page counts, and reads these pages from the WARC objects
//	document.go  makes documents and their tokens of the pages
//	anchors.go   makes a segment of the texts of links, by the last rank job
//	step.go      stores segments and a manifest that names them, and sets the index head to it
//
// Until the head is set, nothing of a step is visible; afterwards all of it is. So any number of steps may run for a
// partition, and each may die at any moment.
//
// It keeps I11: a page is in the index at most once, by its last answer that counts. Pages that are gone,
// forbidden or noindex leave the index. Failed requests change nothing. Unchanged payloads, which the document's time
// identifies, are not read again.
//
// Small segments are merged between two manifests. Objects that no manifest has named for a while are deleted: the
// manifest lists them, so that nothing has to be listed in the store.
//
// The package does no I/O and reads no clock. It does not compute ranks, and does not search.
package index
