package blobschema

import "strings"

// replayed ends the name of the note that a dead letter was sent again.
const replayed = ".replayed"

// DeadPrefix begins the names of a crawl's dead letters, and of the notes beside them.
func DeadPrefix(crawl string) string { return crawl + "/dead/" }

// ReplayedName names the note, beside a dead letter of that name, that its body was sent
// again: an empty object.
func ReplayedName(dead string) string { return dead + replayed }

// IsReplayedName reports whether a name is such a note's.
func IsReplayedName(name string) bool { return strings.HasSuffix(name, replayed) }
