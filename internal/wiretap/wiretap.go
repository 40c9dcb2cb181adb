// Package wiretap counts and disturbs what goes over the wire to AWS, or to what stands
// for it on this machine.
//
// A [Tap] is a reverse proxy on loopback. It passes requests on as they are, Host header,
// path, signature and streamed body included, and counts them by service and action, with
// payload bytes and with the units that AWS bills. Tests hold the ledger of a crawl to
// these counts. A [Rule] may choose a [Fault] for a request: a delay, a refusal, a lost
// reply, a batch that is done by half.
//
// Bodies of S3 are streamed. Those of SQS and DynamoDB, which are small, are held in
// memory, to 17 MiB a request, since their action and units are in them.
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
	maxOps     = 256      // kinds of request that are told apart
	headerTime = 30 * time.Second
)

// Tap is a counting proxy. It is an [http.Handler]; its methods may be called
// concurrently.
type Tap struct {
	target *url.URL
	proxy  *httputil.ReverseProxy
	server *http.Server // nil if somebody else serves
	url    string
	served sync.WaitGroup

	mu     sync.Mutex
	rule   Rule
	seen   map[Op]int64 // requests begun
	counts Counts
	items  replaced
}

// New returns a tap in front of a base URL such as http://127.0.0.1:4566.
func New(target string) (*Tap, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("wiretap: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("wiretap: %q is no base URL", target)
	}
	t := &Tap{target: u, seen: map[Op]int64{}, counts: Counts{}, items: replaced{}}
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
				return // nobody is there to be told
			}
			http.Error(w, "wiretap: "+err.Error(), http.StatusBadGateway)
		},
	}
	return t, nil
}

// Listen is [New] on a free port of the loopback interface. Close it.
func Listen(target string) (*Tap, error) {
	t, err := New(target)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("wiretap: %w", err)
	}
	t.url = "http://" + l.Addr().String()
	t.server = &http.Server{Handler: t, ReadHeaderTimeout: headerTime, ErrorLog: log.New(io.Discard, "", 0)}
	t.served.Go(func() { t.server.Serve(l) }) //nolint:errcheck // it ends by Close
	return t, nil
}

// URL is where a tap that listens is found, without a slash at its end.
func (t *Tap) URL() string { return t.url }

// Close ends a tap that listens, and cuts all requests off.
func (t *Tap) Close() error {
	err := t.server.Close()
	t.served.Wait()
	t.proxy.Transport.(*http.Transport).CloseIdleConnections()
	return err
}

// SetRule has the rule decide about all requests from now on; nil is no faults.
func (t *Tap) SetRule(r Rule) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rule = r
}

// Counts are the requests that ended so far.
func (t *Tap) Counts() Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.counts)
}

// rewrite changes where a request goes, and nothing of what it says. Only Expect is left
// out: the body is there, and some emulators do not answer it.
func (t *Tap) rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.Scheme, r.Out.URL.Host = t.target.Scheme, t.target.Host
	r.Out.URL.RawQuery = r.In.URL.RawQuery
	r.Out.Host = r.In.Host
	r.Out.Header.Del("Expect")
}

// ServeHTTP passes a request on, or does to it what the rule says.
func (t *Tap) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{w: w, op: Op{Service: service(r)}}
	if x.op.held() || isForm(r) {
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
	x.op.Action = action(x.op.Service, r, x.body)
	fault := t.begin(x)
	defer t.end(x, r) // also when the proxy gives up on the client, by a panic
	x.fault = fault
	if fault.Delay > 0 {
		timer := time.NewTimer(fault.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return
		}
	}
	t.carryOut(x, r)
}

// carryOut does to an exchange what its fault says.
func (t *Tap) carryOut(x *exchange, r *http.Request) {
	switch x.fault.Kind {
	case None:
		if x.op.Service == "dynamodb" { // it carries out, and bills, what a client sent and then did not wait for
			r = r.WithContext(context.WithoutCancel(r.Context()))
		}
		t.proxy.ServeHTTP(x, r)
	case Refuse:
		panic(http.ErrAbortHandler)
	case Lose:
		x.w = &discard{header: http.Header{}}
		t.proxy.ServeHTTP(x, r)
		panic(http.ErrAbortHandler)
	case Partial:
		t.servePartial(x, r)
	default:
		io.Copy(io.Discard, r.Body) //nolint:errcheck // the client may well be gone
		x.refuse()
	}
}

func (t *Tap) begin(x *exchange) Fault {
	t.mu.Lock()
	if _, known := t.seen[x.op]; !known && len(t.seen) >= maxOps {
		x.op.Action = "other"
	}
	n, rule := t.seen[x.op], t.rule
	t.seen[x.op]++
	t.mu.Unlock()
	if rule == nil {
		return Fault{}
	}
	return rule(Request{Op: x.op, N: n, Body: x.body})
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

// exchange is a request and the reply to it, which it watches pass by.
type exchange struct {
	w      http.ResponseWriter
	op     Op
	fault  Fault
	body   []byte       // of the request, if it is held
	in     atomic.Int64 // bytes of the request's body
	out    int64        // and of the reply's
	status int          // 0: there was no reply
	reply  bytes.Buffer // if it is held
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
	if x.op.held() && x.reply.Len()+len(p) <= maxBody {
		x.reply.Write(p)
	}
	return x.w.Write(p)
}

// Unwrap lets the proxy flush.
func (x *exchange) Unwrap() http.ResponseWriter { return x.w }

// count is what the exchange adds to the counts.
func (x *exchange) count(r *http.Request) Count {
	c := Count{Requests: 1, In: x.in.Load(), Out: x.out}
	if n, err := strconv.ParseInt(r.Header.Get("X-Amz-Decoded-Content-Length"), 10, 64); err == nil && c.In > 0 {
		c.In = n // without the signatures and checksums between the chunks
	}
	if x.fault != (Fault{}) {
		c.Faults = 1
	}
	switch x.status / 100 {
	case 2:
		c.Status2xx = 1
	case 3:
		c.Status3xx = 1
	case 4:
		c.Status4xx = 1
	case 5:
		c.Status5xx = 1
	default:
		c.NoReply = 1
	}
	if x.fault.Kind == Lose {
		c.NoReply, c.Status2xx, c.Status3xx, c.Status4xx, c.Status5xx = 1, 0, 0, 0, 0
	}
	if x.reachedService() {
		c.Units = units(x.op, x.body, x.status, x.reply.Bytes())
	}
	return c
}

// reachedService says whether the service has worked on the request, so that it is
// billed.
func (x *exchange) reachedService() bool {
	return x.status != 0 && x.status < 500 && x.fault.Kind != Throttle
}

// Op is a kind of request: a service, by the name that it has in signatures ("sqs",
// "dynamodb", "s3"), and an action, by the name that it has in the API.
type Op struct{ Service, Action string }

// held says whether bodies of the service are read into memory.
func (o Op) held() bool { return o.Service == "sqs" || o.Service == "dynamodb" }

func (o Op) String() string { return o.Service + "." + o.Action }

// MarshalText makes an Op the key of a JSON object.
func (o Op) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Count is what was seen of requests.
type Count struct {
	Requests int64 `json:"requests"`
	In       int64 `json:"bytes_in"`  // of the requests' bodies
	Out      int64 `json:"bytes_out"` // of the replies' bodies
	// Units are what AWS bills: requests of 64 KB for SQS, read or write units for
	// DynamoDB, requests for S3; none for what no service has worked on.
	Units     float64 `json:"units"`
	Status2xx int64   `json:"2xx,omitempty"`
	Status3xx int64   `json:"3xx,omitempty"`
	Status4xx int64   `json:"4xx,omitempty"`
	Status5xx int64   `json:"5xx,omitempty"`
	NoReply   int64   `json:"no_reply,omitempty"` // the client hung up, or the reply was lost on purpose
	Faults    int64   `json:"faults,omitempty"`   // done to them by the rule
}

func (c *Count) add(d Count) { c.combine(d, 1) }

func (c *Count) combine(d Count, sign int64) {
	for _, f := range []struct{ to, from *int64 }{
		{&c.Requests, &d.Requests}, {&c.In, &d.In}, {&c.Out, &d.Out},
		{&c.Status2xx, &d.Status2xx}, {&c.Status3xx, &d.Status3xx}, {&c.Status4xx, &d.Status4xx}, {&c.Status5xx, &d.Status5xx},
		{&c.NoReply, &d.NoReply}, {&c.Faults, &d.Faults},
	} {
		*f.to += sign * *f.from
	}
	c.Units += float64(sign) * d.Units
}

// Counts are counts by kind of request.
type Counts map[Op]Count

// Since is what came after an earlier look.
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

// Plus is the sum of two taps' counts.
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

// Ops are the kinds of request that were seen, sorted.
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

// countingBody counts what is read of a body. That may still go on in another goroutine
// when the reply is here.
type countingBody struct {
	io.ReadCloser
	n *atomic.Int64
}

func (b *countingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n.Add(int64(n))
	return n, err
}

// discard is a client that hears nothing.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}
