// Package nats opens a platform on servers of NATS with JetStream: queues are consumers of one stream, the table is a key-value
// bucket, and objects are in any bucket that package bucket opens. Any number of processes may share it. ADR 54 gives the
// reasons.
//
// Read nats.go, which connects and repeats calls; stream.go, which creates and checks the streams; then queue.go and table.go.
//
//   - A queue is a subject of a work-queue stream with a durable consumer. A message waits for its delay under a subject of its
//     own, from which the server moves it to the queue.
//   - A record is replaced only if its revision is the expected one. Revisions are sequence numbers of the stream
//     and are never used twice. The leader of the stream answers all reads.
//   - Servers must confirm that they write to disk before they acknowledge, because JetStream does not do so by default.
//
// Calls that may be repeated are repeated for some seconds while no server answers, for example because a leader is elected.
// A write of a record is repeated only if the servers have refused it.
package nats

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/orbweaver/orbweaver/internal/drivers/bucket"
	"github.com/orbweaver/orbweaver/partition"
	"github.com/orbweaver/orbweaver/platform"
)

// Scheme begins the URL of a platform.
const Scheme = "nats"

const form = "nats://USER:PASSWORD@HOST:PORT,HOST:PORT?blobs=s3://BUCKET?endpoint=URL&partitions=N&replicas=N&sync=confirmed"

// maxReplicas is the largest number of replicas that JetStream allows.
const maxReplicas = 5

// validName matches the name of a stream and of a key-value bucket.
var validName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,39}$`)

// location is a parsed URL.
type location struct {
	hosts      []string
	user       *url.Userinfo // nil for none
	name       string        // of the stream and the key-value bucket
	blobs      string        // URL of the bucket
	partitions int           // default of a new crawl
	replicas   int           // least number of each stream
	monitors   []string      // URLs; none if the operator confirms that writes are durable
}

func parse(text string) (l location, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("platform %s://…: %w (want %s)", Scheme, err, form) // without text, which may contain a password
		}
	}()
	authority, query, _ := strings.Cut(strings.TrimPrefix(text, Scheme+"://"), "?")
	if err := l.parseHosts(strings.TrimSuffix(authority, "/")); err != nil {
		return l, err
	}
	params, err := url.ParseQuery(query)
	if err != nil {
		return l, errors.New("its parameters are not those of a URL")
	}
	values := map[string]string{"name": "orbweaver", "blobs": "", "partitions": "16", "replicas": "1", "sync": "", "monitor": ""}
	for name, v := range params {
		if _, known := values[name]; !known {
			return l, fmt.Errorf("parameter %s is unknown", name)
		}
		if len(v) != 1 || v[0] == "" {
			return l, fmt.Errorf("parameter %s needs one value", name)
		}
		values[name] = v[0]
	}
	l.name, l.blobs = values["name"], values["blobs"]
	if l.blobs == "" {
		return l, errors.New("parameter blobs is missing: the URL of the bucket, s3://… or file:///…")
	}
	if !validName.MatchString(l.name) {
		return l, fmt.Errorf("the name %.50q is not 1 to 40 of a-z, 0-9, _ and -, beginning with a letter", l.name)
	}
	for _, p := range []struct {
		name string
		most int
		to   *int
	}{{"partitions", partition.MaxPartitions, &l.partitions}, {"replicas", maxReplicas, &l.replicas}} {
		if *p.to, err = strconv.Atoi(values[p.name]); err != nil || *p.to < 1 || *p.to > p.most {
			return l, fmt.Errorf("%s is %q, not a number from 1 to %d", p.name, values[p.name], p.most)
		}
	}
	return l, l.parseSync(values["sync"], values["monitor"])
}

// parseHosts parses the part before the parameters. A URL has one host only, so each becomes a URL of its own.
func (l *location) parseHosts(authority string) error {
	at := strings.LastIndexByte(authority, '@') + 1
	for host := range strings.SplitSeq(authority[at:], ",") {
		u, err := url.Parse(Scheme + "://" + authority[:at] + host)
		if err != nil || u.Hostname() == "" || u.Path != "" || u.Fragment != "" {
			return errors.New("its servers are not HOST:PORT, separated by commas")
		}
		l.hosts, l.user = append(l.hosts, u.Host), u.User
	}
	return nil
}

// parseSync requires evidence that acknowledged writes are durable, because lost writes break leases.
func (l *location) parseSync(sync, monitor string) error {
	switch {
	case sync == "" && monitor == "":
		return errors.New("parameter sync or monitor is missing. By default JetStream writes to disk every 2 minutes, so a power failure loses mail and leases. " +
			"Set sync_interval: always in the jetstream block of each server, and give monitor=http://HOST:8222, the monitoring URLs of all servers, separated by commas. " +
			"Or give sync=confirmed if you know that the servers run with sync_interval: always, or that 3 or more replicas are on machines that do not lose power together")
	case sync != "" && sync != "confirmed":
		return fmt.Errorf("parameter sync is %q, and can only be confirmed", sync)
	case monitor == "":
		return nil
	}
	l.monitors = strings.Split(monitor, ",")
	return nil
}

// deployment is an open platform.
type deployment struct {
	location
	conn    *nats.Conn
	streams jetstream.JetStream
	mail    jetstream.Stream
	table   jetstream.KeyValue
}

// Open opens the platform at a URL:
//
//	nats://USER:PASSWORD@HOST:PORT,HOST:PORT?blobs=URL&name=NAME&partitions=N&replicas=N&sync=confirmed
//
// blobs is the URL of the bucket, see bucket.Open. name is the name of the stream and of the key-value bucket, by default
// orbweaver. partitions is the number of partitions of a new crawl, by default 16. replicas is the number of copies of each
// stream, by default 1. With sync=confirmed the operator confirms that acknowledged writes survive a power failure.
// Otherwise monitor=http://HOST:8222,http://HOST:8222 names the monitoring ports of all servers, and Open checks their settings. The
// first Open creates the streams. meter counts calls of the bucket only, because nobody bills the others; it may be nil.
func Open(ctx context.Context, text string, meter platform.Meter) (*platform.Platform, error) {
	l, err := parse(text)
	if err != nil {
		return nil, err
	}
	objects, err := bucket.Open(ctx, l.blobs)
	if err != nil {
		return nil, err
	}
	d := &deployment{location: l}
	err = d.connect()
	if err == nil {
		err = d.prepare(ctx, objects)
	}
	if err != nil {
		d.conn.Close() // which may be nil
		return nil, errors.Join(fmt.Errorf("open streams %s at %s: %w", l.name, strings.Join(l.hosts, ","), err), objects.Close())
	}
	var p *platform.Platform
	p = &platform.Platform{
		Table: platform.NewTable(d), BeginWith: l.partitions, Meter: meter,
		Queue:        func(name string) (platform.Queue, error) { return &queue{deployment: d, name: name}, nil },
		CreateQueues: d.createQueues,
		CheckQueue:   func(context.Context, string) error { return nil }, // prepare creates the queues that it may be called with
		Close: func() error {
			_ = p.Table.Close() // fails only if it was closed already
			d.conn.Close()
			return objects.Close()
		},
	}
	objects.Fill(p)
	return p, nil
}

func (d *deployment) connect() (err error) {
	options := []nats.Option{
		nats.Name("orbweaver"), nats.MaxReconnects(-1), nats.ReconnectWait(retryFirst), nats.Timeout(callTimeout),
		nats.ReconnectBufSize(-1), // a call without a connection fails at once, and is surely not sent
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // each call returns its own error
	}
	if d.user != nil {
		password, _ := d.user.Password()
		options = append(options, nats.UserInfo(d.user.Username(), password)) // of servers that are discovered later, too
	}
	if d.conn, err = nats.Connect(strings.Join(d.hosts, ","), options...); err != nil {
		return explain(err)
	}
	d.streams, err = jetstream.New(d.conn)
	return err
}

// Retries of calls that may be repeated.
const (
	retryFor   = 20 * time.Second // elections take 4 to 9 seconds, and may fail
	retryFirst = 50 * time.Millisecond
	retryMost  = time.Second
	// callTimeout bounds an attempt. A call to a server that died is lost without an error.
	callTimeout = 3 * time.Second
	// parallel bounds the calls that one operation makes at the same time.
	parallel = 32
)

// repeat calls do until it succeeds, fails with an error that is not passing, or has failed for some seconds.
func repeat(ctx context.Context, passing func(error) bool, do func(ctx context.Context) error) error {
	pause := retryFirst
	for began := time.Now(); ; pause = min(2*pause, retryMost) {
		attempt, cancel := context.WithTimeout(ctx, callTimeout)
		err := do(attempt)
		cancel()
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

// each repeats do for each number below n, several at the same time.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i := range n {
		group.Go(func() error {
			return repeat(ctx, passing, func(ctx context.Context) error { return do(ctx, i) })
		})
	}
	return group.Wait()
}

// refused reports whether a call had no effect and may succeed later: no server has received it, or the one that has is
// not ready.
func refused(err error) bool {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		switch api.ErrorCode {
		case 10008, 10009, // the cluster has no leader
			10023,        // too few servers are up, or they lag behind
			10118, 10163: // a stream starts, or has another write of the record under way
			return true
		}
		return false
	}
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrReconnectBufExceeded)
}

// passing reports whether a call may succeed later. The failed one may have had its effect.
func passing(err error) bool {
	return refused(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) ||
		errors.Is(err, jetstream.ErrConsumerLeadershipChanged) || errors.Is(err, jetstream.ErrServerShutdown)
}

// explain adds to an error what to do.
func explain(err error) error {
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
		return fmt.Errorf("the server refuses the user or the password: check those in the URL: %w", err)
	case errors.Is(err, nats.ErrNoServers), errors.Is(err, nats.ErrReconnectBufExceeded):
		return fmt.Errorf("no server can be reached: are they running, and are the addresses in the URL right? %w", err)
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("enable JetStream on the servers and for the account: %w", err)
	case passing(err):
		return fmt.Errorf("JetStream does not answer: is it enabled, and are most of its servers running? %w", err)
	}
	return err
}
