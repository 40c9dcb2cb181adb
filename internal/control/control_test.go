package control_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/control"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/rank"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// fake is a Control that records the calls it gets.
type fake struct {
	asked  []any
	refuse error
}

func (f *fake) note(what any) error {
	if f.refuse == nil {
		f.asked = append(f.asked, what)
	}
	return f.refuse
}

func (f *fake) Submit(_ context.Context, r blobschema.Request) error { return f.note(r) }

func (f *fake) Order(_ context.Context, o crawl.Order) (bool, error) {
	err := f.note(o)
	return len(f.asked) == 1, err
}

func (f *fake) ChangeTopic(_ context.Context, name string, c crawl.TopicChange) (blobschema.Topic, bool, error) {
	return blobschema.Topic{Name: name, Priority: *c.Priority}, true, f.note(name)
}

func (f *fake) Repartition(_ context.Context, c control.Change) error { return f.note(c) }

func (f *fake) StartRanks(_ context.Context, o rank.StartConfig) (ranks.Job, error) {
	return ranks.Job{Number: 7, Params: o.Params}, f.note(o)
}

// owned is a folder whose owner is a fake.
type owned struct {
	*testing.T
	*control.Socket
	fake  *fake
	dir   string
	ended bool
	leave func() // ends the owner
}

func newOwned(t *testing.T) *owned {
	t.Helper()
	dir := t.TempDir()
	p, err := drivers.Local(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	o := &owned{T: t, Socket: control.Dial(dir), fake: &fake{}, dir: dir}
	stop, err := control.Serve(t.Context(), dir, p, control.Owner{Control: o.fake, Snapshot: func() any { return 3 }, Ended: func() bool { return o.ended }})
	if err != nil {
		t.Fatal(err)
	}
	o.leave = func() {
		if err := errors.Join(stop(), p.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// request sends bytes to the socket, whatever they are.
func (o *owned) request(method, path, body string) int {
	o.Helper()
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(o.dir, "orbweaver.sock"))
		},
	}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(o.Context(), method, "http://owner"+path, bytes.NewReader([]byte(body)))
	if err != nil {
		o.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		o.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// TestSocket makes each change through the socket: it arrives as it was, and its result and errors come back.
func TestSocket(t *testing.T) {
	o := newOwned(t)
	ctx := t.Context()
	request := blobschema.Request{Version: 1, Crawl: "c", ID: "x", Recrawl: []string{"http://a.example/?a&b"}}
	priority := 7
	m, err := partition.NewMap(partition.MaxSlots, 1000) // as large as there is
	if err != nil {
		t.Fatal(err)
	}
	order := rank.StartConfig{Params: ranks.DefaultParams(), Fresh: true}
	order.Params.Personal = []ranks.Weight{{Host: "a.example", Weight: 2}}
	changes := map[string]func(c control.Control) error{
		"request": func(c control.Control) error { return c.Submit(ctx, request) },
		"order": func(c control.Control) error {
			changed, err := c.Order(ctx, crawl.OrderPause)
			if err == nil && !changed {
				err = errors.New("it was so already")
			}
			return err
		},
		"topic": func(c control.Control) error {
			now, changed, err := c.ChangeTopic(ctx, "a", crawl.TopicChange{Priority: &priority})
			if err == nil && (!changed || now.Name != "a" || now.Priority != 7) {
				err = fmt.Errorf("%v %+v", changed, now)
			}
			return err
		},
		"partitions": func(c control.Control) error { return c.Repartition(ctx, control.Change{Version: 7, Map: m}) },
		"ranks": func(c control.Control) error {
			job, err := c.StartRanks(ctx, order)
			if err == nil && job.Number != 7 {
				err = fmt.Errorf("%+v", job)
			}
			return err
		},
	}
	for name, change := range changes {
		direct := &fake{}
		if err := change(direct); err != nil {
			t.Fatal(err)
		}
		o.fake.asked = nil
		if err := change(o); err != nil || len(o.fake.asked) != 1 {
			t.Errorf("%s: %v, the owner got %+v", name, err, o.fake.asked)
			continue
		}
		owners := cmp.Comparer(func(a, b *partition.Map) bool { return slices.Equal(a.Owners(), b.Owners()) })
		if d := cmp.Diff(direct.asked, o.fake.asked, owners); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		for _, want := range []error{crawl.ErrNoTopic, crawl.ErrPriorities, control.ErrChanged, rank.ErrUnderWay, rank.ErrNothing} {
			o.fake.refuse = fmt.Errorf("because: %w", want)
			if err := change(o); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
		}
		o.fake.refuse = errors.New("too late")
		if err := change(o); !errors.Is(err, control.ErrNoOwner) || !strings.Contains(err.Error(), "too late") {
			t.Errorf("%s that was not taken: %v", name, err)
		}
		o.fake.refuse = nil
		o.ended = true
		if err := change(o); !errors.Is(err, control.ErrNoOwner) {
			t.Errorf("%s at the end of a run: %v", name, err)
		}
		o.ended = false
	}
	o.leave()
	for name, change := range changes {
		if err := change(o); !errors.Is(err, control.ErrNoOwner) {
			t.Errorf("%s without an owner: %v", name, err)
		}
	}
}

// TestSocketReads reads through the socket, and refuses what it would not take.
func TestSocketReads(t *testing.T) {
	o := newOwned(t)
	ctx := t.Context()
	if err := o.Submit(ctx, blobschema.Request{}); !errors.Is(err, blobschema.ErrRequest) {
		t.Errorf("a request for nothing: %v", err)
	}
	if live, err := o.Live(ctx); err != nil || string(live.Snapshot) != "3" || live.PID == 0 {
		t.Errorf("%+v, %v", live, err)
	}
	if v, err := o.Record(ctx, "nothing"); v != nil || err != nil {
		t.Errorf("a record that is not there: %q, %v", v, err)
	}
}

// TestUnfit sends what does not fit: it is refused, and changes nothing.
func TestUnfit(t *testing.T) {
	o := newOwned(t)
	large := strings.Repeat("A", 2<<20)
	for path, bodies := range map[string][]string{
		"/requests":   {"recrawl it", `{"recrawl": ["http://a.example/"], "urgent": true}`, "", `{"recrawl": ["` + large[:blobschema.MaxRequestBytes] + `"]}`},
		"/orders":     {"", "stop", `{"order":"halt"}`, `{"order":"stop","now":true}`, `{"order":"` + large + `"}`},
		"/topics":     {"a", "", `{"topic": "a", "scope": "any"}`, `{"topic": "a"} {}`, `{"topic": "a", "priority": "high"}`, `{"topic": "` + large + `"}`},
		"/partitions": {"scale to 5", "", `{"version": 1}`, `{"version": 1, "map": "Z2FyYmFnZQ=="}`, `{"version": 1, "map": "AQEFAAECAAE=", "now": true}`, `{"version": 1, "map": "AQEFAAECAAE="}{}`, `{"version": 1, "map": "` + large + `"}`},
		"/ranks":      {"a", "", "{}", `{"crawl": "x"}`, `{"params": {"damping": 2, "tolerance": 0.1, "max_rounds": 1}}`, `{"x": "` + large + `"}`},
	} {
		for _, body := range bodies {
			if status := o.request("POST", path, body); status != http.StatusBadRequest {
				t.Errorf("%s %.40q: status %d", path, body, status)
			}
		}
	}
	if len(o.fake.asked) > 0 {
		t.Errorf("the owner got the request %+v", o.fake.asked)
	}
	if status := o.request("POST", "/partitions", `{"version": 1, "map": "AQEFAAECAAE="}`); status != http.StatusNoContent {
		t.Errorf("a map by hand: status %d", status)
	}
	for request, want := range map[string]int{"PUT /records?key=active": 405, "POST /live": 405, "GET /": 404, "GET /records": 400, "GET /live": 200} {
		method, path, _ := strings.Cut(request, " ")
		if status := o.request(method, path, ""); status != want {
			t.Errorf("%s: status %d, want %d", request, status, want)
		}
	}
}

// TestRecrawl checks that requests are cut into messages of the permitted size without losing a URL.
func TestRecrawl(t *testing.T) {
	for _, tt := range []struct {
		name        string
		urls, least int
		url         string
	}{
		{"one", 1, 1, "http://x.example/%d"},
		{"many", 2*blobschema.MaxRequestURLs + 1, 3, "http://x.example/%d"},
		{"long", 500, 3, "http://x.example/%d/" + strings.Repeat("long/", 300)},
		{"escaped", 2000, 6, "http://x.example/%d?" + strings.Repeat("a&", 100)},
	} {
		id := strings.Repeat(`"`, blobschema.MaxRequestID)
		var urls []weburl.URL
		var want, got []string
		for i := range tt.urls {
			u, err := weburl.Parse(fmt.Sprintf(tt.url, i))
			if err != nil {
				t.Fatal(err)
			}
			urls, want = append(urls, u), append(want, u.String())
		}
		to := &fake{}
		if err := control.Recrawl(t.Context(), to, "20261121-090719", id, urls); err != nil {
			t.Fatal(err)
		}
		for _, asked := range to.asked {
			m := asked.(blobschema.Request)
			if _, err := blobschema.EncodeRequest(m); err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			if m.ID != id || m.Crawl == "" {
				t.Errorf("%s: message of crawl %q, id %q", tt.name, m.Crawl, m.ID)
			}
			got = append(got, m.Recrawl...)
		}
		if !cmp.Equal(got, want) || len(to.asked) < tt.least || len(to.asked) > tt.least+2 {
			t.Errorf("%s: %d messages with %d of %d URLs", tt.name, len(to.asked), len(got), len(want))
		}
	}
}
