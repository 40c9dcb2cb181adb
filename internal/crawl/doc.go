// Package crawl is the core of Orbweaver: what a step does with its partition, what a
// tick does for all of them, and how a crawl begins. It does no I/O.
//
// It stands between the queues and the web. Mail comes in with URLs, the frontier says
// which of them may be asked for now, answers come back as records and links, and a
// commit makes all of it visible at once and names the mail for other partitions.
//
// The types are [Step], [Tick] and [Begin]; [Intake] takes requests, and [Repartition],
// [ChangeTopic] and [Command] are what operators change. Each is an [actor.Actor].
//
// Kept here, by the numbers of docs/invariants.md:
//
//   - I3: a slot leaves in one commit of its holder and comes with one of its receiver, who
//     takes only what is newer than anything it has seen of the slot (move.go).
//   - I4: a step works under a lease and a fence; the head is replaced by
//     compare-and-set only, so what was begun under an older fence is never named.
//   - I5: mail is acknowledged after the commit that holds its effect, and numbered, so
//     that what comes again is known.
//   - I6: object names carry partition, sequence and fence; nothing is put twice with
//     different content.
//   - I7: what leaves one partition's commit is named in its manifest until it was sent,
//     and sent again by the tick until it was applied.
//   - I8: a page is visible when the head names its commit; what a crashed step fetched
//     is not.
//   - I9: no request starts or lasts past the lease less a margin, and after a takeover
//     every host is left alone for its pace. The pace itself is package polite's.
//
// It does not rank, pace or de-duplicate URLs (frontier, polite), does not fetch or
// parse (fetch, extract), and knows no format (blobschema). What crashed steps have left is
// not deleted here: 'fsck --repair' does that.
package crawl
