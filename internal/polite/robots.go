package polite

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// Bounds of a robots.txt.
const (
	// maxRobotsBytes bounds the part of a robots.txt that is read: 500 KiB, the least that RFC
	// 9309 section 2.5 allows.
	maxRobotsBytes = 500 << 10
	// MaxCrawlDelay bounds the Crawl-delay, which is not a part of RFC 9309. A longer delay
	// would be a refusal, for which there are rules.
	MaxCrawlDelay = 120 * time.Second
	// maxSitemaps bounds the number of Sitemap lines.
	maxSitemaps = 1000
	// maxSitemapBytes bounds a Sitemap value, as long as the longest URL.
	maxSitemapBytes = 8000
)

// maxReasonBytes bounds the reason of allowAll and DenyAll.
const maxReasonBytes = 200

// kind is the origin of the verdicts of a Robots. The numbers are stored.
type kind uint8

const (
	kindRules kind = 1 // a robots.txt was read
	kindAllow kind = 2 // there is no robots.txt ("unavailable", RFC 9309 section 2.3.1.3)
	kindDeny  kind = 3 // robots.txt is unreachable for now (section 2.3.1.4)
)

// Robots is the meaning of one host's robots.txt for one product token. It is
// immutable, and safe for concurrent use.
type Robots struct {
	kind     kind
	cause    blobschema.Outcome // of a kindDeny; see DenyAll
	reason   string
	delay    time.Duration
	hasDelay bool
	rules    []rule // by ascending line
	sitemaps []string
	order    []int32 // of rules, by weight
}

// Rule is a line of a robots.txt that decides about a URL.
type Rule struct {
	// Line counts from 1; CR, LF and CRLF each end a line. Zero: no line decided.
	Line int
	// Text is the rule with its pattern in normal form, in printable
	// ASCII: "Disallow: /caf%C3%A9". Without a line it is the reason of allowAll or
	// DenyAll, or the reason why no line was found, or empty.
	Text  string
	Allow bool
}

// allowAll returns the Robots of a host without a robots.txt.
func allowAll(reason string) *Robots {
	return &Robots{kind: kindAllow, reason: boundReason(reason)}
}

// DenyAll returns the Robots of a host whose robots.txt cannot be fetched for now: it refuses
// everything except robots.txt itself, which the caller requests again later. RFC 9309 section
// 2.3.1.4 lets a crawler give up after a long while (30 days) and continue as if there were
// none; the caller decides that.
//
// cause is the outcome of the request for robots.txt. If it concerns the whole host (its name,
// its address, its port, its certificate), the host's URLs get
// that outcome too; see [Robots.Refusal].
func DenyAll(cause blobschema.Outcome, reason string) *Robots {
	if !ofHost(cause) {
		cause = blobschema.OutcomeNone
	}
	return &Robots{kind: kindDeny, cause: cause, reason: boundReason(reason)}
}

// ofHost reports whether an outcome is about a host and not about one URL of it.
func ofHost(o blobschema.Outcome) bool {
	switch o {
	case blobschema.OutcomeDNS, blobschema.OutcomeForbidden, blobschema.OutcomeConnect, blobschema.OutcomeTLS:
		return true
	}
	return false
}

// ForStatus returns the Robots for the answer to a request for robots.txt (RFC 9309 section
// 2.3.1). The caller has followed up to five redirects before.
//
//	2xx   the body's rules
//	3xx   allow all: more redirects than five, or one that leads nowhere, are
//	      "unavailable" (2.3.1.2). After a 304 the caller keeps its Robots.
//	429   deny all for now. The RFC counts it among the 4xx, but it does not mean
//	      that there is no such file. It means that the crawler requests too often, so
//	      allowing everything would be wrong.
//	4xx   allow all
//	else  deny all for now: 5xx, and 0 for no answer at all
func ForStatus(status int, body []byte, token string) *Robots {
	reason := "robots.txt: status " + strconv.Itoa(status)
	switch {
	case status >= 200 && status <= 299:
		return ParseRobots(body, token)
	case status == 429:
		return DenyAll(blobschema.OutcomeNone, reason)
	case status >= 300 && status <= 499:
		return allowAll(reason)
	case status == 0:
		return DenyAll(blobschema.OutcomeNone, "robots.txt: no answer")
	default:
		return DenyAll(blobschema.OutcomeNone, reason)
	}
}

// Allowed reports whether a URL may be fetched, and the line that decides. requestURI is the
// URL's path and query. Allowed ignores a fragment and adds a missing "/". Of all
// rules that match, the one whose pattern has the most octets in normal form decides;
// among equals an Allow does, then the first line (RFC 9309 section 2.2.2). /robots.txt
// itself is always allowed.
//
// Each rule costs a comparison of its prefix. Each wildcard whose prefix matches costs the length of
// the URI; if that exceeds 8 MiB in total, as for thousands of them, the URL is refused.
func (r *Robots) Allowed(requestURI string) (allowed bool, decider Rule) {
	uri := normalURI(requestURI)
	if uri == "/robots.txt" {
		return true, Rule{Allow: true}
	}
	switch r.kind {
	case kindRules:
		switch i := r.decide(uri); i {
		case noRule:
			return true, Rule{Allow: true}
		case tooCostly:
			return false, Rule{Text: "robots.txt: too many wildcards"}
		default:
			d := r.rules[i].public()
			return d.Allow, d
		}
	case kindAllow:
		return true, Rule{Text: r.reason, Allow: true}
	default:
		return false, Rule{Text: r.reason}
	}
}

// Unreachable reports whether robots.txt could not be fetched, so that refusals are
// temporary.
func (r *Robots) Unreachable() bool { return r.kind == kindDeny }

// Refusal returns the outcome of a URL that r does not allow: the cause, if the host is not
// reachable.
func (r *Robots) Refusal() blobschema.Outcome {
	switch {
	case r.kind != kindDeny:
		return blobschema.OutcomeRobots
	case r.cause != blobschema.OutcomeNone:
		return r.cause
	}
	return blobschema.OutcomeRobotsGone
}

// Reason returns the reason of allowAll or DenyAll, at most 200 bytes of it.
func (r *Robots) Reason() string { return r.reason }

// CrawlDelay returns the Crawl-delay between 0 and MaxCrawlDelay, and whether there is
// one. A negative number counts as 0, a number above MaxCrawlDelay as MaxCrawlDelay, and a value that is not
// a number is ignored. If the groups that apply have several, the longest applies.
func (r *Robots) CrawlDelay() (time.Duration, bool) { return r.delay, r.hasDelay }

// Sitemaps returns the values of all Sitemap lines as written, in order. They are neither
// parsed nor resolved, and as hostile as any other input.
func (r *Robots) Sitemaps() []string { return slices.Clone(r.sitemaps) }

// ParseRobots parses a robots.txt for one product token (RFC 9309 section 2.2.1): it merges the
// groups that name the token or, if no group does, those that name "*". It never
// fails: it skips a line that it cannot use.
//
// Like Google's parser it accepts the usual misspellings of "disallow" and "user-agent", a
// line of two words without colon, and part of a byte order mark. Lines other than Allow
// and Disallow do not end a run of User-agent lines, so that
//
//	User-agent: a
//	Sitemap: https://example.org/s.xml
//	User-agent: b
//	Disallow: /
//
// is one group of both a and b (RFC 9309 section 2.2.4 demands it). The same is true of
// Crawl-delay, which applies only to the agents named above it. A pattern that begins
// neither with "/" nor "*" gets a "/".
func ParseRobots(body []byte, token string) *Robots {
	p := parser{token: productToken([]byte(token))}
	text := boundBody(body)
	for _, b := range []byte("\xEF\xBB\xBF") {
		if len(text) == 0 || text[0] != b {
			break
		}
		text = text[1:]
	}
	for line := 1; len(text) > 0; line++ {
		var l []byte
		l, text = cutLine(text)
		p.parseLine(line, l)
	}
	return p.robots()
}

// boundBody cuts a body at maxRobotsBytes, and drops an incomplete last line: half a
// pattern would forbid, or allow, more than its author meant.
func boundBody(body []byte) []byte {
	if len(body) <= maxRobotsBytes {
		return body
	}
	if isEOL(body[maxRobotsBytes]) {
		return body[:maxRobotsBytes]
	}
	return body[:bytes.LastIndexAny(body[:maxRobotsBytes], "\r\n")+1]
}

func isEOL(c byte) bool { return c == '\r' || c == '\n' }

func cutLine(text []byte) (line, rest []byte) {
	i := bytes.IndexAny(text, "\r\n")
	if i < 0 {
		return text, nil
	}
	line, rest = text[:i], text[i+1:]
	if text[i] == '\r' && len(rest) > 0 && rest[0] == '\n' {
		rest = rest[1:]
	}
	return line, rest
}

// group collects the lines of all groups of one agent.
type group struct {
	seen     bool // a User-agent line names this agent, with or without rules
	current  bool // the current group is one of this agent
	delay    time.Duration
	hasDelay bool
	rules    []rule
}

type parser struct {
	token    string
	own, all group // for our token, for "*"
	ruled    bool  // there was a rule after the last User-agent line: the next one begins a new group
	sitemaps []string
}

func (p *parser) parseLine(n int, line []byte) {
	line, _, _ = bytes.Cut(line, []byte("#"))
	d, value := splitLine(line)
	switch d {
	case dirUserAgent:
		p.userAgent(value)
	case dirAllow, dirDisallow:
		p.ruled = true
		if len(value) == 0 || !p.own.current && !p.all.current {
			return
		}
		r := newRule(n, verdict(d == dirAllow), normalPattern(value))
		for _, g := range []*group{&p.own, &p.all} {
			if g.current {
				g.rules = append(g.rules, r)
			}
		}
	case dirCrawlDelay:
		delay, ok := parseDelay(value)
		for _, g := range []*group{&p.own, &p.all} {
			if g.current && ok {
				g.delay, g.hasDelay = max(g.delay, delay), true
			}
		}
	case dirSitemap:
		if len(value) > 0 && len(value) <= maxSitemapBytes && len(p.sitemaps) < maxSitemaps {
			p.sitemaps = append(p.sitemaps, string(value))
		}
	}
}

func (p *parser) userAgent(value []byte) {
	if p.ruled {
		p.own.current, p.all.current, p.ruled = false, false, false
	}
	g := &p.own
	if value = firstField(value); string(value) == "*" {
		g = &p.all
	} else if t := productToken(value); t == "" || t != p.token {
		return
	}
	g.seen, g.current = true, true
}

func (p *parser) robots() *Robots {
	g := &p.all
	if p.own.seen {
		g = &p.own
	}
	return newRobots(&Robots{
		kind: kindRules, delay: g.delay, hasDelay: g.hasDelay, rules: g.rules, sitemaps: p.sitemaps,
	})
}

// newRobots completes a Robots with the order of its rules.
func newRobots(r *Robots) *Robots {
	r.order = byWeight(r.rules)
	return r
}

type directive uint8

const (
	dirUnknown directive = iota
	dirUserAgent
	dirAllow
	dirDisallow
	dirCrawlDelay
	dirSitemap
)

// splitLine parses a line without its comment. A colon after an unknown word
// may belong to the value of a line without a colon of its own.
func splitLine(line []byte) (directive, []byte) {
	if key, value, ok := bytes.Cut(line, []byte(":")); ok {
		if d := directiveOf(trim(key)); d != dirUnknown {
			return d, trim(value)
		}
	}
	line = trim(line)
	key := firstField(line)
	value := trim(line[len(key):])
	if len(value) == 0 || len(firstField(value)) != len(value) {
		return dirUnknown, nil
	}
	return directiveOf(key), value
}

func directiveOf(key []byte) directive {
	var low [32]byte // more than any word has; on the stack, as this runs for every line
	if len(key) > len(low) {
		return dirUnknown
	}
	for i, c := range key {
		if low[i] = c; 'A' <= c && c <= 'Z' {
			low[i] |= 0x20
		}
	}
	switch string(low[:len(key)]) {
	case "user-agent", "useragent", "user agent":
		return dirUserAgent
	case "allow":
		return dirAllow
	case "disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw":
		return dirDisallow
	case "crawl-delay", "crawldelay", "crawl delay":
		return dirCrawlDelay
	case "sitemap", "site-map":
		return dirSitemap
	}
	return dirUnknown
}

const blanks = " \t\v\f"

func trim(b []byte) []byte { return bytes.Trim(b, blanks) }

// firstField returns the bytes before the first blank.
func firstField(b []byte) []byte {
	if i := bytes.IndexAny(b, blanks); i >= 0 {
		return b[:i]
	}
	return b
}

// productToken returns the relevant part of a user agent's name in lower case: its leading
// letters, "_" and "-" (RFC 9309 section 2.2.1). For "Bot/2.0" it is "bot".
func productToken(name []byte) string {
	n := 0
	for n < len(name) && (isLetter(name[n]) || name[n] == '_' || name[n] == '-') {
		n++
	}
	return string(bytes.ToLower(name[:n]))
}

func isLetter(c byte) bool { c |= 0x20; return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }

// maxDelayBytes bounds the number in a Crawl-delay.
const maxDelayBytes = 64

// parseDelay parses the number of seconds at the beginning of a Crawl-delay. It returns a delay within
// [0, MaxCrawlDelay], in whole milliseconds. It ignores text after the number ("10s", "5 # sec")
// and refuses NaN and Inf.
func parseDelay(value []byte) (time.Duration, bool) {
	n := 0
	for n < min(len(value), maxDelayBytes) && bytes.IndexByte([]byte("+-.0123456789eE"), value[n]) >= 0 {
		n++
	}
	seconds, err := strconv.ParseFloat(string(value[:n]), 64)
	for ; err != nil && seconds == 0; n-- { // a number out of range comes back as ±Inf
		if n == 0 {
			return 0, false
		}
		seconds, err = strconv.ParseFloat(string(value[:n-1]), 64)
	}
	seconds = min(max(seconds, 0), MaxCrawlDelay.Seconds())
	return time.Duration(math.Round(seconds*1000)) * time.Millisecond, true
}

func boundReason(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxReasonBytes)], "")
}
