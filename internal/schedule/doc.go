// Package schedule decides which pending URL of a partition is requested next.
//
// The main type is [Schedule]. Package frontier inserts URLs, takes the next [Task], and settles
// the URLs that [Schedule.Ended] returns. Each loaded part of a slot keeps its URLs in a [Pool].
// Topics take turns. Within a topic, the [Policy] of the crawl chooses the best ready [Key], which
// sends a request for its best URL.
//
// Pace and robots.txt decide when a key is ready (I9). change.go decides when a page is
// revisited. Read schedule.go, key.go, turn.go and answer.go, in this order. The package does no
// I/O and reads no clock.
package schedule
