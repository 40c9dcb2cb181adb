package fetch

import (
	"bytes"
	"cmp"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/extract"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// Bounds of stored fields, in bytes.
const (
	maxETag     = 256
	maxModified = 64
	maxMIME     = 128
	maxHead     = 64 << 10 // of actor.Outcome.Head
)

// maxSitemaps bounds the sitemaps taken from one robots.txt.
const maxSitemaps = 100

// maxRetryAfter bounds actor.Outcome.RetryAfter.
const maxRetryAfter = 24 * time.Hour

// Response is the answer of a server or of the simulation.
type Response struct {
	Status      int
	Reason      string             // phrase after the status, may be empty
	Proto       string             // "HTTP/1.0", "HTTP/1.1", "HTTP/2.0"
	Head        []byte             // as received; empty for HTTP/2 and the simulation: Assemble makes it from the fields
	Header      []warc.HeaderField // fields, in any order
	Body        []byte             // without transfer coding, with content coding
	Chunks      []byte             // the body in the chunked coding in which it was received, or nil; then Assemble decodes Body
	Truncated   string             // reason why Body is not whole: one of warc.Truncated…, or ""
	RequestHead []byte             // in the form of HTTP/1.1
	Addr        string             // IP address of the server, or ""
	Started     time.Time          // when the request began
	Ended       time.Time          // when the last byte came
}

// values yields the values of all fields with a name.
func (r *Response) values(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range r.Header {
			if f := &r.Header[i]; len(f.Name) == len(name) && strings.EqualFold(f.Name, name) && !yield(f.Value) {
				return
			}
		}
	}
}

// field returns the first value of the field, or "".
func (r *Response) field(name string) string {
	for v := range r.values(name) {
		return v
	}
	return ""
}

// fields returns all values of the field.
func (r *Response) fields(name string) []string { return slices.Collect(r.values(name)) }

// Scratch keeps the tables and buffers of Assemble between answers: about 1 MiB (up to 12 MiB
// more after a long answer), and up to 8 MiB for each of brotli and zstd after their first
// use. One goroutine at a time may use it.
type Scratch struct {
	token      string
	requisites bool
	maxBody    int64
	encoder    *warc.Encoder
	body       extract.Decoder
	whole      []byte // body of an answer in chunks
	record     []byte
	head       []byte
	slab       []byte // of records and heads of earlier answers; only the rest is free
}

// NewScratch returns a Scratch. It uses Token, Requisites, MaxBody and Compression of cfg.
func NewScratch(cfg Config) *Scratch {
	cfg = cfg.withDefaults()
	return &Scratch{
		token: cfg.Token, requisites: cfg.Requisites, maxBody: cfg.MaxBody, encoder: warc.NewEncoder(cfg.Compression),
	}
}

// Assemble makes the outcome of an answer to req: the page, its records, its links, or the body of a
// robots.txt. It is deterministic. It sets Started and Ended, and leaves the other figures of the connection
// (times, bytes, reuse) zero. The outcome shares no memory with resp or s.
//
// A body that the crawler's bounds cut (TruncatedLength, TruncatedTime) is an answer like any other, except that
// a robots.txt must be whole in time. If the connection cut the body, nothing is kept: another
// attempt may return the whole body.
//
// An answer with the payload of req.Previous becomes a revisit record, with Page.Original: a 304 to a
// conditional request (OutcomeUnchanged, without links), and a page with the same digest (OutcomeOK, with
// links).
//
// It is deterministic.
func Assemble(s *Scratch, req actor.Request, resp Response) *actor.Outcome {
	out := blank(&req, resp.Started, resp.Ended)
	p := &out.Page
	p.Status = uint16(max(0, min(resp.Status, 999)))
	switch {
	case resp.Truncated == "", resp.Truncated == warc.TruncatedLength, resp.Truncated == warc.TruncatedTime && !req.Robots:
	case resp.Truncated == warc.TruncatedTime:
		return refuse(out, verdict{blobschema.OutcomeTimeout, true, "body not whole in time"})
	default:
		return refuse(out, verdict{blobschema.OutcomeCut, true, "connection ended within the body"})
	}
	if resp.Chunks != nil {
		s.whole, _ = warc.Dechunk(s.whole[:0], resp.Chunks) // no error: the client has decoded them once
		resp.Body = s.whole
	}
	p.Truncated = resp.Truncated
	p.BodyBytes = int64(len(resp.Body))
	p.Digest = warc.PayloadDigest(resp.Body)
	p.IP, p.Protocol = resp.Addr, resp.Proto
	p.MIME = mediaType(resp.field("Content-Type"))
	p.ETag = shortText(resp.field("ETag"), maxETag)
	p.Modified = shortText(resp.field("Last-Modified"), maxModified)
	p.Outcome, out.Temporary = judge(resp.Status)
	profile := revisit(p, req.Previous, &resp, len(Conditions(&req)) > 0)
	defer s.shrink()
	if err := s.pack(out, &resp, profile); err != nil {
		return refuse(blank(&req, resp.Started, resp.Ended), verdict{blobschema.OutcomeProtocol, false, err.Error()})
	}
	switch p.Outcome {
	case blobschema.OutcomeOK:
		s.readBody(out, &req, &resp)
		return out
	case blobschema.OutcomeRedirect:
		if target, err := req.URL.Resolve(resp.field("Location")); err == nil && resp.field("Location") != "" {
			p.Redirect, p.Links = target.String(), 1
			out.Links = []actor.Link{{URL: target, Kind: actor.LinkRedirect}}
		} else {
			p.Outcome = blobschema.OutcomeClientError
		}
	}
	out.RetryAfter = retryAfter(resp.field("Retry-After"), resp.Ended)
	return out
}

// blank returns the outcome of req without the fields that depend on the answer.
func blank(req *actor.Request, started, ended time.Time) *actor.Outcome {
	return &actor.Outcome{
		Page: blobschema.Page{
			URL: req.URL.String(), Generation: req.Generation, Depth: req.Depth, Robots: req.Robots, Attempts: req.Attempt,
			// To the microsecond, as in the WARC record: the index finds the record by this time.
			Time: started.UTC().Truncate(time.Microsecond),
		},
		Started: started,
		Ended:   ended,
	}
}

// judge returns the outcome of a status. A status outside 100 to 599 is an error of the
// server (RFC 9110 section 15). The caller checks the Location of a redirect.
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

// Conditions returns the fields that make a request conditional (RFC 9110 section 13.1): the
// validators of the previous answer, unchanged. A request for a robots.txt is never conditional,
// because its content is needed; nor is the request for a page of which only a part came in time.
func Conditions(req *actor.Request) []warc.HeaderField {
	if req.Robots || !hasPayload(req.Previous) || req.Previous.Truncated == warc.TruncatedTime {
		return nil
	}
	var fields []warc.HeaderField
	for _, f := range [...]warc.HeaderField{
		{Name: "If-Modified-Since", Value: req.Previous.Modified},
		{Name: "If-None-Match", Value: req.Previous.ETag},
	} {
		if f.Value != "" && httpguts.ValidHeaderFieldValue(f.Value) && strings.Trim(f.Value, " \t") == f.Value {
			fields = append(fields, f)
		}
	}
	return fields
}

// hasPayload reports whether the payload of previous is stored, so that a revisit record can name it.
func hasPayload(previous *blobschema.Page) bool {
	return previous != nil && previous.Digest != "" && previous.Payload().WARC != ""
}

// revisit completes p if its payload is that of the previous answer, and returns the profile
// of its revisit record, or "". asked reports that the request was conditional: a 304
// to another request has no meaning.
func revisit(p, previous *blobschema.Page, resp *Response, asked bool) (profile string) {
	switch {
	case !hasPayload(previous):
		return ""
	case resp.Status == http.StatusNotModified && asked:
		profile = warc.ProfileNotModified
		p.Outcome = blobschema.OutcomeUnchanged
		p.Digest, p.BodyBytes, p.Truncated, p.MIME, p.NoIndex = previous.Digest, previous.BodyBytes, previous.Truncated, previous.MIME, previous.NoIndex
		p.Meta, p.Directives = previous.Meta, previous.Directives
		p.ETag, p.Modified = cmp.Or(p.ETag, previous.ETag), cmp.Or(p.Modified, previous.Modified)
	case p.Outcome == blobschema.OutcomeOK && p.Digest == previous.Digest && p.BodyBytes == previous.BodyBytes &&
		p.BodyBytes > 0 && p.Truncated == "" && previous.Truncated == "":
		profile = warc.ProfileIdenticalPayload
	default:
		return ""
	}
	original := previous.Payload()
	p.Original = &original
	return profile
}

// pack encodes the request and the response as WARC records into out. With a profile the
// response becomes a revisit record.
func (s *Scratch) pack(out *actor.Outcome, resp *Response, profile string) (err error) {
	s.head = append(s.head[:0], resp.Head...)
	if len(resp.Head) == 0 {
		s.head = warc.AppendHTTPResponseHead(s.head, resp.Proto, resp.Status, resp.Reason, resp.Header)
	}
	request := warc.Record{
		Type: warc.TypeRequest, Date: out.Page.Time, TargetURI: out.Page.URL, IPAddress: resp.Addr, Header: resp.RequestHead,
	}
	response := warc.Record{
		Type: warc.TypeResponse, Date: out.Page.Time, TargetURI: out.Page.URL, IPAddress: resp.Addr,
		Truncated: resp.Truncated, PayloadDigest: out.Page.Digest, Header: s.head, Body: resp.Body, Chunks: resp.Chunks,
		Packed: packed(resp.Body, resp.coding()),
	}
	if resp.Proto == "HTTP/2.0" {
		response.Protocol = "h2"
	}
	if profile != "" {
		head := s.head
		if profile == warc.ProfileNotModified {
			head = nil // replay tools show the header of a revisit record, and a browser shows nothing for a 304
		}
		response = warc.Revisit(out.Page.Time, out.Page.URL, resp.Addr, profile, out.Page.Digest, *out.Page.Original, head)
	}
	record := s.room(len(resp.Body))
	record, out.RequestID, err = s.encoder.Append(record, &request)
	if err != nil {
		return err
	}
	response.ConcurrentTo = out.RequestID
	at := len(record)
	record, _, err = s.encoder.Append(record, &response)
	if err != nil {
		return err
	}
	out.ResponseAt, out.Page.Length = at, int64(len(record)-at)
	out.Record = s.took(record)
	out.IP = resp.Addr
	if profile == "" && len(resp.Body) > 0 && len(s.head) <= maxHead {
		out.Head = s.keep(s.head)
	}
	return nil
}

// slabBytes is the size of a slab. A step drops the records of many answers at once, when it commits, so they can share
// an allocation.
const slabBytes = 512 << 10

// recordRoom is the room for everything in the records of an answer except its body.
const recordRoom = 4 << 10

// room returns an empty slice to append the records of an answer to: the free end of the slab if they will probably fit,
// which saves a copy.
func (s *Scratch) room(body int) []byte {
	size := body + recordRoom
	if size > slabBytes/8 {
		return s.record[:0]
	}
	if size > cap(s.slab)-len(s.slab) {
		s.slab = make([]byte, 0, slabBytes)
	}
	return s.slab[len(s.slab):]
}

// took returns what was appended to room, to be kept.
func (s *Scratch) took(record []byte) []byte {
	n := len(s.slab)
	if end := s.slab[n:cap(s.slab)]; len(end) > 0 && len(record) > 0 && &end[0] == &record[0] {
		s.slab = s.slab[:n+len(record)]
		return record[:len(record):len(record)]
	}
	s.record = record
	return s.keep(record)
}

// keep returns a copy of b of the exact size, because the step buffers it until its WARC is stored. Copies that are not
// large share a slab.
func (s *Scratch) keep(b []byte) []byte {
	if len(b) > slabBytes/8 {
		return bytes.Clone(b)
	}
	if len(b) > cap(s.slab)-len(s.slab) {
		s.slab = make([]byte, 0, slabBytes)
	}
	at := len(s.slab)
	s.slab = append(s.slab, b...)
	return s.slab[at:len(s.slab):len(s.slab)]
}

// readBody extracts the links of a page, or keeps the body of a robots.txt.
func (s *Scratch) readBody(out *actor.Outcome, req *actor.Request, resp *Response) {
	s.body.Open(resp.Body, resp.coding())
	if req.Robots {
		out.Body = append([]byte{}, s.body.UpTo(maxRobots)...)
		out.Links = sitemaps(out.Body, s.token, req.URL)
		out.Page.Links = uint32(len(out.Links))
		return
	}
	tags := resp.fields("X-Robots-Tag")
	says := polite.ParseXRobotsTag(tags, s.token, resp.Ended)
	contentType := resp.field("Content-Type")
	if opt := (extract.Options{Token: s.token, Requisites: s.requisites, Sitemap: req.Sitemap}); extract.Wanted(contentType, s.body.UpTo(sniffed), opt) {
		found := extract.Links(s.body.UpTo(extract.DecodedLimit(len(resp.Body), s.maxBody)), contentType, req.URL, opt)
		out.Links, out.Page.Meta = found.Links, found.Meta
		if found.Directives != "" {
			tags = append(tags, found.Directives)
		}
		says.NoIndex = says.NoIndex || found.NoIndex
		says.NoFollow = says.NoFollow || found.NoFollow // it applies to the links of the header too
	}
	out.Links = extract.AddLinkHeader(out.Links, resp.fields("Link"), req.URL)
	if says.NoFollow {
		for i := range out.Links {
			out.Links[i].NoFollow = out.Links[i].Kind != actor.LinkRequisite
		}
	}
	out.Page.NoIndex = says.NoIndex
	if len(tags) > 0 {
		out.Page.Directives = extract.Fold(strings.Join(tags, ", "), extract.MaxDirectives)
	}
	out.Page.Links = uint32(len(out.Links))
}

// sitemaps returns the sitemaps that the robots.txt at self names, in order, without
// duplicates and at most maxSitemaps. The protocol allows sitemaps on any host.
func sitemaps(body []byte, token string, self weburl.URL) []actor.Link {
	var links []actor.Link
	for _, line := range polite.ParseRobots(body, token).Sitemaps() {
		u, err := self.Resolve(line)
		if err != nil || u == self || slices.ContainsFunc(links, func(l actor.Link) bool { return l.URL == u }) {
			continue
		}
		if links = append(links, actor.Link{URL: u, Kind: actor.LinkSitemap}); len(links) == maxSitemaps {
			break
		}
	}
	return links
}

// shrink releases the memory of a large answer, and all references to the answer.
func (s *Scratch) shrink() {
	s.body.Close()
	if cap(s.record) > extract.KeptBuffer {
		s.record = nil
	}
	if cap(s.whole) > extract.KeptBuffer {
		s.whole = nil
	}
	if cap(s.head) > maxHead {
		s.head = nil
	}
}

// mediaType returns the type and subtype of a Content-Type in lower case, or "" if it is
// malformed (RFC 9110 section 8.3.1).
func mediaType(contentType string) string {
	essence, _, _ := strings.Cut(contentType, ";")
	essence = strings.ToLower(strings.Trim(essence, " \t"))
	kind, sub, ok := strings.Cut(essence, "/")
	if !ok || len(essence) > maxMIME || !httpguts.ValidHeaderFieldName(kind) || !httpguts.ValidHeaderFieldName(sub) {
		return ""
	}
	return essence
}

// shortText returns s, or "" if it is longer than limit or not text: half a validator is useless.
func shortText(s string, limit int) string {
	if len(s) > limit || !utf8.ValidString(s) {
		return ""
	}
	return s
}

// retryAfter parses a Retry-After field, seconds or a date (RFC 9110 section 10.2.3). A malformed or
// past value is 0.
func retryAfter(value string, now time.Time) time.Duration {
	var wait time.Duration
	if value != "" && strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseUint(value, 10, 32)
		if err != nil { // the number is too large
			return maxRetryAfter
		}
		wait = time.Duration(seconds) * time.Second
	} else if date, err := http.ParseTime(value); err == nil {
		wait = date.Sub(now)
	}
	return max(0, min(wait, maxRetryAfter))
}
