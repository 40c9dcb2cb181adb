// Package simweb holds a generated web whose every answer is known beforehand: the
// ground truth that whole crawls are checked against, and the load that measurements
// are taken on.
//
// A [Web] is made from a [Config] alone. Nothing of it is stored: kind, path, links and
// body of page p of host h are pure functions of (seed, h, p), drawn when they are asked
// for, so a web of a million pages costs a few bytes each. It is reached in two ways that
// give the same answers:
//
//   - [Web.Answer], a plain function from request to response, for the deterministic
//     simulation: latency, cuts and refusals come back as values;
//   - [Serve], over sockets: each host on a loopback address of its own, 127.1.x.y, all on
//     one port.
//
// [Web.Truth] walks the generator's own link lists, never the HTML made from them, and so
// is independent of the code it judges. [Diff] says in words where a crawl differs.
//
// What holds of every web:
//
//   - Page 0 of a host is its root, an ordinary page at "/". Page p > 0 is linked from a
//     page q < p of the same host that is ordinary, allowed by every robots.txt group but
//     that of "badbot", and whose links count. The root of host h > 0 is linked from such a
//     page of a host g < h that can be crawled. So all is reachable from host 0's root, but
//     for pages that exist to be missed ([PageShares].Hidden), those that only a sitemap has
//     ([Sitemaps].Unlinked) and the inner pages of hosts that cannot be crawled.
//   - A URL this package calls canonical is so under the URL standard and under RFC 3986
//     section 6.2.2: lower-case host, no default port, no dot segments, only needful escapes,
//     in upper case.
//   - An answer depends only on the [Request] and on how often the page was changed with
//     [Web.Touch]: what fails and then succeeds does so by Request.Attempt, which the caller
//     counts (the [Server] counts for itself). Nothing changes by time.
//
// It is for tests, the demo and the benchmarks: it speaks plain HTTP/1.1 to clients that
// mean well, and has no HTTPS and no HTTP/2.
package simweb
