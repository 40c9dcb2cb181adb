// Package crawl is the core: what a [Step] does with its partition, what a [Tick] does for all, and how a crawl begins
// ([Begin]), each an [actor.Actor]. From mail and answers a step makes commits and more mail; it keeps I3 to I9.
// Ranking and pace are in frontier and polite, fetching in fetch, formats in blobschema.
package crawl
