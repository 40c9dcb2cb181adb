package simweb

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Config describes a web. The zero value is a small web without faults: 8 hosts of 20 pages of 4 KB. Shares are
// between 0 and 1. A Config can be stored as JSON; durations are then nanoseconds.
type Config struct {
	Seed  uint64
	Hosts int // 0: 8

	// Names gives hosts names (h17.site4.example) instead of loopback addresses.
	Names        bool
	HostsPerSite int    // with Names, hosts per registrable domain; 0: 4
	Zone         string // with Names, the last label of all of them; "": example
	// Port is part of every URL unless it is 0 or 80. Serve chooses one if it is 0.
	Port int
	// TLS makes all URLs https. Pages written in odd ways keep http.
	TLS bool

	Pages        Pages
	PageBytes    int     // mean size of an HTML page; sizes are 0.5 to 1.5 times the mean; 0: 4096
	LinksPerPage int     // mean; numbers are 0.5 to 1.5 times the mean; 0: 20
	CrossHost    float64 // share of the links that lead to other hosts; 0: 0.2, below 0: only what reachability needs
	// Skew says how uneven the numbers of links to pages and hosts are: the nth page of a host receives links
	// in proportion to n^(1/Skew-1), and so does the nth host. 0: 2, at most 100. Measured webs have a power
	// law of in-degrees with an exponent of 2.1 (Broder et al., "Graph structure in the web", 2000), which is a
	// Skew of 11.
	Skew int
	// Requisites is the mean number of requisites per page, from this host and others, beside the style sheet of the host,
	// which has some too. 0: none, and the answer for the style sheet is 404.
	Requisites int

	// Agent is the product token that some robots.txt have a group for; "": orbweaver.
	Agent string

	Connection Connection
	Robots     RobotsShares
	Down       DownShares
	Kinds      PageShares
	Links      LinkShares
	Trap       Trap
	Sitemaps   Sitemaps
	// Validators is the share of hosts that answer 304 to a client that has the page already.
	// The others send ETag and Last-Modified too, but always send the page.
	Validators float64

	FlakyMax   int           // most failures of a flaky page; 0: 2
	SlowBody   time.Duration // time of a slow body; 0: 300 ms
	SteadyBody time.Duration // time of a steady body, at 4 kB/s or more; 0: 100 s
	LateBy     time.Duration // time of a late answer, longer than a crawler waits; 0: 2 min
}

// Pages says how many pages hosts have, the root included. With Zipf 0 it is uniform
// between Min and Max; otherwise host h has Max / (h+1)^Zipf, but at least Min, so that
// host 0 is the largest.
type Pages struct {
	Min, Max int // 0: 20 and Min
	Zipf     float64
}

// Connection says how hosts treat connections. Latency is drawn per host, uniformly, and
// is the same for each of its answers.
type Connection struct {
	LatencyMin, LatencyMax time.Duration
	// OneRequest is the share of hosts that close after each answer; the others do so
	// after MaxRequests (0: 100).
	OneRequest  float64
	MaxRequests int
	Gzip        float64 // share of hosts that compress HTML for clients that accept it
	Chunked     float64 // share of hosts that send HTML chunked, without its length
}

// RobotsShares are the shares of hosts by the kind of their robots.txt. The other hosts answer 404.
type RobotsShares struct {
	AllowAll  float64       // 200, nothing forbidden
	Sections  float64       // 200, groups, some sections forbidden, Crawl-delay
	Forbidden float64       // 403: all is allowed (RFC 9309 section 2.3.1.3)
	Error     float64       // 503 always: nothing is allowed (section 2.3.1.4)
	Redirect  float64       // one to three redirects, then as Sections
	Huge      float64       // as Sections, its rules just below 480 KiB of a MiB
	Soft404   float64       // 200 with an HTML page: no rules
	Drip      float64       // as Sections, but its body takes LateBy: nothing is allowed, as with Error
	Delay     time.Duration // Crawl-delay where there are rules; 0: none
}

// DownShares are the shares of hosts that never answer. Host 0 is never down.
type DownShares struct {
	DNS     float64 // the name does not resolve; hosts with addresses refuse instead
	Refused float64 // connections are refused
	Silent  float64 // connections are accepted, and no answer comes
}

// PageShares are the shares of pages, except roots, by their peculiarity.
type PageShares struct {
	Redirect  float64 // 301, 302, 303, 307, 308 to a page of this host or another, or to another redirect
	Loop      float64 // a redirect; those of a host form a circle
	Gone      float64 // 403, 404, 410, 451, or 302 without a Location
	Broken    float64 // 500 or 502, always
	Flaky     float64 // fails first: 503 or 429 with Retry-After, 500, a reset, a cut body; then an ordinary page
	Slow      float64 // the body takes SlowBody
	Cut       float64 // the connection ends within the body, always
	Reset     float64 // the connection is reset before an answer, always
	Silent    float64 // never answers
	Garbage   float64 // the answer is not HTTP
	Surplus   float64 // more bytes than Content-Length says
	Media     float64 // not HTML
	Duplicate float64 // byte for byte another page of the host
	NoFollow  float64 // meta robots nofollow
	NoIndex   float64 // meta robots noindex
	Base      float64 // base href
	Refresh   float64 // meta refresh to another page
	Hidden    float64 // linked only by nofollow links, in comments or in scripts
	Late      float64 // the header comes after LateBy, always
	Steady    float64 // the body takes SteadyBody, with all links at its beginning
	Busy      float64 // 502, 503 or 504, always, even if the rest of the host answers
}

// LinkShares are the shares of links by how they are written.
type LinkShares struct {
	NoFollow float64 // rel=nofollow, to pages that are linked otherwise as well
	Frame    float64 // iframe or area instead of a
	Odd      float64 // unusual ways to write the URL; also gives pages unusual paths, and hosts IDN names
}

// Trap is an endless calendar: day n links to the days n+1, n+7 and n+365.
type Trap struct {
	Hosts float64 // share of hosts that have one
	// Days is the number of days of a calendar; 0: 30. A calendar that robots.txt forbids does not end.
	Days int
}

// Sitemaps says which hosts have a sitemap at /sitemap.xml that their robots.txt names. It
// lists some of their pages.
type Sitemaps struct {
	// Hosts is the share of hosts that have one, except those whose robots.txt cannot name it:
	// RobotsShares.Forbidden, Error and Soft404.
	Hosts float64
	// Index is the share of these whose sitemap is an index of two, the second a gzip file.
	Index float64
	// Unlinked is the share of their ordinary pages that no page links; only the sitemap lists them.
	Unlinked float64
}

func (c Config) withDefaults() Config {
	c.Hosts = cmp.Or(c.Hosts, 8)
	c.HostsPerSite = cmp.Or(c.HostsPerSite, 4)
	c.Zone = cmp.Or(c.Zone, "example")
	c.Pages.Min = cmp.Or(c.Pages.Min, 20)
	c.Pages.Max = max(c.Pages.Min, c.Pages.Max)
	c.PageBytes = cmp.Or(c.PageBytes, 4096)
	c.LinksPerPage = cmp.Or(c.LinksPerPage, 20)
	c.CrossHost = cmp.Or(c.CrossHost, 0.2)
	c.Skew = cmp.Or(c.Skew, 2)
	c.Agent = cmp.Or(c.Agent, "orbweaver")
	c.Connection.LatencyMax = max(c.Connection.LatencyMin, c.Connection.LatencyMax)
	c.Connection.MaxRequests = cmp.Or(c.Connection.MaxRequests, 100)
	c.Trap.Days = cmp.Or(c.Trap.Days, 30)
	c.FlakyMax = cmp.Or(c.FlakyMax, 2)
	c.SlowBody = cmp.Or(c.SlowBody, 300*time.Millisecond)
	c.SteadyBody = cmp.Or(c.SteadyBody, 100*time.Second)
	c.LateBy = cmp.Or(c.LateBy, 2*time.Minute)
	return c
}

// maxPages bounds the pages of all hosts, so that a mistyped number fails at once.
const maxPages = 1 << 26

// maxSkew bounds Config.Skew, whose links take time in proportion to it.
const maxSkew = 100

var errConfig = errors.New("simweb configuration")

// check returns an error if the shares of one group exceed 1 together, or if Skew is out of range.
func (c Config) check() error {
	if c.Skew < 1 || c.Skew > maxSkew {
		return fmt.Errorf("%w: Skew %d is not in 1 … %d", errConfig, c.Skew, maxSkew)
	}
	for _, shares := range [][]float64{c.Robots.list(), c.Down.list(), c.Kinds.list(), {c.Links.NoFollow, c.Links.Frame}} {
		sum := 0.0
		for _, s := range shares {
			sum += s
		}
		if sum > 1+1e-9 {
			return fmt.Errorf("%w: the shares %v exceed 1", errConfig, shares)
		}
	}
	return nil
}

// list returns the shares in the order of the robotsKind constants after robotsNone.
func (r RobotsShares) list() []float64 {
	return []float64{r.AllowAll, r.Sections, r.Forbidden, r.Error, r.Redirect, r.Huge, r.Soft404, r.Drip}
}

// list returns the shares in the order of the faults after FaultNone.
func (d DownShares) list() []float64 { return []float64{d.DNS, d.Refused, 0, d.Silent} }

// list returns the shares in the order of the kind constants after plain.
func (k PageShares) list() []float64 {
	return []float64{
		k.Redirect, k.Loop, k.Gone, k.Broken, k.Flaky, k.Slow, k.Cut, k.Reset, k.Silent, k.Garbage,
		k.Surplus, k.Media, k.Duplicate, k.NoFollow, k.NoIndex, k.Base, k.Refresh, k.Hidden, k.Late, k.Steady, k.Busy,
	}
}
