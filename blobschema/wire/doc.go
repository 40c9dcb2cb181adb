// Package wire holds what all stored formats are put together from: packs of named sections
// under checksums, compressed pieces, columns of numbers, and strings that share their
// beginnings.
//
// It is below blobschema and its other packages, which say what is in a format; nobody else
// has a use for it. Writers append to a slice; readers go through a [Cursor], whose first
// failure sticks, or open a [Pack].
//
// What it keeps: bytes that are read are taken for hostile. Counts and lengths are held
// against the bytes that are there before anything is allocated, and what a frame may claim
// to hold is bounded. An error is [ErrDamaged] or [ErrVersion]. Equal content has equal bytes,
// for one version of the compressor (I6).
//
// It knows no URL, partition or page.
package wire
