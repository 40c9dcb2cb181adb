package aws_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/platform"
)

// service answers as AWS does where a test needs it: by the operation, given the number of times that it was
// requested.
type service struct {
	t *testing.T

	mu      sync.Mutex
	answers map[string]func(n int, body []byte) (status int, answer string)
	calls   map[string]int
}

const described = `{"Table":{"TableName":"name","TableStatus":"ACTIVE",
	"KeySchema":[{"AttributeName":"key","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"key","AttributeType":"S"}]}}`

// lose is a status that means: the connection breaks after the request was carried out.
const lose = -1

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	_, op, ok := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if !ok {
		op = r.Method
	}
	s.mu.Lock()
	s.calls[op]++
	n, answer := s.calls[op], s.answers[op]
	s.mu.Unlock()
	if answer == nil {
		s.t.Errorf("unexpected %s", op)
		w.WriteHeader(http.StatusNotImplemented)
		return
	}
	status, text := answer(n, body)
	if status == lose {
		panic(http.ErrAbortHandler)
	}
	if ok {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // the client may have gone
}

func (s *service) count(op string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[op]
}

type answers = map[string]func(n int, body []byte) (int, string)

// always returns a handler with one answer.
func always(status int, text string) func(int, []byte) (int, string) {
	return func(int, []byte) (int, string) { return status, text }
}

// first returns a handler that gives one answer a number of times, and then calls another.
func first(times, status int, text string, then func(int, []byte) (int, string)) func(int, []byte) (int, string) {
	return func(n int, body []byte) (int, string) {
		if n <= times {
			return status, text
		}
		return then(n, body)
	}
}

func failure(code string) string {
	return fmt.Sprintf(`{"__type":"com.amazonaws#%s","message":"so it is"}`, code)
}

// environment sets the SDK's environment, without settings of this machine.
func environment(t *testing.T, endpoint string) {
	t.Helper()
	for k, v := range map[string]string{
		"AWS_ENDPOINT_URL": endpoint, "AWS_ENDPOINT_URL_DYNAMODB": "", "AWS_ENDPOINT_URL_S3": "", "AWS_ENDPOINT_URL_SQS": "",
		"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "",
		"AWS_CONFIG_FILE": t.TempDir() + "/none", "AWS_SHARED_CREDENTIALS_FILE": t.TempDir() + "/none",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "", "AWS_CONTAINER_CREDENTIALS_FULL_URI": "",
		"AWS_WEB_IDENTITY_TOKEN_FILE": "", "AWS_MAX_ATTEMPTS": "", "AWS_RETRY_MODE": "",
	} {
		t.Setenv(k, v)
	}
}

const location = "aws://name?bucket=bucket&partitions=2"

func start(t *testing.T, a answers) *service {
	t.Helper()
	if a["DescribeTable"] == nil {
		a["DescribeTable"] = always(200, described)
	}
	s := &service{t: t, answers: a, calls: map[string]int{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	environment(t, server.URL)
	return s
}

func open(t *testing.T, a answers) (*platform.Platform, *service, *ledger.Ledger) {
	return openTrying(t, 3, a)
}

// openTrying opens a deployment with a number of attempts per call. The waits between attempts take time.
func openTrying(t *testing.T, tries int, a answers) (*platform.Platform, *service, *ledger.Ledger) {
	t.Helper()
	s := start(t, a)
	t.Setenv("AWS_MAX_ATTEMPTS", fmt.Sprint(tries))
	led := &ledger.Ledger{}
	p, err := drivers.Open(t.Context(), location, led)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p, s, led
}

// TestOpenFails checks the errors of a deployment that cannot be opened.
func TestOpenFails(t *testing.T) {
	key := func(name, kind string) string {
		return strings.NewReplacer(`"key"`, `"`+name+`"`, `"S"`, `"`+kind+`"`).Replace(described)
	}
	for _, c := range []struct {
		name   string
		status int
		answer string
		env    map[string]string
		want   string
	}{
		{"no credentials", 0, "", map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, "no AWS credentials: set AWS_PROFILE"},
		{"no region", 0, "", map[string]string{"AWS_REGION": ""}, "no AWS region: add &region="},
		{"wrong region", 400, failure("ResourceNotFoundException"), nil, "there is no table name in region eu-west-1"},
		{"no right", 400, failure("AccessDeniedException"), nil, "the credentials have no right to this"},
		{"expired credentials", 400, failure("ExpiredTokenException"), nil, "AWS refuses the credentials"},
		{"foreign credentials", 400, failure("UnrecognizedClientException"), nil, "AWS refuses the credentials"},
		{"another key", 200, key("id", "S"), nil, "its key is id (S), not key (S)"},
		{"another type", 200, key("key", "B"), nil, "its key is key (B), not key (S)"},
		{"being made", 200, strings.Replace(described, "ACTIVE", "CREATING", 1), nil, "its status is CREATING"},
		{"no server", 0, "", map[string]string{"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_MAX_ATTEMPTS": "1"}, "DynamoDB cannot be reached"},
	} {
		t.Run(c.name, func(t *testing.T) {
			start(t, answers{"DescribeTable": always(c.status, c.answer)})
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			p, err := drivers.Open(t.Context(), location, nil)
			if p != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant %s", err, c.want)
			}
		})
	}
}

// TestThrottledWrite checks that a throttled write is retried, that only served attempts count, and that
// lasting throttling is not reported as a conflict.
func TestThrottledWrite(t *testing.T) {
	const throttled = "ProvisionedThroughputExceededException"
	served := always(200, `{"ConsumedCapacity":{"TableName":"name","CapacityUnits":3.0}}`)
	write := actor.WriteRecord{Key: "k", Value: []byte("v")}

	p, s, led := open(t, answers{"PutItem": first(1, 400, failure(throttled), served)})
	if rev, err := engine.WriteRecord(t.Context(), p, write); err != nil || rev == nil {
		t.Errorf("revision %v, %v", rev, err)
	}
	if n, c := s.count("PutItem"), led.Counts(); n != 2 || c.KVWriteUnits != 3 {
		t.Errorf("%d tries, %+v", n, c)
	}

	for _, code := range []string{throttled, "ThrottlingException", "TransactionConflictException", "RequestLimitExceeded", "ResourceNotFoundException", "AccessDeniedException"} {
		p, s, led := openTrying(t, 1, answers{"PutItem": always(400, failure(code))})
		for _, rev := range []actor.Revision{nil, "revision"} {
			write.Revision = rev
			_, err := engine.WriteRecord(t.Context(), p, write)
			if err == nil || errors.Is(err, actor.ErrConflict) {
				t.Errorf("%s, revision %v: %v", code, rev, err)
			}
		}
		if c := led.Counts(); c.KVWriteUnits != 0 {
			t.Errorf("%s: %d tries, %+v", code, s.count("PutItem"), c)
		}
		write.Revision = nil
	}
}

// TestLostAnswer loses the answer to a write, so that the SDK's second attempt loses against the first. The
// writer gets a conflict, and reads its own write.
func TestLostAnswer(t *testing.T) {
	p, _, led := open(t, answers{"PutItem": first(1, lose, "", always(400, failure("ConditionalCheckFailedException")))})
	_, err := engine.WriteRecord(t.Context(), p, actor.WriteRecord{Key: "k", Value: bytes.Repeat([]byte("v"), 2500)})
	if !errors.Is(err, actor.ErrConflict) {
		t.Errorf("%v, want a conflict", err)
	}
	if c := led.Counts(); c.KVWriteUnits != 6 {
		t.Errorf("%+v, want 3 units for each try", c)
	}
}

// batch answers a BatchGetItem with the records of the keys that serve selects, and the other keys as
// unprocessed.
func batch(t *testing.T, serve func(n int, key string) bool) func(int, []byte) (int, string) {
	return func(n int, body []byte) (int, string) {
		type keys struct {
			Keys           []map[string]map[string]string
			ConsistentRead bool
		}
		var in struct {
			RequestItems           map[string]keys
			ReturnConsumedCapacity string
		}
		if err := json.Unmarshal(body, &in); err != nil {
			t.Error(err)
		}
		if !in.RequestItems["name"].ConsistentRead || in.ReturnConsumedCapacity != "TOTAL" {
			t.Errorf("not consistent, or not metered: %s", body)
		}
		var items []any
		left := keys{ConsistentRead: true}
		for _, k := range in.RequestItems["name"].Keys {
			key := k["key"]["S"]
			if serve(n, key) {
				text := func(s string) map[string]string { return map[string]string{"S": s} }
				items = append(items, map[string]any{"key": text(key), "value": text("of " + key), "DocstoreRevision": text("1")})
			} else {
				left.Keys = append(left.Keys, k)
			}
		}
		out := map[string]any{
			"Responses":        map[string]any{"name": items},
			"UnprocessedKeys":  map[string]any{},
			"ConsumedCapacity": []any{map[string]any{"TableName": "name", "CapacityUnits": len(items)}},
		}
		if len(left.Keys) > 0 {
			out["UnprocessedKeys"] = map[string]any{"name": left}
		}
		answer, err := json.Marshal(out)
		if err != nil {
			t.Error(err)
		}
		return 200, string(answer)
	}
}

// TestLeftOutKeys checks that keys that a batch leaves out are read later or are an error. They never count as
// missing records.
func TestLeftOutKeys(t *testing.T) {
	keys := []string{"a", "b", "c", "d"}
	t.Run("for once", func(t *testing.T) {
		p, s, led := open(t, answers{"BatchGetItem": batch(t, func(n int, key string) bool { return key <= keys[n-1] })})
		recs, err := engine.ReadRecords(t.Context(), p, keys)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range recs {
			if string(r.Value) != "of "+keys[i] {
				t.Errorf("%s: found %v, %q", keys[i], r.Found, r.Value)
			}
		}
		if n, c := s.count("BatchGetItem"), led.Counts(); n != 4 || c.KVReadUnits != 4 {
			t.Errorf("%d calls, %+v", n, c)
		}
	})
	t.Run("for ever", func(t *testing.T) {
		p, _, _ := open(t, answers{"BatchGetItem": batch(t, func(_ int, key string) bool { return key == "a" })})
		recs, err := engine.ReadRecords(t.Context(), p, keys)
		if err == nil || !strings.Contains(err.Error(), "throttling") {
			t.Errorf("%v, %v", recs, err)
		}
	})
	t.Run("half an answer", func(t *testing.T) {
		p, _, led := openTrying(t, 1, answers{"BatchGetItem": always(200, `{"Responses":{"na`)})
		recs, err := engine.ReadRecords(t.Context(), p, keys)
		if c := led.Counts(); err == nil || c.KVReadUnits != 4 {
			t.Errorf("%v, %v, %+v", recs, err, c)
		}
	})
	t.Run("table gone", func(t *testing.T) {
		p, _, _ := open(t, answers{"BatchGetItem": always(400, failure("ResourceNotFoundException"))})
		if recs, err := engine.ReadRecords(t.Context(), p, keys); err == nil {
			t.Errorf("%v", recs)
		}
	})
}

const s3Failure = `<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>so it is</Message></Error>`

// TestPut checks that an object is put with one request, which is retried while S3 is busy.
func TestPut(t *testing.T) {
	const size = 64 << 20
	var got int
	p, s, led := open(t, answers{"PUT": first(1, 503, fmt.Sprintf(s3Failure, "SlowDown"), func(_ int, body []byte) (int, string) {
		got = len(body)
		return 200, ""
	})})
	if err := engine.PutObject(t.Context(), p, actor.PutObject{Name: "c/large", Parts: [][]byte{make([]byte, 5), nil, make([]byte, size-5)}}); err != nil {
		t.Fatal(err)
	}
	if n, c := s.count("PUT"), led.Counts(); n != 2 || got != size || c.BlobPuts != 1 || c.BlobPutBytes != size {
		t.Errorf("%d tries, %d bytes, %+v", n, got, c)
	}
	if n := s.count("POST"); n != 0 {
		t.Errorf("%d requests to put in parts", n)
	}
}

// TestObjectErrors checks that no other error counts as a missing object.
func TestObjectErrors(t *testing.T) {
	for _, c := range []struct {
		status  int
		code    string
		missing bool
		want    string
	}{
		{404, "NoSuchKey", true, ""},
		{404, "NoSuchBucket", false, "there is no bucket bucket"},
		{301, "PermanentRedirect", false, "is in another region than eu-west-1"},
		{403, "AccessDenied", false, "no right to this"},
		{403, "InvalidAccessKeyId", false, "refuses the credentials"},
		{409, "ConditionalRequestConflict", false, ""},
		{503, "SlowDown", false, ""},
	} {
		p, _, led := openTrying(t, 1, answers{"GET": always(c.status, fmt.Sprintf(s3Failure, c.code))})
		_, err := engine.GetObject(t.Context(), p, actor.GetObject{Name: "c/o", Length: -1})
		if err == nil || errors.Is(err, actor.ErrNotFound) != c.missing || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.code, err)
		}
		if gets := led.Counts().BlobGets; c.status < 500 && gets != 1 || c.status >= 500 && gets != 0 {
			t.Errorf("%s: %d gets", c.code, gets)
		}
	}
}

const queueURL = `{"QueueUrl":"http://127.0.0.1/queue/name-mailbox-00000"}`

func mailbox(t *testing.T, p *platform.Platform) platform.Queue {
	t.Helper()
	q, err := p.Queue("mailbox-00000")
	if err != nil {
		t.Fatal(err)
	}
	return q
}

type entries struct {
	QueueURL string `json:"QueueUrl"`
	Entries  []struct {
		ID                string `json:"Id"`
		MessageBody       string
		DelaySeconds      int
		VisibilityTimeout int
	}
}

func (e *entries) decode(t *testing.T, body []byte) {
	if err := json.Unmarshal(body, e); err != nil {
		t.Error(err)
	}
}

// TestSendInBatches checks that ten messages, or as many as fit, are one request, and that all messages of a
// call have its delay. The address of a queue is looked up only once.
func TestSendInBatches(t *testing.T) {
	var mu sync.Mutex
	var batches []int
	answer := func(_ int, body []byte) (int, string) {
		var in entries
		in.decode(t, body)
		ok := []string{}
		for _, e := range in.Entries {
			if e.DelaySeconds != 900 {
				t.Errorf("delay %d", e.DelaySeconds)
			}
			ok = append(ok, fmt.Sprintf(`{"Id":%q,"MessageId":"m"}`, e.ID))
		}
		mu.Lock()
		batches = append(batches, len(in.Entries))
		mu.Unlock()
		return 200, `{"Successful":[` + strings.Join(ok, ",") + `],"Failed":[]}`
	}
	p, s, led := open(t, answers{"GetQueueUrl": always(200, queueURL), "SendMessageBatch": answer})
	q := mailbox(t, p)
	for _, c := range []struct {
		sizes []int
		want  []int
	}{
		{[]int{1}, []int{1}},
		{make([]int, 10), []int{10}},
		{make([]int, 23), []int{10, 10, 3}},
		{[]int{60_000, 60_000, 60_000, 60_000}, []int{3, 1}},
		{[]int{190 << 10, 190 << 10, 1}, []int{1, 2}},
	} {
		batches = nil
		var bodies [][]byte
		for _, n := range c.sizes {
			bodies = append(bodies, make([]byte, n+1))
		}
		if err := q.Send(t.Context(), bodies, time.Hour); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, batches); d != "" {
			t.Errorf("%v (-want +got):\n%s", c.sizes, d)
		}
	}
	if n := s.count("GetQueueUrl"); n != 1 {
		t.Errorf("asked %d times for the address", n)
	}
	if c := led.Counts(); c.QueueRequests == 0 {
		t.Errorf("%+v", c)
	}
	if err := q.Send(t.Context(), [][]byte{make([]byte, 200<<10)}, 0); err == nil || !strings.Contains(err.Error(), "SQS takes") {
		t.Errorf("a message over the bound: %v", err)
	}
}

// TestQueueFailures checks that a failure of one message of a call is an error, unless the receipt is outdated.
func TestQueueFailures(t *testing.T) {
	failed := func(code, text string) func(int, []byte) (int, string) {
		return always(200, fmt.Sprintf(`{"Successful":[],"Failed":[{"Id":"0","Code":%q,"Message":%q,"SenderFault":true}]}`, code, text))
	}
	message := always(200, `{"Messages":[{"MessageId":"m","ReceiptHandle":"h","Body":"hello","Attributes":{"ApproximateReceiveCount":"7"}}]}`)
	for _, c := range []struct {
		code, text string
		fails      bool
	}{
		{"InternalError", "", true},
		{"InvalidParameterValue", "The receipt handle has expired", false},
		{"InvalidParameterValue", "something else", true},
		{"ReceiptHandleIsInvalid", "", false},
		{"MessageNotInflight", "", false},
	} {
		p, _, led := open(t, answers{
			"GetQueueUrl": always(200, queueURL), "ReceiveMessage": message,
			"DeleteMessageBatch": failed(c.code, c.text), "ChangeMessageVisibilityBatch": failed(c.code, c.text), "SendMessageBatch": failed(c.code, c.text),
		})
		q := mailbox(t, p)
		got, err := q.Receive(t.Context(), 10, time.Second)
		if err != nil || len(got) != 1 || got[0].Receives != 7 || string(got[0].Body) != "hello" {
			t.Fatalf("%+v, %v", got, err)
		}
		receipts := []platform.Receipt{got[0].Receipt}
		if err := q.Acknowledge(t.Context(), receipts); (err != nil) != c.fails {
			t.Errorf("acknowledge, %s %s: %v", c.code, c.text, err)
		}
		if err := q.Release(t.Context(), receipts); (err != nil) != c.fails {
			t.Errorf("release, %s %s: %v", c.code, c.text, err)
		}
		if err := q.Send(t.Context(), [][]byte{[]byte("x")}, 0); err == nil {
			t.Errorf("send, %s: no error", c.code)
		}
		if n := led.Counts().QueueRequests; n != 5 {
			t.Errorf("%d requests counted of 5", n)
		}
	}
}

// TestQueueMissing checks that the error of a missing queue says what to do, which differs by queue.
func TestQueueMissing(t *testing.T) {
	p, _, _ := open(t, answers{"GetQueueUrl": always(400, failure("AWS.SimpleQueueService.NonExistentQueue"))})
	for name, want := range map[string]string{
		naming.MailboxQueue(1): "there is no queue name-mailbox-00001 in region eu-west-1: deploy name with as many mailboxes",
		naming.IndexQueue:      "there is no queue name-index in region eu-west-1: name was deployed without an index",
		naming.RankQueue:       "there is no queue name-rank in region eu-west-1: name was deployed without an index",
	} {
		if err := p.CheckQueue(t.Context(), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
		q, err := p.Queue(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Send(t.Context(), [][]byte{[]byte("x")}, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("send to %s: %v", name, err)
		}
	}
}

// TestQueueThrottled checks that throttled requests to a queue are retried and not counted.
func TestQueueThrottled(t *testing.T) {
	p, s, led := open(t, answers{
		"GetQueueUrl":    always(200, queueURL),
		"ReceiveMessage": first(1, 403, failure("RequestThrottled"), always(200, `{}`)),
	})
	if got, err := mailbox(t, p).Receive(t.Context(), 10, 0); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	if n, c := s.count("ReceiveMessage"), led.Counts(); n != 2 || c.QueueRequests != 2 {
		t.Errorf("%d tries, %+v", n, c)
	}
}

// TestSendEnds checks that the end of its context ends a send.
func TestSendEnds(t *testing.T) {
	over, asked := make(chan struct{}), make(chan struct{})
	p, _, led := open(t, answers{"GetQueueUrl": always(200, queueURL), "SendMessageBatch": func(int, []byte) (int, string) {
		close(asked)
		<-over
		return 200, `{}`
	}})
	t.Cleanup(func() { close(over) }) // before the server's, which waits for it
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	start := time.Now()
	if err := mailbox(t, p).Send(ctx, [][]byte{[]byte("x"), []byte("y")}, 0); err == nil || time.Since(start) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(start))
	}
	if n := led.Counts().QueueRequests; n != 2 {
		t.Errorf("%d requests counted, 2 went out", n)
	}
}

// TestReceiveWaits checks that a wait makes few requests, in which the server waits at most a second. The wait
// ends with its context, except for a running poll, whose messages are released; only a poll without an answer
// is abandoned.
func TestReceiveWaits(t *testing.T) {
	var mu sync.Mutex
	polls, released := map[string][]int{}, map[string]int{}
	over := make(chan struct{})
	p, _, _ := open(t, answers{
		"GetQueueUrl": func(_ int, body []byte) (int, string) {
			var in struct{ QueueName string }
			if err := json.Unmarshal(body, &in); err != nil {
				t.Error(err)
			}
			return 200, fmt.Sprintf(`{"QueueUrl":"http://127.0.0.1/queue/%s"}`, in.QueueName)
		},
		"ReceiveMessage": func(_ int, body []byte) (int, string) {
			var in struct {
				QueueURL                             string `json:"QueueUrl"`
				WaitTimeSeconds, MaxNumberOfMessages int
			}
			if err := json.Unmarshal(body, &in); err != nil || in.MaxNumberOfMessages != 10 {
				t.Errorf("%s: %v", body, err)
			}
			mu.Lock()
			name := in.QueueURL[strings.LastIndexByte(in.QueueURL, '/')+1:]
			polls[name] = append(polls[name], in.WaitTimeSeconds)
			mu.Unlock()
			if name == "name-silent" {
				<-over
			}
			time.Sleep(time.Duration(in.WaitTimeSeconds) * time.Second)
			if name == "name-late" {
				return 200, `{"Messages":[{"MessageId":"m","ReceiptHandle":"h","Body":"late"}]}`
			}
			return 200, `{}`
		},
		"ChangeMessageVisibilityBatch": func(_ int, body []byte) (int, string) {
			var in entries
			in.decode(t, body)
			mu.Lock()
			released[in.QueueURL[strings.LastIndexByte(in.QueueURL, '/')+1:]] += len(in.Entries)
			mu.Unlock()
			return 200, `{"Successful":[{"Id":"0"}],"Failed":[]}`
		},
	})
	t.Cleanup(func() { close(over) }) // before the server's, which waits for it
	var wg sync.WaitGroup
	for _, c := range []struct {
		queue          string
		wait, ends     time.Duration
		polls          []int // wait time of each request, in seconds
		atLeast, below time.Duration
	}{
		{"none", 0, time.Minute, []int{0}, 0, 500 * time.Millisecond},
		{"half", 500 * time.Millisecond, time.Minute, []int{0, 0}, 400 * time.Millisecond, time.Second},
		{"one", time.Second, time.Minute, []int{1}, 900 * time.Millisecond, 1500 * time.Millisecond},
		{"more", 2500 * time.Millisecond, time.Minute, []int{1, 0, 0}, 2400 * time.Millisecond, 3 * time.Second},
		{"ends", 20 * time.Second, 1200 * time.Millisecond, []int{1}, 1100 * time.Millisecond, 1700 * time.Millisecond}, // in the pause
		{"late", 20 * time.Second, 300 * time.Millisecond, []int{1}, 900 * time.Millisecond, 1500 * time.Millisecond},   // in the poll
		{"silent", 20 * time.Second, 100 * time.Millisecond, []int{1}, 3 * time.Second, 5 * time.Second},
	} {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), c.ends)
			defer cancel()
			q, err := p.Queue(c.queue)
			if err != nil {
				t.Error(err)
				return
			}
			start := time.Now()
			if got, err := q.Receive(ctx, 25, c.wait); err != nil || len(got) > 0 {
				t.Errorf("%s: %v, %v", c.queue, got, err)
			}
			if d := time.Since(start); d < c.atLeast || d > c.below {
				t.Errorf("%s: took %v", c.queue, d)
			}
			mu.Lock()
			defer mu.Unlock()
			if d := cmp.Diff(c.polls, polls["name-"+c.queue]); d != "" {
				t.Errorf("%s (-want +got):\n%s", c.queue, d)
			}
		})
	}
	wg.Wait()
	if d := cmp.Diff(map[string]int{"name-late": 1}, released); d != "" {
		t.Errorf("released (-want +got):\n%s", d)
	}
}
