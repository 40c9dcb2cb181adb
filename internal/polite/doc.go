// Package polite decides whether a URL may be fetched at all, and whether its host may be
// requested now.
//
// A [Robots] answers the first question: it holds the rules of a host's robots.txt for one
// product token (RFC 9309). [Directives] are the requests of a page itself. A [Pace] answers the
// second question: it is the state of one host, with the time of its next request, its back-off, and
// the measured cost of its connections. [Retry] decides when a URL or a whole host has had
// enough attempts.
//
// The frontier of a step (packages crawl and frontier) holds one Pace per politeness key
// and one Robots per site and scheme. It consults them before each request, and stores both
// with the key. The fetcher measures; this package only judges. It holds plain data and pure
// functions: no I/O, no goroutines, no clock. Times are arguments. Pass them as the clock
// returned them: their monotonic reading keeps the pace when the wall clock is set during
// a step.
//
// The package keeps invariant I9 (no host is requested faster than its pace) for one host
// and one actor: the time between two calls of [Pace.Start], each at [Pace.ReadyAt]
// or later, is at least the delay given to the first. The step ensures that only one actor paces a host,
// and that a takeover calls [Pace.Floor].
//
// The package does not fetch robots.txt, follow its redirects, or remember its age. It does
// not rank hosts, but returns the numbers for a ranking ([Pace.Connection]).
package polite
