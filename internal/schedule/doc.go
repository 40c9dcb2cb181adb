// Package schedule decides which pending URL of a partition is requested next.
//
// Package frontier inserts URLs, which lie in a [Pool] for each loaded part of a slot, takes the
// next [Task] and settles the URLs that [Schedule.Ended] returns. The main type is [Schedule].
// Topics take turns; of each the best [Key] by a [Policy]; of that the best URL.
//
// Pace and robots.txt decide when a key is ready (I9). change.go says when a page is revisited. Read schedule.go, key.go, turn.go and
// answer.go in this order. The package knows nothing of runs. It is pure.
package schedule
