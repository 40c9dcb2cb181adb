// Package postgres opens a platform on a PostgreSQL server: queues and table are tables of one schema, and the bucket is
// any that package bucket opens. Any number of processes may share it. ADR 53 gives the reasons.
//
// Read postgres.go, which opens a database; schema.go, which creates and checks the tables; then queue.go, bell.go
// and table.go.
//
//   - A queue is the rows of one table. A receiver hides rows for some time (FOR UPDATE SKIP LOCKED) and
//     counts their deliveries. A receipt is the row's id with that number, so a late acknowledgement does nothing.
//   - A record is replaced only if its revision is the expected one. Revisions come from one sequence and are never
//     used twice.
//   - Only the server's clock decides when a message is visible.
//
// All statements run on a bounded pool of connections. Statements that may be repeated are retried for some
// seconds while the server cannot be reached, for example because it restarts. A write of a record is repeated only if the
// server has not seen it.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/orbweaver/orbweaver/internal/drivers/bucket"
	"github.com/orbweaver/orbweaver/partition"
	"github.com/orbweaver/orbweaver/platform"
)

// Scheme begins the URL of a platform.
const Scheme = "postgres"

const form = "postgres://USER@HOST:PORT/DATABASE?blobs=s3://BUCKET?endpoint=URL&partitions=N"

// Defaults of a URL.
const (
	defaultName       = "orbweaver"
	defaultPartitions = 16
	// defaultConnections is small, because a server allows 100 by default and each worker has its own.
	defaultConnections = 8
)

// validName matches the name of a schema.
var validName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// location is a parsed URL.
type location struct {
	name       string // of the schema
	blobs      string // URL of the bucket
	partitions int    // default of a new crawl
	pool       *pgxpool.Config
}

// take removes a parameter and returns its value, or a default.
func take(params url.Values, name, value string) (string, error) {
	v, given := params[name]
	delete(params, name)
	switch {
	case !given:
		return value, nil
	case len(v) != 1 || v[0] == "":
		return "", fmt.Errorf("parameter %s needs one value", name)
	}
	return v[0], nil
}

func parse(text string) (l location, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("platform %s://…: %w (want %s)", Scheme, err, form) // without text, which may contain a password
		}
	}()
	server, query, _ := strings.Cut(text, "?") // package url parses no lists of hosts
	params, err := url.ParseQuery(query)
	if err != nil {
		return l, errors.New("its parameters are not those of a URL")
	}
	partitions := ""
	for _, p := range []struct {
		name, value string
		to          *string
	}{{"name", defaultName, &l.name}, {"blobs", "", &l.blobs}, {"partitions", strconv.Itoa(defaultPartitions), &partitions}} {
		if *p.to, err = take(params, p.name, p.value); err != nil {
			return l, err
		}
	}
	if l.blobs == "" {
		return l, errors.New("parameter blobs is missing: the URL of the bucket, s3://… or file:///…")
	}
	if !validName.MatchString(l.name) {
		return l, fmt.Errorf("the name %.50q is not 1 to 40 of a-z, 0-9 and _, beginning with a letter", l.name)
	}
	if l.partitions, err = strconv.Atoi(partitions); err != nil || l.partitions < 1 || l.partitions > partition.MaxPartitions {
		return l, fmt.Errorf("partitions is %q, not a number from 1 to %d", partitions, partition.MaxPartitions)
	}
	// All other parameters are those of PostgreSQL and the pool.
	bounded := params.Has("pool_max_conns")
	if l.pool, err = pgxpool.ParseConfig(server + "?" + params.Encode()); err != nil {
		return l, err // pgx has removed the password
	}
	if !bounded {
		l.pool.MaxConns = defaultConnections
	}
	if c := l.pool.ConnConfig; c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "orbweaver"
	}
	// With several hosts in the URL, this finds the one that takes writes.
	if c := l.pool.ConnConfig; c.ValidateConnect == nil {
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	return l, nil
}

// database is an open platform.
type database struct {
	location
	pool *pgxpool.Pool
	bell *bell
}

// Open opens the platform at a URL:
//
//	postgres://USER@HOST:PORT,HOST:PORT/DATABASE?blobs=URL&name=NAME&partitions=N
//
// Of several servers, the one that takes writes is used.
// blobs is the URL of the bucket, see bucket.Open. name is the schema, by default orbweaver. partitions is the number of
// partitions of a new crawl, by default 16. All other parameters, the password file and the environment are those of
// PostgreSQL clients, such as sslmode and PGPASSWORD, and those of pgxpool, such as pool_max_conns. The first Open
// creates the tables. meter counts calls of the bucket only, because nobody bills the others; it may be nil.
func Open(ctx context.Context, text string, meter platform.Meter) (*platform.Platform, error) {
	l, err := parse(text)
	if err != nil {
		return nil, err
	}
	objects, err := bucket.Open(ctx, l.blobs)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, l.pool)
	if err != nil {
		return nil, errors.Join(err, objects.Close())
	}
	d := &database{location: l, pool: pool}
	if err := d.prepare(ctx, objects); err != nil {
		pool.Close()
		return nil, errors.Join(err, objects.Close())
	}
	d.bell = newBell(d.due)
	var p *platform.Platform
	p = &platform.Platform{
		Table: platform.NewTable(d), BeginWith: l.partitions, Meter: meter,
		Queue:        func(name string) (platform.Queue, error) { return &queue{database: d, name: name}, nil },
		CreateQueues: d.createQueues,
		CheckQueue:   func(context.Context, string) error { return nil }, // prepare creates the queues that it may be called with
		Close: func() error {
			_ = p.Table.Close() // fails only if it was closed already
			d.bell.close()
			pool.Close()
			return objects.Close()
		},
	}
	objects.Fill(p)
	return p, nil
}

// sql puts the name of the schema into a statement.
func (d *database) sql(text string) string { return strings.ReplaceAll(text, "$schema", d.name) }

// Retries of statements that may be repeated.
const (
	retryFor   = 15 * time.Second
	retryFirst = 50 * time.Millisecond
	retryMost  = 2 * time.Second
	// statementTimeout bounds a statement whose caller must learn its result.
	statementTimeout = 30 * time.Second
)

// repeat calls do until it succeeds, fails for a reason other than the connection, or has failed for some seconds.
func (d *database) repeat(ctx context.Context, do func(ctx context.Context) error) error {
	pause := retryFirst
	for began := time.Now(); ; pause = min(2*pause, retryMost) {
		err := do(ctx)
		if err == nil || ctx.Err() != nil || !passing(err) || time.Since(began) > retryFor {
			return explain(err)
		}
		select {
		case <-ctx.Done():
			return explain(err)
		case <-time.After(pause):
		}
	}
}

// once is repeat for a statement that must not be carried out twice: it is repeated only if it was not sent.
func (d *database) once(ctx context.Context, do func(ctx context.Context) error) error {
	var unsure error
	err := d.repeat(ctx, func(ctx context.Context) error {
		err := do(ctx)
		if err != nil && passing(err) && !unsent(err) {
			unsure, err = err, nil
		}
		return err
	})
	return errors.Join(err, explain(unsure))
}

// unsent reports whether a failed statement never reached the server.
func unsent(err error) bool {
	var failed *pgconn.ConnectError
	return pgconn.SafeToRetry(err) || errors.As(err, &failed)
}

// passing reports whether an error is one of the connection, or of a server that starts, stops or fails over.
func passing(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code[:2] {
		case "08", "40", "53": // connection, deadlock, too many connections
			return true
		case "57": // shutdown, starting
			return pg.Code != "57014" // cancelled by a user or a timeout
		}
		return pg.Code == "25006" // the server has become a standby
	}
	var failed *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &failed) || errors.As(err, &network) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// explain adds to an error what to do.
func explain(err error) error {
	if err == nil {
		return nil
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case "28P01", "28000":
			return fmt.Errorf("the server refuses the user or the password: check the user in the URL and set PGPASSWORD: %w", err)
		case "3D000":
			return fmt.Errorf("there is no such database: create it (createdb), or check the URL: %w", err)
		case "42501":
			return fmt.Errorf("the user lacks a right: grant it CREATE on the database, or use the user that created the schema: %w", err)
		case "42P01", "3F000":
			return fmt.Errorf("the tables are gone: was the schema dropped while this ran? %w", err)
		case "53300":
			return fmt.Errorf("the server has no connection left: lower pool_max_conns in the URL, or raise max_connections of the server: %w", err)
		case "53100":
			return fmt.Errorf("the disk of the server is full: %w", err)
		}
		return err
	}
	var failed *pgconn.ConnectError
	if errors.As(err, &failed) {
		if strings.Contains(err.Error(), "read only connection") {
			return fmt.Errorf("the server takes no writes: it is a standby, or the user is read-only; name the primary, or all servers separated by commas: %w", err)
		}
		return fmt.Errorf("the server cannot be reached: is it running, and is the address in the URL right? %w", err)
	}
	return err
}
