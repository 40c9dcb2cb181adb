package drivers

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/fxamacker/cbor/v2"

	"github.com/orbweaver/orbweaver/platform"
)

// Bounds of DynamoDB, which hold in a folder too.
const (
	maxDocumentBytes = 400 << 10
	maxKeyBytes      = 1024
)

// tablePrefix begins the stored key of each record.
const tablePrefix = "records\x00"

// document is the stored form of a record, in CBOR. The order of its fields is part of the file format.
type document struct {
	Key      string `cbor:"key"`
	Value    string `cbor:"value"`
	Revision any    `cbor:"DocstoreRevision"` // always nil: the table has it
}

func encodeDocument(key string, value []byte) ([]byte, error) {
	if len(key) > maxKeyBytes || !utf8.ValidString(key) || !utf8.Valid(value) {
		return nil, fmt.Errorf("record %.40q: its key has more than %d bytes, or it is not UTF-8", key, maxKeyBytes)
	}
	stored, err := cbor.Marshal(document{Key: key, Value: string(value)})
	if err == nil && len(stored) > maxDocumentBytes {
		err = fmt.Errorf("record %s has %d bytes, and the table takes %d", key, len(stored), maxDocumentBytes)
	}
	return stored, err
}

func decodeDocument(stored []byte) ([]byte, error) {
	var d document
	if err := cbor.Unmarshal(stored, &d); err != nil {
		return nil, fmt.Errorf("%w: decode record: %w", ErrDamaged, err)
	}
	return []byte(d.Value), nil
}

// Read implements platform.Records. It waits until the records that it returns are on disk.
func (s *store) Read(ctx context.Context, keys []string) ([]platform.Record, error) {
	if err := s.lock(); err != nil {
		return nil, err
	}
	stored, recs := make([][]byte, len(keys)), make([]platform.Record, len(keys))
	for i, key := range keys {
		var rev uint64
		if stored[i], rev = s.table.Get(tablePrefix + key); rev != 0 {
			recs[i] = platform.Record{Found: true, Revision: rev}
		}
	}
	written := s.tables
	s.mu.Unlock()
	if err := s.flush(written); err != nil {
		return nil, err
	}
	for i := range recs {
		s.meter.KVRead(len(stored[i]))
		if recs[i].Found {
			var err error
			if recs[i].Value, err = decodeDocument(stored[i]); err != nil {
				return nil, err
			}
		}
	}
	return recs, ctx.Err()
}

// Write implements platform.Records. After a crash before it returns, the write may or may not have happened.
func (s *store) Write(ctx context.Context, key string, value []byte, revision platform.Revision) (platform.Revision, error) {
	stored, err := encodeDocument(key, value)
	if err != nil {
		return nil, err
	}
	old, ok := revision.(uint64) // 0 if there is none
	if revision != nil && (!ok || old == 0) {
		return nil, fmt.Errorf("record %s: %v is no revision", key, revision)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := s.lock(); err != nil {
		return nil, err
	}
	before, _ := s.table.Get(tablePrefix + key)
	rev, err := s.table.Write(tablePrefix+key, stored, old)
	if err == nil {
		s.tables = s.change()
	}
	written := s.tables
	s.mu.Unlock()
	s.meter.KVWrite(max(len(before), len(stored)))
	if err != nil { // the caller lost a race: it learns of it when the winner's write is durable
		if err := s.flush(written); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %s", platform.ErrConflict, key)
	}
	return rev, s.flush(written)
}
