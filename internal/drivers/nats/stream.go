package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/drivers/bucket"
	"github.com/orbweaver/orbweaver/platform"
)

// leastPayload is the least max_payload of a server: a record of 400 KB and its headers.
const leastPayload = 512 << 10

// aboutKey is the key of a record that no crawl uses: the version of the streams and the id of the platform in its bucket.
const (
	aboutKey = "_platform"
	version  = "1 "
)

// Visibilities: how long a received message is hidden. A step acknowledges mail at each commit. A job is acknowledged at
// its end.
const (
	mailVisibility = 5 * time.Minute
	jobVisibility  = 30 * time.Minute
)

// prepare checks the server and the bucket, and creates streams and queues that do not exist.
func (d *deployment) prepare(ctx context.Context, objects *bucket.Bucket) (err error) {
	if got := d.conn.MaxPayload(); got < leastPayload {
		return fmt.Errorf("the server takes messages of %d bytes, which is too few: set max_payload of each server to at least %d (its default is 1 MB)", got, leastPayload)
	}
	if err := d.checkSync(ctx); err != nil {
		return err
	}
	// A server without JetStream looks like one that is away to all other calls.
	if _, err := d.streams.AccountInfo(ctx); err != nil && !passing(err) {
		return explain(err)
	}
	d.mail, err = d.open(ctx, jetstream.StreamConfig{
		Name: d.name, Subjects: []string{d.subject("*"), d.later("*")},
		Retention: jetstream.WorkQueuePolicy, AllowMsgSchedules: true, Replicas: d.replicas,
	})
	if err != nil {
		return err
	}
	// The configuration of a key-value bucket, except that replicas that lag behind answer no reads.
	if _, err = d.open(ctx, jetstream.StreamConfig{
		Name: "KV_" + d.name, Subjects: []string{"$KV." + d.name + ".>"}, MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew,
		DenyDelete: true, AllowRollup: true, AllowDirect: false, Replicas: d.replicas,
	}); err != nil {
		return err
	}
	if d.table, err = d.streams.KeyValue(ctx, d.name); err != nil {
		return err
	}
	if err := d.claim(ctx, objects); err != nil {
		return err
	}
	return d.createQueues(ctx, 0)
}

// subject is the subject of the messages of a queue.
func (d *deployment) subject(queue string) string { return d.name + ".queue." + queue }

// later is the subject of a message that waits for its delay.
func (d *deployment) later(id string) string { return d.name + ".later." + id }

// open opens a stream, or creates it.
func (d *deployment) open(ctx context.Context, want jetstream.StreamConfig) (s jetstream.Stream, err error) {
	err = repeat(ctx, passing, func(ctx context.Context) error {
		s, err = d.streams.Stream(ctx, want.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			s, err = d.streams.CreateStream(ctx, want)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", want.Name, err)
	}
	switch have := s.CachedInfo().Config; {
	case have.Replicas < want.Replicas:
		return nil, fmt.Errorf("stream %s has %d replicas, and the URL wants %d: change the stream (nats stream edit --replicas), or the URL",
			want.Name, have.Replicas, want.Replicas)
	case have.Retention != want.Retention || have.AllowDirect != want.AllowDirect || have.AllowMsgSchedules != want.AllowMsgSchedules:
		return nil, fmt.Errorf("stream %s does not fit: use nats-server 2.12 or newer; if another program uses the stream, choose another name (parameter name)", want.Name)
	}
	return s, nil
}

// checkSync asks the servers' monitors, if the operator has named them, whether they write to disk before they acknowledge.
func (d *deployment) checkSync(ctx context.Context) error {
	servers, size := map[string]bool{}, 1
	for _, m := range d.monitors {
		var server struct {
			ID        string `json:"server_id"`
			JetStream struct {
				Config struct {
					SyncAlways bool `json:"sync_always"`
				} `json:"config"`
				Meta struct {
					Size int `json:"cluster_size"`
				} `json:"meta"`
			} `json:"jetstream"`
		}
		if err := get(ctx, strings.TrimSuffix(m, "/")+"/varz", &server); err != nil {
			return fmt.Errorf("read the settings of a server at its monitoring port (http: 8222 in its configuration): %w", err)
		}
		if !server.JetStream.Config.SyncAlways {
			return fmt.Errorf("the server at %s acknowledges writes before they are on disk: set sync_interval: always in its jetstream block", m)
		}
		servers[server.ID] = true
		size = max(size, server.JetStream.Meta.Size)
	}
	if len(d.monitors) > 0 && len(servers) < size {
		return fmt.Errorf("the cluster has %d servers, and parameter monitor names %d: name them all, separated by commas", size, len(servers))
	}
	return nil
}

func get(ctx context.Context, address string, to any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return json.NewDecoder(res.Body).Decode(to)
}

// claim checks the version of the streams and that the bucket is theirs. The first process claims the bucket. If another
// does so at the same time, the one that creates the record wins.
func (d *deployment) claim(ctx context.Context, objects *bucket.Bucket) error {
	for {
		records, err := d.Read(ctx, []string{aboutKey})
		if err != nil {
			return err
		}
		if records[0].Found {
			id, ok := strings.CutPrefix(string(records[0].Value), version)
			if !ok {
				return fmt.Errorf("its streams are those of another version of orbweaver, %.10q: use that version, or another name (parameter name)", records[0].Value)
			}
			_, err := bucket.Claim(ctx, objects, d.blobs, id)
			return err
		}
		id, err := bucket.Claim(ctx, objects, d.blobs, "")
		if err == nil {
			_, err = d.Write(ctx, aboutKey, []byte(version+id), nil)
		}
		if err != nil && !errors.Is(err, platform.ErrConflict) {
			return err
		}
	}
}

// createQueues creates the consumers that do not exist yet. Others keep their settings.
func (d *deployment) createQueues(ctx context.Context, partitions int) error {
	names := append(naming.Queues(partitions), naming.DeadLettersQueue)
	err := each(ctx, len(names), func(ctx context.Context, i int) error {
		c := jetstream.ConsumerConfig{
			Durable: names[i], FilterSubject: d.subject(names[i]),
			AckPolicy: jetstream.AckExplicitPolicy, AckWait: mailVisibility, MaxDeliver: -1, MaxAckPending: -1,
		}
		if names[i] == naming.IndexQueue || names[i] == naming.RankQueue {
			c.AckWait = jobVisibility
		}
		_, err := d.mail.CreateConsumer(ctx, c)
		if errors.Is(err, jetstream.ErrConsumerExists) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("create queues: %w", err)
	}
	return nil
}
