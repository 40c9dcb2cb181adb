package fetch

import (
	"context"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/actor"
)

// flight is one request under way, and what is observed of it.
type flight struct {
	outer context.Context         // without the limits on time
	ctx   context.Context         // of the request, with its end
	end   context.CancelCauseFunc // of ctx
	next  time.Time               // expected next use of the connection; zero: none is expected

	timeout time.Duration // see Client.Fetch
	longest time.Duration // of a request whose body arrives steadily; 0: no longer than timeout
	begun   time.Time
	timer   *time.Timer

	conn   *conn // nil: none yet
	reused bool
	closed bool      // the connection serves no further request
	asked  time.Time // for a connection
	got    time.Time // a connection
	begin  bool      // the answer has begun

	mu     sync.Mutex // of what measure reads
	body   int64      // bytes received of it
	before int64      // of these, those received before the window of time that is measured now
	queued bool       // waits for a place of the client's, not for the server
	header time.Time  // was received
	done   time.Time  // the last byte of the body was received
	over   bool       // nothing is measured any more
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

// answered notes that the header is here.
func (f *flight) answered() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.header = time.Now()
}

// received notes that the answer is here.
func (f *flight) received() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = time.Now()
}

// read notes that n bytes of the body are here.
func (f *flight) read(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.body += int64(n)
	f.conn.bodies.Add(int64(n))
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

// observe writes what was seen of the connection into out.
func (f *flight) observe(out *actor.Outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
	if f.conn == nil {
		return
	}
	out.Reused, out.Closed, out.HTTP2, out.Wire = f.reused, f.closed, f.conn.shared, f.conn.take()
	if !f.reused {
		out.Connect = f.got.Sub(f.asked)
	}
	if !f.done.IsZero() {
		out.Response = f.done.Sub(f.got)
	}
}

// Sizes of the buffer for a body: most pages fit the first, bodies above the largest free one
// wait for a place, and no buffer above it is kept.
const (
	firstBuffer = 64 << 10
	freeBuffer  = 1 << 20
)

// buffers are what a request needs until its answer is assembled.
type buffers struct {
	raw    []byte // an HTTP/1 answer as received
	body   []byte // of an answer in chunks or over HTTP/2
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

// room returns buf with room for more bytes, up to limit in all. A buffer that outgrows freeBuffer first takes a place for all
// that may come, not bit by bit: so requests that have a place can finish, and memory is bounded however many connections there are.
func (c *Client) room(f *flight, b *buffers, buf []byte, limit int64) ([]byte, error) {
	if len(buf) < cap(buf) {
		return buf, nil
	}
	if cap(buf) >= freeBuffer && !b.large {
		if b.large = f.wait(c.large); !b.large {
			return buf, context.Cause(f.ctx)
		}
	}
	return append(make([]byte, 0, min(max(firstBuffer, 2*int64(cap(buf))), limit)), buf...), nil
}

// readBody reads the body of an HTTP/2 answer into b.body, at most limit bytes of it. truncated says why that is not the whole
// body: warc.TruncatedLength, warc.TruncatedTime, or "" if it is.
func (c *Client) readBody(f *flight, r io.Reader, b *buffers, limit int64) (truncated string, err error) {
	b.body = b.body[:0]
	for {
		// One byte more than the limit tells a body that ends there from one that goes on.
		if b.body, err = c.room(f, b, b.body, limit+1); err != nil {
			return f.cut(err)
		}
		n, err := r.Read(b.body[len(b.body):min(int64(cap(b.body)), limit+1)])
		b.body = b.body[:len(b.body)+n]
		f.read(n)
		switch {
		case int64(len(b.body)) > limit:
			b.body = b.body[:limit]
			return warc.TruncatedLength, nil
		case err == io.EOF:
			return "", nil
		case err != nil:
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
