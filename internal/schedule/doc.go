// Package schedule decides which pending URL of a partition is requested next.
//
// The main type is [Schedule]. Package frontier inserts URLs, takes the next [Task], and settles
// the URLs that [Schedule.Ended] returns. Each loaded part of a slot keeps its URLs in a [Pool].
// Topics take turns. The topic in turn sends a request to its best [Key] by the crawl's [Policy],
// for the best URL of that key.
//
// Pace and robots.txt decide when a key is ready (I9). change.go decides when a page is
// revisited. Read schedule.go, key.go, turn.go and answer.go, in this order. The package does no
// I/O, reads no clock, and does not know how state is stored.
package schedule
