// Package ui is a web page to look at a crawl: its progress, hosts, partitions, topics and links, what happened to each
// URL, and the stored pages.
//
// [Server] is an HTTP handler. It reads the active crawl of a store through package view, also while the crawl runs, and
// caches what it reads for [Options.Every]. Pages are templates (*.tmpl) that need no script; ui.js only replaces their
// live parts. It is safe for concurrent use.
//
// Everything that a crawled server sent is hostile here. Three things keep it harmless:
//
//   - html/template escapes every text, and [line] removes characters that change the direction of writing. URLs of the
//     crawl are links to this server. Only URLs that package weburl parses, which are http and https, are links out.
//   - The policy of pages allows only this server's own style, script and frames, and nothing inline.
//   - A stored page is served by itself, sandboxed without scripts, forms or network (stored.go).
//
// Another site must not use the page either. guard.go refuses foreign names in Host, so that a name that is rebound to
// this machine reads nothing. It refuses requests from other sites, and changes without the token of this process.
//
// Read ui.go, then pages.go. table.go and chart.go render; report.go makes the link report, also as one file.
// The package changes nothing itself: [Options.Order] and [Options.Recrawl] do.
package ui
