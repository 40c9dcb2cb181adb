package wiretap

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// tap starts a tap in front of a handler.
func tap(t *testing.T, h http.HandlerFunc) *Tap {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	w, err := Listen(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// impatient returns a retryer with many attempts and short waits.
func impatient(attempts int) aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts, o.MaxBackoff, o.RateLimiter = attempts, time.Millisecond, ratelimit.None
	})
}

var credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "key", SecretAccessKey: "secret"}, nil
})

// settled waits until n requests are counted, because a client may get its reply earlier.
func settled(t *testing.T, w *Tap, n int64) Counts {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		c, sum := w.Counts(), int64(0)
		for _, one := range c {
			sum += one.Requests
		}
		if sum >= n || time.Now().After(end) {
			return c
		}
	}
}

func TestRequestsArriveAsTheyWere(t *testing.T) {
	var got *http.Request
	var body []byte
	w := tap(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("Etag", `"x"`)
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, "reply")
	})
	req, err := http.NewRequest("PUT", w.URL()+"//bucket/a%2Fb//c+d%20e?x=1;2&versionId=%2f", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "bucket.s3.example:1234"
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=k/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=1")
	req.Header.Set("Expect", "100-continue")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	reply, _ := io.ReadAll(res.Body)
	res.Body.Close()
	if got.Host != req.Host || got.RequestURI != "//bucket/a%2Fb//c+d%20e?x=1;2&versionId=%2f" || got.Header.Get("Authorization") != req.Header.Get("Authorization") {
		t.Errorf("arrived: %s %s %v", got.Host, got.RequestURI, got.Header)
	}
	for _, h := range []string{"X-Forwarded-For", "X-Forwarded-Host", "Expect"} {
		if v := got.Header.Get(h); v != "" {
			t.Errorf("%s: %s arrived", h, v)
		}
	}
	if string(body) != "body" || got.ContentLength != 4 || string(reply) != "reply" || res.StatusCode != http.StatusCreated || res.Header.Get("Etag") != `"x"` {
		t.Errorf("body %q, reply %q %v", body, reply, res)
	}
	if c := settled(t, w, 1).Sum("s3"); c != (Count{Requests: 1, In: 4, Out: 5, Units: 1, Status2xx: 1}) {
		t.Errorf("%+v", c)
	}
}

// TestBodiesAreStreamed makes each side wait until the other has the first bytes before it sends more.
func TestBodiesAreStreamed(t *testing.T) {
	arrived, read := make(chan struct{}), make(chan struct{})
	w := tap(t, func(w http.ResponseWriter, r *http.Request) {
		first := make([]byte, 5)
		io.ReadFull(r.Body, first)
		close(arrived)
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, "first")
		http.NewResponseController(w).Flush()
		<-read
		io.WriteString(w, "after")
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	body, in := io.Pipe()
	go func() {
		io.WriteString(in, "first")
		<-arrived
		io.WriteString(in, "after")
		in.Close()
	}()
	r, err := http.NewRequestWithContext(ctx, "PUT", w.URL()+"/b/k", body)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	first := make([]byte, 5)
	if _, err := io.ReadFull(res.Body, first); err != nil {
		t.Fatal(err)
	}
	close(read)
	if after, err := io.ReadAll(res.Body); string(after) != "after" || err != nil {
		t.Errorf("%q %v", after, err)
	}
}

func TestActions(t *testing.T) {
	signed := func(service string) string {
		return "AWS4-HMAC-SHA256 Credential=k/20260101/us-east-1/" + service + "/aws4_request, SignedHeaders=host, Signature=1"
	}
	for _, c := range []struct{ method, path, target, auth, want string }{
		{"PUT", "/b/k/l", "", signed("s3"), "s3.PutObject"},
		{"DELETE", "/b/k", "", signed("s3"), "s3.DeleteObject"},
		{"GET", "/b/k", "", signed("s3"), "s3.GetObject"},
		{"HEAD", "/b/k", "", signed("s3"), "s3.HeadObject"},
		{"GET", "/b?list-type=2&prefix=x", "", signed("s3"), "s3.ListObjectsV2"},
		{"GET", "/b?lifecycle", "", signed("s3"), "s3.GET-bucket"},
		{"HEAD", "/b", "", signed("s3"), "s3.HEAD-bucket"},
		{"PUT", "/b/", "", signed("s3"), "s3.PUT-bucket"},
		{"POST", "/", "AmazonSQS.SendMessageBatch", signed("sqs"), "sqs.SendMessageBatch"},
		{"POST", "/", "DynamoDB_20120810.BatchGetItem", signed("dynamodb"), "dynamodb.BatchGetItem"},
		{"POST", "/", "", signed("sts"), "sts.POST"},
		{"GET", "/_localstack/health", "", "", "other.GET"},
		{"GET", "/b/k", "", "AWS4-HMAC-SHA256 Credential=a/b", "other.GET"},
	} {
		r := httptest.NewRequest(c.method, c.path, nil)
		r.Header.Set("X-Amz-Target", c.target)
		r.Header.Set("Authorization", c.auth)
		s := service(r)
		if got := (Op{s, action(s, r)}).String(); got != c.want {
			t.Errorf("%s %s %s: %s, want %s", c.method, c.path, c.target, got, c.want)
		}
	}
}

func TestUnits(t *testing.T) {
	kb := func(n int) string { return strings.Repeat("x", n<<10) }
	for _, c := range []struct {
		op             Op
		request, reply string
		status         int
		want           float64
	}{
		{Op{"sqs", "SendMessage"}, `{"MessageBody":"x"}`, ``, 200, 1},
		{Op{"sqs", "SendMessage"}, `{"MessageBody":"` + kb(64) + `"}`, ``, 200, 1},
		{Op{"sqs", "SendMessage"}, `{"MessageBody":"` + kb(64) + `y"}`, ``, 200, 2},
		{Op{"sqs", "SendMessageBatch"}, `{"Entries":[{"MessageBody":"` + kb(64) + `"},{"MessageBody":"` + kb(65) + `"}]}`, ``, 200, 3},
		{Op{"sqs", "ReceiveMessage"}, `{}`, `{}`, 200, 1},
		{Op{"sqs", "ReceiveMessage"}, `{}`, `{"Messages":[{"Body":"` + kb(100) + `","ReceiptHandle":"` + kb(100) + `"}]}`, 200, 2},
		{Op{"sqs", "DeleteMessageBatch"}, `{"Entries":[{"ReceiptHandle":"` + kb(100) + `"}]}`, `{}`, 200, 1},
		{Op{"s3", "PutObject"}, ``, ``, 200, 1},
		{Op{"dynamodb", "PutItem"}, `{"Item":{"key":{"S":"` + kb(1) + `"}}}`, `{}`, 200, 2},
		{Op{"dynamodb", "PutItem"}, `{"Item":{"key":{"S":"k"}}}`, `{"__type":"x#ConditionalCheckFailedException"}`, 400, 1},
		{Op{"dynamodb", "PutItem"}, `{"Item":{"key":{"S":"k"}}}`, `{"__type":"x#ThrottlingException"}`, 400, 0},
		{Op{"dynamodb", "BatchGetItem"}, `{"RequestItems":{"t":{"Keys":[{}]}}}`, `{}`, 200, 0.5},
		{Op{"dynamodb", "BatchGetItem"},
			`{"RequestItems":{"t":{"ConsistentRead":true,"Keys":[{},{},{},{}]}}}`,
			`{"Responses":{"t":[{"k":{"S":"` + kb(4) + `"}},{"k":{"S":"v"}}]},"UnprocessedKeys":{"t":{"Keys":[{}]}}}`, 200, 4},
		{Op{"dynamodb", "DescribeTable"}, `{}`, `{}`, 200, 0},
	} {
		if got := units(c.op, []byte(c.request), c.status, []byte(c.reply)); got != c.want {
			t.Errorf("%v %.60s: %v units, want %v", c.op, c.request, got, c.want)
		}
	}
}

// TestReplaced checks that a put is billed for the larger of the items that it writes and replaces.
func TestReplaced(t *testing.T) {
	p := replaced{}
	for i, c := range []struct {
		request     string
		units, want float64
	}{
		{`{"TableName":"t","Item":{"key":{"S":"a"}}}`, 3, 3},
		{`{"TableName":"t","Item":{"key":{"S":"b"}}}`, 1, 1},
		{`{"TableName":"t","Item":{"key":{"S":"a"}}}`, 1, 3},
		{`{"TableName":"t","Item":{"key":{"S":"a"}}}`, 1, 1},
		{`{"TableName":"u","Item":{"key":{"S":"a"}}}`, 2, 2},
		{`{"TableName":"t","Item":{"other":{"S":"a"}}}`, 2, 2},
		{`{"TableName":"t","Item":{"other":{"S":"a"}}}`, 1, 1},
		{`nonsense`, 1, 1},
	} {
		if got := p.put([]byte(c.request), c.units); got != c.want {
			t.Errorf("%d: %v units, want %v", i, got, c.want)
		}
	}
}

func TestItemSize(t *testing.T) {
	for text, want := range map[string]int{
		`{}`:                  0,
		`{"ab":{"S":"xyz"}}`:  5,
		`{"a":{"NULL":true}}`: 2,
		`{"a":{"S":7}}`:       1,
	} {
		var it item
		if err := json.Unmarshal([]byte(text), &it); err != nil {
			t.Fatal(err)
		}
		if got := it.size(); got != want {
			t.Errorf("%s: %d bytes, want %d", text, got, want)
		}
	}
}

// once returns a rule with a fault for the first request only.
func once(t *testing.T, want Op, f Fault) Rule {
	var asked atomic.Bool
	return func(op Op) Fault {
		if op != want {
			t.Errorf("the rule is called for %v", op)
		}
		if asked.Swap(true) {
			return None
		}
		return f
	}
}

// TestFaultsOnSQS makes the SDK meet each fault.
func TestFaultsOnSQS(t *testing.T) {
	var mu sync.Mutex
	carriedOut := 0
	w := tap(t, func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Entries []struct{ ID string } }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		out := struct{ Successful []map[string]string }{}
		for _, e := range in.Entries {
			out.Successful = append(out.Successful, map[string]string{"Id": e.ID, "MessageId": "m"})
		}
		mu.Lock()
		carriedOut += len(in.Entries)
		mu.Unlock()
		json.NewEncoder(w).Encode(out)
	})
	client := sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(w.URL()), Credentials: credentials, Retryer: impatient(3),
		DisableMessageChecksumValidation: true,
	})
	send := func() (*sqs.SendMessageBatchOutput, error) {
		return client.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: aws.String(w.URL() + "/0/q"), Entries: []sqstypes.SendMessageBatchRequestEntry{
			{Id: aws.String("0"), MessageBody: aws.String("a")}, {Id: aws.String("1"), MessageBody: aws.String("b")}, {Id: aws.String("2"), MessageBody: aws.String("c")},
		}})
	}
	want := Count{}
	for _, c := range []struct {
		name       string
		fault      Fault
		carriedOut int
		failed     int
		count      Count
	}{
		{"throttled", Throttle, 3, 0, Count{Requests: 2, Status2xx: 1, Status4xx: 1, Units: 1, Faults: 1}},
		{"failed", Fail, 3, 0, Count{Requests: 2, Status2xx: 1, Status5xx: 1, Units: 1, Faults: 1}},
		{"lost", Lose, 6, 0, Count{Requests: 2, Status2xx: 1, NoReply: 1, Units: 2, Faults: 1}},
		{"partial", Partial, 1, 2, Count{Requests: 1, Status2xx: 1, Units: 1, Faults: 1}},
	} {
		w.SetRule(once(t, Op{"sqs", "SendMessageBatch"}, c.fault))
		mu.Lock()
		carriedOut = 0
		mu.Unlock()
		out, err := send()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if carriedOut != c.carriedOut || len(out.Failed) != c.failed || len(out.Successful) != 3-c.failed {
			t.Errorf("%s: %d carried out, %d failed, %d succeeded", c.name, carriedOut, len(out.Failed), len(out.Successful))
		}
		before := want
		want.add(c.count)
		got := settled(t, w, want.Requests).Sum("sqs")
		got.In, got.Out = 0, 0
		if got != want {
			got.combine(before, -1)
			t.Errorf("%s: %+v, want %+v", c.name, got, c.count)
		}
	}
	w.SetRule(func(Op) Fault { return Throttle })
	if _, err := send(); err == nil || !strings.Contains(err.Error(), "RequestThrottled") {
		t.Errorf("throttled for good: %v", err)
	}
}

func TestPartialBatchGet(t *testing.T) {
	w := tap(t, func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			RequestItems map[string]struct {
				ConsistentRead bool
				Keys           []json.RawMessage
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || !in.RequestItems["t"].ConsistentRead {
			t.Errorf("%+v %v", in, err)
		}
		json.NewEncoder(w).Encode(map[string]any{"Responses": map[string]any{"t": in.RequestItems["t"].Keys}, "UnprocessedKeys": map[string]any{}})
	})
	client := dynamodb.New(dynamodb.Options{Region: "us-east-1", BaseEndpoint: aws.String(w.URL()), Credentials: credentials, Retryer: impatient(2)})
	keys := []map[string]dynamotypes.AttributeValue{}
	for _, k := range []string{"a", "b", "c"} {
		keys = append(keys, map[string]dynamotypes.AttributeValue{"key": &dynamotypes.AttributeValueMemberS{Value: k}})
	}
	w.SetRule(func(Op) Fault { return Partial })
	for n := range 3 {
		out, err := client.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]dynamotypes.KeysAndAttributes{
			"t": {Keys: keys[:n+1], ConsistentRead: aws.Bool(true)},
		}})
		if err != nil {
			t.Fatal(err)
		}
		left := out.UnprocessedKeys["t"]
		if half := (n + 1) / 2; len(out.Responses["t"]) != half || len(left.Keys) != n+1-half || !aws.ToBool(left.ConsistentRead) {
			t.Errorf("%d keys: %+v", n+1, out)
		}
	}
	w.SetRule(func(Op) Fault { return Throttle })
	_, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("t"), Key: keys[0]})
	if err == nil || !strings.Contains(err.Error(), "ProvisionedThroughputExceeded") {
		t.Errorf("throttled: %v", err)
	}
}

// TestS3 sends an object as the SDK does, in chunks with a checksum after them.
func TestS3(t *testing.T) {
	size := 3 << 20
	w := tap(t, func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil || n < int64(size) {
			t.Errorf("%d bytes arrived, %v", n, err)
		}
	})
	client := s3.New(s3.Options{Region: "us-east-1", BaseEndpoint: aws.String(w.URL()), Credentials: credentials, UsePathStyle: true, Retryer: impatient(3)})
	put := func() error {
		_, err := client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("bucket"), Key: aws.String("a/b c"), Body: bytes.NewReader(make([]byte, size))})
		return err
	}
	w.SetRule(once(t, Op{"s3", "PutObject"}, Throttle))
	if err := put(); err != nil {
		t.Fatal(err)
	}
	c := settled(t, w, 2)
	want := Count{Requests: 2, In: int64(2 * size), Units: 1, Status2xx: 1, Status5xx: 1, Faults: 1}
	got := c.Sum("s3", "PutObject")
	got.Out = 0
	if got != want || len(c) != 1 {
		t.Errorf("%+v", c)
	}
}

func TestCounts(t *testing.T) {
	a := Counts{{"s3", "GetObject"}: {Requests: 2, In: 5}, {"sqs", "SendMessage"}: {Requests: 1, Units: 0.5}}
	b := a.Plus(Counts{{"s3", "GetObject"}: {Requests: 1}, {"s3", "PutObject"}: {Requests: 4}})
	if got := fmt.Sprint(b.Ops()); got != "[s3.GetObject s3.PutObject sqs.SendMessage]" {
		t.Error(got)
	}
	if got := b.Since(a); len(got) != 2 || got.Sum("s3").Requests != 5 || a.Sum("s3").Requests != 2 {
		t.Errorf("%+v", got)
	}
	text, err := json.Marshal(b)
	if err != nil || !strings.Contains(string(text), `"s3.PutObject":{"requests":4`) {
		t.Errorf("%s %v", text, err)
	}
}

func TestTargetIsGone(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	w, err := Listen(gone.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	res, err := http.Get(w.URL() + "/b/k")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if c := settled(t, w, 1).Sum("other"); res.StatusCode != http.StatusBadGateway || c.Status5xx != 1 || c.Units != 0 {
		t.Errorf("%d %+v", res.StatusCode, c)
	}
	for _, bad := range []string{"", "127.0.0.1:80", "ftp://h", "http://h/path", "http://%"} {
		if _, err := Listen(bad); err == nil {
			t.Errorf("%q is a target", bad)
		}
	}
}

// FuzzHeld passes malformed requests and replies.
func FuzzHeld(f *testing.F) {
	f.Add("BatchGetItem", []byte(`{"RequestItems":{"t":{"Keys":[{"key":{"S":"a"}},{"key":{"S":"b"}}]}}}`), []byte(`{"Responses":{"t":[{"key":{"S":"a"}}]}}`))
	f.Add("SendMessageBatch", []byte(`{"Entries":[{"Id":"0","MessageBody":"x"},{"Id":"1"}]}`), []byte(`{}`))
	f.Add("PutItem", []byte(`{"Item":{"a":{"L":[{"M":{"b":{"NS":["1","-2e5"]}}}]}}}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, name string, request, reply []byte) {
		for _, service := range []string{"sqs", "dynamodb"} {
			if n := units(Op{service, name}, request, 200, reply); n < 0 {
				t.Errorf("%v units", n)
			}
		}
		for _, split := range []func([]byte) ([]byte, []byte){splitKeys, splitEntries} {
			some, rest := split(request)
			if some != nil && !json.Valid(some) || rest != nil && !json.Valid(merge(reply, rest)) && json.Valid(reply) {
				t.Errorf("%s and %s", some, rest)
			}
		}
		if r, err := http.NewRequest("GET", "http://h/", nil); err == nil {
			if u, err := url.Parse("http://h/" + name); err == nil {
				r.URL = u
			}
			r.Header.Set("Authorization", string(request))
			s := service(r)
			action(s, r)
		}
	})
}

// TestClientHangsUp checks that a read of the table is carried out and counted although its client did not wait
// for the reply.
func TestClientHangsUp(t *testing.T) {
	arrived := make(chan struct{})
	table := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		select {
		case <-r.Context().Done(): // the tap has closed the connection too
		case <-time.After(300 * time.Millisecond):
		}
		io.WriteString(w, `{"Responses":{"t":[]}}`)
	}))
	defer table.Close()
	tap, err := Listen(table.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer tap.Close()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, tap.URL(), strings.NewReader(
		`{"RequestItems":{"t":{"ConsistentRead":true,"Keys":[{"key":{"S":"a"}},{"key":{"S":"b"}}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810.BatchGetItem")
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=b")
	go func() {
		<-arrived
		cancel()
	}()
	if _, err := http.DefaultClient.Do(req); err == nil {
		t.Fatal("the client had a reply")
	}
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		c := tap.Counts().Sum("dynamodb", "BatchGetItem")
		if c.Requests == 1 {
			if c.Units != 2 {
				t.Errorf("%+v", c)
			}
			return
		}
		if time.Since(begin) > 10*time.Second {
			t.Fatal("the request is not counted")
		}
	}
}
