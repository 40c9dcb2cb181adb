package inbound

import (
	"compress/gzip"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/platform"
)

const (
	token = "a token of some length"
	key   = "0123456789abcdef"
)

// world is a site, its crawl, and the endpoint of that crawl.
type world struct {
	t        *testing.T
	platform *platform.Platform
	*Handler
	site *httptest.Server

	mu   sync.Mutex
	hits map[string]int // by path
}

// newWorld crawls "/" and "/a" of a site.
func newWorld(t *testing.T) *world {
	t.Helper()
	p, err := drivers.Memory(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	w := &world{t: t, platform: p, hits: map[string]int{}}
	w.site = httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(w.site.Close)
	to, err := service.New(p, service.Config{})
	if err == nil {
		w.Handler, err = New(Config{Token: token, Platform: p, To: to, Log: slog.New(slog.DiscardHandler)})
	}
	if err != nil {
		t.Fatal(err)
	}
	w.crawl(w.site.URL + "/")
	return w
}

func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.hits[r.URL.Path]++
	w.mu.Unlock()
	switch r.URL.Path {
	case "/":
		rw.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(rw, `<a href="/a">a</a>`)
	case "/" + key + ".txt":
		rw.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(rw)
		_, _ = io.WriteString(z, "\ufeff"+key+"\r\n")
		_ = z.Close()
	case "/sub/" + key + ".txt":
		_, _ = io.WriteString(rw, key)
	case "/a", "/new", "/feed", "/sub/x":
		_, _ = io.WriteString(rw, r.URL.Path)
	default:
		http.NotFound(rw, r)
	}
}

// crawl crawls until nothing is left to do.
func (w *world) crawl(seeds ...string) {
	w.t.Helper()
	e, err := service.New(w.platform, service.Config{
		Log: slog.New(slog.DiscardHandler), Fetch: fetch.Config{UserAgent: "t/1", Token: "t", AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		Step: crawl.StepConfig{Token: "t", Software: "t", Linger: time.Millisecond},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	var urls []weburl.URL
	for _, s := range seeds {
		urls = append(urls, w.url(s))
	}
	want := blobschema.Crawl{ID: "test", HashKey: make([]byte, 16), Slots: 16, Partitions: 1, Settings: blobschema.Settings{MaxDepth: -1}}
	if _, _, _, err = e.Begin(want, crawl.Seeds(urls), nil); err == nil {
		ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
		defer cancel()
		_, err = e.Run(ctx)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) url(s string) weburl.URL {
	w.t.Helper()
	u, err := weburl.Parse(s)
	if err != nil {
		w.t.Fatal(err)
	}
	return u
}

// send sends a request to the endpoint, with some headers, and returns the status and text.
func (w *world) send(method, target, body string, headers ...string) (int, string) {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), method, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	w.ServeHTTP(rec, r)
	return rec.Code, rec.Body.String()
}

// expect checks the number of requests of a path.
func (w *world) expect(path string, n int) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hits[path] != n {
		w.t.Errorf("%s was requested %d times, want %d", path, w.hits[path], n)
	}
}

// submit sends an IndexNow submission and checks the status.
func (w *world) submission(status int, host, key, location string, urls ...string) {
	w.t.Helper()
	body, err := json.Marshal(map[string]any{"host": host, "key": key, "keyLocation": location, "urlList": urls})
	if err != nil {
		w.t.Fatal(err)
	}
	if got, text := w.send("POST", "/indexnow", string(body)); got != status {
		w.t.Errorf("a submission of %.200s: %d %s, want %d", urls, got, text, status)
	}
}

// settle checks how many claims are left.
func (w *world) settle(want int) {
	w.t.Helper()
	if left, err := w.Settle(w.t.Context()); left != want || err != nil {
		w.t.Errorf("%d claims are left, want %d: %v", left, want, err)
	}
}

func TestRequests(t *testing.T) {
	w := newWorld(t)
	w.expect("/a", 1)
	bearer := []string{"Authorization", "Bearer " + token}
	many := strings.Repeat(w.site.URL+"/a\n", blobschema.MaxRequestURLs+1)
	for _, tt := range []struct {
		body    string
		headers []string
		status  int
	}{
		{w.site.URL + "/a", nil, 401},
		{w.site.URL + "/a", []string{"Authorization", "Bearer " + token + "x"}, 401},
		{w.site.URL + "/a", []string{"Authorization", "Basic " + token}, 401},
		{"", bearer, 400},
		{"# nothing", bearer, 400},
		{"mailto:a@b", bearer, 400},
		{`{"recrawl": ["` + w.site.URL + `/a"]} {}`, bearer, 400},
		{`{"recrawl": ["` + w.site.URL + `/a"], "order": "stop"}`, bearer, 400},
		{`{"seeds": ["http://elsewhere.example/"], "recrawl": ["` + w.site.URL + `/a"]}`, bearer, 400},
		{`{"recrawl": ["` + w.site.URL + `/a"], "crawl": "../x"}`, bearer, 400},
		{`{"recrawl": ["` + w.site.URL + `/a"], "id": "` + strings.Repeat("x", 201) + `"}`, bearer, 400},
		{many, bearer, 400},
		{strings.Repeat("x", maxBody+1), bearer, 413},
	} {
		if status, text := w.send("POST", "/requests", tt.body, tt.headers...); status != tt.status {
			t.Errorf("%.60q %v: %d %s, want %d", tt.body, tt.headers, status, text, tt.status)
		}
	}
	w.crawl()
	w.expect("/a", 1)
	for i, body := range []string{w.site.URL + "/a\n# comment\nhttp://elsewhere.example/", `{"recrawl": ["` + w.site.URL + `/a"], "id": "x"}`} {
		if status, text := w.send("POST", "/requests", body, bearer...); status != 202 {
			t.Errorf("%s: %d %s", body, status, text)
		}
		w.crawl()
		w.expect("/a", 2+i)
	}
	v, err := w.view(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if pages, err := v.History(t.Context(), w.url("http://elsewhere.example/")); err != nil || len(pages) != 1 || pages[0].Outcome != blobschema.OutcomeScope {
		t.Errorf("a URL out of scope: %+v, %v", pages, err)
	}
	for request, want := range map[string]int{"GET /requests": 405, "POST /orders": 404, "GET /": 404, "GET /records": 404} {
		method, path, _ := strings.Cut(request, " ")
		if status, _ := w.send(method, path, "", bearer...); status != want {
			t.Errorf("%s: %d, want %d", request, status, want)
		}
	}
	w.Token = ""
	if status, _ := w.send("POST", "/requests", w.site.URL, "Authorization", "Bearer "); status != 401 {
		t.Errorf("without a token: %d", status)
	}
}

// TestIndexNow submits URLs with a right key and with wrong ones.
func TestIndexNow(t *testing.T) {
	w := newWorld(t)
	site := w.site.URL
	host := strings.TrimPrefix(site, "http://")
	w.submission(422, "elsewhere.example", key, "", site+"/new")
	w.submission(422, host, key, "", site+"/new", "http://elsewhere.example/")
	w.submission(422, host, key, "http://elsewhere.example/"+key+".txt", site+"/new")
	w.submission(422, host, key, site+"/sub/"+key+".txt", site+"/new") // not in its folder
	w.submission(422, host, "short", "", site+"/new")
	w.submission(400, host, key, "", "::")
	w.submission(400, host, key, "::", site+"/new")
	w.submission(400, host, key, "")
	w.submission(400, "", key, "", site+"/new")
	w.submission(422, host, key, "", strings.Split(strings.Repeat(site+"/new ", blobschema.MaxRequestURLs)+site+"/new", " ")...)
	w.submission(422, "elsewhere.example", key, "", "http://elsewhere.example/") // out of scope
	for _, body := range []string{"", "[]", "{", `{"host": 1}`, "\x00"} {
		if status, _ := w.send("POST", "/indexnow", body); status != 400 {
			t.Errorf("%q: %d", body, status)
		}
	}
	w.settle(0)
	w.crawl()
	w.expect("/new", 0)

	// The URLs wait until the key file has been fetched. The request of a second claim for the same file counts once.
	query := "/indexnow?" + url.Values{"url": {site + "/new"}, "key": {key}}.Encode()
	if status, text := w.send("GET", query, ""); status != 202 {
		t.Fatalf("%d %s", status, text)
	}
	w.submission(202, host, key, "", site+"/a")
	w.submission(202, host, "another-key", "", site+"/a")
	w.submission(202, host, key, site+"/sub/"+key+".txt", site+"/sub/x")
	w.submission(202, host, "another-key", site+"/"+key+".txt", site+"/") // the file is there, with another key
	w.settle(5)
	w.crawl()
	w.expect("/"+key+".txt", 1)
	w.expect("/new", 0)
	w.settle(0) // requests all except those of the wrong key
	w.settle(0)
	w.crawl()
	w.expect("/new", 1)
	w.expect("/a", 2)
	w.expect("/sub/x", 1)

	// Now the key is known, and so is the wrong one.
	w.submission(200, host, key, "", site+"/new")
	w.submission(403, host, "another-key", "", site+"/a")
	w.submission(403, host, "another-key", site+"/"+key+".txt", site+"/")
	w.crawl()
	w.expect("/new", 2)
	w.expect("/a", 2)
	w.expect("/", 1)
	w.expect("/"+key+".txt", 1)

	// A claim waits for an answer that is newer than it.
	s := submission{key: key, location: w.url(site + "/" + key + ".txt"), urls: []string{site + "/a"}}
	if _, err := w.claim(t.Context(), "test", &s); err != nil {
		t.Fatal(err)
	}
	age := func(by time.Duration) {
		if err := w.revise(t.Context(), "test", func(r *claims) error {
			r.Claims[0].Since = r.Claims[0].Since.Add(by)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	age(time.Hour)
	w.settle(1)
	age(-time.Hour)
	w.settle(0)
	w.crawl()
	w.expect("/a", 3)
	s.location = w.url(site + "/never.txt") // its request was lost
	if _, err := w.claim(t.Context(), "test", &s); err != nil {
		t.Fatal(err)
	}
	w.settle(1)
	age(-claimAge - time.Minute)
	w.settle(0)
}

// TestClaimsAreBounded checks that submissions without a key fill neither the record nor the crawl.
func TestClaimsAreBounded(t *testing.T) {
	w := newWorld(t)
	site := w.site.URL
	host := strings.TrimPrefix(site, "http://")
	w.checkers.burst = 1000
	statuses := map[int]int{}
	for i := range 50 {
		body := fmt.Sprintf(`{"host": %q, "key": "wrong-key-%d", "urlList": [%q]}`, host, i, site+"/a")
		status, _ := w.send("POST", "/indexnow", body, "X-Forwarded-For", fmt.Sprint("192.0.2.", i))
		statuses[status]++
	}
	if statuses[202] != w.checks.burst || statuses[429] != 50-w.checks.burst {
		t.Errorf("wrong keys: %v", statuses)
	}
	w.crawl()
	w.settle(0)
	w.crawl()
	w.expect("/a", 1)
	// The record holds at most so many claims of a host, and so many bytes.
	claimed := 0
	w.checks.burst, w.checks.of, w.sources.of = 1000, nil, nil
	for i := range 40 {
		s := submission{key: key, location: w.url(fmt.Sprint(site, "/", i, ".txt")), urls: []string{site + "/a"}}
		if _, err := w.claim(t.Context(), "test", &s); err == nil {
			claimed++
		}
	}
	if claimed != maxHostClaims {
		t.Errorf("%d claims of a host", claimed)
	}
	for i := range maxClaims { // of other hosts, with URLs that cannot be compressed much
		s := submission{key: key, location: w.url(fmt.Sprintf("http://%d.example/k.txt", i))}
		for n := range 100 {
			s.urls = append(s.urls, "http://x.example/"+digest(fmt.Sprint(i, n)))
		}
		if _, err := w.claim(t.Context(), "test", &s); err != nil {
			break
		}
	}
	recs, err := w.platform.ReadRecords(t.Context(), []string{naming.ClaimsKey("test")})
	if n := len(recs[0].Value); err != nil || n < maxClaimBytes || n > 2*maxClaimBytes {
		t.Errorf("a record of %d bytes, %v", n, err)
	}
}

func TestWebSub(t *testing.T) {
	w := newWorld(t)
	feed := w.site.URL + "/feed"
	callback, secret := Callback(token, "https://crawler.example/", feed)
	target := strings.TrimPrefix(callback, "https://crawler.example")
	verify := func(target string, q url.Values) (int, string) { return w.send("GET", target+"&"+q.Encode(), "") }
	intent := url.Values{"hub.mode": {"subscribe"}, "hub.topic": {feed}, "hub.challenge": {"<c&1>"}, "hub.lease_seconds": {"864000"}}
	if status, text := verify(target, intent); status != 200 || text != "<c&1>" {
		t.Errorf("verification: %d %q", status, text)
	}
	other := url.Values{"hub.mode": {"subscribe"}, "hub.topic": {w.site.URL + "/a"}, "hub.challenge": {"c"}}
	if status, _ := verify(target, other); status != 404 {
		t.Errorf("another topic: %d", status)
	}
	forged := strings.Replace(target, "feed", "a", 1)
	for q, want := range map[string]int{"hub.mode=denied&hub.reason=no": 200, "hub.mode=subscribe&hub.topic=" + url.QueryEscape(feed): 400, "": 400} {
		if status, _ := w.send("GET", target+"&"+q, ""); status != want {
			t.Errorf("%s: %d, want %d", q, status, want)
		}
	}
	sign := func(body, secret string) string {
		m := hmac.New(sha256.New, []byte(secret))
		m.Write([]byte(body))
		return "sha256=" + hex.EncodeToString(m.Sum(nil))
	}
	content := strings.Repeat("<rss/>", 1000)
	huge := strings.Repeat("x", maxContent+1)
	for _, tt := range []struct {
		target, body, signature string
		want                    int
	}{
		{target, content, "", 403},
		{target, content, "sha256=00", 403},
		{target, content, "md5=" + strings.Repeat("0", 32), 403},
		{target, content, sign(content, "another secret"), 403},
		{target, content + " ", sign(content, secret), 403},
		{forged, content, sign(content, secret), 404},
		{target, huge, sign(huge, secret), 400},
	} {
		if status, text := w.send("POST", tt.target, tt.body, "X-Hub-Signature", tt.signature); status != tt.want {
			t.Errorf("signature %q: %d %s, want %d", tt.signature, status, text, tt.want)
		}
	}
	w.crawl()
	w.expect("/feed", 0)
	for range 2 { // the second is a replay
		if status, text := w.send("POST", target, content, "X-Hub-Signature", sign(content, secret)); status != 202 {
			t.Errorf("%d %s", status, text)
		}
		w.crawl()
		w.expect("/feed", 1)
	}
	w.Token = ""
	if status, _ := w.send("POST", target, content, "X-Hub-Signature", sign(content, secret)); status != 404 {
		t.Errorf("without a token: %d", status)
	}
}

// TestRates checks that one source does not use up the endpoint for others, and that many names need little memory.
func TestRates(t *testing.T) {
	h, err := New(Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	from := func(addr string) int {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/indexnow", nil)
		r.RemoteAddr = addr
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		return rec.Code
	}
	last := 0
	for range 80 {
		last = from("192.0.2.1:1")
	}
	if other := from("192.0.2.2:1"); last != 429 || other != 400 {
		t.Errorf("the source: %d, another one: %d", last, other)
	}
	for range atWork {
		h.slots <- struct{}{}
	}
	if got := from("192.0.2.3:1"); got != 503 {
		t.Errorf("at work: %d", got)
	}
	l := limits{rate: 1e-9, burst: 1}
	for i := range 2 * maxLimits {
		l.allow(fmt.Sprint(i), 1)
	}
	if len(l.of) != maxLimits {
		t.Errorf("%d names", len(l.of))
	}
	for remote, want := range map[string]string{
		"192.0.2.7:80": "192.0.2.7/32", "[2001:db8::1:2]:80": "2001:db8::/64", "[::ffff:192.0.2.7]:80": "192.0.2.7/32", "192.0.2.7": "192.0.2.7/32", "x": "",
	} {
		if got := source(remote); got != want {
			t.Errorf("source of %s: %s", remote, got)
		}
	}
	if _, err := New(Config{Token: "short"}); err == nil {
		t.Error("a short token is taken")
	}
}

func FuzzParsers(f *testing.F) {
	f.Add([]byte("http://a.example/\n# b"), "sha256=00")
	f.Add([]byte(`{"recrawl": ["http://a.example/"], "id": "x"}`), "=")
	f.Add([]byte(`{"host": "a.example", "key": "12345678", "keyLocation": "http://a.example/x/k.txt", "urlList": ["http://a.example/x/%2e%2e/y"]}`), "sha1=")
	f.Fuzz(func(t *testing.T, body []byte, signature string) {
		if req, err := parseURLs(body); err == nil {
			for _, m := range req.Split() {
				if _, err := blobschema.EncodeRequest(m); err != nil {
					t.Errorf("an unfit request: %v", err)
				}
			}
		}
		if s, err := parseIndexNow(body); err == nil {
			for _, raw := range s.urls {
				if u, err := weburl.Parse(raw); err != nil || u.Host() != s.location.Host() || !strings.HasPrefix(u.Path(), folder(s.location)) {
					t.Errorf("%s is not below %s: %v", raw, s.location, err)
				}
			}
		}
		if valid, err := signed(signature, "secret", strings.NewReader(string(body))); valid || err != nil {
			t.Errorf("signature %q is taken, %v", signature, err)
		}
	})
}
