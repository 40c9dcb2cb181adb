package actor

import (
	"net/netip"
	"strconv"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// Request is one request for one URL. The fetcher never follows redirects.
type Request struct {
	URL     weburl.URL
	Key     string     // politeness key that the request counts to; differs from the URL's host if a robots.txt redirects
	Site    string     // authority that a robots.txt is for
	Addr    netip.Addr // the only address to connect to; zero: any address of the name
	Resolve bool       // only resolve the host name, into Outcome.Addr
	Sitemap bool       // the URL is a sitemap: its links count even if it is plain text
	// Previous is the last answer whose payload is stored, or nil. The request is then conditional, unless
	// Robots is set, and an equal answer is stored as a revisit.
	Previous   *blobschema.Page
	Robots     bool          // the URL is a robots.txt: Outcome.Body holds its body
	Longest    time.Duration // time limit of the request if it is below the fetcher's own; 0: none
	Deadline   time.Time     // end of the lease: the executor aborts the request then, unless the lease was renewed
	Next       time.Time     // earliest next request to the host; zero: unknown
	Depth      uint16
	Generation uint32
	Attempt    uint8
}

// LinkKind is the element that a link came from.
type LinkKind uint8

const (
	LinkAnchor    LinkKind = iota // a, area
	LinkFrame                     // frame, iframe
	LinkRel                       // link rel=canonical, next, prev, alternate
	LinkRefresh                   // meta http-equiv=refresh
	LinkRedirect                  // Location header
	LinkFeed                      // link rel=alternate of a feed type
	LinkHeader                    // Link header
	LinkRequisite                 // only needed to display the page: style sheets, scripts, images, fonts, media
	LinkSitemap                   // a sitemap, named by robots.txt or by another sitemap
	LinkListed                    // listed in a sitemap
	LinkEntry                     // listed in a feed
)

// String returns the kind in a word, such as "anchor".
func (k LinkKind) String() string {
	if int(k) < len(linkKinds) {
		return linkKinds[k]
	}
	return "kind-" + strconv.Itoa(int(k))
}

var linkKinds = [...]string{"anchor", "frame", "rel", "refresh", "redirect", "feed", "header", "requisite", "sitemap", "listed", "entry"}

// Link is one outgoing link of a page. The links of a page are canonical and free of duplicates.
type Link struct {
	URL      weburl.URL
	Kind     LinkKind
	NoFollow bool
	// Requisite is set if the page also needs the URL to be displayed. NoFollow does not apply to that.
	Requisite bool
	Anchor    string // visible text, at most 100 bytes of valid UTF-8; may be empty
	Priority  int8   // priority in a sitemap, in tenths from the default of 0.5: -5 to 5
	Modified  int64  // time of the last change according to a sitemap, Unix seconds; 0: unknown
}

// Outcome is the result of one Request.
type Outcome struct {
	// Page is the page record, complete except for WARC and Offset: the step sets these when it knows the
	// object. Page.Length is the length of the response member.
	Page blobschema.Page
	// Record holds the gzip members for the WARC (request, response). The response member begins at ResponseAt
	// and is Page.Length bytes long. Record is empty if there was no answer.
	Record     []byte
	ResponseAt int
	Links      []Link
	Body       []byte        // decoded body of a robots.txt, at most 512 KiB
	RetryAfter time.Duration // Retry-After, at most a day; 0: none
	Started    time.Time     // start of the request, or of its dial
	Ended      time.Time
	Connect    time.Duration // time to connect; 0 on a reused connection
	Response   time.Duration // time from the end of the request to the last byte of the body
	Reused     bool          // the connection had served before
	HTTP2      bool          // the connection was HTTP/2
	Wire       int64         // bytes received, including headers, before decoding
	Closed     bool          // the server ends the connection after this answer
	Temporary  bool          // a later attempt may succeed
	Addr       netip.Addr    // address of the name, if Request.Resolve was set

	// Head, IP and RequestID are the parameters of warc.Revisit, which replaces the response member of Record
	// if the payload turns out to be stored already.
	Head      []byte // start line and fields of the answer, at most 64 KiB; nil: no gain, or a revisit already
	IP        string // address of the server; may be empty
	RequestID string // id of the request member, for ConcurrentTo
}

// Aborted returns the outcome of a request that the crawler itself broke off. It does not count as an attempt.
func Aborted(req Request, now time.Time) *Outcome {
	return &Outcome{
		Page: blobschema.Page{
			URL: req.URL.String(), Generation: req.Generation, Depth: req.Depth, Robots: req.Robots,
			Outcome: blobschema.OutcomeAborted, Time: now.UTC(),
		},
		Temporary: true,
	}
}
