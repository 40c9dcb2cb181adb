//go:build unix

package lambdalocal

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// queue is a queue that speaks as much of SQS's JSON protocol as a poller needs. The end-to-end test uses an
// emulator of the whole service.
type queue struct {
	visibility time.Duration

	mu       sync.Mutex
	messages []*message
	failing  int // receives to fail
}

type message struct {
	id, body   string
	trace      string // header of the call that sent it
	receives   int
	visible    time.Time
	attributes map[string]any
}

func (q *queue) send(bodies ...string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, b := range bodies {
		q.messages = append(q.messages, &message{id: fmt.Sprintf("m%d-%s", len(q.messages), b), body: b})
	}
}

func (q *queue) left() (bodies []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range q.messages {
		bodies = append(bodies, m.body)
	}
	return bodies
}

func (q *queue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		MaxNumberOfMessages, WaitTimeSeconds int
		Entries                              []struct{ ID, ReceiptHandle string }
		MessageBody                          string
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		panic(err)
	}
	var out any
	switch action := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS."); action {
	case "GetQueueAttributes":
		out = map[string]any{"Attributes": map[string]string{
			"QueueArn": "arn:aws:sqs:us-east-1:000000000000:q", "VisibilityTimeout": strconv.Itoa(int(q.visibility / time.Second)),
		}}
	case "ReceiveMessage":
		q.mu.Lock()
		fail := q.failing > 0
		q.failing--
		q.mu.Unlock()
		if fail {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		out = map[string]any{"Messages": q.receive(r.Context(), in.MaxNumberOfMessages, time.Duration(in.WaitTimeSeconds)*time.Second)}
	case "SendMessage":
		q.mu.Lock()
		q.messages = append(q.messages, &message{id: fmt.Sprint("m-", in.MessageBody), body: in.MessageBody, trace: r.Header.Get("X-Amzn-Trace-Id")})
		q.mu.Unlock()
		sum := md5.Sum([]byte(in.MessageBody))
		out = map[string]string{"MessageId": in.MessageBody, "MD5OfMessageBody": hex.EncodeToString(sum[:])}
	case "DeleteMessageBatch":
		var done []map[string]string
		for _, e := range in.Entries {
			q.delete(e.ReceiptHandle)
			done = append(done, map[string]string{"Id": e.ID})
		}
		out = map[string]any{"Successful": done}
	default:
		panic(action)
	}
	json.NewEncoder(w).Encode(out)
}

func (q *queue) receive(ctx context.Context, most int, wait time.Duration) (out []map[string]any) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for end := time.Now().Add(wait); ; {
		now := time.Now()
		for _, m := range q.messages {
			if len(out) < most && !m.visible.After(now) {
				m.receives++
				m.visible = now.Add(q.visibility)
				sum := md5.Sum([]byte(m.body))
				attributes := map[string]string{"ApproximateReceiveCount": strconv.Itoa(m.receives), "SentTimestamp": "1700000000000"}
				if m.trace != "" {
					attributes[traceName] = m.trace
				}
				out = append(out, map[string]any{
					"MessageId": m.id, "ReceiptHandle": m.id, "Body": m.body, "MD5OfBody": hex.EncodeToString(sum[:]),
					"Attributes":        attributes,
					"MessageAttributes": m.attributes,
				})
			}
		}
		if len(out) > 0 || now.After(end) || ctx.Err() != nil {
			return out
		}
		q.mu.Unlock()
		time.Sleep(5 * time.Millisecond)
		q.mu.Lock()
	}
}

func (q *queue) delete(handle string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.messages = slices.DeleteFunc(q.messages, func(m *message) bool { return m.id == handle })
}

// serve returns a client and URL of the queue.
func (q *queue) serve(t *testing.T) (*sqs.Client, string) {
	server := httptest.NewServer(q)
	t.Cleanup(server.Close)
	return sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(server.URL), RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	}), server.URL + "/000000000000/q"
}

// poll runs a mapping until the queue holds only the messages of stay.
func poll(t *testing.T, q *queue, m Mapping, stay ...string) *Poller {
	t.Helper()
	m.Client, m.QueueURL = q.serve(t)
	p, err := NewPoller(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	for end := time.Now().Add(10 * time.Second); !slices.Equal(q.left(), stay); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("left in the queue: %q, want %q", q.left(), stay)
			break
		}
	}
	stop()
	<-done
	return p
}

func TestPollerDeletesWhatSucceeded(t *testing.T) {
	t.Parallel()
	f, log := open(t, func(c *Config) { c.Timeout = time.Second })
	q := &queue{visibility: time.Minute}
	q.send("a", "b", "c")
	q.messages[0].attributes = map[string]any{"k": map[string]string{"StringValue": "v", "DataType": "String"}}
	p := poll(t, q, Mapping{Function: f, BatchSize: 2, MaximumConcurrency: 1, ReportBatchItemFailures: true})
	c := p.Counts()
	if c.Messages != 3 || c.Deleted != 3 || c.Deletes != 2 || c.Returned != 0 || c.Errors != 0 || c.Requests != c.Receives+c.Deletes || c.Receives < 2 {
		t.Errorf("%+v", c)
	}
	for _, want := range []string{
		`"messageId":"m0-a"`, `"receiptHandle":"m0-a"`, `"body":"a"`, `"md5OfBody":"0cc175b9c0f1b6a831c399e269772661"`,
		`"ApproximateReceiveCount":"1"`, `"SentTimestamp":"1700000000000"`,
		`"messageAttributes":{"k":{"stringValue":"v","stringListValues":[],"binaryListValues":[],"dataType":"String"}}`,
		`"eventSourceARN":"arn:aws:sqs:us-east-1:000000000000:q"`, `"eventSource":"aws:sqs"`, `"awsRegion":"us-east-1"`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in the record", want)
		}
	}
}

func TestPollerLeavesFailures(t *testing.T) {
	t.Parallel()
	f, _ := open(t, func(c *Config) { c.Timeout = time.Second })
	for _, c := range []struct {
		name   string
		report bool
		bodies []string
		stay   []string
	}{
		{"one of three", true, []string{"a", "fail", "b"}, []string{"fail"}},
		{"reports that are not read", false, []string{"a", "fail"}, nil},
		{"an error", true, []string{"a", "fail all"}, []string{"a", "fail all"}},
		{"a crash", true, []string{"a", "exit"}, []string{"a", "exit"}},
	} {
		q := &queue{visibility: time.Minute}
		q.send(c.bodies...)
		ended := f.Totals().Invocations + 1
		m := Mapping{Function: f, BatchSize: 10, ReportBatchItemFailures: c.report}
		if slices.Equal(c.bodies, c.stay) { // nothing will change: wait for the invocation
			m.Client, m.QueueURL = q.serve(t)
			p, err := NewPoller(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			go func() {
				for f.Totals().Invocations < ended {
					time.Sleep(time.Millisecond)
				}
				stop()
			}()
			p.Run(ctx)
			if got := p.Counts(); got.Returned != int64(len(c.stay)) || got.Deletes != 0 {
				t.Errorf("%s: %+v", c.name, got)
			}
			if !slices.Equal(q.left(), c.stay) {
				t.Errorf("%s: left %q", c.name, q.left())
			}
			continue
		}
		if got := poll(t, q, m, c.stay...).Counts(); got.Returned != int64(len(c.stay)) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func TestPollerRedelivers(t *testing.T) {
	t.Parallel()
	f, _ := open(t, func(c *Config) { c.Timeout = time.Second })
	q := &queue{visibility: time.Second, failing: 2}
	q.send("fail once", "good")
	p := poll(t, q, Mapping{Function: f, BatchSize: 10, ReportBatchItemFailures: true})
	if c := p.Counts(); c.Messages != 3 || c.Returned != 1 || c.Deleted != 2 || c.Errors != 2 {
		t.Errorf("%+v", c)
	}
}

// TestPollerTakesWhatItCanStart checks with slow messages that no more are received than can be processed.
func TestPollerTakesWhatItCanStart(t *testing.T) {
	t.Parallel()
	f, _ := open(t, func(c *Config) { c.Timeout = 5 * time.Second })
	q := &queue{visibility: time.Minute}
	for range 8 {
		q.send("slow")
	}
	most := 0
	watch := make(chan struct{})
	go func() {
		defer close(watch)
		for len(q.left()) > 0 {
			q.mu.Lock()
			out := 0
			for _, m := range q.messages {
				if m.receives > 0 {
					out++
				}
			}
			q.mu.Unlock()
			most = max(most, out)
			time.Sleep(time.Millisecond)
		}
	}()
	poll(t, q, Mapping{Function: f, BatchSize: 1, MaximumConcurrency: 2})
	<-watch
	if total := f.Totals(); most != 2 || total.MostAtOnce != 2 || total.Invocations != 8 || total.Throttled != 0 {
		t.Errorf("%d in flight at most, %+v", most, total)
	}
}

func TestPollerWaitsForAThrottledFunction(t *testing.T) {
	t.Parallel()
	f, _ := open(t, func(c *Config) { c.Timeout, c.Concurrency = 2*time.Second, 1 })
	q := &queue{visibility: time.Minute}
	q.send("slow", "slow", "slow")
	p := poll(t, q, Mapping{Function: f, BatchSize: 1, MaximumConcurrency: 3})
	if c := p.Counts(); c.Messages != 3 || c.Deleted != 3 || c.Throttle == 0 {
		t.Errorf("%+v", c)
	}
}

// TestPollerSlowsDown checks that receives wait longer after each failed call until one succeeds. A mapping
// that reports batch item failures does not slow down.
func TestPollerSlowsDown(t *testing.T) {
	t.Parallel()
	f, _ := open(t, nil)
	for _, c := range []struct {
		report bool
		want   []time.Duration // after each call
	}{{false, []time.Duration{firstPause, 2 * firstPause, 4 * firstPause, 0}}, {true, []time.Duration{0, 0, 0, 0}}} {
		q := &queue{visibility: time.Minute}
		client, url := q.serve(t)
		p, err := NewPoller(t.Context(), Mapping{Client: client, QueueURL: url, Function: f, BatchSize: 1, ReportBatchItemFailures: c.report})
		if err != nil {
			t.Fatal(err)
		}
		for i, body := range []string{"fail all", "fail all", "exit", "good"} {
			p.work(t.Context(), []types.Message{{MessageId: aws.String("m"), Body: aws.String(body), ReceiptHandle: aws.String("m")}})
			if p.brake != c.want[i] {
				t.Errorf("reports %v: after call %d the next receive waits %v, want %v", c.report, i, p.brake, c.want[i])
			}
		}
	}
}

// TestChains runs a function that sends to its own queue with the SDK. Lambda stops the chain after 16 calls,
// unless the function allows more. A message without a trace header begins a chain.
func TestChains(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		loop    string
		sends   int
		calls   int64
		dropped int64
	}{
		{"", 15, 16, 0},
		{"", 30, 16, 1},
		{"Terminate", 16, 16, 1},
		{Allow, 30, 31, 0},
	} {
		q := &queue{visibility: time.Minute}
		server := httptest.NewServer(q)
		t.Cleanup(server.Close)
		f, _ := open(t, func(f *Config) { f.RecursiveLoop, f.Env = c.loop, map[string]string{"QUEUES": server.URL} })
		q.send(fmt.Sprint("again ", c.sends), "other")
		p := poll(t, q, Mapping{Function: f, BatchSize: 1})
		if total := f.Totals(); total.Invocations != c.calls+1 || total.Recursive != c.dropped {
			t.Errorf("%q, %d sends: %d calls, want %d and one: %+v", c.loop, c.sends, total.Invocations, c.calls, total)
		}
		if got := p.Counts(); got.Deleted != c.calls+1+c.dropped {
			t.Errorf("%q, %d sends: %+v", c.loop, c.sends, got)
		}
	}
}

// TestNext continues a chain that contains other functions.
func TestNext(t *testing.T) {
	f, _ := open(t, nil)
	first, calls := f.next("")
	_, own, _ := strings.Cut(first, "Lineage=")
	function, _, _ := strings.Cut(own, ":")
	if calls != 1 {
		t.Errorf("%s is call %d of its chain", first, calls)
	}
	for header, want := range map[string]struct {
		calls    int
		contains []string
	}{
		first: {2, []string{"Lineage=" + function + ":2"}},
		"Root=1-a-b;Parent=c;Sampled=1;Lineage=00000001:7%7C" + function + ":15": {16, []string{"Root=1-a-b;", "00000001:7|" + function + ":16"}},
		"Root=1-a-b;Lineage=00000001:7|x:y|:::":                                  {1, []string{"Lineage=00000001:7|" + function + ":1"}},
		";;=;Lineage":                                                            {1, []string{"Root=1-"}},
	} {
		got, calls := f.next(header)
		if calls != want.calls {
			t.Errorf("%s: call %d, want %d", header, calls, want.calls)
		}
		for _, part := range want.contains {
			if !strings.Contains(got, part) {
				t.Errorf("%s: %s, want %s in it", header, got, part)
			}
		}
	}
}

func TestMappingIsChecked(t *testing.T) {
	t.Parallel()
	f, _ := open(t, func(c *Config) { c.Timeout = 20 * time.Second })
	q := &queue{visibility: 10 * time.Second}
	client, url := q.serve(t)
	_, err := NewPoller(t.Context(), Mapping{Client: client, QueueURL: url, Function: f, BatchSize: 1})
	if err == nil || !strings.Contains(err.Error(), "shorter than the function's") {
		t.Error(err)
	}
}

func TestSucceeded(t *testing.T) {
	batch := []types.Message{{MessageId: aws.String("a")}, {MessageId: aws.String("b")}}
	for response, want := range map[string]string{
		``:                           "ab",
		`null`:                       "ab",
		`{}`:                         "ab",
		`{"batchItemFailures":null}`: "ab",
		`{"batchItemFailures":[]}`:   "ab",
		`{"batchItemFailures":[{"itemIdentifier":"a"}]}`:                        "b",
		`{"batchItemFailures":[{"itemIdentifier":"b"},{"itemIdentifier":"b"}]}`: "a",
		`{"batchItemFailures":[{"itemIdentifier":"a"},{"itemIdentifier":"b"}]}`: "",
		`{"batchItemFailures":[{"itemIdentifier":"a"},{"itemIdentifier":"c"}]}`: "",
		`{"batchItemFailures":[{"itemIdentifier":""}]}`:                         "",
		`{"batchItemFailures":[{"itemIdentifier":null}]}`:                       "",
		`{"batchItemFailures":[{"itemIdentifier":7}]}`:                          "",
		`{"batchItemFailures":[{"itemidentifier":"a"}]}`:                        "",
		`{"batchItemFailures":[null]}`:                                          "",
		`{"batchItemFailures":["a"]}`:                                           "",
		`{"batchItemFailures":"a"}`:                                             "",
		`{"BatchItemFailures":[{"itemIdentifier":"a"}]}`:                        "ab", // wrong case: AWS ignores it
		`[]`:          "",
		`"text"`:      "",
		`{"batchItem`: "",
	} {
		got := ""
		for _, m := range succeeded([]byte(response), batch) {
			got += *m.MessageId
		}
		if got != want {
			t.Errorf("%s: %q succeeded, want %q", response, got, want)
		}
	}
}

func FuzzSucceeded(f *testing.F) {
	f.Add([]byte(`{"batchItemFailures":[{"itemIdentifier":"a"}]}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, response []byte) {
		batch := []types.Message{{MessageId: aws.String("a")}, {MessageId: aws.String("b")}}
		if got := succeeded(response, batch); len(got) > len(batch) {
			t.Errorf("%d of 2 succeeded", len(got))
		}
	})
}

// TestSchedule checks that calls are repeated and do not overlap.
func TestSchedule(t *testing.T) {
	t.Parallel()
	slow, _ := open(t, nil) // a scheduled event takes 300 ms
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	go func() {
		for ctx.Err() == nil && slow.Totals().Invocations < 2 {
			time.Sleep(time.Millisecond)
		}
		stop()
	}()
	Schedule{Function: slow, Every: 50 * time.Millisecond}.Run(ctx)
	if total := slow.Totals(); total.Invocations < 2 || total.Outcomes[Succeeded] != total.Invocations || total.MostAtOnce != 1 {
		t.Errorf("%+v", total)
	}
	var e map[string]any
	if err := json.Unmarshal(Schedule{Function: slow}.event(time.Unix(0, 0)), &e); err != nil || e["source"] != "aws.scheduler" || e["time"] != "1970-01-01T00:00:00Z" {
		t.Errorf("%v %v", e, err)
	}
}
