// Package view reads a crawl from its records and objects, also while the crawl runs.
//
// [Open] makes a [View] of a folder. If no process owns
// it, Open reads all records at once and releases it. Otherwise the owner answers for its records over a socket.
//
// Visible means reachable from the heads, never listed: everything goes from head to manifest to commits, so objects that
// a crashed step left never appear. One object is written, the capture index ([View.WriteCDXJ]).
//
// Read view.go, then heads.go, commits.go and the explain files.
package view
