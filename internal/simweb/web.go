package simweb

import (
	"cmp"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/idna"
)

// Web is a generated web. It is safe for concurrent use, and only [Web.Touch] changes it.
//
// Properties of every web:
//
//   - Page 0 of a host is its root, an ordinary page at "/". Page p > 0 is linked from a page q < p of the same
//     host that is ordinary, allowed by every robots.txt group except that of "badbot", and whose links count.
//     The root of host h > 0 is linked from such a page of a host g < h that can be crawled. So every page is
//     reachable from host 0's root, except pages that a crawler must miss ([PageShares].Hidden), pages that
//     only a sitemap lists ([Sitemaps].Unlinked) and the inner pages of hosts that cannot be crawled.
//   - A canonical URL is canonical under the URL standard and under RFC 3986 section 6.2.2: lower-case host, no
//     default port, no dot segments, only necessary escapes, in upper case.
//   - An answer depends only on the [Request] and on the number of changes of the page by [Web.Touch]. Whether
//     a flaky page fails depends on Request.Attempt, which the caller counts (a [Server] counts itself). Time
//     changes nothing.
type Web struct {
	cfg         Config // with defaults
	hosts       []host
	authority   []string       // as in canonical URLs
	byAuthority map[string]int // to the host's number
	text        *text
	zipped      *sync.Map // compressed bodies ([]byte) by version, host and page; they depend on the authorities
	versions    *sync.Map // changes (*atomic.Int32) by pageKey; all copies of a web share it
}

// kind is the peculiarity of a page. The order up to busy is that of PageShares.list.
type kind uint8

const (
	plain kind = iota
	redirect
	loop
	gone
	broken
	flaky
	slow
	cut
	reset
	silent
	garbage
	surplus
	media
	duplicate
	noFollow
	noIndex
	based
	refresh
	hidden
	late
	steady
	busy
	unlinked // not in PageShares; see Sitemaps
	trap     // a day of the calendar: a page numbered from host.pages up
	sheet    // the style sheet of a host
)

// section is the part of a host that a page lies in, as robots.txt distinguishes them.
type section uint8

const (
	open    section = iota // paths that no group disallows
	private                // forbidden to all
	allowed                // within private, allowed again by a longer rule
	beta                   // forbidden except to the group of Config.Agent
	script                 // likewise, by its ending and a pattern
	days                   // the calendar: forbidden to all
)

// host is what is drawn once per host: a byte for each page's kind, and eight for its place in the tree that
// makes every page reachable.
type host struct {
	name    string // canonical, without port
	unicode string // Unicode form of an IDN name, "" for any other
	pages   int
	days    int // of the calendar: 0 none

	kinds     []kind
	childAt   []int32 // children of page p: children[childAt[p]:childAt[p+1]]
	children  []int32
	redirects []int32           // pages of that kind, ascending
	loops     []int32           // likewise
	roots     map[int32][]int32 // page → hosts whose root it links

	latency     time.Duration
	maxRequests int
	robots      robotsKind
	ownGroup    bool // its rules have a group for Config.Agent
	gzip        bool
	chunked     bool
	down        Fault
	sitemap     sitemap
	validates   bool // answers 304
}

const endless = 1 << 30 // days of a calendar that does not end

// New makes the web that cfg describes. Its cost is a few bytes and nanoseconds per page.
func New(cfg Config) (*Web, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	w := &Web{cfg: cfg, hosts: make([]host, cfg.Hosts), text: newText(cfg.Seed, cfg.PageBytes), versions: new(sync.Map)}
	total := 0
	for i := range w.hosts {
		w.hosts[i].pages = w.drawPages(i)
		if total += w.hosts[i].pages; total > maxPages {
			return nil, fmt.Errorf("%w: more than %d pages", errConfig, maxPages)
		}
	}
	w.drawHosts()
	for i := range w.hosts {
		w.plant(i)
	}
	w.linkRoots()
	return w.withPort(cfg.Port), nil
}

// withPort returns the same web at another port. Both share everything that was drawn.
func (w *Web) withPort(port int) *Web {
	c := *w
	c.cfg.Port = port
	c.zipped = new(sync.Map)
	c.authority = make([]string, len(c.hosts))
	c.byAuthority = make(map[string]int, len(c.hosts))
	for i := range c.hosts {
		a := c.hosts[i].name
		if port != 0 && port != 80 {
			a = net.JoinHostPort(a, strconv.Itoa(port))
		}
		c.authority[i] = a
		c.byAuthority[a] = i
	}
	return &c
}

func (w *Web) drawPages(h int) int {
	p := w.cfg.Pages
	if p.Zipf > 0 {
		return max(p.Min, int(float64(p.Max)/math.Pow(float64(h+1), p.Zipf)))
	}
	r := draw(w.cfg.Seed, h, 0, streamHost)
	return p.Min + r.below(p.Max-p.Min+1)
}

// address returns the loopback address of host h: 127.1.0.1 and up. No part is above 250, and only the third
// may be 0.
func address(h int) string {
	return fmt.Sprintf("127.%d.%d.%d", 1+h/62500, h/250%250, 1+h%250)
}

func (w *Web) name(h int) (name, unicode string) {
	if !w.cfg.Names {
		return address(h), ""
	}
	site := fmt.Sprintf("site%d.%s", h/w.cfg.HostsPerSite, w.cfg.Zone)
	if w.cfg.Links.Odd > 0 && h%7 == 3 {
		unicode = fmt.Sprintf("bücher%d.%s", h, site)
		if ascii, err := idna.Lookup.ToASCII(unicode); err == nil {
			return ascii, unicode
		}
	}
	return fmt.Sprintf("h%d.%s", h, site), ""
}

// drawHosts draws the properties of whole hosts. Each share becomes a fixed number of hosts, not a probability,
// so that a web of a dozen hosts has one of each.
func (w *Web) drawHosts() {
	c := &w.cfg
	one := w.deal(streamShareOneRequest, 0, c.Connection.OneRequest)
	zip := w.deal(streamShareGzip, 0, c.Connection.Gzip)
	chunk := w.deal(streamShareChunked, 0, c.Connection.Chunked)
	traps := w.deal(streamShareTrap, 0, c.Trap.Hosts)
	robots := w.deal(streamShareRobots, 1, c.Robots.list()...)
	maps := w.deal(streamShareSitemap, 0, c.Sitemaps.Hosts*(1-c.Sitemaps.Index), c.Sitemaps.Hosts*c.Sitemaps.Index)
	validate := w.deal(streamShareValidators, 0, c.Validators)
	downs := w.deal(streamShareDown, 1, c.Down.list()...)
	for i := range w.hosts {
		h := &w.hosts[i]
		r := draw(c.Seed, i, 1, streamHost)
		h.name, h.unicode = w.name(i)
		h.latency = c.Connection.LatencyMin + time.Duration(r.below(int(c.Connection.LatencyMax-c.Connection.LatencyMin)+1))
		h.maxRequests = c.Connection.MaxRequests
		if one[i] == 1 {
			h.maxRequests = 1
		}
		h.robots = robotsKind(robots[i])
		h.ownGroup = r.below(2) == 0
		h.gzip = zip[i] == 1
		h.chunked = chunk[i] == 1
		h.validates = validate[i] == 1
		if h.robots.names() {
			h.sitemap = sitemap(maps[i])
		}
		h.down = Fault(downs[i])
		if h.down == FaultDNS && !c.Names {
			h.down = FaultRefused
		}
		if traps[i] == 1 {
			h.days = c.Trap.Days
			if h.robots.rules() {
				h.days = endless
			}
		}
	}
}

// deal returns a class for each host. The share shares[k] of all hosts gets class k+1: at least one host, if
// the share is not 0 and hosts are left. The other hosts, and those before first, get class 0.
func (w *Web) deal(stream uint64, first int, shares ...float64) []int {
	class := make([]int, len(w.hosts))
	order := make([]int, 0, len(w.hosts))
	key := make([]uint64, len(w.hosts))
	for i := range w.hosts {
		r := draw(w.cfg.Seed, i, 0, stream)
		key[i] = r.next()
		if i >= first {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(key[a], key[b]) })
	for k, s := range shares {
		if s <= 0 {
			continue
		}
		n := min(max(1, int(float64(s*float64(len(w.hosts)))+0.5)), len(order))
		for _, i := range order[:n] {
			class[i] = k + 1
		}
		order = order[n:]
	}
	return class
}

// plant draws the kinds of a host's pages and the tree of links that makes each page reachable.
func (w *Web) plant(i int) {
	h := &w.hosts[i]
	h.kinds = make([]kind, h.pages)
	shares := w.cfg.Kinds.list()
	for p := 1; p < h.pages; p++ {
		r := draw(w.cfg.Seed, i, p, streamKind)
		u := r.unit()
		for k, s := range shares {
			if u -= s; u < 0 {
				h.kinds[p] = kind(k + 1)
				break
			}
		}
		if h.kinds[p] == plain && h.sitemap != sitemapNone {
			r := draw(w.cfg.Seed, i, p, streamUnlinked)
			if r.unit() < w.cfg.Sitemaps.Unlinked {
				h.kinds[p] = unlinked
			}
		}
		switch h.kinds[p] {
		case redirect:
			h.redirects = append(h.redirects, int32(p))
		case loop:
			h.loops = append(h.loops, int32(p))
		}
	}
	parent := make([]int32, h.pages)
	h.childAt = make([]int32, h.pages+1)
	for p := 1; p < h.pages; p++ {
		if h.kinds[p] == unlinked {
			continue
		}
		r := draw(w.cfg.Seed, i, p, streamParent)
		parent[p] = int32(w.bearer(i, r.below(p)))
		h.childAt[parent[p]+1]++
	}
	for p := range h.pages {
		h.childAt[p+1] += h.childAt[p]
	}
	h.children = make([]int32, h.childAt[h.pages])
	next := slices.Clone(h.childAt)
	for p := 1; p < h.pages; p++ {
		if h.kinds[p] == unlinked {
			continue
		}
		q := parent[p]
		h.children[next[q]] = int32(p)
		next[q]++
	}
}

// bearer returns the last page from p downwards whose links can be relied on.
func (w *Web) bearer(h, p int) int {
	for p > 0 && !w.bears(h, p) {
		p--
	}
	return max(p, 0)
}

func (w *Web) bears(h, p int) bool {
	switch w.hosts[h].kinds[p] {
	case plain, slow, noIndex, based, refresh:
		return w.section(h, p) == open
	default:
		return false
	}
}

// linkRoots gives each root except the first a link from a host that can be crawled.
func (w *Web) linkRoots() {
	for i := 1; i < len(w.hosts); i++ {
		r := draw(w.cfg.Seed, i, 0, streamParent)
		g := r.below(i)
		for g > 0 && !w.hosts[g].crawlable() {
			g--
		}
		h := &w.hosts[g]
		if h.roots == nil {
			h.roots = make(map[int32][]int32)
		}
		p := int32(w.bearer(g, r.below(h.pages)))
		h.roots[p] = append(h.roots[p], int32(i))
	}
}

func (h *host) crawlable() bool { return h.down == FaultNone && !h.robots.unreachable() }

// kind returns the kind of page p of host h; false if there is no such page.
func (w *Web) kind(h, p int) (kind, bool) {
	x := &w.hosts[h]
	switch {
	case p == sheetPage && w.cfg.Requisites > 0:
		return sheet, true
	case p < 0 || p >= x.pages+x.days:
		return 0, false
	case p >= x.pages:
		return trap, true
	default:
		return x.kinds[p], true
	}
}

// original returns the page that a duplicate repeats.
func (w *Web) original(h, p int) int {
	r := draw(w.cfg.Seed, h, p, streamDetail)
	return w.bearer(h, r.below(p))
}

// HostFacts describes a host.
type HostFacts struct {
	Authority             string // as in URLs
	Pages                 int    // without those of the calendar
	Latency               time.Duration
	RequestsPerConnection int
	Sitemap               bool
	Down                  Fault // FaultNone: it answers
}

// Hosts returns the number of hosts. They are numbered from 0.
func (w *Web) Hosts() int { return len(w.hosts) }

// Host describes host i.
func (w *Web) Host(i int) HostFacts {
	h := &w.hosts[i]
	return HostFacts{
		Authority: w.authority[i], Pages: h.pages, Latency: h.latency, RequestsPerConnection: h.maxRequests,
		Sitemap: h.sitemap != sitemapNone, Down: h.down,
	}
}

// HostOf returns the number of the host with that authority (lower case, no default port).
func (w *Web) HostOf(authority string) (int, bool) {
	i, ok := w.byAuthority[authority]
	return i, ok
}

// Config returns the configuration with its defaults filled in.
func (w *Web) Config() Config { return w.cfg }

// Pages returns the number of pages of all hosts without calendars.
func (w *Web) Pages() int {
	n := 0
	for i := range w.hosts {
		n += w.hosts[i].pages
	}
	return n
}

// URL returns the canonical URL of page p of host h.
func (w *Web) URL(h, p int) string { return string(w.appendURL(nil, h, p)) }

// Seeds returns the URL from which everything is reachable: the root of host 0.
func (w *Web) Seeds() []string { return []string{w.URL(0, 0)} }

// split cuts a canonical URL into its host and request URI.
func (w *Web) split(url string) (h int, uri string, ok bool) {
	rest, ok := strings.CutPrefix(url, w.scheme())
	if !ok {
		return 0, "", false
	}
	rest, _, _ = strings.Cut(rest, "#")
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	h, ok = w.byAuthority[rest[:end]]
	return h, rest[end:], ok
}

// find returns the page at a canonical URL.
func (w *Web) find(url string) (h, p int, ok bool) {
	h, uri, ok := w.split(url)
	if !ok {
		return 0, 0, false
	}
	p, ok = w.lookup(h, uri)
	return h, p, ok
}
