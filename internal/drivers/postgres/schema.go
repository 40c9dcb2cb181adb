package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/orbweaver/orbweaver/internal/drivers/bucket"
)

// schemaVersion is the version of the tables that this program uses.
const schemaVersion = 1

// lockKey is the number of the advisory lock under which a schema is created: "orbw".
const lockKey = 0x6f726277

// tables creates the tables. Rows of messages and records are short-lived, so vacuum runs earlier than by default, and
// pages of records leave room for the next state. Bodies of messages are not compressed: they seldom shrink.
const tables = `
create schema if not exists $schema;
create table $schema.about (version int not null, bucket text not null);
create sequence $schema.revisions;
create table $schema.records (
	key text collate "C" primary key,
	value text not null,
	revision bigint not null
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
create table $schema.queues (
	name text primary key,
	visibility interval not null
);
create table $schema.messages (
	id bigint generated always as identity primary key,
	queue text not null,
	body bytea not null,
	receives int not null default 0,
	visible timestamptz not null
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_insert_scale_factor = 0.2);
alter table $schema.messages alter column body set storage external;
create index messages_visible on $schema.messages (queue, visible);
`

// prepare creates the tables if there are none, and otherwise checks that they fit this program and this bucket.
func (d *database) prepare(ctx context.Context, objects *bucket.Bucket) error {
	return d.describe(pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		if err := checkServer(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, lockKey); err != nil {
			return err
		}
		var exists bool
		if err := tx.QueryRow(ctx, `select to_regclass($1) is not null`, d.name+".about").Scan(&exists); err != nil {
			return err
		}
		if !exists {
			return d.create(ctx, tx, objects)
		}
		return d.check(ctx, tx, objects)
	}))
}

func (d *database) describe(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("open schema %s of database %s at %s: %w", d.name, d.location.pool.ConnConfig.Database, d.location.pool.ConnConfig.Host, explain(err))
}

// checkServer refuses a server that would lose commits, because lost commits break leases.
func checkServer(ctx context.Context, tx pgx.Tx) error {
	var commit, sync, encoding string
	err := tx.QueryRow(ctx, `select current_setting('synchronous_commit'), current_setting('fsync'), current_setting('server_encoding')`).
		Scan(&commit, &sync, &encoding)
	switch {
	case err != nil:
		return err
	case commit == "off":
		return errors.New("the server runs with synchronous_commit=off and loses commits when it crashes: set it to on for this database (alter database ... set synchronous_commit = on)")
	case sync == "off":
		return errors.New("the server runs with fsync=off and loses commits when the machine fails: set fsync=on in its configuration")
	case encoding != "UTF8":
		return fmt.Errorf("the encoding of the database is %s: create one with UTF8 (createdb -E UTF8 -T template0)", encoding)
	}
	return nil
}

// create creates the tables and claims the bucket. A crash leaves at most the bucket's marker, which does no harm.
func (d *database) create(ctx context.Context, tx pgx.Tx, objects *bucket.Bucket) error {
	if _, err := tx.Exec(ctx, d.sql(tables)); err != nil {
		return err
	}
	id, err := bucket.Claim(ctx, objects, d.blobs, "")
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, d.sql(`insert into $schema.about (version, bucket) values ($1, $2)`), schemaVersion, id); err != nil {
		return err
	}
	return d.insertQueues(ctx, tx, 0)
}

func (d *database) check(ctx context.Context, tx pgx.Tx, objects *bucket.Bucket) error {
	var version int
	var id string
	if err := tx.QueryRow(ctx, d.sql(`select version, bucket from $schema.about`)).Scan(&version, &id); err != nil {
		return err
	}
	if version != schemaVersion {
		return fmt.Errorf("its tables have version %d, and this program uses version %d: use the version of orbweaver that created them, or another name (parameter name)",
			version, schemaVersion)
	}
	_, err := bucket.Claim(ctx, objects, d.blobs, id)
	return err
}
