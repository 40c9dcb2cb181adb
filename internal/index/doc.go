// Package index makes what a crawl has stored searchable: it turns the commits of a partition
// into segments of an inverted index.
//
// It stands behind the crawl, and reads what the crawl has committed; nothing is asked for again.
// The main type is [Step], an actor as those of package crawl: it takes the commits that are not in
// the index of its partition yet, reads their pages from the WARC objects, puts segments
// (blobschema/segment), then a manifest that names them, and makes the index head name that by
// compare-and-set. Before that nothing happened, after it everything did: any number of steps may
// run for one partition, and die at any moment; a page is in the index once.
//
// Of a page asked for several times the last answer counts. What is gone, may not be shown or asks
// not to be, leaves the index; an answer that could not be had changes nothing, nor does one with the payload
// that is there already: the document's time tells which that is. Between two manifests
// small segments are merged, and objects that no manifest has named for a while are deleted: their
// names are in the manifest, nothing is ever listed.
//
// The package is pure: no I/O, no clock. Ranks and the texts of links come from internal/rank; what is
// found is up to internal/search.
package index
