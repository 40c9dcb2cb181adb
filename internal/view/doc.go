// Package view reads a crawl from its records and objects, also while the crawl runs.
//
// Commands and dashboards use it; it does no work of a crawl. The main type is [View], over a
// [blobschema.Store]. [Open] makes one of a folder:
//
//   - If no process owns the folder, Open reads all records at once and releases the folder,
//     so that reading never keeps a crawl from starting. Objects never change (I6), so what
//     those records name stays valid. The process needs no permission to write the folder.
//   - If a process owns the folder, that process answers for its records over a Unix socket
//     in the folder (package control), and objects are read from their files.
//
// Visible means reachable from the heads, never listed. Everything here goes from head to
// manifest to commits, so objects that a crashed step left never appear.
//
// Read view.go, then heads.go and commits.go. slots.go finds slots that move; the explain
// files say why a URL or host is in its state.
//
// The package writes one object only, the capture index ([View.WriteCDXJ]), which is derived from
// the rest. Package control changes a crawl.
package view
