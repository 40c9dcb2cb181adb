package nats

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/orbweaver/orbweaver/platform"
)

// Read implements platform.Records.
func (d *deployment) Read(ctx context.Context, keys []string) ([]platform.Record, error) {
	recs := make([]platform.Record, len(keys))
	err := each(ctx, len(keys), func(ctx context.Context, i int) error {
		entry, err := d.table.Get(ctx, keys[i])
		switch {
		case errors.Is(err, jetstream.ErrKeyNotFound):
			return nil
		case err != nil:
			return err
		}
		recs[i] = platform.Record{Found: true, Value: entry.Value(), Revision: entry.Revision()}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read %d records: %w", len(keys), err)
	}
	return recs, nil
}

// Write implements platform.Records. Revision 0 is that of a record that does not exist.
func (d *deployment) Write(ctx context.Context, key string, value []byte, revision platform.Revision) (platform.Revision, error) {
	old := uint64(0)
	if revision != nil {
		var ok bool
		if old, ok = revision.(uint64); !ok || old == 0 {
			return nil, fmt.Errorf("record %s: %v is no revision", key, revision)
		}
	}
	var now uint64
	err := repeat(ctx, refused, func(ctx context.Context) (err error) {
		now, err = d.table.Update(ctx, key, value, old)
		return err
	})
	switch {
	case errors.Is(err, jetstream.ErrKeyRevisionMismatch):
		return nil, fmt.Errorf("%w: %s", platform.ErrConflict, key)
	case err != nil:
		return nil, fmt.Errorf("write record %s: %w", key, err)
	}
	return now, nil
}
