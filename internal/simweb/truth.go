package simweb

import (
	"crypto/sha1"
	"encoding/base32"
	"maps"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
)

// Scope describes the crawl of a [Truth]. The zero value is an unlimited crawl from the seeds
// of the web, by the agent of the configuration, which obeys nofollow.
type Scope struct {
	Seeds    []string // canonical URLs; nil: Web.Seeds
	Agent    string   // product token; "": Config.Agent
	Attempts int      // most attempts for a URL; 0: until it succeeds
	MaxDepth int      // greatest depth that is requested, where a redirect is a step like a link; 0: no limit
	// Within, if set, reports whether a canonical URL is requested.
	Within func(url string) bool
	// Without, if set, reports whether a canonical URL is not requested as a requisite.
	Without func(url string) bool
	// SkipSitemaps leaves sitemaps unread.
	SkipSitemaps bool
	// SkipDigests leaves digests out, so that no bodies are made.
	SkipDigests bool
	// Requisites includes what pages need to be displayed, even outside Within.
	Requisites bool
}

// Kind classifies a URL by its result.
type Kind string

const (
	KindPage     Kind = "page"
	KindRedirect Kind = "redirect"
	KindError    Kind = "error"         // requested without a usable answer
	KindDenied   Kind = "robots-denied" // never requested
)

// Expect is the expected result of a URL.
type Expect struct {
	Kind    Kind
	Outcome blobschema.Outcome
	// Or is another correct outcome; 0: none. For an unreachable host it says that robots.txt could not be
	// fetched.
	Or     blobschema.Outcome
	Status int // 0: no answer
	// Digest is the digest of the decoded body, as sha1:BASE32. Encoded is the digest of the body that a client
	// gets if it accepts gzip; it equals Digest if the body is not compressed. Both are "" if no whole body
	// comes.
	Digest, Encoded string
	Depth           int // least number of links and redirects from a seed
	Links           int // distinct targets that a crawler with this scope learns from the URL
	Redirect        string
	NoIndex         bool
	// Optional is set if a crawler may miss the URL: only requisites that links lead to as well redirect to it, and a
	// crawler that finds such a link first need not follow the redirect out of its scope.
	Optional bool
}

// Truth is the expected result of a crawl.
type Truth struct {
	Pages map[string]Expect // by canonical URL; robots.txt files are not among them
}

// Reachable returns all URLs of the truth in order, including failed and denied ones.
func (t Truth) Reachable() []string { return slices.Sorted(maps.Keys(t.Pages)) }

// Count returns the number of URLs of a kind.
func (t Truth) Count(k Kind) int {
	n := 0
	for _, e := range t.Pages {
		if e.Kind == k {
			n++
		}
	}
	return n
}

// Truth returns the result of a faultless crawl. It walks the web breadth first.
func (w *Web) Truth(s Scope) Truth {
	if s.Seeds == nil {
		s.Seeds = w.Seeds()
	}
	if s.Agent == "" {
		s.Agent = w.cfg.Agent
	}
	t, seen := w.walk(s, nil)
	if s.Requisites {
		least, _ := w.walk(s, seen)
		for url, e := range t.Pages {
			if _, ok := least.Pages[url]; !ok {
				e.Optional = true
				t.Pages[url] = e
			}
		}
	}
	return t
}

// walk returns the truth and the pages that were visited as such. Requisites among the linked pages redirect to nothing.
func (w *Web) walk(s Scope, linked map[uint64]struct{}) (Truth, map[uint64]struct{}) {
	t := Truth{Pages: make(map[string]Expect)}
	k := walk{
		w: w, scope: s, truth: &t, linked: linked,
		seen: make(map[uint64]struct{}), needs: make(map[uint64]struct{}), met: make([]bool, len(w.hosts)),
	}
	for _, url := range s.Seeds {
		k.seed(url)
	}
	for len(k.queue) > 0 {
		v := k.queue[0]
		k.queue = k.queue[1:]
		k.visit(v)
	}
	return t, k.seen
}

// walk is the state of Truth.
type walk struct {
	w      *Web
	scope  Scope
	truth  *Truth
	seen   map[uint64]struct{} // pages in the queue or visited
	needs  map[uint64]struct{} // likewise, requisites
	linked map[uint64]struct{}
	met    []bool // hosts with a visited page
	queue  []visit
	links  []link // scratch
	body   []byte // scratch
}

type visit struct {
	host, page int
	depth      int
	needed     bool // as a requisite
}

// seed adds a seed, which may be a URL that the web does not have.
func (k *walk) seed(url string) {
	h, uri, ok := k.w.split(url)
	if !ok {
		k.truth.Pages[url] = Expect{Kind: KindError, Outcome: blobschema.OutcomeDNS, Or: blobschema.OutcomeRobotsGone}
		return
	}
	p, known := k.w.lookup(h, uri)
	switch {
	case known:
		k.push(h, p, 0)
	case k.w.hosts[h].crawlable():
		k.truth.Pages[url] = k.failed(404)
	default: // like any page of the host
		k.truth.Pages[url] = k.expect(h, 0)
	}
}

func (k *walk) push(h, p, depth int) {
	if k.scope.MaxDepth > 0 && depth > k.scope.MaxDepth {
		return
	}
	if k.scope.Within != nil && !k.scope.Within(k.w.URL(h, p)) {
		return
	}
	key := pageKey(h, p)
	if _, ok := k.seen[key]; ok {
		return
	}
	k.seen[key] = struct{}{}
	k.queue = append(k.queue, visit{h, p, depth, false})
}

// need adds a requisite, which may be out of scope.
func (k *walk) need(h, p, depth int) {
	if k.scope.Without != nil && k.scope.Without(k.w.URL(h, p)) {
		return
	}
	if _, ok := k.needs[pageKey(h, p)]; !ok && k.scope.Requisites {
		k.needs[pageKey(h, p)] = struct{}{}
		k.queue = append(k.queue, visit{h, p, depth, true})
	}
}

// visit records the expectation of a page and queues its links. With the first page of a host it also queues
// the pages in the host's sitemap, one step deeper.
func (k *walk) visit(v visit) {
	if !k.met[v.host] && (!v.needed || k.scope.Within == nil || k.scope.Within(k.w.URL(v.host, 0))) {
		k.met[v.host] = true
		k.sitemap(v.host, v.depth+1)
	}
	e := k.expect(v.host, v.page)
	e.Depth = v.depth
	if v.needed {
		k.visitNeeded(v, e)
		return
	}
	if e.Outcome == blobschema.OutcomeOK || e.Outcome == blobschema.OutcomeRedirect {
		k.links = k.w.targets(k.links[:0], v.host, v.page, k.w.version(v.host, v.page))
		e.Links = len(k.links)
		for _, l := range k.links {
			k.push(int(l.host), int(l.page), v.depth+1)
		}
	}
	if e.Outcome == blobschema.OutcomeOK {
		k.needsOf(v)
	}
	k.truth.Pages[k.w.URL(v.host, v.page)] = e
}

// needsOf adds the requisites of a page.
func (k *walk) needsOf(v visit) {
	if kd, _ := k.w.kind(v.host, v.page); kd != media && kd != sheet && k.w.cfg.Requisites > 0 {
		k.need(v.host, sheetPage, v.depth+1)
	}
	for _, l := range k.w.requisites(nil, v.host, v.page) {
		k.need(int(l.host), int(l.page), v.depth+1)
	}
}

// visitNeeded records the expectation of a requisite and follows it as far as its page needs it. A requisite that is a page in
// scope is visited as such.
func (k *walk) visitNeeded(v visit, e Expect) {
	if url := k.w.URL(v.host, v.page); k.truth.Pages[url].Kind == "" {
		k.truth.Pages[url] = e
	}
	kd, _ := k.w.kind(v.host, v.page)
	switch {
	case e.Outcome == blobschema.OutcomeRedirect:
		if _, ok := k.linked[pageKey(v.host, v.page)]; !ok {
			h, p := k.w.redirectTarget(v.host, v.page)
			k.need(h, p, v.depth)
		}
	case e.Outcome == blobschema.OutcomeOK && kd == sheet:
		for _, l := range k.w.requisites(nil, v.host, v.page) {
			k.need(int(l.host), int(l.page), v.depth)
		}
	case e.Outcome == blobschema.OutcomeOK:
		k.push(v.host, v.page, v.depth)
	}
}

func (k *walk) sitemap(h, depth int) {
	if k.scope.SkipSitemaps || !k.w.hosts[h].crawlable() || k.w.hosts[h].sitemap == sitemapNone {
		return
	}
	for _, p := range k.w.listed(h) {
		k.push(h, int(p), depth)
	}
	k.push(k.w.foreign(h), 0, depth) // a crawler follows it if it is in scope
}

// expect returns the expectation of one page, without its place in the walk.
func (k *walk) expect(h, p int) Expect {
	w := k.w
	x := &w.hosts[h]
	fail := func(o, or blobschema.Outcome) Expect { return Expect{Kind: KindError, Outcome: o, Or: or} }
	switch {
	case x.down == FaultDNS:
		return fail(blobschema.OutcomeDNS, blobschema.OutcomeRobotsGone)
	case x.down == FaultRefused:
		return fail(blobschema.OutcomeConnect, blobschema.OutcomeRobotsGone)
	case x.down == FaultSilent:
		return fail(blobschema.OutcomeTimeout, blobschema.OutcomeRobotsGone)
	case x.robots.unreachable():
		return Expect{Kind: KindDenied, Outcome: blobschema.OutcomeRobotsGone}
	case w.denied(h, w.section(h, p), k.scope.Agent):
		return Expect{Kind: KindDenied, Outcome: blobschema.OutcomeRobots}
	}
	kd, _ := w.kind(h, p)
	e := Expect{Kind: KindPage, Outcome: blobschema.OutcomeOK, Status: 200}
	switch kd {
	case redirect, loop:
		th, tp := w.redirectTarget(h, p)
		e = Expect{Kind: KindRedirect, Outcome: blobschema.OutcomeRedirect, Status: w.redirectStatus(h, p), Redirect: w.URL(th, tp)}
		k.digest(&e, errorResponse(e.Status).Body)
		return e
	case gone, broken, busy:
		return k.failed(w.errorStatus(h, p, kd))
	case flaky:
		if f := w.flakiness(h, p); k.scope.Attempts > 0 && f.times >= k.scope.Attempts {
			return k.failed(f.status)
		}
	case cut:
		return k.failed(200)
	case reset:
		return k.failed(0)
	case silent, late:
		return fail(blobschema.OutcomeTimeout, 0)
	case garbage:
		return fail(blobschema.OutcomeProtocol, 0)
	case sheet:
		if !k.scope.SkipDigests {
			k.digest(&e, w.sheetBody(h, w.version(h, p)))
		}
		return e
	case media:
		if !k.scope.SkipDigests {
			k.digest(&e, w.mediaBody(h, p, w.version(h, p), w.mediaType(h, p)))
		}
		return e
	case noIndex:
		e.NoIndex = true
	case steady:
		if !k.scope.SkipDigests {
			k.digest(&e, w.steadyBody(h, p, w.version(h, p)))
		}
		return e
	}
	if !k.scope.SkipDigests {
		v := w.version(h, p)
		k.body = w.appendHTML(k.body[:0], h, p, v)
		k.digest(&e, k.body)
		if x.gzip {
			e.Encoded = digestOf(w.compressed(h, p, v, nil))
		}
	}
	return e
}

// failed returns the expectation of a final failure with a status. Status 200 means a cut body, 0 a reset.
func (k *walk) failed(status int) Expect {
	e := Expect{Kind: KindError, Status: status}
	switch {
	case status == 0:
		e.Outcome, e.Or = blobschema.OutcomeCut, blobschema.OutcomeConnect
		return e
	case status == 200:
		e.Outcome = blobschema.OutcomeCut
		return e
	case status >= 500:
		e.Outcome = blobschema.OutcomeServerError
	default:
		e.Outcome = blobschema.OutcomeClientError
	}
	k.digest(&e, errorResponse(status).Body)
	return e
}

func (k *walk) digest(e *Expect, body []byte) {
	if k.scope.SkipDigests {
		return
	}
	e.Digest = digestOf(body)
	e.Encoded = e.Digest
}

func digestOf(b []byte) string {
	sum := sha1.Sum(b)
	return "sha1:" + base32.StdEncoding.EncodeToString(sum[:])
}
