package simweb

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// head is what matters of a request.
type head struct {
	method, target, host string
	gzip, last           bool // last: the client ends the connection after it
	length               int  // of a body, which no client has reason to send
	match, since         string
}

const maxHeadLines = 200 // of at most 4 KiB each

var errHead = errors.New("malformed request")

// serveConn answers the requests of one connection; its caller closes it.
func (s *Server) serveConn(c net.Conn) {
	in := bufio.NewReaderSize(c, 4<<10)
	var out []byte // of status and header, reused
	for answered := 0; ; answered++ {
		hd, err := readHead(in)
		if err != nil {
			if errors.Is(err, errHead) || errors.Is(err, bufio.ErrBufferFull) {
				_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"))
			}
			return
		}
		h, uri, ok := s.route(hd)
		if !ok || hd.length > 0 || hd.method != "GET" && hd.method != "HEAD" {
			_, _ = c.Write([]byte("HTTP/1.1 421 Misdirected Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"))
			return
		}
		now := time.Now()
		rec := &s.records[h]
		attempt := rec.begin(uri, now, s.recording)
		buf := s.buffers.Get().(*[]byte)
		resp := s.web.answer(h, uri, Request{
			Attempt: attempt, Answered: answered, AcceptGzip: hd.gzip, Now: now,
			IfNoneMatch: hd.match, IfModifiedSince: hd.since,
		}, (*buf)[:0])
		a := answering{s: s, c: c, rec: rec, resp: &resp, bodiless: hd.method == "HEAD"}
		out = a.send(out[:0])
		s.buffers.Put(buf)
		if a.failed || resp.Close || resp.Status == 0 || hd.last {
			return
		}
	}
}

// route finds the host by the target, if it is a whole URL as proxies get, or by the Host
// field.
func (s *Server) route(hd head) (h int, uri string, ok bool) {
	if !strings.HasPrefix(hd.target, "/") {
		h, uri, ok = s.web.split(hd.target)
	} else {
		h, ok = s.web.byAuthority[hd.host]
		uri = hd.target
	}
	if uri == "" {
		uri = "/"
	}
	return h, uri, ok
}

func readHead(in *bufio.Reader) (head, error) {
	var hd head
	line, err := in.ReadSlice('\n')
	if err != nil {
		return hd, err
	}
	method, rest, ok := bytes.Cut(line, []byte(" "))
	target, version, ok2 := bytes.Cut(rest, []byte(" "))
	if !ok || !ok2 || !bytes.HasPrefix(version, []byte("HTTP/1.")) {
		return hd, errHead
	}
	hd.method, hd.target = string(method), string(target)
	hd.last = bytes.HasPrefix(version, []byte("HTTP/1.0"))
	for range maxHeadLines {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return hd, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			return hd, nil
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			return hd, errHead
		}
		value = bytes.TrimSpace(value)
		switch {
		case is(name, "Host"):
			hd.host = strings.TrimSuffix(strings.ToLower(string(value)), ":80")
		case is(name, "Accept-Encoding"):
			hd.gzip = bytes.Contains(value, []byte("gzip")) && !bytes.Contains(value, []byte("gzip;q=0"))
		case is(name, "Connection"):
			hd.last = hd.last || is(value, "close")
		case is(name, "If-None-Match"):
			hd.match = string(value)
		case is(name, "If-Modified-Since"):
			hd.since = string(value)
		case is(name, "Content-Length"):
			hd.length, _ = strconv.Atoi(string(value))
		case is(name, "Transfer-Encoding"):
			hd.length = 1
		}
	}
	return hd, errHead
}

func is(b []byte, name string) bool {
	return len(b) == len(name) && bytes.EqualFold(b, []byte(name))
}

// answering is the sending of one response.
type answering struct {
	s        *Server
	c        net.Conn
	rec      *record
	resp     *Response
	bodiless bool // an answer to HEAD
	failed   bool // the connection is of no more use
}

// send delivers the response, or the fault in its place, and returns out for reuse. The
// request is over, as far as is recorded, before the last write.
func (a *answering) send(out []byte) []byte {
	r := a.resp
	a.wait(r.Delay)
	switch r.Fault {
	case FaultDNS, FaultRefused, FaultReset:
		a.rec.end()
		if tcp, ok := a.c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // closing sends RST
		}
		a.failed = true
		return out
	case FaultSilent:
		a.rec.end()
		_, _ = io.Copy(io.Discard, a.c) // until the client gives up, or Close
		a.failed = true
		return out
	case FaultGarbage:
		a.rec.end()
		a.write(net.Buffers{r.Body})
		a.failed = true
		return out
	}
	out = appendHead(out, r)
	parts := a.body()
	if r.BodyTime > 0 && !a.bodiless {
		parts = a.dribble(append(net.Buffers{out}, parts...))
		a.rec.end()
	} else {
		a.rec.end()
		parts = append(net.Buffers{out}, parts...)
	}
	a.write(parts)
	return out
}

func appendHead(out []byte, r *Response) []byte {
	out = strconv.AppendInt(append(out, "HTTP/1.1 "...), int64(r.Status), 10)
	out = append(append(append(out, ' '), http.StatusText(r.Status)...), "\r\n"...)
	for _, f := range r.Header {
		out = append(append(out, f.Name...), ": "...)
		out = append(append(out, f.Value...), "\r\n"...)
	}
	return append(out, "\r\n"...)
}

// body returns the bytes that follow the header, in two chunks if it is chunked.
func (a *answering) body() net.Buffers {
	r := a.resp
	b, whole := r.Body, true
	if r.Fault == FaultCut {
		b, whole = b[:r.CutAt], false
	}
	switch {
	case a.bodiless:
		return nil
	case r.Get("Transfer-Encoding") == "":
		if r.Fault == FaultSurplus {
			return net.Buffers{b, []byte("<a href=\"/decoy/0\">more than was announced</a>\n")}
		}
		return net.Buffers{b}
	}
	half := len(b) / 2
	first, second := b[:half], b[half:]
	announced := len(r.Body) - half
	parts := net.Buffers{
		[]byte(strconv.FormatInt(int64(len(first)), 16) + "\r\n"), first,
		[]byte("\r\n" + strconv.FormatInt(int64(announced), 16) + "\r\n"), second,
	}
	if whole {
		parts = append(parts, []byte("\r\n0\r\n\r\n"))
	}
	return parts
}

// dribble writes all but the last piece over BodyTime, evenly, and returns that.
func (a *answering) dribble(parts net.Buffers) net.Buffers {
	all := bytes.Join(parts, nil)
	pieces := min(max(8, int(a.resp.BodyTime/(50*time.Millisecond))), 2000)
	for left := pieces; left > 1; left-- {
		n := len(all) / left
		a.write(net.Buffers{all[:n]})
		all = all[n:]
		a.wait(a.resp.BodyTime / time.Duration(pieces-1))
	}
	return net.Buffers{all}
}

func (a *answering) write(parts net.Buffers) {
	if a.failed {
		return
	}
	if _, err := parts.WriteTo(a.c); err != nil {
		a.failed = true
	}
}

// wait sleeps unless the server closes.
func (a *answering) wait(d time.Duration) {
	if d <= 0 || a.failed {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-a.s.done:
		a.failed = true
	}
}
