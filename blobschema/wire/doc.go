// Package wire holds the parts of all stored formats: packs of named sections under
// checksums, compressed pieces, columns of numbers, and strings with shared prefixes.
//
// Package blobschema and its other packages define formats with it. Writers append to a
// slice. Readers use a [Cursor], which keeps its first failure, or open a [Pack].
//
// Input is hostile: a reader compares counts and lengths with the bytes that are there before it
// allocates, and bounds the size that a frame declares. Errors are [ErrDamaged] or
// [ErrVersion]. Equal content has equal bytes, for one version of the compressor (I6).
//
// It knows no URL, partition or page.
package wire
