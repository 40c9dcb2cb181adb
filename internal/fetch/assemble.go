package fetch

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/extract"
	"github.com/orbweaver/orbweaver/internal/page"
	"github.com/orbweaver/orbweaver/internal/polite"
	"golang.org/x/net/http/httpguts"
)

// Bounds on what is kept of single fields, in bytes.
const (
	maxETag     = 256
	maxModified = 64
	maxMIME     = 128
)

// maxRetryAfter bounds how long a server may send us away; page.Outcome promises it.
const maxRetryAfter = 24 * time.Hour

// Response is an answer as it came from a server, or as the simulation makes one up.
type Response struct {
	Status      int
	Reason      string                   // phrase after the status, may be empty
	Proto       string                   // "HTTP/1.0", "HTTP/1.1", "HTTP/2.0"
	Header      []blobschema.HeaderField // sorted by name
	Body        []byte                   // without transfer coding, with content coding
	Truncated   string                   // why Body is not whole: one of blobschema.Truncated…, or ""
	RequestHead []byte                   // as Config.RequestHead gives it
	Addr        string                   // IP address asked, or ""
	Started     time.Time                // when the request began
	Ended       time.Time                // when the last byte came
}

// field returns the first value of the field, or "".
func (r *Response) field(name string) string {
	for _, f := range r.Header {
		if strings.EqualFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

// fields returns all values of the field.
func (r *Response) fields(name string) []string {
	var values []string
	for _, f := range r.Header {
		if strings.EqualFold(f.Name, name) {
			values = append(values, f.Value)
		}
	}
	return values
}

// Scratch is what assembling needs besides its input: about 1 MiB of tables and buffers that
// are worth keeping from one answer to the next. One goroutine at a time.
type Scratch struct {
	token   string
	maxBody int64
	encoder *blobschema.WARCEncoder
	gzip    gzip.Reader
	source  bytes.Reader // of gzip
	decoded []byte
	record  []byte
	head    []byte
}

// NewScratch returns a Scratch; of cfg only Token, MaxBody and Compression count.
func NewScratch(cfg Config) *Scratch {
	cfg = cfg.withDefaults()
	return &Scratch{token: cfg.Token, maxBody: cfg.MaxBody, encoder: blobschema.NewWARCEncoder(cfg.Compression)}
}

// Assemble makes of an answer to req what is kept of it: the page, its records, its links, or
// the body of a robots.txt. What only a connection can tell (times, bytes, reuse) is left zero
// but for Started and Ended. Nothing that is returned shares memory with resp or s.
//
// A body cut by our own bound (TruncatedLength) is an answer like any other. One cut by time or
// by the connection is none: nothing is kept, since another attempt may bring the whole, and
// where it broke off says nothing about the page.
//
// Deterministic: the same arguments give the same outcome.
func Assemble(s *Scratch, req page.Request, resp Response) page.Outcome {
	out := blank(req, resp.Started, resp.Ended)
	p := &out.Page
	p.Status = uint16(max(0, min(resp.Status, 999)))
	switch resp.Truncated {
	case "", blobschema.TruncatedLength:
	case blobschema.TruncatedTime:
		return refuse(out, verdict{blobschema.OutcomeTimeout, true, "body not whole in time"})
	default:
		return refuse(out, verdict{blobschema.OutcomeCut, true, "connection ended within the body"})
	}
	p.Truncated = resp.Truncated
	p.BodyBytes = int64(len(resp.Body))
	p.Digest = blobschema.PayloadDigest(resp.Body)
	p.MIME = mediaType(resp.field("Content-Type"))
	p.ETag = shortText(resp.field("ETag"), maxETag)
	p.Modified = shortText(resp.field("Last-Modified"), maxModified)
	p.Outcome, out.Temporary = judge(resp.Status)
	defer s.shrink()
	if err := s.pack(&out, &resp); err != nil {
		return refuse(blank(req, resp.Started, resp.Ended), verdict{blobschema.OutcomeProtocol, false, err.Error()})
	}
	switch p.Outcome {
	case blobschema.OutcomeOK:
		s.readBody(&out, req, &resp)
		return out
	case blobschema.OutcomeRedirect:
		if target, err := req.URL.Resolve(resp.field("Location")); err == nil && resp.field("Location") != "" {
			p.Redirect, p.Links = target.String(), 1
			out.Links = []page.Link{{URL: target, Kind: page.LinkRedirect}}
		} else {
			p.Outcome = blobschema.OutcomeClientError
		}
	}
	out.RetryAfter = retryAfter(resp.field("Retry-After"), resp.Ended)
	return out
}

// blank returns the outcome of req but for what the answer says.
func blank(req page.Request, started, ended time.Time) page.Outcome {
	return page.Outcome{
		Page: blobschema.Page{
			URL: req.URL.String(), Generation: req.Generation, Depth: req.Depth, Robots: req.Robots, Attempts: req.Attempt,
			// To the microsecond, as in the record: the index finds one by the other.
			Time: started.UTC().Truncate(time.Microsecond),
		},
		Started: started,
		Ended:   ended,
	}
}

// judge says what a status is worth. Statuses outside 100 to 599 count as a fault of the
// server (RFC 9110 section 15); a redirect is one only if its Location turns out usable.
func judge(status int) (o blobschema.Outcome, temporary bool) {
	switch {
	case status >= 200 && status < 300:
		return blobschema.OutcomeOK, false
	case status >= 400 && status < 500:
		return blobschema.OutcomeClientError, status == http.StatusRequestTimeout ||
			status == http.StatusTooEarly || status == http.StatusTooManyRequests
	case status < 300 || status >= 400:
		return blobschema.OutcomeServerError, true
	}
	switch status {
	case http.StatusMultipleChoices, http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return blobschema.OutcomeRedirect, false
	}
	return blobschema.OutcomeClientError, false // 304 to a request without condition, 305, 306
}

// pack encodes the request and the response as WARC records into out.
func (s *Scratch) pack(out *page.Outcome, resp *Response) (err error) {
	s.head = blobschema.AppendHTTPResponseHead(s.head[:0], resp.Proto, resp.Status, resp.Reason, resp.Header)
	request := blobschema.WARCRecord{
		Type: blobschema.WARCTypeRequest, Date: out.Page.Time, TargetURI: out.Page.URL, IPAddress: resp.Addr, Header: resp.RequestHead,
	}
	response := blobschema.WARCRecord{
		Type: blobschema.WARCTypeResponse, Date: out.Page.Time, TargetURI: out.Page.URL, IPAddress: resp.Addr,
		Truncated: resp.Truncated, PayloadDigest: out.Page.Digest, Header: s.head, Body: resp.Body,
	}
	s.record, response.ConcurrentTo, err = s.encoder.Append(s.record[:0], &request)
	if err != nil {
		return err
	}
	at := len(s.record)
	s.record, _, err = s.encoder.Append(s.record, &response)
	if err != nil {
		return err
	}
	out.ResponseAt, out.Page.Length = at, int64(len(s.record)-at)
	out.Record = make([]byte, len(s.record)) // exactly: the step holds it until its WARC is put
	copy(out.Record, s.record)
	return nil
}

// readBody looks into the body of a page for its links, or keeps that of a robots.txt.
func (s *Scratch) readBody(out *page.Outcome, req page.Request, resp *Response) {
	if req.Robots {
		out.Body = append([]byte{}, s.decode(resp, MaxRobots)...)
		return
	}
	says := polite.ParseXRobotsTag(resp.fields("X-Robots-Tag"), s.token, resp.Ended)
	contentType := resp.field("Content-Type")
	if s.wanted(resp, contentType, req.Sitemap) {
		found := extract.Links(s.decode(resp, s.decodedLimit(len(resp.Body))), contentType, req.URL, extract.Options{Token: s.token, Sitemap: req.Sitemap})
		out.Links = found.Links
		says.NoIndex = says.NoIndex || found.NoIndex
	}
	if says.NoFollow {
		for i := range out.Links {
			out.Links[i].NoFollow = true
		}
	}
	out.Page.NoIndex = says.NoIndex
	out.Page.Links = uint32(len(out.Links))
}

// wanted reports whether the body is worth inflating whole. A type that says nothing is
// decided by the first bytes.
func (s *Scratch) wanted(resp *Response, contentType string, sitemap bool) bool {
	return extract.Wanted(contentType, nil, sitemap) || extract.Wanted(contentType, s.decode(resp, sniffed), sitemap)
}

// mediaType returns the type and subtype of a Content-Type in lower case, or "" if it has not
// that form (RFC 9110 section 8.3.1).
func mediaType(contentType string) string {
	essence, _, _ := strings.Cut(contentType, ";")
	essence = strings.ToLower(strings.Trim(essence, " \t"))
	kind, sub, ok := strings.Cut(essence, "/")
	if !ok || len(essence) > maxMIME || !httpguts.ValidHeaderFieldName(kind) || !httpguts.ValidHeaderFieldName(sub) {
		return ""
	}
	return essence
}

// shortText returns s, or "" if it is longer than limit or not text: half a validator is none.
func shortText(s string, limit int) string {
	if len(s) > limit || !utf8.ValidString(s) {
		return ""
	}
	return s
}

// retryAfter reads a Retry-After field, seconds or a date (RFC 9110 section 10.2.3). What is
// malformed or past is 0.
func retryAfter(value string, now time.Time) time.Duration {
	var wait time.Duration
	if value != "" && strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseUint(value, 10, 32)
		if err != nil { // only for being too large
			return maxRetryAfter
		}
		wait = time.Duration(seconds) * time.Second
	} else if date, err := http.ParseTime(value); err == nil {
		wait = date.Sub(now)
	}
	return max(0, min(wait, maxRetryAfter))
}
