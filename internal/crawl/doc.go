// Package crawl is the core: a [Step] works on one partition, a [Tick] is a run of the coordinator, and [Begin] creates a crawl.
// Each is an [actor.Actor]. A step makes commits and mail of mail and answers, and keeps I3 to I9.
//
// Reading order: step.go (life and fields), duties.go (what is done when), discover.go (what becomes of a link), inbox.go,
// fetch.go, result.go, commit.go, outbox.go; then the parts: lease, state, care, budget, archive, handover. The coordinator: tick.go.
// Ranking and pace are in frontier and polite, fetching in fetch, formats in blobschema.
package crawl
