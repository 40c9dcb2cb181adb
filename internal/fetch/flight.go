package fetch

import (
	"context"
	"io"
	"math"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/actor"
)

// flight is one request under way, and what is observed of it. net/http calls back from its
// own goroutines, now and then after the request has ended, so a flight is never used again.
type flight struct {
	outer context.Context         // without the limits on time
	ctx   context.Context         // of the request, with its end; carries the flight
	end   context.CancelCauseFunc // of ctx
	next  time.Time               // expected next use of the connection; zero: none is expected

	timeout time.Duration // see Client.Fetch
	longest time.Duration // of a request whose body arrives steadily; 0: no longer than timeout
	begun   time.Time
	timer   *time.Timer

	mu     sync.Mutex
	body   int64     // bytes received of it
	before int64     // of these, those received before the window of time that is measured now
	queued bool      // waits for a place of the client's, not for the server
	asked  time.Time // for a connection
	got    time.Time // a connection
	sent   time.Time // the request
	header time.Time // was received
	done   time.Time // the last byte of the body was received
	conn   *conn     // the last one got: net/http asks again when one that idled turns out dead
	conns  int       // got
	reused bool
	http2  bool
	closed bool
	coming bool // the answer has begun, over conn
	over   bool // nothing is observed any more
}

type flightKey struct{}

// withFlight returns a context that ends with ctx and, if ctx carries a flight, with that too,
// for the same cause.
func withFlight(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	f, ok := ctx.Value(flightKey{}).(*flight)
	if !ok {
		return ctx, func() { cancel(nil) }
	}
	stop := context.AfterFunc(f.ctx, func() { cancel(context.Cause(f.ctx)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// watch begins to measure the request's time, and returns what ends that.
func (f *flight) watch() (stop func()) {
	f.mu.Lock() // the timer is read by measure
	defer f.mu.Unlock()
	f.begun = time.Now()
	f.timer = time.AfterFunc(f.timeout-f.timeout/2, f.measure)
	return func() { f.timer.Stop() }
}

// measure ends a window of time: from the timeout on, the request with it if too little of a
// body came in the window, or if the request has had its time.
func (f *flight) measure() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over || !f.done.IsZero() { // what follows takes our time, not the server's
		return
	}
	window, elapsed := f.timeout/2, time.Since(f.begun)
	arriving := min(window, time.Since(f.header)) // from the header on a body can arrive
	steady := f.queued || float64(f.body-f.before) >= max(1, MinRate*arriving.Seconds())
	f.before = f.body
	switch {
	case elapsed >= f.timeout && (!steady || f.longest == 0):
		f.end(errTimeout)
	case elapsed >= f.timeout && elapsed >= f.longest:
		f.end(errLongest)
	default:
		if elapsed >= f.timeout {
			window = min(window, f.longest-elapsed)
		}
		f.timer.Reset(window)
	}
}

func (f *flight) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.asked = time.Now()
		},
		GotConn: func(info httptrace.GotConnInfo) {
			c := counted(info.Conn)
			if c != nil && info.Reused && !isHTTP2(info.Conn) {
				c.settle()
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			f.leave()
			f.drop()
			f.got, f.conn = time.Now(), c
			if c != nil {
				c.idle.taken(c)
			}
			if f.conns++; f.conns > 2 {
				f.end(errAgain)
			}
			f.reused = f.conn != nil && f.conn.served.Swap(true)
			f.http2 = isHTTP2(info.Conn)
		},
		GotFirstResponseByte: func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.conn != nil && !f.coming && !f.over {
				f.coming = true
				f.conn.answers.Add(1)
			}
		},
		WroteRequest: func(httptrace.WroteRequestInfo) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.sent = time.Now()
		},
	}
}

// answered notes that the header is here.
func (f *flight) answered() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.header = time.Now()
}

// received notes that the answer is here, and whether the server ends the connection.
func (f *flight) received(closed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done, f.closed = time.Now(), closed
}

// read notes that n bytes of the body are here.
func (f *flight) read(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.body += int64(n)
	if f.conn != nil {
		f.conn.bodies.Add(int64(n))
	}
}

// wait takes a place, or returns false when the request's time is up. Meanwhile the body does not
// arrive, which is not the server's fault.
func (f *flight) wait(places chan<- struct{}) bool {
	queued := func(is bool) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.queued, f.before = is, math.MinInt32 // the window in which the wait ends counts as steady, too
	}
	queued(true)
	defer queued(false)
	select {
	case places <- struct{}{}:
		return true
	case <-f.ctx.Done():
		return false
	}
}

// broken ends the connection. Over HTTP/2 net/http would keep it: then the next request would
// wait in vain on a server that is stuck, and one that floods would be read for as long as the
// connection may idle.
func (f *flight) broken() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done, f.closed = time.Time{}, true
	if f.conn != nil {
		f.conn.Close()
	}
}

// leave notes that no answer comes over the connection any more. With mu held.
func (f *flight) leave() {
	if f.coming {
		f.coming = false
		f.conn.answers.Add(-1)
	}
}

// drop notes that the request no longer uses the connection. With mu held.
func (f *flight) drop() {
	if f.conn != nil {
		f.conn.idle.left(f.conn, f.next)
	}
}

// connected reports whether there was a connection to ask over.
func (f *flight) connected() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.conn != nil
}

// address returns the IP address that was asked, or "".
func (f *flight) address() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conn == nil {
		return ""
	}
	return f.conn.addr
}

// observe writes what was seen of the connection into out.
func (f *flight) observe(out *actor.Outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
	defer f.drop()
	defer f.leave()
	if f.conn == nil {
		return
	}
	out.Reused, out.Closed, out.HTTP2, out.Wire = f.reused, f.closed, f.http2, f.conn.take()
	if !f.reused {
		out.Connect = f.got.Sub(f.asked)
	}
	if f.done.IsZero() {
		return
	}
	// net/http tells that it has sent the request from a goroutine of its own, at times only
	// after the answer came; then the time since there was a connection is next best.
	begin := f.got
	if f.sent.After(f.got) && f.sent.Before(f.done) {
		begin = f.sent
	}
	out.Response = f.done.Sub(begin)
}

// Sizes of the buffer for a body: most pages fit the first, bodies above the largest free one
// wait for a place, and no buffer above it is kept.
const (
	firstBuffer = 64 << 10
	freeBuffer  = 1 << 20
)

// buffers are what a request needs until its answer is assembled.
type buffers struct {
	body   []byte
	head   []byte // of the request
	fields []warc.HeaderField
	large  bool // holds a place in Client.large
}

func (c *Client) release(b *buffers) {
	if b.large {
		<-c.large
		return // the garbage collector has it
	}
	clear(b.fields[:cap(b.fields)]) // the request had some, too
	c.buffers.Put(b)
}

// read reads a body into b.body, at most limit bytes of it. truncated says why that is not the whole body:
// warc.TruncatedLength, warc.TruncatedTime, or "" if it is.
// A body that outgrows freeBuffer first takes a place for all that may come, not bit by bit:
// so those that have a place can finish, and memory is bounded however many connections there are.
func (c *Client) read(f *flight, r io.Reader, b *buffers, limit int64) (truncated string, err error) {
	body := b.body[:0]
	defer func() { b.body = body }()
	for {
		if len(body) == cap(body) {
			if cap(body) >= freeBuffer && !b.large {
				if b.large = f.wait(c.large); !b.large {
					return f.cut(context.Cause(f.ctx))
				}
			}
			body = append(make([]byte, 0, min(2*int64(cap(body)), limit+1)), body...)
		}
		// One byte more than the limit tells a body that ends there from one that goes on.
		n, err := r.Read(body[len(body):min(int64(cap(body)), limit+1)])
		body = body[:len(body)+n]
		f.read(n)
		if int64(len(body)) > limit {
			body = body[:limit]
			return warc.TruncatedLength, nil
		}
		if err == io.EOF {
			return "", nil
		}
		if err != nil {
			return f.cut(err)
		}
	}
}

// cut returns the results of read for an error. The end of the time for a body that arrives steadily is no error.
func (f *flight) cut(err error) (truncated string, _ error) {
	if context.Cause(f.ctx) == errLongest {
		return warc.TruncatedTime, nil
	}
	return "", err
}

// appendFields appends the fields of h by name; fields of one name keep their order.
func appendFields(dst []warc.HeaderField, h http.Header) []warc.HeaderField {
	for name, values := range h {
		for _, v := range values {
			dst = append(dst, warc.HeaderField{Name: name, Value: v})
		}
	}
	slices.SortStableFunc(dst, func(a, b warc.HeaderField) int { return strings.Compare(a.Name, b.Name) })
	return dst
}
