package postgres

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/platform"
)

// Visibilities: how long a received message is hidden. A step acknowledges mail at each commit. A job is acknowledged at
// its end.
const (
	mailVisibility = 5 * time.Minute
	jobVisibility  = 30 * time.Minute
)

// createQueues creates the queues that do not exist yet.
func (d *database) createQueues(ctx context.Context, partitions int) error {
	err := d.repeat(ctx, func(ctx context.Context) error { return d.insertQueues(ctx, d.pool, partitions) })
	if err != nil {
		return fmt.Errorf("create queues: %w", err)
	}
	return nil
}

// insertQueues creates queues with a connection or in a transaction.
func (d *database) insertQueues(ctx context.Context, on interface {
	Exec(ctx context.Context, statement string, args ...any) (pgconn.CommandTag, error)
}, partitions int,
) error {
	names := append(naming.Queues(partitions), naming.DeadLettersQueue)
	hidden := make([]time.Duration, len(names))
	for i, name := range names {
		hidden[i] = mailVisibility
		if name == naming.IndexQueue || name == naming.RankQueue {
			hidden[i] = jobVisibility
		}
	}
	_, err := on.Exec(ctx, d.sql(`insert into $schema.queues (name, visibility)
		select * from unnest($1::text[], $2::interval[]) on conflict do nothing`), names, hidden)
	return err
}

// queue implements platform.Queue.
type queue struct {
	*database
	name  string
	known atomic.Bool // it exists
}

// receipt is one delivery. A later delivery of the same message has another number.
type receipt struct {
	id       int64
	receives int32
}

func (q *queue) Send(ctx context.Context, bodies [][]byte, delay time.Duration) error {
	if len(bodies) == 0 {
		return nil
	}
	err := q.repeat(ctx, func(ctx context.Context) error {
		// A foreign key would lock the row of the queue at each send.
		tag, err := q.pool.Exec(ctx, q.sql(`insert into $schema.messages (queue, body, visible)
			select $1, body, clock_timestamp() + $3 * interval '1 second' from unnest($2::bytea[]) body
			where exists (select from $schema.queues where name = $1)`), q.name, bodies, delay.Seconds())
		if err == nil && tag.RowsAffected() == 0 {
			err = q.missing()
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("send to %s: %w", q.name, err)
	}
	if delay <= 0 {
		q.bell.ring(q.name)
	}
	return nil
}

// missing is the error of calls of a queue that does not exist. It is not one of the connection.
func (q *queue) missing() error { return noQueue(q.name) }

type noQueue string

func (q noQueue) Error() string {
	return fmt.Sprintf("there is no queue %s; a crawl creates the queues of its partitions", string(q))
}

// Receive never gives up a statement halfway, because the messages that it receives would stay hidden.
func (q *queue) Receive(ctx context.Context, limit int, wait time.Duration) (got []platform.Delivery, err error) {
	over := time.NewTimer(wait)
	defer over.Stop()
	for ctx.Err() == nil {
		rung, done := q.bell.listen(q.name)
		err = q.repeat(context.WithoutCancel(ctx), func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, statementTimeout)
			defer cancel()
			got, err = q.receive(ctx, limit)
			return err
		})
		if err != nil {
			done()
			return nil, fmt.Errorf("receive from %s: %w", q.name, err)
		}
		if len(got) > 0 {
			done()
			return got, nil
		}
		select {
		case <-rung:
			done()
		case <-ctx.Done():
			done()
			return nil, nil
		case <-over.C:
			done()
			return nil, nil
		}
	}
	return nil, nil
}

// receive returns the messages that are visible now.
func (q *queue) receive(ctx context.Context, limit int) ([]platform.Delivery, error) {
	rows, err := q.pool.Query(ctx, q.sql(`with due as materialized (
			select id from $schema.messages where queue = $1 and visible <= clock_timestamp() order by visible limit $2 for update skip locked)
		update $schema.messages m set receives = m.receives + 1,
			visible = clock_timestamp() + (select visibility from $schema.queues where name = $1)
		from due where m.id = due.id returning m.id, m.receives, m.body`), q.name, limit)
	if err != nil {
		return nil, err
	}
	got, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d platform.Delivery, err error) {
		var r receipt
		err = row.Scan(&r.id, &r.receives, &d.Body)
		d.ID, d.Receives, d.Receipt = strconv.FormatInt(r.id, 10), int(r.receives), r
		return d, err
	})
	if err == nil && len(got) == 0 && !q.known.Load() {
		err = q.check(ctx)
	}
	return got, err
}

// check returns an error if the queue does not exist.
func (q *queue) check(ctx context.Context) error {
	var exists bool
	err := q.pool.QueryRow(ctx, q.sql(`select exists (select from $schema.queues where name = $1)`), q.name).Scan(&exists)
	if err == nil && !exists {
		err = q.missing()
	}
	q.known.Store(err == nil)
	return err
}

// due returns those of some queues that have visible messages.
func (d *database) due(ctx context.Context, queues []string) ([]string, error) {
	rows, err := d.pool.Query(ctx, d.sql(`select q from unnest($1::text[]) q
		where exists (select from $schema.messages where queue = q and visible <= clock_timestamp())`), queues)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func (q *queue) Acknowledge(ctx context.Context, receipts []platform.Receipt) error {
	return q.settle(ctx, "acknowledge messages of", `delete from $schema.messages m
		using unnest($1::bigint[], $2::int[]) r(id, receives) where m.id = r.id and m.receives = r.receives`, receipts)
}

func (q *queue) Release(ctx context.Context, receipts []platform.Receipt) error {
	err := q.settle(ctx, "release messages of", `update $schema.messages m set visible = clock_timestamp()
		from unnest($1::bigint[], $2::int[]) r(id, receives) where m.id = r.id and m.receives = r.receives`, receipts)
	if err == nil {
		q.bell.ring(q.name)
	}
	return err
}

// settle runs a statement for receipts. Messages that were deleted or delivered again since are not affected.
func (q *queue) settle(ctx context.Context, what, statement string, receipts []platform.Receipt) error {
	if len(receipts) == 0 {
		return nil
	}
	ids, receives := make([]int64, len(receipts)), make([]int32, len(receipts))
	for i, r := range receipts {
		ids[i], receives[i] = r.(receipt).id, r.(receipt).receives
	}
	err := q.repeat(ctx, func(ctx context.Context) error {
		_, err := q.pool.Exec(ctx, q.sql(statement), ids, receives)
		return err
	})
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, q.name, err)
	}
	return nil
}

// Close does nothing: no call outlives its method.
func (*queue) Close(context.Context) error { return nil }
