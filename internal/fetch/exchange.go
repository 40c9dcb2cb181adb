package fetch

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/actor"
)

// This file sends a request over a connection and reads the answer into a [Response].

// Bounds of a body in chunks, in bytes.
const (
	maxFraming = 1 << 20 // everything except the body
	maxTrailer = 4 << 10
)

// past is a deadline that ends reads and writes immediately.
var past = time.Unix(1, 0)

var (
	errSwitch  = errors.New("answer switches protocols without a request")
	errTrailer = errors.New("suspiciously long trailer")
	errFraming = errors.New("too much framing") // the body is cut there
)

// exchange sends a request and receives its answer over a pooled connection or a new one. If a pooled
// connection ends before the answer begins, the server probably closed it while it was idle: exchange sends the
// request again, once, over a new connection.
func (c *Client) exchange(f *flight, o origin, req *actor.Request, b *buffers, limit int64) (resp Response, err error) {
	f.queuedAt = time.Now()
	if f.conn = c.pool.take(o); f.conn != nil {
		f.got, f.reused = time.Now(), true
		resp, err = c.over(f, req, b, limit)
		// An HTTP/2 connection may also have ended because of another answer.
		ended := err != nil && (isCut(err) || f.conn.h2 != nil && !f.conn.usable())
		if !ended || f.begin || f.ctx.Err() != nil {
			return resp, err
		}
		c.pool.left(f.conn, f.next, false)
		f.queuedAt, f.reused = time.Now(), false
	}
	if f.conn, err = c.dialer.dial(f.ctx, o); err != nil {
		return resp, err
	}
	c.pool.add(f.conn)
	f.got = time.Now()
	return c.over(f, req, b, limit)
}

// over carries out an exchange over f.conn.
func (c *Client) over(f *flight, req *actor.Request, b *buffers, limit int64) (resp Response, err error) {
	c.requestHead(b, req)
	if f.conn.h2 != nil {
		return c.exchange2(f, req, b, limit)
	}
	used := f.conn
	stop := context.AfterFunc(f.ctx, func() { _ = used.SetDeadline(past) })
	defer func() {
		if !stop() { // the deadline may be set only after this request, and would end the next one
			f.closed = true
		}
	}()
	if _, err = f.conn.stream.Write(b.head); err != nil {
		return resp, err
	}
	b.in = f.conn.stream
	if resp, err = c.readHead(f, b); err != nil {
		return Response{}, err
	}
	if resp.Status == http.StatusSwitchingProtocols { // no request has an Upgrade field
		return resp, errSwitch
	}
	framing, err := resp.framing()
	if err != nil {
		return Response{}, err
	}
	f.answered()
	if framing.chunked {
		err = c.readChunks(f, b, &resp, limit)
	} else {
		err = c.readPlain(f, b, &resp, framing.length, limit)
	}
	surplus := framing.length >= 0 && len(b.raw) > len(resp.Head)+len(resp.Body)
	f.closed = f.closed || framing.closing || surplus || resp.Truncated != ""
	f.received()
	return resp, err
}

// readHead reads the head of an answer into b.raw, and the bytes that arrive with it. It skips interim answers
// (status 1xx).
func (c *Client) readHead(f *flight, b *buffers) (resp Response, err error) {
	if err := f.readBy(time.Now().Add(c.cfg.HeaderTimeout)); err != nil {
		return resp, err
	}
	b.raw = b.raw[:0]
	interim := 0
	for looked := 0; ; {
		n := warc.HeadEnd(b.raw, looked)
		switch {
		case !beginsHTTP(b.raw):
			return resp, errNoHTTP
		case n > 0 && interim+n <= maxHeader:
			head, err := warc.ParseHTTPHead(b.raw[:n], b.fields)
			b.fields = head.Fields
			if err == nil {
				head.Proto, err = protocol(head.Proto)
			}
			if err == nil && head.Status >= 100 && head.Status <= 199 && head.Status != http.StatusSwitchingProtocols {
				b.raw, looked, interim = slices.Delete(b.raw, 0, n), 0, interim+n
				continue
			}
			resp = Response{
				Proto: head.Proto, Status: head.Status, Reason: head.Reason, Head: b.raw[:n], Header: head.Fields,
				RequestHead: b.head, Addr: f.conn.addr,
			}
			return resp, errors.Join(err, f.readBy(time.Time{}))
		case interim+len(b.raw) >= maxHeader:
			return resp, errHeadTooLong
		}
		looked = len(b.raw)
		if err := c.more(f, b, maxHeader); err != nil {
			return resp, err
		}
		f.begin = true
	}
}

// readBy sets the deadline of reads. The end of the request sets one too, which this must not undo.
func (f *flight) readBy(t time.Time) error {
	if err := f.conn.SetReadDeadline(t); err != nil {
		return err
	}
	return context.Cause(f.ctx)
}

// readPlain reads a body without transfer coding: length bytes, or up to the end of the stream if length is -1.
// b.raw begins with resp.Head, and may already contain more.
func (c *Client) readPlain(f *flight, b *buffers, resp *Response, length, limit int64) (err error) {
	start := int64(len(resp.Head))
	most := limit + 1 // one byte more distinguishes a body that ends at the limit from a longer one
	if length >= 0 {
		most = min(most, length)
	}
	var size int64
	for {
		n := min(int64(len(b.raw))-start, most)
		f.read(int(n - size))
		if size = n; size == most {
			break
		}
		if err = c.more(f, b, start+most+1); err != nil {
			break
		}
	}
	switch {
	case err == io.EOF && length < 0:
		err = nil
	case err != nil:
		resp.Truncated, err = f.cut(err)
	case size > limit:
		resp.Truncated, size = warc.TruncatedLength, limit
	}
	resp.Head, resp.Body = b.raw[:start], b.raw[start:start+size]
	return err
}

// readChunks reads a chunked body as received. [Assemble] decodes it, so that no waiting request holds a body twice.
func (c *Client) readChunks(f *flight, b *buffers, resp *Response, limit int64) (err error) {
	start := len(resp.Head)
	in := &replay{c: c, f: f, b: b, at: start, most: int64(start) + limit + maxFraming}
	b.ahead.Reset(in)
	defer b.ahead.Reset(nil)
	chunks := httputil.NewChunkedReader(&b.ahead)
	for left := limit; left > 0 && err == nil; {
		var n int
		n, err = chunks.Read(b.piece[:min(left, int64(len(b.piece)))])
		left -= int64(n)
		f.read(n)
	}
	end := in.at - b.ahead.Buffered()
	longer := 0
	if err == nil { // one byte more distinguishes a body that ends at the limit from a longer one
		longer, err = chunks.Read(b.piece[:1])
	}
	if err == io.EOF && longer == 0 {
		err = readTrailer(&b.ahead)
		end = in.at - b.ahead.Buffered()
		f.closed = f.closed || end < len(b.raw)
	}
	switch {
	case longer > 0, err == errFraming:
		resp.Truncated, err = warc.TruncatedLength, nil
	case err != nil:
		resp.Truncated, err = f.cut(err)
	}
	resp.Head, resp.Chunks = b.raw[:start], b.raw[start:end]
	return err
}

// readTrailer reads the lines after the last chunk up to an empty one. Their content does not matter.
func readTrailer(in *bufio.Reader) error {
	for size := 0; size <= maxTrailer; {
		line, err := in.ReadSlice('\n')
		if err == nil && string(line) == "\r\n" {
			return nil
		}
		if err != nil && err != bufio.ErrBufferFull {
			return err
		}
		size += len(line)
	}
	return errTrailer
}

// replay reads b.raw from an offset, and more of it if necessary, up to most bytes.
type replay struct {
	c    *Client
	f    *flight
	b    *buffers
	at   int
	most int64
}

func (r *replay) Read(p []byte) (n int, err error) {
	switch {
	case r.at < len(r.b.raw):
	case int64(r.at) >= r.most:
		return 0, errFraming
	default:
		err = r.c.more(r.f, r.b, r.most)
	}
	n = copy(p, r.b.raw[r.at:])
	r.at += n
	return n, err
}

// more reads at least one byte into b.raw. The buffer grows up to limit.
func (c *Client) more(f *flight, b *buffers, limit int64) error {
	if err := c.room(f, b, limit); err != nil {
		return err
	}
	n, err := b.in.Read(b.raw[len(b.raw):cap(b.raw)])
	b.raw = b.raw[:len(b.raw)+n]
	if n > 0 {
		return nil
	}
	return err
}

// exchange2 carries out an exchange over an HTTP/2 connection.
func (c *Client) exchange2(f *flight, req *actor.Request, b *buffers, limit int64) (resp Response, err error) {
	r, err := http2Request(f.ctx, req, b.fields)
	if err != nil {
		return resp, err
	}
	answer, err := f.conn.h2.RoundTrip(r)
	if err != nil {
		return resp, err
	}
	f.conn.answers.Add(1)
	defer f.conn.answers.Add(-1)
	defer answer.Body.Close()
	f.begin = true
	f.answered()
	_, reason, _ := strings.Cut(answer.Status, " ")
	resp = Response{Status: answer.StatusCode, Reason: reason, Proto: answer.Proto, RequestHead: b.head, Addr: f.conn.addr}
	b.raw, b.in = b.raw[:0], answer.Body
	err = c.readPlain(f, b, &resp, -1, limit)
	b.fields = appendFields(b.fields[:0], answer.Header)
	resp.Header = b.fields
	f.closed = f.closed || answer.Close
	f.received()
	return resp, err
}

// http2Request returns the request with the fields of [Client.requestHead]. Path and query are sent byte for
// byte as they are stored and hashed, because net/url leaves a valid encoding as it is.
func http2Request(ctx context.Context, req *actor.Request, fields []warc.HeaderField) (*http.Request, error) {
	u, err := url.Parse(req.URL.String())
	if err != nil {
		return nil, err
	}
	r := http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Header: http.Header{}}
	for _, f := range fields {
		r.Header[f.Name] = []string{f.Value}
	}
	delete(r.Header, "Host")
	return r.WithContext(ctx), nil
}

// appendFields appends the fields of h, sorted by name; fields of one name keep their order.
func appendFields(dst []warc.HeaderField, h http.Header) []warc.HeaderField {
	for name, values := range h {
		for _, v := range values {
			dst = append(dst, warc.HeaderField{Name: name, Value: v})
		}
	}
	slices.SortStableFunc(dst, func(a, b warc.HeaderField) int { return strings.Compare(a.Name, b.Name) })
	return dst
}
