package actor

import (
	"net/netip"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// Request asks for one URL, once. Redirects are never followed by the fetcher.
type Request struct {
	URL        weburl.URL
	Host       string           // whose pace the request counts to; another than URL's when a robots.txt redirects
	Site       string           // of a robots.txt: the authority that it is for
	Addr       netip.Addr       // connect to this address and no other; zero: to what the name resolves to
	Resolve    bool             // only resolve the name of URL's host: Outcome.Addr
	Sitemap    bool             // a sitemap: its links are read even if it is plain text
	Former     *blobschema.Page // the last answer whose payload is stored: ask conditionally, unless Robots, and keep an equal one as a revisit; nil for none
	Robots     bool             // a robots.txt: its body comes back in Outcome.Body
	Longest    time.Duration    // the most time that the request may have, if that is less than the fetcher's own limits; 0: those
	Deadline   time.Time        // the lease ends then: the executor aborts the request unless the lease was renewed
	Next       time.Time        // earliest next request to the host; zero: none is known of
	Depth      uint16
	Generation uint32
	Attempt    uint8
}

// LinkKind says which element a link came from.
type LinkKind uint8

const (
	LinkAnchor   LinkKind = iota // a, area
	LinkFrame                    // frame, iframe
	LinkRel                      // link rel=canonical, next, prev, alternate
	LinkRefresh                  // meta http-equiv=refresh
	LinkRedirect                 // Location header
	LinkFeed                     // link rel=alternate of a feed type
	LinkHeader                   // Link header
	LinkImage                    // img, source: only if the crawl wants them
	LinkSitemap                  // a sitemap, named by robots.txt or by another sitemap
	LinkListed                   // listed in a sitemap
	LinkEntry                    // listed in a feed
)

// Link is one outgoing link of a page, canonical and free of duplicates.
type Link struct {
	URL      weburl.URL
	Kind     LinkKind
	NoFollow bool
	Anchor   string // visible text, at most 100 bytes of valid UTF-8; may be empty
	Priority int8   // what a sitemap says, in tenths from its default of 0.5: -5 to 5
	Modified int64  // when a sitemap says that it changed last, Unix seconds; 0 for unknown
}

// Outcome is what came of one Request.
type Outcome struct {
	// Page is the record to keep, complete but for WARC and Offset, which the step sets
	// once it knows the object. Page.Length is that of the response member.
	Page blobschema.Page
	// Record holds the gzip members for the WARC (request, response); the response member
	// begins at ResponseAt and is Page.Length long. Empty when there was no answer.
	Record     []byte
	ResponseAt int
	Links      []Link
	Body       []byte        // robots.txt only: the decoded body, bounded at 512 KiB
	RetryAfter time.Duration // from Retry-After, 0 if none; already bounded to a day
	Started    time.Time     // when the request (or its dial) began
	Ended      time.Time
	Connect    time.Duration // time to connect, 0 on a reused connection
	Response   time.Duration // request written to last byte of the body
	Reused     bool          // went over a connection that had served before
	HTTP2      bool          // went over HTTP/2
	Wire       int64         // bytes received, headers included, before decoding
	Closed     bool          // the server ends the connection after this answer
	Temporary  bool          // worth another attempt later
	Addr       netip.Addr    // what a Request with Resolve was for

	// What warc.Revisit needs to stand in for the response member of Record, if
	// the payload turns out to be stored already.
	Head      []byte // start line and fields of the answer, at most 64 KiB; nil: nothing to gain, or a revisit already
	IP        string // address that was asked; may be empty
	RequestID string // id of the request member, for ConcurrentTo
}

// Aborted is the outcome of a request that we broke off ourselves: no attempt.
func Aborted(req Request, now time.Time) *Outcome {
	return &Outcome{
		Page: blobschema.Page{
			URL: req.URL.String(), Generation: req.Generation, Depth: req.Depth, Robots: req.Robots,
			Outcome: blobschema.OutcomeAborted, Time: now.UTC(),
		},
		Temporary: true,
	}
}
