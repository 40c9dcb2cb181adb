// Package simweb holds a generated web whose answers are all known beforehand. Tests compare whole crawls with
// this ground truth, and measurements use it as load. It is not part of the product: 'orbweaver demo' has its
// own small web.
//
// A [Web] is made from a [Config] alone. Kind, path, links and body of page p of host h are pure functions of
// (seed, h, p), so a web of a million pages takes a few bytes per page. There are two ways to request it, with
// the same answers:
//
//   - [Web.Answer], a function for the simulation: delays and cuts are values;
//   - [Serve], over sockets: each host on an address of its own, 127.1.x.y, all on one port.
//
// [Web.Truth] walks the generator's own link lists, never the HTML made from them, and so is independent of the
// code that it judges. [Diff] describes where a crawl differs.
//
// It speaks HTTP/1.1, with TLS if [ServeTLS] has a certificate, and no HTTP/2. It expects well-behaved clients.
package simweb
