// Package simweb holds a generated web whose every answer is known beforehand: the
// truth that tests check whole crawls against, and the load for measurements. It is not part of
// the product: 'orbweaver demo' has a small web of its own.
//
// A [Web] is made from a [Config] alone. Nothing of it is stored: kind, path, links and
// body of page p of host h are pure functions of (seed, h, p), so a web of a million pages
// costs a few bytes each. It is reached in two ways that give the same answers:
//
//   - [Web.Answer], a function for the simulation: delays and cuts are values;
//   - [Serve], over sockets: each host on an address of its own, 127.1.x.y, all on one port.
//
// [Web.Truth] walks the generator's own link lists, never the HTML made from them, and so
// is independent of the code it judges. [Diff] says in words where a crawl differs.
//
// It speaks plain HTTP/1.1 to clients that mean well, and has no HTTPS and no HTTP/2.
package simweb
