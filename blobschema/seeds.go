package blobschema

import (
	"encoding/binary"
	"fmt"

	"github.com/orbweaver/orbweaver/blobschema/wire"
)

// SeedBatch is an object of URLs from an operator. Each partition
// gets its share of a batch in one message, so a batch has the bounds of mail: split
// long lists with [SplitMail]. It holds the same fields of a URL.
type SeedBatch struct {
	Version int    // 0 stands for the current one in EncodeSeeds
	Number  uint64 // of the mail that the batch becomes, from 1
	URLs    []Queued
}

// maxSeeds leaves room for the other parts of mail, and for a share that
// compresses a little worse than the whole.
const maxSeeds = MaxMailBytes - 4<<10

// EncodeSeeds encodes a batch. It does not keep the order of the URLs, and equal
// batches have equal bytes.
func EncodeSeeds(b SeedBatch) ([]byte, error) {
	if b.Version != wire.Version && b.Version != 0 {
		return nil, fmt.Errorf("encode seeds: %w: %d", wire.ErrVersion, b.Version)
	}
	if err := checkURLs(b.URLs, MaxMailURLs, MaxMailText); err != nil {
		return nil, fmt.Errorf("encode seeds: %w", err)
	}
	data := sealLetter(letterSeeds, binary.AppendUvarint(nil, b.Number), sortedByURL(b.URLs))
	if len(data) > maxSeeds {
		return nil, fmt.Errorf("encode seeds: %d bytes are above the bound of %d", len(data), maxSeeds)
	}
	return data, nil
}

// DecodeSeeds decodes a batch.
func DecodeSeeds(data []byte) (SeedBatch, error) {
	c, err := openLetter(letterSeeds, data)
	if err != nil {
		return SeedBatch{}, fmt.Errorf("decode seeds: %w", err)
	}
	b := SeedBatch{Version: wire.Version, Number: c.Uvarint(1<<64 - 1)}
	if b.URLs, err = readPackedURLs(c); err != nil {
		return SeedBatch{}, fmt.Errorf("decode seeds: %w", err)
	}
	return b, nil
}
