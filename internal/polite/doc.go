// Package polite answers two questions: may this URL be fetched at all, and may its host
// be fetched now?
//
// The first is answered by a [Robots], what a host's robots.txt says to one product token
// (RFC 9309), and by [Directives], what a page says about itself. The second is answered
// by a [Pace], the state of one host: when it may be asked next, its back-off, and what
// its connections have cost so far. [Retry] says when a URL, or a whole host, has had
// attempts enough.
//
// The step (package crawl) has a frontier (package frontier), which holds one Pace per unit
// and one Robots per site and scheme, asks them before a request is started, and stores both
// with the unit. The fetcher measures; this package only judges. Everything here is plain data and pure functions: no I/O, no goroutines,
// no clock. Time comes in as an argument, and is best left as the clock gave it: the
// monotonic reading in it is what keeps the pace when the wall clock is set while a step
// runs.
//
// Invariant I9 (no host is asked faster than its pace) is kept here as far as one host
// and one actor go: between two calls of [Pace.Start] that were made at [Pace.ReadyAt]
// or later lies at least the delay given to the first. That one actor only paces a host,
// and that a takeover calls [Pace.Floor], is kept by the step.
//
// It does not fetch robots.txt, follow its redirects, or remember how old it is. It does
// not rank hosts: it gives the numbers for that ([Pace.Connection]).
package polite
