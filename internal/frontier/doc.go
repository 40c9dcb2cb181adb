// Package frontier holds what a partition knows: which URLs it has seen, which
// are still to be asked for, and of what something may be asked next.
//
// It sits between mail and fetches: the step adds URLs, takes the next [Task]
// when a connection is free, and says how the task ended. The main type is
// [Frontier]. What has one slot and one pace is a unit ([blobschema.Queued].Host: an
// authority, a registrable domain, or an address); a site is an authority within a
// unit, and a door one of its two schemes, which has a robots.txt. Scheduling has three levels
// (Fan, Li; Cao, Jiang, Singh): topics have priorities, and turns among equals; of a topic, the
// units that are ready stand in one queue; and the URLs of each wait in lanes behind their doors. A
// [Policy] ranks units and URLs. Units of equal rank share by registrable domain (start-time
// fair queueing: Goyal, Vin, Cheng), so that a domain with 100,000 names has one turn
// at a time. Pace and robots.txt decide when a unit is ready (invariant I9). A unit has one request
// under way, or as many as its operator allows ([Config].Hosts), one per lane.
//
// State is kept by slot, and a slot consists of parts: one, until it holds too many URLs
// (extendible hashing: Fagin, Nievergelt, Pippenger, Strong). A part is loaded, with its URLs in
// memory, or unloaded, with only a summary; URLs for an unloaded part are appended unexamined and
// de-duplicated when it is loaded, so that memory stays bounded however long the
// frontier grows, and however large one host is. The units of a slot are in memory as long as any of
// its parts. What changed since the last commit comes out as a run
// ([Frontier.Delta]); merging runs is a join, so nothing depends on their order.
// A slot that goes to another partition is frozen and then released; one that comes is
// awaited, taken and opened ([Frontier.Freeze], [Frontier.Await]).
// A loaded part is a few large arrays without pointers: an entry of forty bytes and
// its text for a pending URL, one of 24 bytes for a settled one, and an index of
// fingerprints.
//
// De-duplication is exact (I7, I8): the fingerprints of all URLs of a loaded part are
// in memory.
//
// The package is pure: no I/O, no clock, no goroutines, no locks. A Frontier
// belongs to one step and is not safe for concurrent use.
package frontier
