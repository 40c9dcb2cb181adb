// Package view reads a crawl: what is stored of it, also while it runs.
//
// It stands on the side of whoever looks: commands, dashboards, indexes. The main
// type is [View], over a [Store] of records and objects. [Open] makes one of a
// folder, whether or not a process is at work there:
//
//   - nobody owns the folder: all records are read at once and the folder is given
//     back, so that looking never keeps a crawl from beginning. Objects never
//     change (I6), so what those records name stays as it was. The process needs
//     no permission to write the folder;
//   - a process owns it: that process answers for its records over a Unix socket
//     in the folder (package control), and objects are read from their files.
//
// Visible means reachable from the heads, never listed: everything here goes
// head → manifest → commits, so a crashed step's leavings never appear.
//
// The package changes nothing but one object, the capture index, which is made
// from the rest and may be made again ([WriteCDXJ]). Package control changes a crawl.
package view
