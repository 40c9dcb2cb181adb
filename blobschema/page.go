package blobschema

import "time"

// Outcome is the result of the requests for a URL. The list is closed: its numbers are
// stored and never reused.
type Outcome uint8

// The outcomes. The first group are answers; the others are reasons why no answer
// is stored.
const (
	OutcomeNone        Outcome = 0  // not requested yet
	OutcomeOK          Outcome = 1  // an answer with status 2xx: a page
	OutcomeRedirect    Outcome = 2  // 3xx with a usable Location
	OutcomeClientError Outcome = 3  // 4xx, and 3xx without a usable Location
	OutcomeServerError Outcome = 4  // 5xx after the last attempt
	OutcomeRobots      Outcome = 10 // robots.txt forbids the URL
	OutcomeRobotsGone  Outcome = 11 // robots.txt is unavailable: 5xx or unreachable (RFC 9309 section 2.3.1.4)
	OutcomeDNS         Outcome = 12 // the name does not resolve
	OutcomeForbidden   Outcome = 13 // the address is in a network that the crawler must not connect to
	OutcomeConnect     Outcome = 14 // no connection: refused, unreachable or timed out
	OutcomeTLS         Outcome = 15 // the TLS handshake failed
	OutcomeTimeout     Outcome = 16 // no header, or no whole body, in time
	OutcomeProtocol    Outcome = 17 // the answer is not HTTP, or exceeds a bound
	OutcomeCut         Outcome = 18 // the connection ended within the answer
	OutcomeSuspect     Outcome = 19 // the request crashed the step more than once
	OutcomeAborted     Outcome = 20 // stopped by the crawler (deadline, shutdown); never final
	OutcomeScope       Outcome = 21 // requested by the operator, but out of the crawl's scope
	OutcomeUnchanged   Outcome = 22 // 304 to a conditional request: the payload is the previous one
)

// Answered reports whether o is an HTTP answer, which the archive keeps.
func (o Outcome) Answered() bool {
	return o >= OutcomeOK && o <= OutcomeServerError || o == OutcomeUnchanged
}

// Page is the record of a requested URL: one per URL and generation.
type Page struct {
	URL        string    `cbor:"1,keyasint" json:"url"`
	Generation uint32    `cbor:"2,keyasint,omitempty" json:"generation,omitempty"`
	Depth      uint16    `cbor:"3,keyasint,omitempty" json:"depth"`
	Outcome    Outcome   `cbor:"4,keyasint" json:"outcome"`
	Status     uint16    `cbor:"5,keyasint,omitempty" json:"status,omitempty"`
	Time       time.Time `cbor:"6,keyasint" json:"time"` // when the request was sent, UTC
	MIME       string    `cbor:"7,keyasint,omitempty" json:"mime,omitempty"`
	Digest     string    `cbor:"8,keyasint,omitempty" json:"digest,omitempty"` // of the payload, as in the WARC: sha1:BASE32
	BodyBytes  int64     `cbor:"9,keyasint,omitempty" json:"body_bytes,omitempty"`
	Truncated  string    `cbor:"10,keyasint,omitempty" json:"truncated,omitempty"` // WARC-Truncated reason
	WARC       string    `cbor:"11,keyasint,omitempty" json:"warc,omitempty"`      // object that holds the response record
	Offset     int64     `cbor:"12,keyasint,omitempty" json:"offset,omitempty"`    // of the response record's gzip member
	Length     int64     `cbor:"13,keyasint,omitempty" json:"length,omitempty"`    // compressed bytes of that member
	Redirect   string    `cbor:"14,keyasint,omitempty" json:"redirect,omitempty"`
	ETag       string    `cbor:"15,keyasint,omitempty" json:"etag,omitempty"`
	Modified   string    `cbor:"16,keyasint,omitempty" json:"last_modified,omitempty"`
	Links      uint32    `cbor:"17,keyasint,omitempty" json:"links,omitempty"`
	NoIndex    bool      `cbor:"18,keyasint,omitempty" json:"noindex,omitempty"`
	Detail     string    `cbor:"19,keyasint,omitempty" json:"detail,omitempty"` // short reason in words, if there is no answer
	Robots     bool      `cbor:"20,keyasint,omitempty" json:"robots,omitempty"` // a robots.txt that the crawler itself requested
	Attempts   uint8     `cbor:"21,keyasint,omitempty" json:"attempts,omitempty"`
	// Original is the earlier capture with the payload, of this URL or another, if the record is a
	// revisit. Digest, BodyBytes and MIME are then those of the original.
	Original *Original `cbor:"22,keyasint,omitempty" json:"original,omitempty"`
	Topic    uint8     `cbor:"23,keyasint,omitempty" json:"topic,omitempty"` // number of its topic
	// Change compares an answer with the answer of an earlier generation: PageSame, PageChanged, or
	// empty if there is none or its record is unreadable.
	Change string `cbor:"24,keyasint,omitempty" json:"change,omitempty"`
	// Before is the digest of that earlier answer.
	Before string `cbor:"40,keyasint,omitempty" json:"before,omitempty"`
	// Requisite is set if the URL was found only as something that pages need to be displayed. It is not counted as a page.
	Requisite bool `cbor:"60,keyasint,omitempty" json:"requisite,omitempty"`
	Meta
	Directives string `cbor:"31,keyasint,omitempty" json:"robots_directives,omitempty"` // of meta robots and X-Robots-Tag, at most 200 bytes
	// Times of the exchange in milliseconds, rounded up; 0: not measured. Both begin with the request, so they contain the
	// time to connect.
	FirstByte uint32 `cbor:"32,keyasint,omitempty" json:"ttfb_ms,omitempty"`  // until the header was received
	Total     uint32 `cbor:"33,keyasint,omitempty" json:"total_ms,omitempty"` // until the body was received
	IP        string `cbor:"34,keyasint,omitempty" json:"ip,omitempty"`       // of the server
	Protocol  string `cbor:"35,keyasint,omitempty" json:"protocol,omitempty"` // such as "HTTP/1.1"
}

// Meta is what an HTML page says about itself. Texts are valid UTF-8 with folded white space.
type Meta struct {
	Title       string      `cbor:"25,keyasint,omitempty" json:"title,omitempty"`       // at most 300 bytes
	Description string      `cbor:"26,keyasint,omitempty" json:"description,omitempty"` // meta description, at most 500 bytes
	Canonical   string      `cbor:"27,keyasint,omitempty" json:"canonical,omitempty"`   // URL of link rel=canonical; it may be the page itself
	Lang        string      `cbor:"28,keyasint,omitempty" json:"lang,omitempty"`        // lang of the html element, at most 35 bytes
	H1          string      `cbor:"29,keyasint,omitempty" json:"h1,omitempty"`          // first h1 with text, at most 300 bytes
	Hreflang    []Alternate `cbor:"30,keyasint,omitempty" json:"hreflang,omitempty"`    // at most 50
	Charset     string      `cbor:"36,keyasint,omitempty" json:"charset,omitempty"`     // as in the Encoding Standard
}

// Alternate is a translation of a page: link rel=alternate with hreflang.
type Alternate struct {
	Lang string `cbor:"1,keyasint" json:"lang"`
	URL  string `cbor:"2,keyasint" json:"url"`
}

// The values of Page.Change.
const (
	PageSame    = "same"
	PageChanged = "changed"
)

// The results of a request, compared with the earlier answers of its URL.
const (
	ResultNew       = "new"       // the first answer, or the earlier ones are unknown
	ResultChanged   = "changed"   // another answer than before
	ResultUnchanged = "unchanged" // the same answer as before
	ResultGone      = "gone"      // 404 or 410, where there was another answer before
	ResultFailed    = "failed"    // an error, or no answer
)

// Result returns the result of the request that p records.
func (p *Page) Result() string {
	failed := p.Outcome == OutcomeClientError || p.Outcome == OutcomeServerError
	switch {
	case !p.Outcome.Answered():
		return ResultFailed
	case p.Change == PageSame:
		return ResultUnchanged
	case failed && p.Change != "" && (p.Status == 404 || p.Status == 410):
		return ResultGone
	case failed:
		return ResultFailed
	case p.Change == PageChanged:
		return ResultChanged
	}
	return ResultNew
}

// Original names the response record that holds the payload of a revisit.
type Original struct {
	URL    string    `cbor:"1,keyasint" json:"url"`
	Time   time.Time `cbor:"2,keyasint" json:"time"`
	WARC   string    `cbor:"3,keyasint" json:"warc"`
	Offset int64     `cbor:"4,keyasint,omitempty" json:"offset,omitempty"`
	Length int64     `cbor:"5,keyasint,omitempty" json:"length,omitempty"`
}

// Payload returns the location of the payload of p's answer: its own response record, or the
// original of a revisit.
func (p *Page) Payload() Original {
	if p.Original != nil {
		return *p.Original
	}
	return Original{URL: p.URL, Time: p.Time, WARC: p.WARC, Offset: p.Offset, Length: p.Length}
}
