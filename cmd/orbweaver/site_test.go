package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"
)

const sitePages = 40

// site is a small site. Page /n links to /2n+1 and /2n+2, so that 0 to 39 are found from /0. Page /0 also links to
// /missing, to /moved, which redirects to /1, and to another host. Only one of its hosts has a robots.txt, which names a
// sitemap with /20. Requests below /slow/ wait for the end of the site.
//
// Nothing links to these pages: /fixed answers conditional requests with 304; /same never changes, but answers in full;
// /news always changes; /pictures shows two pictures; /words links to two pages with words, one of them in Chinese.
type site struct {
	url     string
	other   string // URL of the same site as another host
	mapped  string // URL of the same site with a sitemap
	servers []*httptest.Server
	gone    chan struct{}

	mu    sync.Mutex
	more  *sync.Cond // broadcast when asked grows or the time is up
	asked []time.Time
	late  bool
	fled  bool // "/fleeting" was served, once
}

func newSite() *site {
	s := &site{gone: make(chan struct{})}
	s.more = sync.NewCond(&s.mu)
	for _, url := range []*string{&s.url, &s.other, &s.mapped} { // all URLs are known before the first request
		server := httptest.NewUnstartedServer(s)
		*url = "http://" + server.Listener.Addr().String()
		s.servers = append(s.servers, server)
	}
	for _, server := range s.servers {
		server.Start()
	}
	return s
}

func (s *site) close() {
	close(s.gone)
	for _, server := range s.servers {
		server.CloseClientConnections()
		server.Close()
	}
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" && "http://"+r.Host == s.mapped {
		fmt.Fprintf(w, "Sitemap: %s/sitemap.xml\n", s.mapped)
		return
	}
	if r.URL.Path == "/robots.txt" {
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	s.asked = append(s.asked, time.Now())
	s.more.Broadcast()
	s.mu.Unlock()
	if strings.HasPrefix(r.URL.Path, "/slow/") {
		select {
		case <-s.gone:
		case <-r.Context().Done():
		}
		return
	}
	n, err := strconv.Atoi(r.URL.Path[1:])
	switch {
	case r.URL.Path == "/fixed" && r.Header.Get("If-None-Match") == `"v1"`:
		w.WriteHeader(http.StatusNotModified)
	case r.URL.Path == "/fixed":
		w.Header().Set("ETag", `"v1"`)
		fmt.Fprint(w, "fixed ", strings.Repeat("and fixed ", 200))
	case r.URL.Path == "/sitemap.xml":
		w.Header().Set("Content-Type", "application/xml")
		fmt.Fprintf(w, `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>%s/20</loc></url></urlset>`, s.mapped)
	case wordPages[r.URL.Path] != "":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, wordPages[r.URL.Path])
	case r.URL.Path == "/styled":
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<link rel=stylesheet href="%s/style.css"><img src="/picture">`, s.other)
	case r.URL.Path == "/style.css":
		w.Header().Set("Content-Type", "text/css")
		fmt.Fprint(w, "body { background: url(back.png) }")
	case r.URL.Path == "/back.png":
		w.Header().Set("Content-Type", "image/png")
		fmt.Fprint(w, "\x89PNG\r\n")
	case r.URL.Path == "/fleeting" && s.flee():
		fmt.Fprint(w, "here now")
	case r.URL.Path == "/same":
		fmt.Fprint(w, "same ", strings.Repeat("and same ", 200))
	case r.URL.Path == "/news":
		fmt.Fprintf(w, "news %d %s", s.count(), strings.Repeat("and news ", 200))
	case r.URL.Path == "/moved":
		http.Redirect(w, r, "/1", http.StatusFound)
	case err != nil || n < 0 || n >= sitePages:
		http.NotFound(w, r)
	default:
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<title>page %d</title>", n)
		if n == 0 {
			fmt.Fprint(w, `<a href="/missing">a</a> <a href="/moved">b</a> <a href="http://elsewhere.example/">c</a>`)
		}
		for _, to := range []int{2*n + 1, 2*n + 2} {
			if to < sitePages {
				fmt.Fprintf(w, `<a href="/%d">page %d</a>`, to, to)
			}
		}
	}
}

// flee reports whether it is called for the first time.
func (s *site) flee() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.fled
	s.fled = true
	return first
}

// wait waits until the site got requests for n pages, and reports whether it did in time.
func (s *site) wait(n int) bool {
	stop := time.AfterFunc(20*time.Second, func() {
		s.mu.Lock()
		s.late = true
		s.more.Broadcast()
		s.mu.Unlock()
	})
	defer stop.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.asked) < n && !s.late {
		s.more.Wait()
	}
	return len(s.asked) >= n
}

// first returns the time of the first request for a page.
func (s *site) first() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[0]
}

// count returns the number of requested pages.
func (s *site) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

var wordPages = map[string]string{
	"/words": `<title>Drinks and their makers</title><p>What is brewed, and by whom: <a href=/words/tea>green tea</a> and <a href=/words/zh>茶</a>.
		Roasting is another story. Whoever roasts coffee beans knows their colours by the minute, and says so.`,
	"/words/tea": `<title>Green tea</title><p>Leaves of tea are steamed in spring, and rolled by hand. The tea has no roasting but for a short while, in a pan
		that is not too hot; that is the way in which it has been made for hundreds of years.`,
	"/words/zh": `<title>绿茶的制作</title><p>绿茶的叶子在春天采摘，先蒸后揉。搜索引擎根据倒排索引查找网页，这里只说茶叶的制作方法，水温不宜太高。`,
}
