package nats

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/orbweaver/orbweaver/platform"
	"github.com/orbweaver/orbweaver/platform/conformance"
)

func open(t *testing.T, location string, m platform.Meter) *platform.Platform {
	t.Helper()
	p, err := Open(t.Context(), location, m)
	return conformance.Opened(t, p, err)
}

// connect returns the streams of a server.
func connect(t *testing.T, n *node) (streams jetstream.JetStream, done func()) {
	t.Helper()
	c, err := nats.Connect(n.host())
	if err != nil {
		t.Fatal(err)
	}
	if streams, err = jetstream.New(c); err != nil {
		t.Fatal(err)
	}
	return streams, c.Close
}

// hide changes the visibility of all queues.
func hide(t *testing.T, n *node, visibility time.Duration) {
	t.Helper()
	streams, done := connect(t, n)
	defer done()
	s, err := streams.Stream(t.Context(), "orbweaver")
	if err != nil {
		t.Fatal(err)
	}
	list := s.ListConsumers(t.Context())
	for info := range list.Info() {
		info.Config.AckWait = visibility
		if _, err := s.UpdateConsumer(t.Context(), info.Config); err != nil {
			t.Fatal(err)
		}
	}
	if list.Err() != nil {
		t.Fatal(list.Err())
	}
}

func TestSuite(t *testing.T) {
	t.Parallel()
	n := newNode(t, options{})
	location := locationOf(t, n)
	const visibility = 2 * time.Second
	conformance.Run(t, func(t *testing.T, m platform.Meter) *platform.Platform {
		p := open(t, location, m)
		if err := p.CreateQueues(t.Context(), conformance.Partitions); err != nil {
			t.Fatal(err)
		}
		hide(t, n, visibility)
		return p
	}, conformance.Traits{
		Visibility: visibility, Unmetered: true,
		Restart: func(t *testing.T, p *platform.Platform) *platform.Platform {
			n.kill()
			n.start(t)
			return p // its connection is dead, and it has to make a new one
		},
	})
}

// TestOpenedTogether opens a new platform by several processes at once. One of them claims the bucket.
func TestOpenedTogether(t *testing.T) {
	t.Parallel()
	location := locationOf(t, newNode(t, options{}))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			p, err := Open(t.Context(), location, nil)
			if err != nil {
				t.Error(err)
				return
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	open(t, location, nil)
}

// TestUnfit checks the errors of servers, streams and buckets that do not fit.
func TestUnfit(t *testing.T) {
	t.Parallel()
	n, lazy, small := newNode(t, options{}), newNode(t, options{Lazy: true, NoJetStream: true}), newNode(t, options{MaxPayload: 300 << 10, Password: "secret"})
	location := locationOf(t, n)
	open(t, location, nil)
	streams, done := connect(t, n)
	defer done()
	if _, err := streams.CreateStream(t.Context(), jetstream.StreamConfig{Name: "taken", Subjects: []string{"taken.>"}, AllowMsgSchedules: true}); err != nil {
		t.Fatal(err)
	}
	change := func(from, to string) string { return strings.Replace(location, from, to, 1) }
	for what, c := range map[string]struct{ location, want string }{
		"another bucket": {change("blobs=file://", "blobs=file://"+filepath.ToSlash(t.TempDir())), "its pages are not in file://"},
		"no server":      {change(n.host(), "127.0.0.1:1"), "no server can be reached"},
		"no JetStream":   {strings.Replace(change("monitor="+n.monitor(), "sync=confirmed"), n.host(), lazy.host(), 1), "enable JetStream"},
		"small messages": {change(n.host(), "u:secret@"+small.host()), "max_payload"},
		"wrong password": {change(n.host(), "u:wrong@"+small.host()), "refuses the user"},
		"lazy":           {change(n.monitor(), lazy.monitor()), "sync_interval: always"},
		"no monitor":     {change(n.monitor(), "http://127.0.0.1:1"), "monitoring port"},
		"another stream": {location + "&name=taken", "does not fit"},
		"no cluster":     {change("replicas=1", "replicas=3") + "&name=new", "replicas > 1 not supported"},
		"more replicas":  {change("replicas=1", "replicas=3"), "has 1 replicas"},
	} {
		p, err := Open(t.Context(), c.location, nil)
		if err == nil {
			_ = p.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
		t.Log(err)
	}
	table, err := streams.KeyValue(t.Context(), "orbweaver")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.PutString(t.Context(), aboutKey, `99 x`); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), location, nil); err == nil || !strings.Contains(err.Error(), "another version") {
		t.Errorf("another version: %v", err)
	}
}

func TestBadURLs(t *testing.T) {
	for text, want := range map[string]string{
		"nats://h:1?sync=confirmed":                              "blobs is missing",
		"nats://h:1?blobs=&sync=confirmed":                       "blobs needs one value",
		"nats://h:1?blobs=file:///x&sync=confirmed&name=A":       "the name",
		"nats://h:1?blobs=file:///x&sync=confirmed&partitions=0": "partitions is",
		"nats://h:1?blobs=file:///x&sync=confirmed&replicas=6":   "replicas is",
		"nats://h:1?blobs=file:///x":                             "sync_interval: always",
		"nats://h:1?blobs=file:///x&sync=always":                 "can only be confirmed",
		"nats://h:1?blobs=file:///x&sync=confirmed&max=3":        "max is unknown",
		"nats://u:secret@h:port?blobs=file:///x&sync=confirmed":  "not HOST:PORT",
		"nats://u:secret@h:1,?blobs=file:///x&sync=confirmed":    "not HOST:PORT",
		"nats://u:secret@h:1/d?blobs=file:///x&sync=confirmed":   "not HOST:PORT",
		"nats://?blobs=file:///x&sync=confirmed":                 "not HOST:PORT",
		"nats://h:1?blobs=file:///x&sync=%zz":                    "not those of a URL",
	} {
		_, err := parse(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	l, err := parse("nats://u:p%40@h:1,[::1]:2,g/?blobs=s3://b?endpoint=http://h:9000&replicas=3&monitor=http://h:8222,http://g:8222/")
	if err != nil || strings.Join(l.hosts, " ") != "h:1 [::1]:2 g" || l.user.String() != "u:p%40" || l.blobs != "s3://b?endpoint=http://h:9000" ||
		l.name != "orbweaver" || l.partitions != 16 || l.replicas != 3 || len(l.monitors) != 2 {
		t.Errorf("%+v, %v", l, err)
	}
}
