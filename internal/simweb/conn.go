package simweb

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// serveConn answers the requests of one connection; its caller closes it.
func (s *Server) serveConn(c net.Conn) {
	in := bufio.NewReaderSize(c, 4<<10)
	var out []byte // status and header; reused
	for answered := 0; ; answered++ {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		h, ok := s.web.byAuthority[req.Host]
		if !ok || req.ContentLength != 0 || req.Method != http.MethodGet && req.Method != http.MethodHead {
			_, _ = c.Write([]byte("HTTP/1.1 421 Misdirected Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"))
			return
		}
		now := time.Now()
		attempt := s.records[h].begin(req.RequestURI, now)
		buf := s.buffers.Get().(*[]byte)
		resp := s.web.answer(h, req.RequestURI, Request{
			Attempt: attempt, Answered: answered, AcceptGzip: strings.Contains(req.Header.Get("Accept-Encoding"), "gzip"), Now: now,
			IfNoneMatch: req.Header.Get("If-None-Match"), IfModifiedSince: req.Header.Get("If-Modified-Since"),
		}, (*buf)[:0])
		a := answering{s: s, c: c, resp: &resp, bodiless: req.Method == http.MethodHead}
		out = a.send(out[:0])
		s.buffers.Put(buf)
		if a.failed || resp.Close || resp.Status == 0 || req.Close {
			return
		}
	}
}

// answering is the sending of one response.
type answering struct {
	s        *Server
	c        net.Conn
	resp     *Response
	bodiless bool // an answer to HEAD
	failed   bool // the connection cannot be used any more
}

// send delivers the response, or the fault in its place, and returns out for reuse.
func (a *answering) send(out []byte) []byte {
	r := a.resp
	a.wait(r.Delay)
	switch r.Fault {
	case FaultDNS, FaultRefused, FaultReset:
		if tcp, ok := a.c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // closing sends RST
		}
		a.failed = true
		return out
	case FaultSilent:
		_, _ = io.Copy(io.Discard, a.c) // until the client gives up, or Close
		a.failed = true
		return out
	case FaultGarbage:
		a.write(net.Buffers{r.Body})
		a.failed = true
		return out
	}
	out = appendHead(out, r)
	parts := append(net.Buffers{out}, a.body()...)
	if r.BodyTime > 0 && !a.bodiless {
		parts = a.dribble(parts)
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

// dribble writes all pieces except the last evenly over BodyTime, and returns the last.
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
