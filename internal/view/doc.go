// Package view reads a crawl from its records and objects, also while the crawl runs.
//
// Commands and dashboards use it; package control changes a crawl. The main type is [View]. [Open] makes one of a folder. If
// no process owns the folder, Open reads all records at once and releases it, so reading keeps no crawl from
// starting. Otherwise the owner answers for its records over a socket in the folder.
//
// Visible means reachable from the heads, never listed: everything goes from head to manifest to commits, so objects that
// a crashed step left never appear. One object is written, the capture index ([View.WriteCDXJ]).
//
// Read view.go, then heads.go and commits.go. slots.go finds slots that move; the explain files say why a URL or host is
// in its state.
package view
