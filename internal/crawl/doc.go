// Package crawl is the core of the crawler, between the queues and the web: mail brings URLs, the frontier decides which of
// them may be requested now, answers become WARC records and links, and a commit makes everything visible at once.
//
// Its actors do no I/O (see package actor). [Step], the main type, works on one partition under a lease and keeps the
// invariants I3 to I9 of docs/invariants.md. [Tick] is one coordinator run: it wakes partitions, resends lost mail and
// decides when the crawl is finished. [Begin], [Intake], [Command], [Repartition] and [ChangeTopic] carry out requests of users.
//
// Reading order for a step: step.go (life and fields), duties.go (what it does and when), discover.go (the way of a found
// link), inbox.go, fetch.go, result.go, commit.go, outbox.go; then lease, state, care, budget, archive and handover, one
// part of a step each. For the coordinator: coordinator.go, then the files of its duties (tickDuties).
//
// The package does not choose the next URL (schedule), remember known URLs (frontier), compute the pace of a host
// (polite), speak HTTP (fetch), define stored formats (blobschema), or run anything (engine, service).
package crawl
