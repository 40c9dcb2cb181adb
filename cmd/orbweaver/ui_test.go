package main

import (
	"bufio"
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// hostileSite has texts and addresses that would run or lead away if the pages about a crawl did not escape them. No browser
// may request anything of it.
func hostileSite(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.UserAgent(), "Mozilla") {
			t.Errorf("a browser requests %s", r.URL)
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch r.URL.Path {
		case "/":
			fmt.Fprint(w, `<title></title><h1>start</h1><a href="/gone">`+"\u202egone \u0007"+`&lt;img src=x onerror=alert(1)&gt;</a> <a href="/one">1</a> <a href="/loop-a">l</a>
				<a href="javascript:alert(1)">j</a> <a href='/q"onmouseover="alert(1)'>q</a> <a href="/%3Cscript%3Ealert(1)%3C/script%3E">s</a>
				<a href="/same-a">a</a> <a href="/same-b">b</a> <a href="/evil">e</a> <a href="/binary">b</a>`)
		case "/one":
			http.Redirect(w, r, "/two", http.StatusMovedPermanently)
		case "/two":
			http.Redirect(w, r, "/gone", http.StatusFound)
		case "/loop-a":
			http.Redirect(w, r, "/loop-b", http.StatusFound)
		case "/loop-b":
			http.Redirect(w, r, "/loop-a", http.StatusFound)
		case "/same-a", "/same-b":
			fmt.Fprint(w, "<title>same</title>", strings.Repeat("the same text ", 50))
		case "/evil":
			w.Header().Set("Content-Security-Policy", "script-src *")
			w.Header().Set("Set-Cookie", "a=b")
			fmt.Fprintf(w, `<title>&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;`+"\u202e\u2066"+`</title><meta http-equiv=refresh content="0;url=http://%s/beacon">
				<base href="http://%s/"><script>top.location="/beacon";document.title="ran"</script><link rel=stylesheet href=/beacon><iframe src=/beacon></iframe><img src=/beacon onerror="parent.document.title='ran'">
				<form action=/order method=post><button name=order value=stop>click</button></form><p>evil words`, r.Host, r.Host)
		case "/binary":
			w.Header().Set("Content-Type", `application/x-"<script>alert(1)</script>`)
			fmt.Fprint(w, "\x00\x01<script>alert(1)</script>")
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// startUI crawls from a URL and serves the pages about it; it returns their address.
func startUI(t *testing.T, start string, args ...string) (base, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "d")
	command := func(ctx context.Context, errOut io.Writer, args ...string) exit {
		cmd := root()
		cmd.SetOut(io.Discard)
		cmd.SetErr(errOut)
		return execute(ctx, cmd, args)
	}
	if got := command(t.Context(), io.Discard, "crawl", "--quiet", "--index", "--data", dir, "--allow-net", "127.0.0.1", "--delay", "0s", start); got != exitOK {
		t.Fatalf("exit status %d", got)
	}
	return serveUI(t, context.Background(), append([]string{"--data", dir}, args...)...), dir
}

// serveUI serves the pages until the end of the test, and returns their address.
func serveUI(t *testing.T, parent context.Context, args ...string) (base string) {
	t.Helper()
	ctx, cancel := context.WithCancel(parent)
	r, w := io.Pipe()
	ended := make(chan exit, 1)
	go func() {
		cmd := root()
		cmd.SetErr(w)
		ended <- execute(ctx, cmd, append([]string{"ui", "--listen", "127.0.0.1:0"}, args...))
		w.Close()
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	go func() { _, _ = io.Copy(io.Discard, r) }()
	t.Cleanup(func() {
		cancel()
		if got := <-ended; got != exitOK {
			t.Errorf("exit status %d", got)
		}
	})
	m := regexp.MustCompile(`(http://127\.0\.0\.1:\d+)/ until Ctrl-C`).FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("%q, %v", line, err)
	}
	return m[1]
}

// visit sends a request; change may change it.
func visit(t *testing.T, method, address, body string, change func(*http.Request)) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if change != nil {
		change(req)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

// harmless fails if a page holds something of the hostile site that could run.
func harmless(t *testing.T, path, body string) {
	t.Helper()
	for _, bad := range []string{"<script>alert", "<img", "href=\"javascript:", "onmouseover=\"", "\u202e", "\u2066", "\u0007", " style=\""} {
		if strings.Contains(body, bad) {
			t.Errorf("%s has %q", path, bad)
		}
	}
}

func TestUI(t *testing.T) {
	t.Parallel()
	site := hostileSite(t)
	base, dir := startUI(t, site+"/")
	about := func(path string) string { return "/explain?" + url.Values{"url": {site + path}}.Encode() }
	for path, want := range map[string][]string{
		"/":                   {"Finished: nothing is left to fetch.", "Pages per second", "<polyline", "client-error"},
		"/hosts":              {strings.TrimPrefix(site, "http://"), "nothing is pending", "aria-sort=\"descending\""},
		"/hosts?hosts=host":   {"aria-sort=\"ascending\""},
		"/hosts?host=nowhere": {"None."},
		"/partitions":         {"16,384 slots in ", "<rect", "No slot is moving."},
		"/topics":             {"none"},
		"/crawls":             {"finished, active", "/crawls/active"},
		"/explain":            {"Give a URL or a host"},
		about("/evil"):        {"answered with status 200", "&lt;/title&gt;&lt;script&gt;alert(1)", "/stored?generation=0"},
		about("/gone"):        {"answered with status 404", "Pages that link to it <small>2"},
		about("/nowhere"):     {"unknown", "no link to it is known"},
		"/explain?url=" + strings.TrimPrefix(site, "http://"): {"0 URLs are pending of "},
		"/report":                 {"/gone", "client-error 404", "a loop", "/same-b", "onerror=alert(1)&gt;”"},
		"/report?broken=-url":     {"aria-sort=\"descending\""},
		"/search/?q=evil":         {"<mark>evil</mark>", "history</a>", "/hosts"},
		"/hosts?hosts.from=-5":    {"Hosts"},
		"/hosts?hosts.from=99999": {"Hosts"},
	} {
		resp, body := visit(t, http.MethodGet, base+path, "", nil)
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
		for _, w := range want {
			if !strings.Contains(body, w) {
				t.Errorf("%s has no %q:\n%.4000s", path, w, body)
			}
		}
		if csp := resp.Header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; style-src ") || strings.Contains(csp, "unsafe") ||
			!strings.Contains(csp, "frame-ancestors 'none'") || resp.Header.Get("X-Content-Type-Options") != "nosniff" || resp.Header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: headers %v", path, resp.Header)
		}
		harmless(t, path, body)
		if strings.Contains(body, "method=\"post\"") {
			t.Errorf("%s: a server that only reads offers a change", path)
		}
	}
	testRefusals(t, base, site)
	testStored(t, base, site)
	file := filepath.Join(t.TempDir(), "links.html")
	cmd := root()
	cmd.SetErr(io.Discard)
	if got := execute(t.Context(), cmd, []string{"report", "--data", dir, "--out", file}); got != exitOK {
		t.Fatalf("report: exit status %d", got)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []string{"default-src &#39;none&#39;; base-uri", "a loop", html.EscapeString(site + "/gone")} {
		if !strings.Contains(string(text), w) {
			t.Errorf("the report has no %q", w)
		}
	}
	harmless(t, file, string(text))
}

// testRefusals sends requests that are none of a person who opened the server.
func testRefusals(t *testing.T, base, site string) {
	t.Helper()
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for name, c := range map[string]struct {
		method, path, body string
		change             func(*http.Request)
		want               int
	}{
		"rebound name":    {want: http.StatusMisdirectedRequest, change: func(r *http.Request) { r.Host = "evil.example" }},
		"localhost":       {want: http.StatusOK, change: func(r *http.Request) { r.Host = "localhost:1" }},
		"foreign fetch":   {want: http.StatusForbidden, change: header("Sec-Fetch-Site", "cross-site")},
		"no page":         {path: "/nothing", want: http.StatusNotFound},
		"no URL":          {path: "/explain?url=javascript:/alert(1)", want: http.StatusBadRequest},
		"no host":         {path: "/explain?url=%00%22%3E", want: http.StatusBadRequest},
		"long":            {path: "/explain?url=" + strings.Repeat("a", 20<<10), want: http.StatusBadRequest},
		"not stored":      {path: "/stored?url=" + site + "/nothing", want: http.StatusNotFound},
		"read only":       {method: http.MethodPost, path: "/order", body: "order=stop", want: http.StatusForbidden},
		"foreign order":   {method: http.MethodPost, path: "/order", body: "order=stop", change: header("Origin", "https://evil.example"), want: http.StatusForbidden},
		"POST to a page":  {method: http.MethodPost, path: "/hosts", body: "a=b", want: http.StatusNotFound},
		"GET of an order": {path: "/order?order=stop", want: http.StatusNotFound},
	} {
		if c.method == "" {
			c.method = http.MethodGet
		}
		resp, body := visit(t, c.method, base+c.path, c.body, c.change)
		if resp.StatusCode != c.want {
			t.Errorf("%s: %d, want %d: %.300s", name, resp.StatusCode, c.want, body)
		}
		if resp.Header.Get("Content-Security-Policy") == "" {
			t.Errorf("%s: no policy", name)
		}
		harmless(t, name, body)
	}
}

// testStored reads stored payloads.
func testStored(t *testing.T, base, site string) {
	t.Helper()
	resp, body := visit(t, http.MethodGet, base+"/stored?url="+url.QueryEscape(site+"/evil"), "", nil)
	csp := resp.Header.Get("Content-Security-Policy")
	if resp.StatusCode != 200 || !strings.HasPrefix(csp, "sandbox; default-src 'none'; ") || strings.Contains(csp, "allow-") || strings.Contains(csp, "script-src") ||
		resp.Header.Get("Set-Cookie") != "" || resp.Header.Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(body, "evil words") {
		t.Errorf("stored page: %d, %v\n%s", resp.StatusCode, resp.Header, body)
	}
	resp, body = visit(t, http.MethodGet, base+"/stored?url="+url.QueryEscape(site+"/binary"), "", nil)
	if resp.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("stored binary: %d\n%s", resp.StatusCode, body)
	}
	harmless(t, "stored binary", body)
}

// TestUIControl changes a crawl that no process works on.
func TestUIControl(t *testing.T) {
	t.Parallel()
	s := newSite()
	defer s.close()
	base, dir := startUI(t, s.url+"/0", "--control")
	_, body := visit(t, http.MethodGet, base+"/explain?url="+url.QueryEscape(s.url+"/3"), "", nil)
	m := regexp.MustCompile(`name="token" value="([^"]{20,})"`).FindStringSubmatch(body)
	if m == nil {
		t.Fatalf("no token in\n%s", body)
	}
	form := func(name, value, token string) string {
		return url.Values{name: {value}, "token": {token}}.Encode()
	}
	for name, c := range map[string]struct {
		path, body string
		change     func(*http.Request)
		want       int
	}{
		"no token":    {"/order", "order=stop", nil, http.StatusForbidden},
		"wrong token": {"/order", form("order", "stop", strings.Repeat("A", len(m[1]))), nil, http.StatusForbidden},
		"cross-site": {"/order", form("order", "stop", m[1]), func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Mode", "navigate")
		}, http.StatusForbidden},
		"no order":  {"/order", form("order", "explode", m[1]), nil, http.StatusBadRequest},
		"no URL":    {"/recrawl", form("url", "javascript:alert(1)", m[1]), nil, http.StatusBadRequest},
		"much text": {"/recrawl", form("url", strings.Repeat("a", 40<<10), m[1]), nil, http.StatusBadRequest},
		"recrawl":   {"/recrawl", form("url", s.url+"/3", m[1]), nil, http.StatusSeeOther},
		"pause":     {"/order", form("order", "pause", m[1]), nil, http.StatusSeeOther},
	} {
		if resp, body := visit(t, http.MethodPost, base+c.path, c.body, c.change); resp.StatusCode != c.want {
			t.Errorf("%s: %d, want %d: %s", name, resp.StatusCode, c.want, body)
		}
	}
	if _, body := visit(t, http.MethodGet, base+"/", "", nil); !strings.Contains(body, "Resume the crawl") {
		t.Errorf("the crawl is not paused:\n%s", body)
	}
	before := s.count()
	cmd := root()
	cmd.SetErr(io.Discard)
	cmd.SetOut(io.Discard)
	execute(t.Context(), cmd, []string{"crawl", "--quiet", "--data", dir, "--allow-net", "127.0.0.1"}) // no new page: not exitOK
	if n := s.count() - before; n != 1 {
		t.Errorf("%d requests after the recrawl of one URL", n)
	}
}

// TestUICrawls chooses an earlier crawl in the browser.
func TestUICrawls(t *testing.T) {
	t.Parallel()
	s := newSite()
	defer s.close()
	base, dir := startUI(t, s.url+"/20", "--control")
	_, body := visit(t, http.MethodGet, base+"/", "", nil)
	first := regexp.MustCompile(`crawl (\S+) in `).FindStringSubmatch(body)[1]
	cmd := root()
	cmd.SetErr(io.Discard)
	cmd.SetOut(io.Discard)
	time.Sleep(time.Second) // ids have seconds
	if got := execute(t.Context(), cmd, []string{"crawl", "--new", "--quiet", "--data", dir, "--allow-net", "127.0.0.1", s.other + "/30"}); got != exitOK {
		t.Fatalf("exit status %d", got)
	}
	_, body = visit(t, http.MethodGet, base+"/crawls", "", nil)
	if !strings.Contains(body, "href=\"/crawls/"+first+"\"") || !strings.Contains(body, "href=\"/crawls/active\"") {
		t.Fatalf("the list lacks a crawl:\n%s", body)
	}
	resp, _ := visit(t, http.MethodGet, base+"/crawls/"+first, "", nil)
	choice := resp.Cookies()
	if resp.StatusCode != http.StatusSeeOther || len(choice) != 1 || choice[0].SameSite != http.SameSiteStrictMode || !choice[0].HttpOnly {
		t.Fatalf("%d, %v", resp.StatusCode, choice)
	}
	chosen := func(r *http.Request) { r.AddCookie(choice[0]) }
	_, body = visit(t, http.MethodGet, base+"/explain?url="+url.QueryEscape(s.url+"/20"), "", chosen)
	if !strings.Contains(body, "This is an earlier crawl") || !strings.Contains(body, "answered with status 200") || strings.Contains(body, "method=\"post\"") {
		t.Errorf("the earlier crawl:\n%s", body)
	}
	if resp, _ = visit(t, http.MethodGet, base+"/crawls/active", "", chosen); len(resp.Cookies()) != 1 || resp.Cookies()[0].MaxAge >= 0 {
		t.Errorf("%v", resp.Cookies())
	}
	if resp, _ = visit(t, http.MethodGet, base+"/crawls/nothing", "", nil); resp.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown crawl: %d", resp.StatusCode)
	}
	_, body = visit(t, http.MethodGet, base+"/explain?url="+url.QueryEscape(s.url+"/20"), "", nil)
	if strings.Contains(body, "answered with status 200") || strings.Contains(body, "earlier crawl") {
		t.Errorf("the active crawl:\n%s", body)
	}
}

// TestUIInBrowser lets a real browser use every page; 'make ui-test' sets the variable.
func TestUIInBrowser(t *testing.T) {
	python := os.Getenv("ORBWEAVER_UI_PYTHON")
	if python == "" {
		t.Skip("ORBWEAVER_UI_PYTHON names no Python with Playwright; 'make ui-test' installs one and sets it")
	}
	site := hostileSite(t)
	base, _ := startUI(t, site+"/", "--control")
	script, err := filepath.Abs("../../internal/ui/browser.py")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), python, script, base, site, os.Getenv("ORBWEAVER_UI_SHOTS")).CombinedOutput()
	if t.Log(string(out)); err != nil {
		t.Fatal(err)
	}
}

// TestUIOfDeployment looks at a deployment, and pauses it.
func TestUIOfDeployment(t *testing.T) {
	c := memoryCloud(t)
	off := c.functions()
	c.run("crawl", "--every", "100ms", "--delay", "0s", c.site.url+"/0").ends(exitOK)
	c.settled("finished")
	off()
	requests, figures := freeAddress(t), freeAddress(t)
	base := serveUI(t, context.WithValue(context.Background(), openerKey{}, c.open),
		"--platform", c.url, "--control", "--inbound", requests, "--metrics", figures)
	if text := scrape(t, figures); !strings.Contains(text, "\norbweaver_pages_total{") {
		t.Errorf("metrics:\n%s", text)
	}
	if resp, _ := visit(t, http.MethodGet, "http://"+requests+"/indexnow?url=http://x.example/&key=abcdefgh", "", nil); resp.StatusCode/100 != 4 {
		t.Errorf("a request for a host out of scope: %d", resp.StatusCode)
	}
	for path, want := range map[string][]string{
		"/": {"Finished: nothing is left to fetch.", "Pages per second", "<dt>cost</dt>", "Cost of fetching", "data-every=\"30\""}, "/hosts": {"Hosts"}, "/partitions": {"3 partitions"},
		"/report": {"client-error 404"}, "/explain?url=" + url.QueryEscape(c.site.url+"/3"): {"answered with status 200"},
	} {
		resp, body := visit(t, http.MethodGet, base+path, "", nil)
		for _, w := range want {
			if resp.StatusCode != http.StatusOK || !strings.Contains(body, w) {
				t.Errorf("%s: %d, without %q:\n%.3000s", path, resp.StatusCode, w, body)
			}
		}
	}
}
