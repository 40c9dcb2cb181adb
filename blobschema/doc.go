// Package blobschema holds the formats of everything that Orbweaver stores and sends. Two versions, two
// processes or two clouds communicate by these formats only.
//
// A URL passes through three of them. Mail carries the URL to its partition
// ([Mail]). The partition's state keeps it until it is requested ([Run]). A
// commit makes the result visible ([Commit]; the answer itself is a
// [warc.Record], which a [warc.CDXJ] line locates). The records of the table ([Head],
// [Crawl], [DesiredState], [Grants]) are plain JSON. Package naming derives
// every name of an object, key and queue.
//
// A commit object is a [wire.Pack]: named sections, each with a checksum, so that a
// reader decodes only the sections that it needs. Its state is a run: blocks in order of slot,
// each compressed by itself, then an index and a Bloom filter. A reader finds a
// slot, or finds that it is absent, without the rest. Runs merge by [Join], in any order.
// Mail and seeds are letters, small and self-contained.
//
// All input is hostile. Decoders compare counts and lengths with the
// bytes that are there before they allocate, and check the range of each number
// when they read it. An error is [wire.ErrDamaged] or [wire.ErrVersion] (WARC and CDXJ
// have their own). A decoder that returns an error has changed nothing. Encoders refuse
// what decoders would refuse: no state is written that could not be read (I7). Encoding is
// deterministic for one version of the compressor: equal content has equal bytes, in
// any order of the input.
//
// Actors and viewers read stored state with the same functions (read.go): an actor passes the
// Object method of its task, a viewer passes [GetFrom] of a [Store].
//
// The package is pure, except for pools of compressors and the contexts of a Store. It does not
// know the meaning of a URL, its due time or the owner of a slot; internal/frontier,
// internal/crawl and partition do.
//
// Read crawl.go, head.go and manifest.go first, then commit.go and run.go.
package blobschema
