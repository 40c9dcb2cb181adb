package fetch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/actor"
)

// This file sends a request over a connection and reads the answer into a [Response].

// maxFraming bounds the framing of a body in chunks, in bytes.
const maxFraming = 1 << 20

// past is a deadline that ends reads and writes immediately.
var past = time.Unix(1, 0)

// exchange sends a request and receives its answer over a pooled connection or a new one. If a pooled connection ends before the
// answer begins, the server probably closed it while it was idle: exchange sends the request again, once, over a new connection.
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
		f.queuedAt, f.conn, f.reused = time.Now(), nil, false
	}
	dialled, err := c.dialer.dial(f.ctx, o)
	if err != nil {
		return resp, err
	}
	c.pool.add(dialled)
	f.conn, f.got = dialled, time.Now()
	return c.over(f, req, b, limit)
}

// over carries out an exchange over f.conn.
func (c *Client) over(f *flight, req *actor.Request, b *buffers, limit int64) (Response, error) {
	c.requestHead(b, req)
	if f.conn.h2 != nil {
		return c.exchange2(f, req, b, limit)
	}
	used := f.conn
	stop := context.AfterFunc(f.ctx, func() { _ = used.SetDeadline(past) })
	defer func() {
		if !stop() { // the deadline may come after this request, and would end the next one
			f.closed = true
		}
	}()
	if _, err := f.conn.stream.Write(b.head); err != nil {
		return Response{}, err
	}
	h, err := c.readHead(f, b)
	if err != nil {
		return Response{}, err
	}
	resp := Response{
		Status: h.status, Reason: h.reason, Proto: h.proto, Head: h.raw, Header: h.fields, RequestHead: b.head, Addr: f.conn.addr,
	}
	if h.status == http.StatusSwitchingProtocols { // no request has an Upgrade field
		return resp, errSwitch
	}
	framing, err := h.framing()
	if err != nil {
		return Response{}, err
	}
	f.answered()
	if framing.chunked {
		resp.Truncated, err = c.readChunks(f, b, &resp, limit)
	} else {
		resp.Truncated, err = c.readPlain(f, b, &resp, framing, limit)
	}
	f.closed = f.closed || framing.closing || resp.Truncated != ""
	f.received()
	return resp, err
}

// readHead reads the head of an answer into b.raw, and the bytes that arrive with it. It skips interim answers (status 1xx).
func (c *Client) readHead(f *flight, b *buffers) (h head, err error) {
	if err := f.readBy(time.Now().Add(c.cfg.HeaderTimeout)); err != nil {
		return h, err
	}
	b.raw = b.raw[:0]
	interim := 0
	for looked := 0; ; {
		n := headLength(b.raw, looked)
		switch {
		case n > 0 && interim+n <= maxHeader:
			h, err = parseHead(b.raw[:n], b.fields[:0])
			b.fields = h.fields
			if err != nil || h.status < 100 || h.status > 199 || h.status == http.StatusSwitchingProtocols {
				return h, errors.Join(err, f.readBy(time.Time{}))
			}
			b.raw, looked, interim = slices.Delete(b.raw, 0, n), 0, interim+n
			continue
		case interim+len(b.raw) >= maxHeader:
			return head{}, errHeadTooLong
		case !beginsHTTP(b.raw):
			return head{}, errNoHTTP
		}
		looked = len(b.raw)
		if err := c.more(f, b, maxHeader); err != nil {
			return head{}, err
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

// readPlain reads a body without transfer coding. Its first bytes may already follow the head in b.raw.
func (c *Client) readPlain(f *flight, b *buffers, resp *Response, framing framing, limit int64) (truncated string, err error) {
	start := len(resp.Head)
	end := int64(start) + limit + 1 // one byte more distinguishes a body that ends at the limit from a longer one
	if framing.length >= 0 {
		end = min(end, int64(start)+framing.length)
	}
	defer func() {
		resp.Head, resp.Body = b.raw[:start], b.raw[start:min(int64(len(b.raw)), end, int64(start)+limit)]
		f.closed = f.closed || int64(len(b.raw)) > end // more bytes than the answer has
	}()
	counted := start
	for {
		f.read(len(b.raw) - counted)
		counted = len(b.raw)
		size := int64(len(b.raw) - start)
		switch {
		case size > limit:
			return warc.TruncatedLength, nil
		case framing.length >= 0 && size >= framing.length:
			return "", nil
		}
		err := c.more(f, b, end+1)
		switch {
		case err == io.EOF && framing.length < 0:
			return "", nil
		case err == io.EOF:
			return f.cut(io.ErrUnexpectedEOF)
		case err != nil:
			return f.cut(err)
		}
	}
}

// readChunks reads a chunked body as received. [Assemble] decodes it, so that no waiting request holds a body twice.
func (c *Client) readChunks(f *flight, b *buffers, resp *Response, limit int64) (truncated string, err error) {
	start := len(resp.Head)
	at, size, counted := start, int64(0), int64(0) // end of what is examined, bytes of the body until there
	defer func() {
		resp.Head, resp.Chunks = b.raw[:start], b.raw[start:at]
	}()
	for d := (warc.Dechunker{}); ; {
		piece, n, err := d.Next(b.raw[at:], limit+1-size)
		size += int64(len(piece))
		at += n
		switch {
		case err != nil:
			return "", err
		case size > limit: // the last byte of the piece is the first beyond the limit
			at--
			return warc.TruncatedLength, nil
		case int64(at-start) > size+maxFraming:
			return warc.TruncatedLength, nil
		case d.Done():
			f.closed = f.closed || at < len(b.raw)
			return "", nil
		case at < len(b.raw):
			continue
		}
		f.read(int(size - counted))
		counted = size
		if err = c.more(f, b, int64(start)+limit+maxFraming+1); err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return f.cut(err)
		}
	}
}

// more reads at least one byte into b.raw. The buffer grows up to limit.
func (c *Client) more(f *flight, b *buffers, limit int64) error {
	if err := c.room(f, b, limit); err != nil {
		return err
	}
	n, err := f.conn.stream.Read(b.raw[len(b.raw):cap(b.raw)])
	b.raw = b.raw[:len(b.raw)+n]
	if n > 0 {
		return nil
	}
	return err
}

// exchange2 carries out an exchange over an HTTP/2 connection.
func (c *Client) exchange2(f *flight, req *actor.Request, b *buffers, limit int64) (Response, error) {
	answer, err := f.conn.h2.RoundTrip(request(f.ctx, req, c.header))
	if err != nil {
		return Response{}, err
	}
	f.conn.answers.Add(1)
	defer f.conn.answers.Add(-1)
	defer answer.Body.Close()
	f.begin = true
	f.answered()
	_, reason, _ := strings.Cut(answer.Status, " ")
	resp := Response{Status: answer.StatusCode, Reason: reason, Proto: answer.Proto, RequestHead: b.head, Addr: f.conn.addr}
	resp.Truncated, err = c.readBody(f, answer.Body, b, limit)
	b.fields = appendFields(b.fields[:0], answer.Header)
	resp.Header, resp.Body = b.fields, b.raw
	f.closed = answer.Close
	f.received()
	return resp, err
}
