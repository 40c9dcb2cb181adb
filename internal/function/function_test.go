package function

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/fsck"
	"github.com/orbweaver/orbweaver/internal/jobs"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
	"github.com/orbweaver/orbweaver/platform"
)

// cloud is a deployment on one platform: instances of each function, and the triggers
// that call them.
type cloud struct {
	t        *testing.T
	platform *platform.Platform
	log      *syncBuffer
	idle     chan *Function // warm instances of fetch
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Split(strings.TrimSpace(s.b.String()), "\n")
}

func newCloud(t *testing.T, instances int) *cloud {
	t.Helper()
	p, err := drivers.Memory(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	p.Exclusive = false // every instance counts as a process of its own
	c := &cloud{t: t, platform: p, log: &syncBuffer{}, idle: make(chan *Function, instances)}
	for range instances {
		c.idle <- c.function()
	}
	return c
}

var testEnvironment = map[string]string{
	"ORBWEAVER_PLATFORM": "memory", "ORBWEAVER_ALLOW_NET": "127.0.0.0/8", "ORBWEAVER_RETRY_WAIT": "100ms",
	"ORBWEAVER_METRICS": "test",
}

// function returns a new instance of a function.
func (c *cloud) function(prepare ...func(*service.Service)) *Function {
	open := func(context.Context, string, platform.Meter) (*platform.Platform, error) { return c.platform, nil }
	f, err := On(open, func(name string) string { return testEnvironment[name] }, c.log, prepare...)
	if err != nil {
		c.t.Fatal(err)
	}
	return f
}

// begin creates the crawl and runs a first tick, as the command line does.
func (c *cloud) begin(want blobschema.Crawl, seeds ...string) {
	c.t.Helper()
	e, err := service.New(c.platform, service.Config{})
	if err != nil {
		c.t.Fatal(err)
	}
	var urls []weburl.URL
	for _, s := range seeds {
		u, err := weburl.Parse(s)
		if err != nil {
			c.t.Fatal(err)
		}
		urls = append(urls, u)
	}
	if _, _, _, err := e.Begin(want, crawl.Seeds(urls), nil); err != nil {
		c.t.Fatal(err)
	}
	if _, err := e.Tick(); err != nil {
		c.t.Fatal(err)
	}
}

// serve emulates the triggers until the test ends or stop is called: wakes and requests start functions, and a
// schedule starts the coordinator.
func (c *cloud) serve(every time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(c.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		f := c.function(func(s *service.Service) { jobs.New(s) })
		for ctx.Err() == nil {
			if err := f.Coordinate(ctx); err != nil && ctx.Err() == nil {
				c.t.Error(err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(every):
			}
		}
	})
	wg.Go(func() { c.wakes(ctx) })
	wg.Go(func() { c.intake(ctx) })
	wg.Go(func() { c.jobs(ctx, naming.IndexQueue, "index", (*jobs.Jobs).IndexForFunction) })
	wg.Go(func() { c.jobs(ctx, naming.RankQueue, "rank", (*jobs.Jobs).RankForFunction) })
	return func() { cancel(); wg.Wait() }
}

// wakes runs a step for each wake, until ctx ends.
func (c *cloud) wakes(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	q, err := c.platform.Queue(naming.WakesQueue)
	if err != nil {
		c.t.Error(err)
		return
	}
	for ctx.Err() == nil {
		f := <-c.idle
		got, err := q.Receive(ctx, 1, 100*time.Millisecond)
		if err != nil && ctx.Err() == nil {
			c.t.Error(err)
		}
		if len(got) == 0 {
			c.idle <- f
			continue
		}
		wg.Go(func() {
			call, done := context.WithTimeout(context.Background(), 20*time.Second)
			defer done()
			if err := f.Fetch(call, got[0].Body); err != nil {
				c.t.Error(err)
			}
			if err := q.Acknowledge(ctx, []platform.Receipt{got[0].Receipt}); err != nil {
				c.t.Error(err)
			}
			c.idle <- f
		})
	}
}

// intake passes messages of the intake queue to a function, until ctx ends.
func (c *cloud) intake(ctx context.Context) {
	f := c.function()
	q, err := c.platform.Queue(naming.IntakeQueue)
	if err != nil {
		c.t.Error(err)
		return
	}
	for ctx.Err() == nil {
		got, err := q.Receive(ctx, 10, 100*time.Millisecond)
		if err != nil && ctx.Err() == nil {
			c.t.Error(err)
		}
		if len(got) == 0 {
			continue
		}
		var e events.SQSEvent
		var receipts []platform.Receipt
		for _, d := range got {
			e.Records = append(e.Records, events.SQSMessage{MessageId: d.ID, Body: string(d.Body)})
		}
		answer, err := IntakeEvents(f)(ctx, e)
		if err != nil {
			c.t.Error(err)
		}
		for i, d := range got {
			if !slices.Contains(answer.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: d.ID}) {
				receipts = append(receipts, got[i].Receipt)
			}
		}
		if err := q.Acknowledge(ctx, receipts); err != nil {
			c.t.Error(err)
		}
	}
}

// jobs emulates the trigger of a queue of jobs.
func (c *cloud) jobs(ctx context.Context, queue, kind string, step func(*jobs.Jobs, partition.ID, time.Duration) ([]any, error)) {
	var j *jobs.Jobs
	f := c.function(func(s *service.Service) { j = jobs.New(s) })
	q, err := c.platform.Queue(queue)
	if err != nil {
		c.t.Error(err)
		return
	}
	for ctx.Err() == nil {
		got, err := q.Receive(ctx, 1, 100*time.Millisecond)
		if err != nil && ctx.Err() == nil {
			c.t.Error(err)
		}
		for _, d := range got {
			call, done := context.WithTimeout(context.Background(), 20*time.Second)
			err := f.Job(kind, func(p partition.ID, atMost time.Duration) ([]any, error) { return step(j, p, atMost) })(call, d.Body)
			if err != nil {
				c.t.Error(err)
			}
			done()
			if err := q.Acknowledge(ctx, []platform.Receipt{d.Receipt}); err != nil {
				c.t.Error(err)
			}
		}
	}
}

// finished waits until the crawl is finished, and returns how long that took.
func (c *cloud) finished(v *view.View, atMost time.Duration) time.Duration {
	c.t.Helper()
	began := time.Now()
	for time.Since(began) < atMost {
		s, err := v.Status(c.t.Context())
		if err != nil {
			c.t.Fatal(err)
		}
		if s.State == view.Finished {
			return time.Since(began)
		}
		time.Sleep(20 * time.Millisecond)
	}
	c.t.Fatalf("not finished after %v:\n%s", atMost, strings.Join(c.log.lines(), "\n"))
	return 0
}

// indexed waits until everything that was committed is searchable.
func (c *cloud) indexed(v *view.View, atMost time.Duration) {
	c.t.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		heads, err := v.Heads(c.t.Context())
		if err != nil {
			c.t.Fatal(err)
		}
		behind, documents := 0, int64(0)
		for i := range heads {
			recs, err := engine.ReadRecords(c.t.Context(), c.platform, []string{naming.IndexKey("test", heads[i].Partition)})
			if err != nil {
				c.t.Fatal(err)
			}
			var x blobschema.IndexHead
			if recs[0].Found {
				if err := json.Unmarshal(recs[0].Value, &x); err != nil {
					c.t.Fatal(err)
				}
			}
			documents += x.Documents
			if x.Seq < heads[i].Seq {
				behind++
			}
		}
		if behind == 0 && documents > 0 {
			return
		}
		if time.Since(began) > atMost {
			c.t.Fatalf("%d indexes are behind, with %d documents:\n%s", behind, documents, strings.Join(c.log.lines(), "\n"))
		}
	}
}

// TestCrawl checks that functions which share only the platform crawl a whole web, take a request, and are idle
// afterwards.
func TestCrawl(t *testing.T) {
	small := simweb.Demo()
	small.Pages = simweb.Pages{Min: 8, Max: 16}
	srv, err := simweb.Start(t.Context(), small)
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	web := srv.Web()
	c := newCloud(t, 3)
	want := blobschema.Crawl{
		Version: wire.Version, ID: "test", Created: time.Now(), HashKey: make([]byte, 16), Slots: 256, Partitions: 4,
		Settings: blobschema.Settings{Scope: blobschema.ScopeAny, MaxDepth: -1, UserAgent: "orbweaver/test", MaxBody: 16 << 20, Timeout: 10 * time.Second, Index: true},
	}
	c.begin(want, web.Seeds()...)
	v, err := view.New(t.Context(), engine.Store{Platform: c.platform})
	if err != nil {
		t.Fatal(err)
	}
	stop := c.serve(300 * time.Millisecond)
	defer stop()
	t.Logf("crawled in %v", c.finished(v, time.Minute))
	got := map[string]simweb.Got{}
	for pg, err := range v.Pages(t.Context(), view.EveryRecord) {
		if err != nil {
			t.Fatal(err)
		}
		if !pg.Robots {
			got[pg.URL] = simweb.GotOf(pg)
		}
	}
	if d := simweb.Diff(web.Truth(simweb.Scope{}), got); d != "" {
		t.Error(d)
	}
	c.recrawls(v, web.Seeds()[0])
	c.indexed(v, 20*time.Second)
	stop()
	r, err := fsck.Check(t.Context(), v.Store(), fsck.Options{Crawl: "test"})
	if err != nil || !r.Clean() {
		t.Errorf("fsck: %v %v", err, r.Violations)
	}
	heads, err := v.Heads(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var calls blobschema.Calls
	var totals blobschema.Totals
	for i := range heads {
		calls.Add(heads[i].Calls)
		totals.Add(&heads[i].Totals)
	}
	var pages, received, dollars float64
	for _, l := range c.log.lines() {
		var line struct {
			Pages    float64 `json:"orbweaver_pages_total"`
			Received float64 `json:"orbweaver_received_bytes_total"`
			Dollars  float64 `json:"orbweaver_cost_dollars_total"`
		}
		if err := json.Unmarshal([]byte(l), &line); err != nil {
			t.Error(err)
		}
		pages, received, dollars = pages+line.Pages, received+line.Received, dollars+line.Dollars
	}
	if pages != float64(totals.Pages) || received != float64(totals.Bytes) || dollars <= 0 {
		t.Errorf("the log lines say %g pages and %g bytes for $%g, the heads %d and %d", pages, received, dollars, totals.Pages, totals.Bytes)
	}
	if calls.Functions == 0 || calls.FunctionMBMillis == 0 {
		t.Errorf("the heads know of calls %+v", calls)
	}
}

// recrawls requests a URL again with a hand-written request.
func (c *cloud) recrawls(v *view.View, url string) {
	c.t.Helper()
	q, err := c.platform.Queue(naming.IntakeQueue)
	if err != nil {
		c.t.Fatal(err)
	}
	asked := time.Now()
	body := []byte(`{"id": "cms-1", "recrawl": ["` + url + `"]}`)
	for range 2 { // delivered twice, it counts once
		if err := q.Send(c.t.Context(), [][]byte{body}, 0); err != nil {
			c.t.Fatal(err)
		}
	}
	u, err := weburl.Parse(url)
	if err != nil {
		c.t.Fatal(err)
	}
	for {
		list, err := v.History(c.t.Context(), u)
		if err != nil {
			c.t.Fatal(err)
		}
		if len(list) > 1 {
			break
		}
		if time.Since(asked) > 20*time.Second {
			c.t.Fatalf("the request is not answered:\n%s", strings.Join(c.log.lines(), "\n"))
		}
		time.Sleep(10 * time.Millisecond)
	}
	c.t.Logf("recrawled in %v", time.Since(asked))
	c.finished(v, 20*time.Second)
	idle := func() bool {
		lines := c.log.lines()
		return strings.Contains(lines[len(lines)-1], `"msg":"tick"`) && !strings.Contains(lines[len(lines)-1], `"woken"`)
	}
	for deadline := time.Now().Add(20 * time.Second); !idle(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("not idle:\n%s", strings.Join(c.log.lines(), "\n"))
		}
	}
	if list, err := v.History(c.t.Context(), u); err != nil || len(list) != 2 {
		c.t.Errorf("%d records after a request that came twice, %v", len(list), err)
	}
}

func TestReadEnvironment(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want string // part of the error
	}{
		{map[string]string{}, "ORBWEAVER_PLATFORM"},
		{map[string]string{"ORBWEAVER_PLATFORM": "x", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "much"}, "not a number"},
		{map[string]string{"ORBWEAVER_PLATFORM": "x", "ORBWEAVER_ALLOW_NET": "everything"}, "ORBWEAVER_ALLOW_NET"},
		{map[string]string{"ORBWEAVER_PLATFORM": "x", "ORBWEAVER_RETRY_WAIT": "soon"}, "ORBWEAVER_RETRY_WAIT"},
		{map[string]string{"ORBWEAVER_PLATFORM": "x", "ORBWEAVER_LEASE": "1s"}, "ORBWEAVER_LEASE"},
		{map[string]string{"ORBWEAVER_PLATFORM": "x", "ORBWEAVER_TIME_LIMIT": "9"}, "from 10 to 1800"},
		{map[string]string{"ORBWEAVER_PLATFORM": "x", "ORBWEAVER_TIME_LIMIT": "1801"}, "from 10 to 1800"},
		{map[string]string{"ORBWEAVER_PLATFORM": "x", "ORBWEAVER_MEMORY_MB": "256", "ORBWEAVER_ALLOW_NET": "127.0.0.0/8, ::1/128", "ORBWEAVER_TIME_LIMIT": "10"}, ""},
		{map[string]string{"ORBWEAVER_PLATFORM": "x", "ORBWEAVER_ALLOW_NET": "127.0.0.0/8, ::1/128", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256"}, ""},
	} {
		env, err := readEnvironment(func(k string) string { return c.env[k] })
		switch {
		case c.want == "" && (err != nil || env.memoryMB != 256 || len(env.allowNet) != 2):
			t.Errorf("%v: %+v, %v", c.env, env, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%v: error %v", c.env, err)
		}
	}
}

// TestNothingToDo checks that without a crawl, or with a wake of another one, a function logs this and does
// nothing. Requests wait.
func TestNothingToDo(t *testing.T) {
	c := newCloud(t, 1)
	f := <-c.idle
	if err := f.Coordinate(t.Context()); err != nil {
		t.Error(err)
	}
	for _, wake := range [][]byte{blobschema.EncodeWake("20200101-000000", 0), []byte("?")} {
		if err := f.Fetch(t.Context(), wake); err != nil {
			t.Error(err)
		}
		err := f.Job("index", func(p partition.ID, _ time.Duration) ([]any, error) {
			t.Errorf("a step of partition %d", p)
			return nil, nil
		})(t.Context(), wake)
		if err != nil {
			t.Error(err)
		}
	}
	intake := func(body string) error {
		_, err := IntakeEvents(f)(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: "1", Body: body}}})
		return err
	}
	if err := intake(`{"recrawl":["https://example.org/"]}`); err == nil {
		t.Error("a request was taken, by no crawl")
	}
	if err := intake(`{"Service":"Amazon S3","Event":"s3:TestEvent"}`); err != nil {
		t.Error("S3's own test of the queue is refused:", err)
	}
	for _, l := range c.log.lines() {
		if !json.Valid([]byte(l)) {
			t.Errorf("not a JSON line: %s", l)
		}
	}
}
