package simweb

import (
	"bytes"
	"compress/gzip"
	"encoding/xml"
	"errors"
	"io"
	"net"
	"net/http"
	neturl "net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	whatwg "github.com/nlnwa/whatwg-url/url"
	"github.com/temoto/robotstxt"
	"golang.org/x/net/html"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// This is a simple crawler that shares no code with the project. It tests the truth before the project's own
// crawls are tested against it.

// fetched is the result of one attempt; outcome is set if no whole answer came.
type fetched struct {
	status  int
	header  func(name string) string
	body    []byte // decoded
	outcome blobschema.Outcome
}

type fetcher func(url string, attempt int) fetched

type crawler struct {
	fetch    fetcher
	agent    string
	attempts int
	sitemaps bool                             // reads them
	robots   map[string]*robotstxt.RobotsData // nil: not fetched
}

func (c *crawler) crawl(t *testing.T, seeds []string) map[string]Got {
	t.Helper()
	got := make(map[string]Got)
	queue := append([]string(nil), seeds...)
	known := make(map[string]bool)
	for _, s := range seeds {
		known[s] = true
	}
	for len(queue) > 0 {
		url := queue[0]
		queue = queue[1:]
		g, links := c.visit(t, url)
		got[url] = g
		for _, l := range links {
			if !known[l] {
				known[l] = true
				queue = append(queue, l)
			}
		}
	}
	return got
}

func (c *crawler) visit(t *testing.T, url string) (Got, []string) {
	u, err := neturl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	robots, ok := c.robots[u.Host]
	var listed []string
	if !ok {
		robots = c.robotsOf(url)
		c.robots[u.Host] = robots
		if c.sitemaps && robots != nil {
			listed = c.listed(t, url, robots.Sitemaps)
		}
	}
	if robots == nil {
		return Got{Outcome: blobschema.OutcomeRobotsGone}, nil
	}
	if !robots.TestAgent(u.RequestURI(), c.agent) {
		return Got{Outcome: blobschema.OutcomeRobots}, listed
	}
	g, links := c.page(t, url)
	return g, append(links, listed...)
}

// listed returns the URLs of the host that its sitemaps list, including those of an index.
func (c *crawler) listed(t *testing.T, url string, sitemaps []string) (urls []string) {
	for i := 0; i < len(sitemaps); i++ {
		f := c.fetch(sitemaps[i], 0)
		if f.outcome != 0 || f.status != 200 {
			continue
		}
		body := f.body
		if strings.HasSuffix(sitemaps[i], ".gz") {
			body = unzip(body)
		}
		var x struct {
			Sitemaps []string `xml:"sitemap>loc"`
			URLs     []string `xml:"url>loc"`
		}
		if err := xml.Unmarshal(body, &x); err != nil {
			t.Errorf("%s: %v", sitemaps[i], err)
		}
		sitemaps = append(sitemaps, x.Sitemaps...)
		for _, u := range x.URLs {
			if strings.HasPrefix(u, resolve(url, "/")) {
				urls = append(urls, u)
			}
		}
	}
	return urls
}

func (c *crawler) page(t *testing.T, url string) (Got, []string) {
	var f fetched
	for attempt := range c.attempts {
		f = c.fetch(url, attempt)
		if f.outcome == 0 && f.status < 500 && f.status != 429 {
			break
		}
	}
	g := Got{Outcome: f.outcome, Status: f.status}
	if f.outcome != 0 {
		return g, nil
	}
	g.Digest = digestOf(f.body)
	location := f.header("Location")
	switch {
	case f.status >= 500:
		g.Outcome = blobschema.OutcomeServerError
	case f.status >= 400 || f.status >= 300 && location == "":
		g.Outcome = blobschema.OutcomeClientError
	case f.status >= 300:
		g.Outcome = blobschema.OutcomeRedirect
		g.Redirect = resolve(url, location)
		return g, []string{g.Redirect}
	default:
		g.Outcome = blobschema.OutcomeOK
		if strings.HasPrefix(f.header("Content-Type"), "text/html") {
			return g, c.links(t, url, f.body)
		}
	}
	return g, nil
}

func (c *crawler) robotsOf(url string) *robotstxt.RobotsData {
	at := resolve(url, "/robots.txt")
	for range 5 {
		f := c.fetch(at, 0)
		switch {
		case f.outcome != 0 || f.status >= 500:
			return nil
		case f.status >= 400:
			return &robotstxt.RobotsData{}
		case f.status >= 300:
			at = resolve(at, f.header("Location"))
			continue
		}
		d, err := robotstxt.FromBytes(f.body)
		if err != nil {
			return &robotstxt.RobotsData{}
		}
		return d
	}
	return nil
}

func resolve(base, ref string) string {
	u, err := whatwg.ParseRef(base, ref)
	if err != nil {
		return ""
	}
	return strings.ReplaceAll(u.Href(true), "%7E", "~")
}

// links returns the links to follow.
func (c *crawler) links(t *testing.T, url string, body []byte) []string {
	doc, err := html.Parse(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	var links []string
	add := func(ref string) {
		if l := resolve(url, ref); strings.HasPrefix(l, "http://") {
			links = append(links, l)
		} else {
			t.Errorf("%s: reference %q", url, ref)
		}
	}
	for n := range doc.Descendants() {
		attr := make(map[string]string)
		for _, a := range n.Attr {
			attr[a.Key] = a.Val
		}
		switch n.Data {
		case "base":
			url = resolve(url, attr["href"])
		case "a", "area":
			if !strings.Contains(attr["rel"], "nofollow") {
				add(attr["href"])
			}
		case "iframe":
			add(attr["src"])
		case "meta":
			if strings.EqualFold(attr["name"], "robots") && strings.EqualFold(attr["content"], "nofollow") {
				return nil
			}
			if _, to, ok := strings.Cut(attr["content"], "url="); ok && attr["http-equiv"] == "refresh" {
				add(to)
			}
		}
	}
	return links
}

// byFunction fetches through Answer.
func byFunction(w *Web, acceptGzip bool) fetcher {
	return func(url string, attempt int) fetched {
		r := w.Answer(Request{URL: url, Attempt: attempt, AcceptGzip: acceptGzip})
		f := fetched{status: r.Status, header: r.Get, body: r.Body}
		switch r.Fault {
		case FaultDNS:
			f.outcome = blobschema.OutcomeDNS
		case FaultRefused:
			f.outcome = blobschema.OutcomeConnect
		case FaultSilent:
			f.outcome = blobschema.OutcomeTimeout
		case FaultReset, FaultCut:
			f.outcome = blobschema.OutcomeCut
		case FaultGarbage:
			f.outcome = blobschema.OutcomeProtocol
		}
		if r.Get("Content-Encoding") == "gzip" {
			f.body = unzip(f.body)
		}
		return f
	}
}

func unzip(b []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil
	}
	b, _ = io.ReadAll(z)
	return b
}

// overHTTP fetches through sockets.
func overHTTP(t *testing.T, s *Server) fetcher {
	tr := &http.Transport{
		MaxConnsPerHost:       1,
		ResponseHeaderTimeout: 30 * time.Second, // no server is silent in these tests
	}
	t.Cleanup(tr.CloseIdleConnections)
	return func(url string, _ int) fetched {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := tr.RoundTrip(req)
		if err != nil {
			return fetched{outcome: failure(err)}
		}
		defer resp.Body.Close()
		f := fetched{status: resp.StatusCode, header: resp.Header.Get}
		if f.body, err = io.ReadAll(resp.Body); err != nil {
			f.outcome = failure(err)
		}
		return f
	}
}

func failure(err error) blobschema.Outcome {
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &dns):
		return blobschema.OutcomeDNS
	case errors.Is(err, syscall.ECONNREFUSED):
		return blobschema.OutcomeConnect
	case errors.As(err, &timeout) && timeout.Timeout():
		return blobschema.OutcomeTimeout
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return blobschema.OutcomeCut
	default:
		return blobschema.OutcomeProtocol
	}
}

func TestTruthByFunction(t *testing.T) {
	cases := map[string]struct {
		cfg   Config
		scope Scope
	}{
		"faultless":    {faultless(), Scope{}},
		"everything":   {everything(), Scope{}},
		"demo":         {Demo(), Scope{}},
		"other agent":  {everything(), Scope{Agent: "stranger"}},
		"bad agent":    {everything(), Scope{Agent: "BadBot"}},
		"sitemaps":     {mapped(), Scope{}},
		"no sitemaps":  {mapped(), Scope{SkipSitemaps: true}},
		"one attempt":  {everything(), Scope{Attempts: 1}},
		"two attempts": {everything(), Scope{Attempts: 2}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { checkByFunction(t, mustNew(t, tc.cfg), tc.scope) })
	}
	for seed := range uint64(12) {
		checkByFunction(t, mustNew(t, Small(seed)), Scope{})
	}
}

func checkByFunction(t *testing.T, w *Web, s Scope) {
	t.Helper()
	c := crawler{
		fetch: byFunction(w, w.cfg.Seed%2 == 0), agent: s.Agent,
		attempts: s.Attempts, sitemaps: !s.SkipSitemaps, robots: make(map[string]*robotstxt.RobotsData),
	}
	if c.agent == "" {
		c.agent = "orbweaver"
	}
	if c.attempts == 0 {
		c.attempts = 10
	}
	if d := Diff(w.Truth(s), c.crawl(t, w.Seeds())); d != "" {
		t.Errorf("seed %d: %s", w.cfg.Seed, d)
	}
}

// TestCanonicaliserAgrees checks that package weburl reads every reference as the URL standard does, and does
// not change canonical URLs. Otherwise no crawl could agree with the truth.
func TestCanonicaliserAgrees(t *testing.T) {
	w := mustNew(t, everything())
	odd := 0
	for url, e := range w.Truth(Scope{SkipDigests: true}).Pages {
		base, err := weburl.Parse(url)
		if err != nil || base.String() != url {
			t.Errorf("%s canonicalises to %s, %v", url, base, err)
			continue
		}
		if e.Kind != KindPage {
			continue
		}
		h, uri, _ := w.split(url)
		p, _ := w.lookup(h, uri)
		doc, err := html.Parse(bytes.NewReader(w.appendHTML(nil, h, p, 0)))
		if err != nil {
			t.Fatal(err)
		}
		for n := range doc.Descendants() {
			for _, a := range n.Attr {
				if a.Key != "href" && a.Key != "src" {
					continue
				}
				if strings.ContainsAny(a.Val, " \t\\#") {
					odd++
				}
				if got, err := base.Resolve(a.Val); err != nil || got.String() != resolve(url, a.Val) {
					t.Errorf("%q on %s is %s, %v; want %s", a.Val, url, got, err, resolve(url, a.Val))
				}
			}
		}
	}
	if odd < 50 {
		t.Errorf("only %d odd references", odd)
	}
}

func TestTruthOverHTTP(t *testing.T) {
	quick := Demo()
	quick.Connection.LatencyMax = 0
	quick.SlowBody = 8 * time.Millisecond
	quick.Pages = Pages{Min: 10, Max: 40}
	all := everything()
	all.Names = false
	all.Pages = Pages{Min: 10, Max: 30}
	all.Connection.LatencyMin, all.Connection.LatencyMax = 0, 2*time.Millisecond
	all.SlowBody = 8 * time.Millisecond
	all.Kinds.Silent, all.Down.Silent = 0, 0 // these cost timeouts
	for name, cfg := range map[string]Config{"demo": quick, "everything": all} {
		cfg.Sitemaps = mapped().Sitemaps
		t.Run(name, func(t *testing.T) {
			s, err := Serve(t.Context(), mustNew(t, cfg))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			c := crawler{
				fetch: overHTTP(t, s), agent: "orbweaver", attempts: 10, sitemaps: true, robots: make(map[string]*robotstxt.RobotsData),
			}
			got := c.crawl(t, s.Web().Seeds())
			if d := Diff(s.Web().Truth(Scope{}), got); d != "" {
				t.Error(d)
			}
		})
	}
}
