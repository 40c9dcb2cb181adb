package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/orbweaver/orbweaver/platform"
)

// Read implements platform.Records.
func (d *database) Read(ctx context.Context, keys []string) ([]platform.Record, error) {
	recs := make([]platform.Record, len(keys))
	place := make(map[string]int, len(keys))
	for i, key := range keys {
		place[key] = i
	}
	err := d.repeat(ctx, func(ctx context.Context) error {
		rows, err := d.pool.Query(ctx, d.sql(`select key, value, revision from $schema.records where key = any($1)`), keys)
		if err != nil {
			return err
		}
		var key, value string
		var revision int64
		_, err = pgx.ForEachRow(rows, []any{&key, &value, &revision}, func() error {
			recs[place[key]] = platform.Record{Found: true, Value: []byte(value), Revision: revision}
			return nil
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read %d records: %w", len(keys), err)
	}
	return recs, nil
}

// Write implements platform.Records.
func (d *database) Write(ctx context.Context, key string, value []byte, revision platform.Revision) (platform.Revision, error) {
	statement, args := `insert into $schema.records (key, value, revision) values ($1, $2, nextval('$schema.revisions'))
		on conflict (key) do nothing returning revision`, []any{key, string(value)}
	if revision != nil {
		old, ok := revision.(int64)
		if !ok {
			return nil, fmt.Errorf("record %s: %v is no revision", key, revision)
		}
		statement, args = `update $schema.records set value = $2, revision = nextval('$schema.revisions')
			where key = $1 and revision = $3 returning revision`, append(args, old)
	}
	var now int64
	err := d.once(ctx, func(ctx context.Context) error { return d.pool.QueryRow(ctx, d.sql(statement), args...).Scan(&now) })
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, fmt.Errorf("%w: %s", platform.ErrConflict, key)
	case err != nil:
		return nil, fmt.Errorf("write record %s: %w", key, err)
	}
	return now, nil
}
