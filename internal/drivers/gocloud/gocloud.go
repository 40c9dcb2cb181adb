// Package gocloud makes a platform of any of gocloud's drivers: topics and subscriptions, a docstore collection and a bucket,
// each named by its gocloud URL.
//
// The portable types lack two things. A queue cannot delay messages, so a wake with a delay comes at once; the coordinator,
// which runs at intervals, wakes partitions at their time anyway. And a queue does not count deliveries, so a message that
// cannot be used is put aside at its first delivery.
//
// Read gocloud.go, then queue.go. [Queue] also serves the driver of a folder, whose queues can do both.
package gocloud

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/fileblob" // opens file://
	_ "gocloud.dev/blob/memblob"  // opens mem://
	"gocloud.dev/docstore"
	_ "gocloud.dev/docstore/memdocstore" // opens mem://
	"gocloud.dev/pubsub"
	_ "gocloud.dev/pubsub/mempubsub"    // opens mem://
	_ "gocloud.dev/pubsub/rabbitpubsub" // opens rabbit://

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/partition"
	"github.com/orbweaver/orbweaver/platform"
)

// Scheme begins the URL of a platform.
const Scheme = "gocloud"

// memory begins the URLs of gocloud's memory drivers, which only one process can use.
const memory = "mem://"

// placeholder stands for the name of a queue in the URLs of topics and subscriptions.
const placeholder = "{queue}"

// location is a parsed URL.
type location struct {
	topic, subscription string // with the placeholder
	table, bucket       string
	partitions          int
}

const form = "gocloud://NAME?topic=URL&subscription=URL&table=URL&bucket=URL&partitions=N"

func parse(text string) (l location, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("platform %s://…: %w (want %s, each URL percent-encoded, those of topic and subscription with %s for the name of a queue)",
				Scheme, err, form, placeholder) // without text, which may contain passwords
		}
	}()
	u, err := url.Parse(text)
	if err != nil {
		return l, err
	}
	params, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return l, err
	}
	partitions := ""
	for _, field := range []struct {
		name string
		to   *string
	}{{"topic", &l.topic}, {"subscription", &l.subscription}, {"table", &l.table}, {"bucket", &l.bucket}, {"partitions", &partitions}} {
		v := params[field.name]
		if len(v) != 1 || v[0] == "" {
			return l, fmt.Errorf("parameter %s needs one value", field.name)
		}
		*field.to = v[0]
		delete(params, field.name)
	}
	for name := range params {
		return l, fmt.Errorf("parameter %s is unknown", name)
	}
	if l.partitions, err = strconv.Atoi(partitions); err != nil || l.partitions < 1 || l.partitions > partition.MaxPartitions {
		return l, fmt.Errorf("partitions is %q, not a number from 1 to %d", partitions, partition.MaxPartitions)
	}
	if !strings.Contains(l.topic, placeholder) || !strings.Contains(l.subscription, placeholder) {
		return l, fmt.Errorf("topic or subscription lacks %s", placeholder)
	}
	return l, nil
}

// opened is an open platform. Its queues stay open until it closes.
type opened struct {
	location
	queues map[string]*Queue // not changed after Open
}

// Open opens the platform at a URL:
//
//	gocloud://NAME?topic=URL&subscription=URL&table=URL&bucket=URL&partitions=N
//
// NAME is for messages only. The queues for N partitions must exist, except with mem://, which creates them. meter counts calls
// of the bucket only; it may be nil.
func Open(ctx context.Context, text string, meter platform.Meter) (*platform.Platform, error) {
	l, err := parse(text)
	if err != nil {
		return nil, err
	}
	table, err := docstore.OpenCollection(ctx, l.table)
	if err != nil {
		return nil, fmt.Errorf("open the table: %w", err)
	}
	bucket, err := blob.OpenBucket(ctx, l.bucket)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the bucket: %w", err), table.Close())
	}
	o := &opened{location: l, queues: map[string]*Queue{}}
	for _, name := range append(naming.Queues(l.partitions), naming.DeadLettersQueue) {
		if err := o.openQueue(ctx, name); err != nil {
			return nil, errors.Join(err, o.close(), table.Close(), bucket.Close())
		}
	}
	return &platform.Platform{
		Table: table, Bucket: bucket, Partitions: l.partitions, BeginWith: l.partitions, Meter: meter,
		Exclusive: strings.Contains(l.topic+l.subscription+l.table+l.bucket, memory),
		Queue:     o.queue,
		CreateQueues: func(_ context.Context, partitions int) error {
			if partitions > l.partitions {
				return fmt.Errorf("%d partitions are requested, and the platform has queues for %d (parameter partitions)", partitions, l.partitions)
			}
			return nil
		},
		CheckQueue: func(_ context.Context, name string) error {
			_, err := o.queue(name)
			return err
		},
		Close: func() error { return errors.Join(o.close(), table.Close(), bucket.Close()) },
	}, nil
}

// openQueue opens the topic and the subscription of a queue.
func (o *opened) openQueue(ctx context.Context, name string) error {
	topic, err := pubsub.OpenTopic(ctx, strings.ReplaceAll(o.topic, placeholder, name))
	if err != nil {
		return fmt.Errorf("open the topic of queue %s: %w", name, err)
	}
	q := &Queue{Name: name, Topic: topic, Open: func() (*pubsub.Subscription, error) {
		s, err := pubsub.OpenSubscription(context.WithoutCancel(ctx), strings.ReplaceAll(o.subscription, placeholder, name))
		if err != nil {
			return nil, fmt.Errorf("open the subscription of queue %s: %w", name, err)
		}
		return s, nil
	}}
	o.queues[name] = q
	if strings.HasPrefix(o.topic, memory) { // a subscription gets no message that was sent before it opened
		_, err = q.subscription()
	}
	return err // other subscriptions open at the first receive, because some fetch ahead and hide messages from others
}

func (o *opened) queue(name string) (platform.Queue, error) {
	q := o.queues[name]
	if q == nil {
		return nil, fmt.Errorf("there is no queue %s: the platform has queues for %d partitions", name, o.partitions)
	}
	return kept{q}, nil
}

func (o *opened) close() (err error) {
	for _, q := range o.queues {
		if strings.HasPrefix(o.topic, memory) { // gocloud would return the closed topic to the next Open of this process
			err = errors.Join(err, q.closeSubscription(context.Background()))
		} else {
			err = errors.Join(err, q.Close(context.Background()))
		}
	}
	return err
}

// kept is a queue that stays open after Close, because gocloud shares the topics of a process.
type kept struct{ *Queue }

func (kept) Close(context.Context) error { return nil }
