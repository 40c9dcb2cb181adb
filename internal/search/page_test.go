package search

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

func get(t *testing.T, h *Handler, target string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
	return w
}

func handler(ix *Index) *Handler {
	return &Handler{Open: func(context.Context) (*Index, error) { return ix, nil }}
}

// nodes returns the elements of a page by name.
func nodes(t *testing.T, body string) map[string][]*html.Node {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]*html.Node{}
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode {
			out[n.Data] = append(out[n.Data], n)
		}
	}
	return out
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func TestPage(t *testing.T) {
	var pages []*page
	for i := range 25 {
		pages = append(pages, &page{url: site + strings.Repeat("x", i+1), lang: "en", title: "Coffee <b>&amp; tea</b>", body: "How to roast coffee at home."})
	}
	h := handler(one(t, pages...))
	w := get(t, h, "/any/prefix/?q=coffee")
	if w.Code != 200 {
		t.Fatal(w.Code, w.Body)
	}
	all := nodes(t, w.Body.String())
	if len(all["li"]) != 10 || len(all["mark"]) < 20 || len(all["b"]) != 0 || len(all["script"]) != 0 {
		t.Errorf("%d results, %d marks, %d of the pages' own elements", len(all["li"]), len(all["mark"]), len(all["b"]))
	}
	// Follow the links to the next page like a browser.
	base, _ := url.Parse("/any/prefix/?q=coffee")
	seen := map[string]bool{}
	for range 5 {
		next := ""
		all := nodes(t, w.Body.String())
		for _, a := range all["a"] {
			if attr(a, "rel") == "next" {
				next = attr(a, "href")
			}
		}
		for _, h := range all["h2"] {
			seen[attr(h.FirstChild, "href")] = true
		}
		if next == "" {
			break
		}
		u, err := base.Parse(next)
		if err != nil || u.Path != "/any/prefix/" {
			t.Fatal(u, err)
		}
		w = get(t, h, u.String())
	}
	if len(seen) != 25 {
		t.Errorf("%d results on all pages", len(seen))
	}
	// The policy allows the style of the page.
	styles := nodes(t, w.Body.String())["style"]
	sum := sha256.Sum256([]byte(styles[0].FirstChild.Data))
	if csp := w.Header().Get("Content-Security-Policy"); !strings.Contains(csp, base64.StdEncoding.EncodeToString(sum[:])) || strings.Contains(csp, "unsafe") {
		t.Errorf("policy %s", csp)
	}
	for _, c := range []struct {
		target string
		status int
		want   string
	}{
		{"/", 200, "What a query may say"},
		{"", 200, "What a query may say"},
		{"/favicon.ico", 404, ""},
		{"/?q=coffee&offset=x", 400, "not a number"},
		{"/?q=coffee&offset=-1", 400, "not a number"},
		{"/?q=coffee&offset=5000", 400, "at most 1000"},
		{"/?q=" + strings.Repeat("a", 5000), 400, "more than 4096"},
		{"/?q=" + strings.Repeat("a", 100_000), 400, "bytes"},
		{"/?q=-coffee", 400, "word to search for"},
		{"/?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E", 400, "quote at character 1 is not closed"},
		{"/?q=%3Cscript%3Ealert(1)%3C/script%3E", 200, "0 results"},
		{"/?q=cofee", 200, `Try <a href="?q=coffee">coffee</a> (25).`},
		{"/?site=example.org", 200, "25 results"},
		{"/?q=coffee&explain=1", 200, "in all"},
		{"/x/search.json?q=coffee&limit=2", 200, `"total":25`},
		{"/search.json", 400, "q is missing"},
	} {
		w := get(t, h, "http://host"+c.target)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%.60s: %d, %.300s", c.target, w.Code, w.Body)
		}
		if strings.Contains(w.Body.String(), "<script") {
			t.Errorf("%.60s: the page has a script", c.target)
		}
	}
	var a Answer
	if err := json.Unmarshal(get(t, h, "/search.json?q=coffee&limit=500").Body.Bytes(), &a); err != nil || len(a.Results) != 25 {
		t.Errorf("%v, %d results", err, len(a.Results))
	}
	post := httptest.NewRecorder()
	h.ServeHTTP(post, httptest.NewRequest("POST", "/?q=coffee", nil))
	if post.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", post.Code)
	}
}

// TestHostileResults checks that texts of pages are escaped, and that only web addresses become
// links.
func TestHostileResults(t *testing.T) {
	a := &Answer{Results: []Result{
		{URL: "javascript:alert(1)", Title: Marked{Text: `<img src=x onerror=alert(1)>`}, Site: `"><script>`, Lang: `"><i>`},
		{URL: "data:text/html,x", Snippet: Marked{Text: "<script>x</script>", Marks: [][2]int{{0, 8}}}},
		{URL: "https://example.org/\"onmouseover=x", Others: []Similar{{URL: "<u>"}}, Similar: 1},
	}, Notes: []string{"<s>"}}
	var b strings.Builder
	if err := pageTemplate.Execute(&b, &shown{Request: Request{Query: `"><script>`}, Answer: a, Error: "<em>"}); err != nil {
		t.Fatal(err)
	}
	all := nodes(t, b.String())
	for _, name := range []string{"script", "img", "i", "u", "s", "em"} {
		if len(all[name]) > 0 {
			t.Errorf("the page has an element %s:\n%s", name, b.String())
		}
	}
	for _, link := range all["a"] {
		href := attr(link, "href")
		if !strings.HasPrefix(href, "https://example.org/%22") && !strings.HasPrefix(href, "?") {
			t.Errorf("a link to %s", href)
		}
		if attr(link, "onmouseover") != "" {
			t.Error("a URL has added an attribute")
		}
	}
}

func TestPageErrors(t *testing.T) {
	var told []error
	h := &Handler{
		Open: func(context.Context) (*Index, error) { return nil, errors.New("bucket secret-name is gone") },
		Done: func(_ *http.Request, _ *Answer, err error) { told = append(told, err) },
	}
	w := get(t, h, "/?q=x")
	if w.Code != 500 || strings.Contains(w.Body.String(), "secret") || len(told) != 1 || told[0] == nil {
		t.Errorf("%d %s, errors for Done: %v", w.Code, w.Body, told)
	}
	h.Open = func(context.Context) (*Index, error) { return nil, ErrNoIndex }
	if w := get(t, h, "/?q=x"); w.Code != 503 || !strings.Contains(w.Body.String(), "Nothing is indexed yet") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestPaths checks that the handler serves any folder, and only the name search.json.
func TestPaths(t *testing.T) {
	h := handler(one(t, &page{url: site, body: "coffee"}))
	for path, kind := range map[string]string{
		"/": "text/html", "/v1.0/": "text/html", "/v1.0/search": "", "/v1.0": "", "/example.org/a/search.json": "application/json",
		"/favicon.ico": "", "/v1.0/robots.txt": "",
	} {
		w := get(t, h, path+"?q=coffee")
		if got := w.Header().Get("Content-Type"); (w.Code == 200) != (kind != "") || kind != "" && !strings.HasPrefix(got, kind) {
			t.Errorf("%s: %d, %s", path, w.Code, got)
		}
	}
}
