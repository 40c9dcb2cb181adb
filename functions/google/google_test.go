//go:build gcp

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/idtoken"
	"google.golang.org/api/option"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/drivers/gcp"
	"github.com/orbweaver/orbweaver/internal/drivers/gcp/fake"
	"github.com/orbweaver/orbweaver/internal/function"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/platform"
)

const (
	address  = "https://functions.example"
	account  = "caller@orbweaver-test.iam.gserviceaccount.com"
	location = "gcp://orbweaver-test?bucket=pages&partitions=4&region=europe-west1&service=" + address + "&account=" + account
	project  = "projects/orbweaver-test/"
)

// deployment is the functions on a fake of Google Cloud: instances of a service, with what Cloud Run does in front of them.
type deployment struct {
	t        *testing.T
	cloud    *fake.Cloud
	identity *fake.Identity
	platform *platform.Platform // as the command line opens it
	log      *logged
	front    *httptest.Server
	idle     chan http.Handler // instances without a request

	faulty bool // two of five requests fail, in turn before and after they are carried out

	mu       sync.Mutex
	requests map[string]int // number of requests by path
}

// logged collects the lines of all instances.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// deploy creates what Terraform creates.
func deploy(t *testing.T, instances int) *deployment {
	t.Helper()
	d := &deployment{t: t, log: &logged{}, idle: make(chan http.Handler, instances), requests: map[string]int{}}
	var err error
	d.cloud, err = fake.Start("pages")
	must(t, err)
	t.Cleanup(func() { _ = d.cloud.Close() }) // clients may be connected still
	for name, value := range d.cloud.Variables() {
		t.Setenv(name, value)
	}
	for _, name := range []string{"wakes", "index", "rank"} {
		d.cloud.Tasks.Deploy(taskQueue(name))
	}
	topics, err := pubsub.NewTopicAdminClient(t.Context())
	must(t, err)
	defer func() { must(t, topics.Close()) }()
	subscriptions, err := d.cloud.Subscriber(t.Context())
	must(t, err)
	defer func() { must(t, subscriptions.Close()) }()
	for _, name := range []string{"intake", "mailbox-00000", "mailbox-00001", "mailbox-00002", "mailbox-00003", "dead-letters"} {
		s := &pubsubpb.Subscription{Name: project + "subscriptions/orbweaver-" + name, Topic: project + "topics/orbweaver-" + name, AckDeadlineSeconds: 600}
		if name == "intake" {
			s.PushConfig = &pubsubpb.PushConfig{PushEndpoint: address + "/intake", AuthenticationMethod: &pubsubpb.PushConfig_OidcToken_{
				OidcToken: &pubsubpb.PushConfig_OidcToken{ServiceAccountEmail: account, Audience: address},
			}}
		}
		_, err = topics.CreateTopic(t.Context(), &pubsubpb.Topic{Name: s.Topic})
		must(t, err)
		_, err = subscriptions.CreateSubscription(t.Context(), s)
		must(t, err)
	}
	d.identity, err = fake.NewIdentity()
	must(t, err)
	d.platform, err = gcp.Open(t.Context(), location, &ledger.Ledger{})
	must(t, err)
	t.Cleanup(func() { must(t, d.platform.Close()) })
	for range instances {
		d.idle <- d.worker().handler()
	}
	d.front = httptest.NewServer(d)
	t.Cleanup(d.front.Close)
	return d
}

func taskQueue(name string) string {
	return project + "locations/europe-west1/queues/orbweaver-" + name
}

// function returns a function of a new instance.
func (d *deployment) function(w *worker) *function.Function {
	environment := map[string]string{
		"ORBWEAVER_PLATFORM": location, "ORBWEAVER_ALLOW_NET": "127.0.0.0/8", "ORBWEAVER_RETRY_WAIT": "100ms", "ORBWEAVER_TIME_LIMIT": "20",
	}
	f, err := function.On(gcp.Open, func(name string) string { return environment[name] }, d.log, w.prepare)
	must(d.t, err)
	d.t.Cleanup(func() {
		if p, err := f.Platform(context.Background()); err == nil {
			_ = p.Close()
		}
	})
	return f
}

// worker returns a new instance, which accepts tokens of the deployment's identity.
func (d *deployment) worker() *worker {
	keys, err := idtoken.NewValidator(context.Background(), option.WithHTTPClient(&http.Client{Transport: d.identity}))
	must(d.t, err)
	w := &worker{audience: address, account: account, keys: keys, log: slog.New(slog.NewJSONHandler(d.log, nil))}
	w.function = d.function(w)
	return w
}

// ServeHTTP passes a request to an idle instance. Some requests fail before it; others are carried out, but their answer is lost.
func (d *deployment) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	n := d.requests[r.URL.Path]
	d.requests[r.URL.Path]++
	d.mu.Unlock()
	if d.faulty && n%5 == 1 {
		http.Error(rw, "injected", http.StatusInternalServerError)
		return
	}
	instance := <-d.idle
	defer func() { d.idle <- instance }()
	if d.faulty && n%5 == 3 {
		instance.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}
	instance.ServeHTTP(rw, r)
}

// RoundTrip leads requests for the service's address to the front.
func (d *deployment) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if "https://"+r.URL.Host != address {
		return nil, fmt.Errorf("a request for %s", r.URL)
	}
	r.URL.Scheme, r.URL.Host = "http", strings.TrimPrefix(d.front.URL, "http://")
	return http.DefaultTransport.RoundTrip(r)
}

// serve emulates Cloud Tasks, the push subscription and Cloud Scheduler until stop is called.
func (d *deployment) serve(every time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(d.t.Context())
	p := &fake.Pusher{Client: &http.Client{Transport: d}, Identity: d.identity}
	var all sync.WaitGroup
	for name, atOnce := range map[string]int{"wakes": 3, "index": 1, "rank": 1} {
		all.Go(func() { d.cloud.Tasks.Push(ctx, p, taskQueue(name), atOnce) })
	}
	all.Go(func() {
		if err := d.cloud.Push(ctx, p, project+"subscriptions/orbweaver-intake"); err != nil && ctx.Err() == nil {
			d.t.Error(err)
		}
	})
	all.Go(func() {
		for ctx.Err() == nil {
			if status, _ := d.post("/coordinate", d.identity.Token(fake.Claim(account, address)), nil); status != 0 && status != 204 && status != 500 {
				d.t.Errorf("coordinate: status %d", status)
			}
			select {
			case <-time.After(every):
			case <-ctx.Done():
			}
		}
	})
	return func() { cancel(); all.Wait() }
}

// post returns the status of the answer and its text; 0 if there is no answer.
func (d *deployment) post(path, token string, body []byte) (status int, text string) {
	r, err := http.NewRequest(http.MethodPost, address+path, bytes.NewReader(body))
	must(d.t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := d.RoundTrip(r)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(b)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestTokens sends requests whose token is missing or wrong. Nothing is done for them.
func TestTokens(t *testing.T) {
	d := deploy(t, 1)
	other, err := fake.NewIdentity()
	must(t, err)
	good := d.identity.Token(fake.Claim(account, address))
	claim := func(change func(*fake.Claims)) string {
		c := fake.Claim(account, address)
		change(&c)
		return d.identity.Token(c)
	}
	es256 := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","kid":"fake"}`)) + "." + strings.Split(good, ".")[1] + ".AAAA"
	for name, c := range map[string]struct {
		token, want string
		status      int
	}{
		"none":                {"", "has no token", 401},
		"not a token":         {"token", "three segments", 401},
		"another key":         {other.Token(fake.Claim(account, address)), "verification error", 401},
		"expired":             {claim(func(c *fake.Claims) { c.Expires = time.Now().Add(-time.Minute).Unix() }), "expired", 401},
		"another audience":    {claim(func(c *fake.Claims) { c.Audience = address + "/fetch" }), "audience", 401},
		"no audience":         {claim(func(c *fake.Claims) { c.Audience = "" }), "audience", 401},
		"another account":     {claim(func(c *fake.Claims) { c.Email = "x" + account }), "not that of " + account, 403},
		"unverified account":  {claim(func(c *fake.Claims) { c.Verified = false }), "not that of", 403},
		"another issuer":      {claim(func(c *fake.Claims) { c.Issuer = "https://issuer.example" }), "not that of", 403},
		"without a signature": {good[:strings.LastIndexByte(good, '.')+1], "verification error", 401},
		"removed signature":   {good[:strings.LastIndexByte(good, '.')] + ".SIGNATURE_REMOVED_BY_GOOGLE", "disable the IAM check", 401},
		"short signature":     {es256, "token:", 401},
	} {
		for _, path := range []string{"/fetch", "/coordinate", "/intake", "/index", "/rank"} {
			status, text := d.post(path, c.token, []byte("x"))
			if status != c.status || !strings.Contains(text, c.want) {
				t.Errorf("%s %s: %d %s", name, path, status, text)
			}
		}
	}
	for line := range strings.Lines(d.log.String()) {
		if !strings.Contains(line, `"msg":"a request is refused"`) {
			t.Errorf("a function was called: %s", line)
		}
	}
	if status, text := d.post("/coordinate", good, nil); status != 204 {
		t.Errorf("the right token: %d %s", status, text)
	}
	r := httptest.NewRequest(http.MethodPost, "/coordinate", nil)
	r.Header.Set("Authorization", "bearer "+good) // as Cloud Run may pass it
	if status, err := d.worker().authorize(r); err != nil {
		t.Errorf("a scheme in lower case: %d %v", status, err)
	}
}

// TestRequests sends requests that functions cannot handle. Those that another attempt cannot help are acknowledged.
func TestRequests(t *testing.T) {
	d := deploy(t, 1)
	token := d.identity.Token(fake.Claim(account, address))
	push := func(data string, attributes ...string) string {
		return `{"message":{"messageId":"7","data":"` + base64.StdEncoding.EncodeToString([]byte(data)) + `","attributes":{` + strings.Join(attributes, ",") + `}}}`
	}
	request := `{"recrawl":["https://example.org/"]}`
	for name, c := range map[string]struct {
		path, body string
		status     int
		logged     string
	}{
		"wake of another crawl": {"/fetch", string(blobschema.EncodeWake("20200101-000000", 0)), 204, "not the active crawl"},
		"broken wake":           {"/fetch", "?", 204, "a message that cannot be read is dropped"},
		"broken job":            {"/index", "", 204, "a message that cannot be read is dropped"},
		"broken rank job":       {"/rank", "{}", 204, "a message that cannot be read is dropped"},
		"no envelope":           {"/intake", "?", 204, "a push that cannot be read is dropped"},
		"no message":            {"/intake", `{"subscription":"s"}`, 204, "a push that cannot be read is dropped"},
		"data not base64":       {"/intake", `{"message":{"messageId":"7","data":"?"}}`, 204, "a push that cannot be read is dropped"},
		"removal of an object":  {"/intake", push(`{"kind":"storage#object"}`, `"eventType":"OBJECT_DELETE"`), 204, "a push that cannot be read is dropped"},
		"request, no crawl":     {"/intake", push(request), 500, "no crawl has begun"},
		"too large":             {"/intake", strings.Repeat("x", maxBody+1), 413, ""},
		"unknown path":          {"/other", "", 404, ""},
		"no path":               {"/", "", 404, ""},
	} {
		before := len(d.log.String())
		status, text := d.post(c.path, token, []byte(c.body))
		said := d.log.String()[before:]
		if status != c.status || !strings.Contains(said, c.logged) || c.logged == "" && said != "" {
			t.Errorf("%s: %d %s, logged %s", name, status, text, said)
		}
	}
	r, err := http.NewRequest(http.MethodGet, address+"/fetch", nil)
	must(t, err)
	answer, err := d.RoundTrip(r)
	must(t, err)
	_ = answer.Body.Close()
	if answer.StatusCode != 405 || answer.Header.Get("Allow") != "POST" {
		t.Errorf("GET: %d %v", answer.StatusCode, answer.Header)
	}
}

// TestStart starts the program with arguments and an environment that are wrong.
func TestStart(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", t.TempDir()+"/none.json") // the validation of tokens needs none
	t.Setenv("ORBWEAVER_PLATFORM", "gcp://orbweaver-test?bucket=pages")
	for want, args := range map[string][]string{
		"usage: google work | google query": nil, "usage: google": {"work", "query"}, "parameter service is missing": {"work"},
	} {
		if err := serve(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", args, err, want)
		}
	}
}

// TestBusy sends a request to an instance that is at work.
func TestBusy(t *testing.T) {
	d := deploy(t, 1)
	w := d.worker()
	w.busy.Lock()
	r := httptest.NewRequest(http.MethodPost, "/coordinate", nil)
	r.Header.Set("Authorization", "Bearer "+d.identity.Token(fake.Claim(account, address)))
	answer := httptest.NewRecorder()
	w.handler().ServeHTTP(answer, r)
	if answer.Code != 503 || d.log.String() != "" {
		t.Errorf("%d, logged %s", answer.Code, d.log.String())
	}
}

// searched returns the URLs that a search finds.
func (d *deployment) searched(h http.Handler, words string) (urls []string) {
	d.t.Helper()
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/search.json?"+url.Values{"q": {words}}.Encode(), nil))
	var found struct{ Results []struct{ URL string } }
	if err := json.Unmarshal(answer.Body.Bytes(), &found); err != nil || answer.Code != 200 {
		d.t.Fatalf("search for %s: %d %s", words, answer.Code, answer.Body)
	}
	for _, r := range found.Results {
		urls = append(urls, r.URL)
	}
	return urls
}
