package simweb

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Request is a request for a URL.
type Request struct {
	URL string // absolute, canonical
	// Attempt is the number of earlier requests for this URL. An answer that fails at first fails until Attempt
	// is large enough.
	Attempt int
	// Answered is the number of requests answered before on the same connection.
	Answered   int
	AcceptGzip bool // the client takes Content-Encoding: gzip
	// IfNoneMatch and IfModifiedSince are the values of these fields, "" without them.
	// Hosts with Config.Validators answer 304 to them.
	IfNoneMatch, IfModifiedSince string
	Now                          time.Time // for the Date header; zero: no Date
}

// Field is one header field.
type Field struct{ Name, Value string }

// Fault says how an answer fails below HTTP.
type Fault uint8

const (
	FaultNone    Fault = iota
	FaultDNS           // the name does not resolve; there is no answer
	FaultRefused       // the connection is refused; there is no answer
	FaultReset         // the connection is reset after the request; there is no answer
	FaultSilent        // the connection stays open and no answer comes
	FaultGarbage       // only Body comes, without status or header; then the connection ends
	FaultCut           // the connection ends after Response.CutAt bytes of Body
	FaultSurplus       // more bytes come after Body, which is as long as Content-Length says; then the connection ends
)

func (f Fault) String() string {
	if int(f) >= len(faultNames) {
		return "fault " + strconv.Itoa(int(f))
	}
	return faultNames[f]
}

var faultNames = [...]string{"none", "dns", "refused", "reset", "silent", "garbage", "cut", "surplus"}

// Response is the answer to a Request.
type Response struct {
	Status int     // 0 with a Fault that leaves no answer
	Header []Field // in the order of sending
	// Body is the message body without transfer encoding: compressed if the header says
	// so. It is shared and must not be changed.
	Body  []byte
	Delay time.Duration // from the request to the first byte
	// BodyTime is the time from the first byte to the last, at an even rate.
	BodyTime time.Duration
	Fault    Fault
	CutAt    int
	Close    bool // the server ends the connection after the answer
}

// Get returns the value of the first field with that name, or "".
func (r *Response) Get(name string) string {
	for _, f := range r.Header {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// Answer answers a request. It is a pure function of the request and of the page's version (see [Web.Touch]). A
// URL of another host gives FaultDNS, an unknown URL of a host 404. Latency, cuts and refusals are returned as
// values.
func (w *Web) Answer(req Request) Response {
	h, uri, ok := w.split(req.URL)
	if !ok {
		return Response{Fault: FaultDNS}
	}
	return w.answer(h, uri, req, make([]byte, 0, w.bodySize()))
}

// bodySize returns a capacity that is enough for the HTML of most pages.
func (w *Web) bodySize() int { return w.cfg.PageBytes*3/2 + w.cfg.LinksPerPage*16 + 1<<10 }

// answer answers a request to host h. It may write the body into the capacity of buf, which it does not keep.
func (w *Web) answer(h int, uri string, req Request, buf []byte) Response {
	x := &w.hosts[h]
	if x.down != FaultNone {
		return Response{Fault: x.down}
	}
	resp, ok := w.robotsAnswer(h, uri)
	if !ok {
		resp, ok = w.sitemapAnswer(h, uri)
	}
	if !ok {
		p, ok := w.lookup(h, uri)
		if ok {
			resp = w.pageAnswer(h, p, req, buf)
		} else {
			resp = errorResponse(404)
		}
	}
	if x.validates && resp.Fault == FaultNone && resp.Status == 200 && current(&req, &resp) {
		resp = notModified(&resp)
	}
	resp.Delay += x.latency
	if resp.Status == 0 {
		return resp
	}
	resp.Close = resp.Fault != FaultNone || req.Answered+1 >= x.maxRequests
	switch {
	case resp.Status == 304: // Content-Length would be that of a 200 answer (RFC 9110 section 8.6)
	case x.chunked && resp.Fault != FaultSurplus && resp.Get("Last-Modified") != "":
		resp.Header = append(resp.Header, Field{"Transfer-Encoding", "chunked"})
	default:
		resp.Header = append(resp.Header, Field{"Content-Length", strconv.Itoa(len(resp.Body))})
	}
	if resp.Close {
		resp.Header = append(resp.Header, Field{"Connection", "close"})
	}
	if !req.Now.IsZero() {
		resp.Header = append(resp.Header, Field{"Date", req.Now.UTC().Format(http.TimeFormat)})
	}
	return resp
}

// pageAnswer answers for a page. Its caller adds what all answers have in common.
func (w *Web) pageAnswer(h, p int, req Request, buf []byte) Response {
	k, _ := w.kind(h, p)
	v := w.version(h, p)
	switch k {
	case redirect, loop:
		return w.redirectResponse(w.redirectStatus(h, p), w.location(h, p))
	case gone, broken, busy:
		return errorResponse(w.errorStatus(h, p, k))
	case reset:
		return Response{Fault: FaultReset}
	case silent:
		return Response{Fault: FaultSilent}
	case garbage:
		return Response{Fault: FaultGarbage, Body: []byte("\x00\x01\xfe no HTTP here\r\n\r\n")}
	case sheet:
		return w.content(h, p, v, "text/css", w.sheetBody(h, v))
	case media:
		m := w.mediaType(h, p)
		return w.content(h, p, v, m.mime, w.mediaBody(h, p, v, m))
	case flaky:
		if f := w.flakiness(h, p); req.Attempt < f.times {
			return w.flakyResponse(h, p, v, f, buf)
		}
	case steady:
		resp := w.content(h, p, v, "text/html; charset=utf-8", w.steadyBody(h, p, v))
		resp.BodyTime = w.cfg.SteadyBody
		return resp
	}
	resp := w.htmlResponse(h, p, v, req.AcceptGzip, buf)
	switch k {
	case slow:
		resp.BodyTime = w.cfg.SlowBody
	case late:
		resp.Delay = w.cfg.LateBy
	case cut:
		resp.Fault, resp.CutAt = FaultCut, len(resp.Body)/2
	case surplus:
		resp.Fault = FaultSurplus
	}
	return resp
}

// current reports whether the client already has the answer (RFC 9110 section 13.2.2).
// If-None-Match takes precedence.
func current(req *Request, resp *Response) bool {
	etag := resp.Get("ETag")
	if etag == "" {
		return false
	}
	if req.IfNoneMatch != "" {
		for tag := range strings.SplitSeq(req.IfNoneMatch, ",") { // no tag here has a comma
			tag = strings.TrimSpace(tag)
			if tag == "*" || strings.TrimPrefix(tag, "W/") == etag {
				return true
			}
		}
		return false
	}
	since, err := http.ParseTime(req.IfModifiedSince)
	if err != nil {
		return false
	}
	modified, err := http.ParseTime(resp.Get("Last-Modified"))
	return err == nil && !modified.After(since)
}

// notModified returns the answer in place of resp: no body, and the fields that RFC 9110
// section 15.4.5 requires.
func notModified(resp *Response) Response {
	not := Response{Status: 304}
	for _, f := range resp.Header {
		switch f.Name {
		case "Server", "ETag", "Last-Modified", "Vary":
			not.Header = append(not.Header, f)
		}
	}
	return not
}

func (w *Web) htmlResponse(h, p, v int, acceptGzip bool, buf []byte) Response {
	const mime = "text/html; charset=utf-8"
	if !w.hosts[h].gzip {
		return w.content(h, p, v, mime, w.appendHTML(buf, h, p, v)[len(buf):])
	}
	if !acceptGzip {
		resp := w.content(h, p, v, mime, w.appendHTML(buf, h, p, v)[len(buf):])
		resp.Header = append(resp.Header, Field{"Vary", "Accept-Encoding"})
		return resp
	}
	resp := w.content(h, p, v, mime, w.compressed(h, p, v, buf))
	resp.Header = append(resp.Header, Field{"Content-Encoding", "gzip"}, Field{"Vary", "Accept-Encoding"})
	return resp
}

// modified returns when a page last changed: for version 0 in the first half of 2024, and a day later with each
// version.
func (w *Web) modified(h, p, v int) time.Time {
	r := draw(w.cfg.Seed, h, p, streamDetail)
	r.next() // of the ETag
	return time.Unix(1704067200+int64(r.below(1<<24))+int64(v)*86400, 0).UTC()
}

// content returns a 200 answer with validators.
func (w *Web) content(h, p, v int, mime string, body []byte) Response {
	r := draw(w.cfg.Seed, h, p, streamDetail)
	var tag [26]byte
	etag := strconv.AppendUint(append(tag[:0], '"'), r.next(), 36)
	if v > 0 {
		etag = strconv.AppendInt(append(etag, '.'), int64(v), 10)
	}
	etag = append(etag, '"')
	header := make([]Field, 0, 10)
	header = append(header,
		Field{"Server", serverName},
		Field{"Content-Type", mime},
		Field{"ETag", string(etag)},
		Field{"Last-Modified", w.modified(h, p, v).Format(http.TimeFormat)},
	)
	return Response{Status: 200, Header: header, Body: body}
}

const serverName = "simweb"

func textResponse(status int, mime string, body []byte) Response {
	return Response{Status: status, Header: []Field{{"Server", serverName}, {"Content-Type", mime}}, Body: body}
}

func errorResponse(status int) Response {
	s := strconv.Itoa(status) + " " + http.StatusText(status)
	return textResponse(status, "text/html; charset=utf-8",
		[]byte("<!DOCTYPE html>\n<title>"+s+"</title>\n<h1>"+s+"</h1>\n"))
}

func (w *Web) redirectResponse(status int, location string) Response {
	resp := errorResponse(status)
	resp.Header = append(resp.Header, Field{"Location", location})
	return resp
}

func (w *Web) redirectStatus(h, p int) int {
	r := draw(w.cfg.Seed, h, p, streamDetail)
	return [...]int{301, 302, 303, 307, 308}[r.below(5)]
}

// location returns the target of a redirect: an absolute URL, or a path from the root.
func (w *Web) location(h, p int) string {
	th, tp := w.redirectTarget(h, p)
	if th == h && p%3 == 0 {
		return string(w.appendPath(nil, th, tp))
	}
	return w.URL(th, tp)
}

// steadyRate is the least rate of a steady body, in bytes per second.
const steadyRate = 4000

// steadyBody returns the HTML of a page, followed by enough text for SteadyBody.
func (w *Web) steadyBody(h, p, v int) []byte {
	body := w.appendHTML(nil, h, p, v)
	missing := int(w.cfg.SteadyBody.Seconds()*steadyRate) - len(body)
	return append(body, bytes.Repeat([]byte("and so on\n"), max(0, missing/10+1))...)
}

// errorStatus returns the status of a page of kind gone, broken or busy. A 302 has no Location.
func (w *Web) errorStatus(h, p int, k kind) int {
	r := draw(w.cfg.Seed, h, p, streamDetail)
	switch k {
	case broken:
		return [...]int{500, 502}[r.below(2)]
	case busy:
		return 502 + r.below(3)
	}
	return [...]int{404, 410, 404, 403, 404, 451, 404, 302}[r.below(8)]
}

// flakiness says how a page fails, and how often before it is served.
type flakiness struct {
	times  int
	status int // 200: a cut body; 0: a reset
}

func (w *Web) flakiness(h, p int) flakiness {
	r := draw(w.cfg.Seed, h, p, streamDetail)
	return flakiness{
		times:  1 + r.below(w.cfg.FlakyMax),
		status: [...]int{503, 503, 429, 500, 200, 0}[r.below(6)],
	}
}

func (w *Web) flakyResponse(h, p, v int, f flakiness, buf []byte) Response {
	switch f.status {
	case 0:
		return Response{Fault: FaultReset}
	case 200:
		resp := w.content(h, p, v, "text/html; charset=utf-8", w.appendHTML(buf, h, p, v)[len(buf):])
		resp.Fault, resp.CutAt = FaultCut, len(resp.Body)/3
		return resp
	}
	resp := errorResponse(f.status)
	if f.status != 500 {
		resp.Header = append(resp.Header, Field{"Retry-After", "1"})
	}
	return resp
}

type mediaType struct{ ending, mime, magic string }

var mediaTypes = [...]mediaType{
	{".txt", "text/plain; charset=utf-8", "Plain text.\n"},
	{".pdf", "application/pdf", "%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"},
	{".png", "image/png", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"},
	{".json", "application/json", "{}\n"},
}

func (w *Web) mediaType(h, p int) mediaType {
	r := draw(w.cfg.Seed, h, p, streamDetail)
	r.next() // of the ETag
	r.next()
	return mediaTypes[r.below(len(mediaTypes))]
}

// mediaBody returns a body that is not HTML, with text that looks like a link if it is parsed as HTML.
func (w *Web) mediaBody(h, p, v int, m mediaType) []byte {
	r := draw(w.seed(v), h, p, streamBody)
	body := []byte(m.magic)
	body = append(body, "<a href=\"/decoy/"+strconv.Itoa(p)+"\">decoy</a>\n"...)
	for n := r.about(w.cfg.PageBytes) / 2; len(body) < n; {
		body = strconv.AppendUint(append(body, '\n'), r.next(), 16)
	}
	return body
}

// compressed returns the HTML of a page in gzip. Compressing a page takes a hundred times as
// long as writing it, so the web keeps each result.
func (w *Web) compressed(h, p, v int, buf []byte) []byte {
	key := uint64(v)<<48 | pageKey(h, p) // versions have 16 bits, hosts 16, pages 31
	if b, ok := w.zipped.Load(key); ok {
		return b.([]byte)
	}
	b := zip(w.appendHTML(buf, h, p, v)[len(buf):])
	w.zipped.Store(key, b)
	return b
}

func zip(b []byte) []byte {
	out := bytes.NewBuffer(make([]byte, 0, len(b)/2))
	z := gzip.NewWriter(out)
	_, _ = z.Write(b) // a bytes.Buffer does not fail
	z.Close()
	return bytes.Clone(out.Bytes()) // without spare capacity, because it is kept
}
