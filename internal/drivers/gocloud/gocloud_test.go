package gocloud

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/platform"
	"github.com/orbweaver/orbweaver/platform/conformance"
)

// inMemory returns the URL of a platform of gocloud's memory drivers.
func inMemory(name string, partitions int) string {
	v := url.Values{
		"topic": {"mem://" + name + "/{queue}"}, "subscription": {"mem://" + name + "/{queue}?ackdeadline=2s"},
		"table": {"mem://" + name + "/key"}, "bucket": {"mem://"}, "partitions": {fmt.Sprint(partitions)},
	}
	return Scheme + "://" + name + "?" + v.Encode()
}

func TestMemory(t *testing.T) {
	t.Parallel()
	conformance.Run(t, func(t *testing.T, m platform.Meter) *platform.Platform {
		p, err := Open(t.Context(), inMemory("suite", conformance.Partitions), m)
		return conformance.Opened(t, p, err)
	}, conformance.Traits{Visibility: 2 * time.Second, Batches: true, NoDelay: true, NoCounts: true, Unmetered: true})
}

func TestBadURLs(t *testing.T) {
	good := inMemory("bad", 1)
	for _, c := range []struct{ from, to, want string }{
		{"partitions=1", "partitions=0", "partitions is \"0\""}, {"partitions=1", "", "partitions needs one value"},
		{"bucket=", "blobs=x&bucket=", "parameter blobs is unknown"}, {"bucket=mem", "bucket=none", "open the bucket"},
		{"table=mem%3A%2F%2Fbad%2Fkey", "table=mem%3A%2F%2Fbad", "open the table"}, {"%7Bqueue%7D%3F", "q%3F", "lacks {queue}"},
		{"topic=mem", "topic=none", "open the topic of queue wakes"}, {"subscription=mem", "subscription=none", "open the subscription of queue wakes"},
	} {
		text := strings.Replace(good, c.from, c.to, 1)
		if _, err := Open(t.Context(), text, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", text, err, c.want)
		}
	}
}

// TestOpensAgain opens and closes a platform in memory twice. The second one is empty.
func TestOpensAgain(t *testing.T) {
	for range 2 {
		p, err := Open(t.Context(), inMemory("again", 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		q, err := p.Queue("wakes")
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Send(t.Context(), [][]byte{{1}}, 0); err != nil {
			t.Error(err)
		}
		if got, err := q.Receive(t.Context(), 10, time.Second); err != nil || len(got) != 1 {
			t.Errorf("%d messages, %v", len(got), err)
		}
		if _, err := p.WriteRecord(t.Context(), "a", []byte("b"), nil); err != nil {
			t.Error(err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
