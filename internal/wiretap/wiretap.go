// Package wiretap counts and disturbs requests to AWS, or to emulators of AWS on this
// machine.
//
// A [Tap] is a reverse proxy on loopback. It passes requests on unchanged, with Host header,
// path, signature and streamed body, and counts them by service and action, with
// payload bytes and with the units that AWS bills. Tests compare the ledger of a crawl with
// these counts. A [Rule] may choose a [Fault] for a request: a refusal, a lost reply, or
// half of a batch.
//
// Bodies of S3 are streamed. Those of SQS and DynamoDB are small and contain the action
// and the units, so they are buffered, up to 17 MiB per request.
package wiretap

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxBody    = 17 << 20 // DynamoDB allows 16 MB, SQS 1 MiB
	headerTime = 30 * time.Second
)

// Tap is a counting proxy. Its methods may be called concurrently.
type Tap struct {
	target *url.URL
	proxy  *httputil.ReverseProxy
	server *http.Server
	url    string
	served sync.WaitGroup

	mu     sync.Mutex
	rule   Rule
	counts Counts
	items  replaced
}

// Listen starts a tap on a free port of the loopback interface, in front of a base URL such
// as http://127.0.0.1:4566. Close it.
func Listen(target string) (*Tap, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("wiretap: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("wiretap: %q is no base URL", target)
	}
	t := &Tap{target: u, counts: Counts{}, items: replaced{}}
	t.proxy = &httputil.ReverseProxy{
		Rewrite:       t.rewrite,
		FlushInterval: -1,
		Transport: &http.Transport{
			DisableCompression: true, MaxIdleConnsPerHost: 256, IdleConnTimeout: time.Minute,
			DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		},
		ErrorLog: log.New(io.Discard, "", 0), // clients that hang up during a long poll are normal
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil {
				return // the client is gone
			}
			http.Error(w, "wiretap: "+err.Error(), http.StatusBadGateway)
		},
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("wiretap: %w", err)
	}
	t.url = "http://" + l.Addr().String()
	t.server = &http.Server{Handler: http.HandlerFunc(t.serve), ReadHeaderTimeout: headerTime, ErrorLog: log.New(io.Discard, "", 0)}
	t.served.Go(func() { t.server.Serve(l) }) //nolint:errcheck // it ends by Close
	return t, nil
}

// URL returns the base URL of the tap, without a slash at its end.
func (t *Tap) URL() string { return t.url }

// Close ends the tap and aborts all requests.
func (t *Tap) Close() error {
	err := t.server.Close()
	t.served.Wait()
	t.proxy.Transport.(*http.Transport).CloseIdleConnections()
	return err
}

// SetRule sets the rule for all requests from now on; nil means no faults.
func (t *Tap) SetRule(r Rule) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rule = r
}

// Counts returns the counts of the requests that have ended.
func (t *Tap) Counts() Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.counts)
}

// rewrite changes the target of a request and nothing else, except that it removes Expect: the body is
// available at once, and some emulators do not answer this field.
func (t *Tap) rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.Scheme, r.Out.URL.Host = t.target.Scheme, t.target.Host
	r.Out.URL.RawQuery = r.In.URL.RawQuery
	r.Out.Host = r.In.Host
	r.Out.Header.Del("Expect")
}

// serve passes a request on, or applies the fault that the rule chooses.
func (t *Tap) serve(w http.ResponseWriter, r *http.Request) {
	x := &exchange{w: w, op: Op{Service: service(r)}}
	if x.op.buffered() {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		var large *http.MaxBytesError
		switch {
		case errors.As(err, &large):
			http.Error(w, "wiretap: the body is too large", http.StatusRequestEntityTooLarge)
			return
		case err != nil:
			return // the client is gone
		}
		x.body = body
		x.in.Store(int64(len(body)))
		setBody(r, body)
	} else {
		r.Body = &countingBody{r.Body, &x.in}
	}
	x.op.Action = action(x.op.Service, r)
	t.mu.Lock()
	rule := t.rule
	t.mu.Unlock()
	if rule != nil {
		x.fault = rule(x.op)
	}
	defer t.end(x, r) // also when the proxy gives up on the client, by a panic
	t.carryOut(x, r)
}

// carryOut applies the fault of an exchange.
func (t *Tap) carryOut(x *exchange, r *http.Request) {
	switch x.fault {
	case None:
		if x.op.Service == "dynamodb" { // carries out and bills a request even if its client is gone
			r = r.WithContext(context.WithoutCancel(r.Context()))
		}
		t.proxy.ServeHTTP(x, r)
	case Lose:
		x.w = httptest.NewRecorder() // the client receives nothing
		t.proxy.ServeHTTP(x, r)
		panic(http.ErrAbortHandler)
	case Partial:
		t.servePartial(x, r)
	default:
		io.Copy(io.Discard, r.Body) //nolint:errcheck // the client may well be gone
		x.refuse()
	}
}

func (t *Tap) end(x *exchange, r *http.Request) {
	c := x.count(r)
	t.mu.Lock()
	defer t.mu.Unlock()
	if x.op == (Op{"dynamodb", "PutItem"}) && x.status/100 == 2 {
		c.Units = t.items.put(x.body, c.Units)
	}
	sum := t.counts[x.op]
	sum.add(c)
	t.counts[x.op] = sum
}

// exchange is a request and its reply. It observes the reply as it passes.
type exchange struct {
	w      http.ResponseWriter
	op     Op
	fault  Fault
	body   []byte       // of the request, if it is buffered
	in     atomic.Int64 // bytes of the request's body
	out    int64        // and of the reply's
	status int          // 0: there was no reply
	reply  bytes.Buffer // if it is buffered
}

func (x *exchange) Header() http.Header { return x.w.Header() }

func (x *exchange) WriteHeader(status int) {
	if status >= 200 { // not 100 Continue
		x.status = status
	}
	x.w.WriteHeader(status)
}

func (x *exchange) Write(p []byte) (int, error) {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	x.out += int64(len(p))
	if x.op.buffered() && x.reply.Len()+len(p) <= maxBody {
		x.reply.Write(p)
	}
	return x.w.Write(p)
}

// Unwrap lets the proxy flush.
func (x *exchange) Unwrap() http.ResponseWriter { return x.w }

// count returns what the exchange adds to the counts.
func (x *exchange) count(r *http.Request) Count {
	c := Count{Requests: 1, In: x.in.Load(), Out: x.out}
	if n, err := strconv.ParseInt(r.Header.Get("X-Amz-Decoded-Content-Length"), 10, 64); err == nil && c.In > 0 {
		c.In = n // without the signatures and checksums between the chunks
	}
	if x.fault != None {
		c.Faults = 1
	}
	switch class := x.status / 100; {
	case class == 0 || x.fault == Lose:
		c.NoReply = 1
	case class == 2:
		c.Status2xx = 1
	case class == 4:
		c.Status4xx = 1
	case class == 5:
		c.Status5xx = 1
	}
	if x.reachedService() {
		c.Units = units(x.op, x.body, x.status, x.reply.Bytes())
	}
	return c
}

// reachedService reports whether the service has worked on the request and bills it.
func (x *exchange) reachedService() bool {
	return x.status != 0 && x.status < 500 && x.fault != Throttle
}

// Op is a kind of request: a service, by the name that it has in signatures ("sqs",
// "dynamodb", "s3"), and an action, by the name that it has in the API.
type Op struct{ Service, Action string }

// buffered reports whether bodies of the service are buffered.
func (o Op) buffered() bool { return o.Service == "sqs" || o.Service == "dynamodb" }

func (o Op) String() string { return o.Service + "." + o.Action }

// MarshalText makes an Op the key of a JSON object.
func (o Op) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Count holds the figures of some requests.
type Count struct {
	Requests int64 `json:"requests"`
	In       int64 `json:"bytes_in"`  // of the requests' bodies
	Out      int64 `json:"bytes_out"` // of the replies' bodies
	// Units are what AWS bills: requests of 64 KB for SQS, read or write units for
	// DynamoDB, requests for S3; none for requests that no service has worked on.
	Units     float64 `json:"units"`
	Status2xx int64   `json:"2xx,omitempty"`
	Status4xx int64   `json:"4xx,omitempty"`
	Status5xx int64   `json:"5xx,omitempty"`
	NoReply   int64   `json:"no_reply,omitempty"` // the client hung up, or the reply was lost on purpose
	Faults    int64   `json:"faults,omitempty"`   // chosen by the rule
}

func (c *Count) add(d Count) { c.combine(d, 1) }

func (c *Count) combine(d Count, sign int64) {
	for _, f := range []struct{ to, from *int64 }{
		{&c.Requests, &d.Requests}, {&c.In, &d.In}, {&c.Out, &d.Out},
		{&c.Status2xx, &d.Status2xx}, {&c.Status4xx, &d.Status4xx}, {&c.Status5xx, &d.Status5xx},
		{&c.NoReply, &d.NoReply}, {&c.Faults, &d.Faults},
	} {
		*f.to += sign * *f.from
	}
	c.Units += float64(sign) * d.Units
}

// Counts are counts by kind of request.
type Counts map[Op]Count

// Since returns the difference from earlier counts.
func (c Counts) Since(before Counts) Counts {
	out := Counts{}
	for op, n := range c {
		n.combine(before[op], -1)
		if n != (Count{}) {
			out[op] = n
		}
	}
	return out
}

// Plus returns the sum of the counts of two taps.
func (c Counts) Plus(d Counts) Counts {
	out := maps.Clone(c)
	for op, n := range d {
		sum := out[op]
		sum.add(n)
		out[op] = sum
	}
	return out
}

// Sum adds up a service's actions, all of them if none is named.
func (c Counts) Sum(service string, actions ...string) Count {
	var sum Count
	for op, n := range c {
		if op.Service == service && (len(actions) == 0 || slices.Contains(actions, op.Action)) {
			sum.add(n)
		}
	}
	return sum
}

// Ops returns the kinds of request, sorted.
func (c Counts) Ops() []Op {
	return slices.SortedFunc(maps.Keys(c), func(a, b Op) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Action, b.Action))
	})
}

func setBody(r *http.Request, body []byte) {
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	r.TransferEncoding = nil
}

// countingBody counts the bytes read from a body. Another goroutine may still read it when
// the reply has arrived.
type countingBody struct {
	io.ReadCloser
	n *atomic.Int64
}

func (b *countingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n.Add(int64(n))
	return n, err
}
