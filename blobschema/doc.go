// Package blobschema holds the formats of what Orbweaver stores and sends. It is where two versions, two processes or two clouds meet; whatever
// is not written down here is nobody's contract.
//
// On a URL's way it is met three times: mail carries the URL to its partition
// ([Mail]), the partition's state keeps it until it is asked for ([Run]), and a
// commit makes what came of it visible ([Commit], with the answer itself in a
// [warc.Record] that a [warc.CDXJ] line finds). The records of the table ([Head],
// [Crawl], [Wish], [Grants]) are plain JSON; package naming derives
// every name of an object, key and queue, and nothing else does.
//
// A commit object is a [wire.Pack]: named sections, each under a checksum, so that a
// reader decodes only what it needs. Its state is a run: blocks in order of slot,
// each compressed by itself, then an index and a Bloom filter, so that a slot is
// found, or known to be absent, without the rest. Runs merge by [Join], in any order.
// Mail and seeds are letters, small and self-contained.
//
// Everything decoded is taken for hostile: counts and lengths are held against the
// bytes that are there before anything is allocated, and what a number may be is
// checked where it is read. An error is [wire.ErrDamaged] or [wire.ErrVersion] (WARC and CDXJ
// have their own); a decoder that returns one has changed nothing. Encoders refuse
// what decoders would: no state is written that could not be read (I7). Encoding is
// deterministic for one version of the compressor: equal content has equal bytes,
// whatever the order it was given in.
//
// The package is pure, but for pools of compressors. It does not know what a URL means, when one is due, or who owns a
// slot; internal/frontier, internal/crawl and partition do.
package blobschema
