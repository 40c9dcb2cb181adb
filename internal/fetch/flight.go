package fetch

import (
	"bufio"
	"context"
	"io"
	"math"
	"sync"
	"time"

	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/actor"
)

// flight is one running request and its measurements.
type flight struct {
	outer context.Context         // context of the caller, without the time limits
	ctx   context.Context         // context of the request, with the time limits
	end   context.CancelCauseFunc // ends ctx
	next  time.Time               // expected next use of the connection; zero: none is expected

	timeout time.Duration // limit of the request, see Client.Fetch
	longest time.Duration // limit while its body arrives steadily; 0: timeout
	begun   time.Time
	timer   *time.Timer

	conn     *conn // nil until there is a connection
	wire     int64 // bytes received over it
	reused   bool
	closed   bool      // the connection cannot serve another request
	queuedAt time.Time // when the request began to wait for a connection
	got      time.Time // when it got the connection
	begin    bool      // the answer has begun

	mu     sync.Mutex // guards the fields that measure reads
	body   int64      // bytes of the body received
	before int64      // bytes of the body received before the current window of time
	queued bool       // the request waits for a large buffer, not for the server
	header time.Time  // when the header was received
	done   time.Time  // when the last byte of the body was received
	over   bool       // the measurement has ended
}

// watch starts the timer of the request. The returned function stops it.
func (f *flight) watch() (stop func()) {
	f.mu.Lock() // measure reads the timer
	defer f.mu.Unlock()
	f.begun = time.Now()
	f.timer = time.AfterFunc(f.timeout-f.timeout/2, f.measure)
	return func() { f.timer.Stop() }
}

// measure runs at the end of each window of time. Once the timeout has passed, it ends the request if too
// little of the body arrived in the window, or if longest has passed.
func (f *flight) measure() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over || !f.done.IsZero() { // the whole answer was received
		return
	}
	window, elapsed := f.timeout/2, time.Since(f.begun)
	arriving := min(window, time.Since(f.header)) // a body arrives only after the header
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

// answered records that the header was received.
func (f *flight) answered() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.header = time.Now()
}

// received records that the whole answer was received.
func (f *flight) received() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = time.Now()
}

// read records that n more bytes of the body were received.
func (f *flight) read(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.body += int64(n)
	f.conn.bodies.Add(int64(n))
}

// wait takes a place, or returns false when the request ends first. While it waits, the request does not read the body,
// so this time does not count against the server.
func (f *flight) wait(places chan<- struct{}) bool {
	queued := func(is bool) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.queued, f.before = is, math.MinInt32 // the window in which the wait ends counts as steady too
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

// observe writes the figures of the connection into out, and ends the measurement.
func (f *flight) observe(out *actor.Outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
	if f.conn == nil {
		return
	}
	out.Reused, out.Closed, out.HTTP2, out.Wire = f.reused, f.closed, f.conn.http2, f.wire
	if !f.reused {
		out.Connect = f.got.Sub(f.queuedAt)
	}
	if !f.header.IsZero() {
		out.Page.FirstByte = millis(f.header.Sub(f.begun))
	}
	if !f.done.IsZero() {
		out.Response = f.done.Sub(f.got)
		out.Page.Total = millis(f.done.Sub(f.begun))
	}
}

// millis rounds up to milliseconds.
func millis(d time.Duration) uint32 {
	return uint32(min((d+time.Millisecond-1)/time.Millisecond, math.MaxUint32))
}

// Sizes of a buffer for an answer, in bytes.
const (
	firstBuffer = 8 << 10  // while a request waits for its answer
	pageBuffer  = 64 << 10 // most pages fit
	freeBuffer  = 1 << 20  // a larger buffer needs a place in Client.large and is not reused
)

// buffers is the memory of a request until its answer is assembled.
type buffers struct {
	raw    []byte // answer as received: with its head over HTTP/1, only the body over HTTP/2
	head   []byte // head of the request
	fields []warc.HeaderField
	large  bool         // has a place in Client.large
	in     io.Reader    // source of raw
	ahead  bufio.Reader // reads raw again, to find the chunks in it
	piece  [4 << 10]byte

	first [firstBuffer]byte // first memory of raw
	page  *[pageBuffer]byte // second memory of raw, or nil
}

// buffer returns buffers for a request.
func (c *Client) buffer() *buffers {
	b := c.buffers.Get().(*buffers)
	b.raw = b.first[:0]
	return b
}

func (c *Client) release(b *buffers) {
	if b.page != nil {
		c.pages.Put(b.page)
		b.page = nil
	}
	if b.large {
		<-c.large
		b.large = false
	}
	b.raw, b.in = nil, nil
	clear(b.fields[:cap(b.fields)]) // keep no reference to the values of this request and answer
	c.buffers.Put(b)
}

// room makes room for more bytes in b.raw, up to limit in total. A buffer that outgrows freeBuffer takes one
// place for its whole growth, so that a request with a place can finish. This bounds memory for any number of
// connections.
func (c *Client) room(f *flight, b *buffers, limit int64) error {
	switch {
	case len(b.raw) < cap(b.raw):
		return nil
	case b.page == nil:
		b.page = c.pages.Get().(*[pageBuffer]byte)
		b.raw = append(b.page[:0], b.raw...)
		return nil
	case cap(b.raw) >= freeBuffer && !b.large:
		if b.large = f.wait(c.large); !b.large {
			return context.Cause(f.ctx)
		}
	}
	b.raw = append(make([]byte, 0, min(2*int64(cap(b.raw)), limit)), b.raw...)
	return nil
}

// cut returns the result of reading a body that err ended. errLongest is not an error: the body is truncated.
func (f *flight) cut(err error) (truncated string, _ error) {
	if context.Cause(f.ctx) == errLongest {
		return warc.TruncatedTime, nil
	}
	return "", err
}
