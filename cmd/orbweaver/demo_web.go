package main

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/warc"
)

const (
	demoHosts = 12
	demoPages = 60 // of a host, in a tree: page n links to the pages 2n+1 and 2n+2, so that half of them are leaves

	// Hosts that are special. Host 0 has the seed.
	demoFree    = 3 // its robots.txt is missing, which allows everything
	demoClosed  = 5 // its robots.txt fails, which forbids everything
	demoRefuses = 7 // it refuses connections

	demoRobots = "User-agent: *\nDisallow: /private/\nDisallow: /calendar/\nCrawl-delay: 0.02\n"
	// demoDecoys are no links to a crawler that parses HTML and obeys nofollow.
	demoDecoys = "<a rel=nofollow href=/decoy/1>1</a><!-- <a href=/decoy/2>2</a> --><script>'<a href=/decoy/3>'</script>\n"
)

// demoWeb is a web on loopback addresses whose truth is known in advance. Some hosts fail, and so do pages without links:
// they are missing, redirect, close the connection or answer late, each in one way.
type demoWeb struct {
	seed    string
	pages   map[string]*demoPage // by URL: robots.txt files, and all that a crawl must find
	server  http.Server
	running sync.WaitGroup
}

// demoPage is an answer, and the outcome that the record of its URL must have.
type demoPage struct {
	want, or blobschema.Outcome // or is a second correct outcome; 0: only want is correct
	status   int                // 0: the connection is closed instead of an answer
	mime     string
	location string
	body     string
	delay    time.Duration
	cut      bool         // the connection is closed within the body
	failures int32        // first requests that are answered with 503
	requests atomic.Int32 // so far
}

// serveDemo starts the servers of all hosts.
func serveDemo() (*demoWeb, error) {
	w := &demoWeb{pages: map[string]*demoPage{}}
	w.server.Handler = w
	var listeners []net.Listener
	var roots []string
	for h := range demoHosts {
		l, err := net.Listen("tcp4", fmt.Sprintf("127.1.0.%d:0", h+1))
		if err != nil {
			for _, l := range listeners {
				l.Close()
			}
			return nil, fmt.Errorf("%w\nThe demo needs the loopback addresses 127.1.0.0/16, which some systems must configure first", err)
		}
		listeners, roots = append(listeners, l), append(roots, "http://"+l.Addr().String())
	}
	w.seed = roots[0] + "/"
	for h := range demoHosts {
		w.plant(h, roots)
	}
	listeners[demoRefuses].Close()
	for _, l := range listeners {
		w.running.Go(func() { _ = w.server.Serve(l) }) // it ends by close
	}
	return w, nil
}

// close ends all servers.
func (w *demoWeb) close() {
	w.server.Close()
	w.running.Wait()
}

// truth returns the pages whose URLs a crawl must find.
func (w *demoWeb) truth() map[string]*demoPage {
	pages := maps.Clone(w.pages)
	maps.DeleteFunc(pages, func(_ string, p *demoPage) bool { return p.want == 0 })
	return pages
}

// plant makes the pages of a host. Of a host that cannot be crawled only the root is known, by a link.
func (w *demoWeb) plant(h int, roots []string) {
	root := roots[h]
	robots := &demoPage{status: http.StatusOK, mime: "text/plain", body: demoRobots}
	w.pages[root+"/robots.txt"] = robots
	switch h {
	case demoRefuses:
		w.pages[root+"/"] = &demoPage{want: blobschema.OutcomeRobotsGone, or: blobschema.OutcomeConnect}
		return
	case demoClosed:
		robots.status = http.StatusServiceUnavailable
		w.pages[root+"/"] = &demoPage{want: blobschema.OutcomeRobotsGone}
		return
	case demoFree:
		robots.status = http.StatusNotFound
	}
	forbidden := &demoPage{want: blobschema.OutcomeRobots}
	for n := range demoPages {
		p := &demoPage{want: blobschema.OutcomeOK, status: http.StatusOK, mime: "text/html; charset=utf-8"}
		p.body = fmt.Sprintf("<!DOCTYPE html><title>Page %d of host %d</title><p>%s\n%s", n, h, strings.Repeat("Nothing but words. ", 20+n), demoDecoys)
		for child := 2*n + 1; child <= min(2*n+2, demoPages-1); child++ {
			p.body += demoLink(child, root, demoPath(h, child))
		}
		if n == 0 && h == 0 {
			for other, root := range roots[1:] {
				p.body += demoLink(other, root, "/")
			}
		}
		if n == 0 && h != demoFree { // a calendar without end
			p.body += demoLink(0, root, "/calendar/0")
			w.pages[root+"/calendar/0"] = forbidden
		}
		if demoLeaf(n) {
			p.spoil(h+n, root)
		}
		path := demoPath(h, n)
		if strings.HasPrefix(path, "/private/") && h != demoFree {
			p = forbidden
		}
		w.pages[root+path] = p
	}
}

func demoLeaf(n int) bool { return 2*n+1 >= demoPages }

// demoPath returns the path of page n of host h.
func demoPath(h, n int) string {
	switch {
	case n == 0:
		return "/"
	case demoLeaf(n) && (h+n)%11 == 0:
		return fmt.Sprintf("/private/%d.html", n)
	}
	return fmt.Sprintf("/pages/%d.html", n)
}

// demoLink returns a link, whose URL is written in one of several ways.
func demoLink(n int, root, path string) string {
	host := strings.TrimPrefix(root, "http://")
	href := []string{
		root + path, "HTTP://" + host + "/./x/.." + path, "//" + host + path + "#part", " " + root + path + "\t", "http:\\\\" + host + path,
	}[n%5]
	return fmt.Sprintf("<a href=\"%s\">more</a>\n", href)
}

// spoil makes a page without links special, in the way of its number.
func (p *demoPage) spoil(n int, root string) {
	answers := func(outcome blobschema.Outcome, status int) {
		p.want, p.status, p.body = outcome, status, http.StatusText(status)
	}
	switch n % 10 {
	case 1:
		answers(blobschema.OutcomeRedirect, http.StatusFound)
		p.location = root + "/"
	case 2:
		answers(blobschema.OutcomeClientError, http.StatusNotFound)
	case 3:
		answers(blobschema.OutcomeClientError, http.StatusGone)
	case 4:
		answers(blobschema.OutcomeServerError, http.StatusInternalServerError)
	case 5:
		answers(blobschema.OutcomeCut, 0)
		p.or = blobschema.OutcomeConnect
	case 6:
		p.want, p.cut = blobschema.OutcomeCut, true
	case 7:
		p.failures = demoAttempts - 1
	case 8:
		p.mime = "text/plain"
	case 9:
		p.delay = 200 * time.Millisecond
	}
}

func (w *demoWeb) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	p := w.pages["http://"+r.Host+r.RequestURI]
	if p == nil {
		http.NotFound(rw, r)
		return
	}
	time.Sleep(p.delay)
	switch {
	case p.requests.Add(1) <= p.failures:
		http.Error(rw, "busy", http.StatusServiceUnavailable)
		return
	case p.status == 0:
		panic(http.ErrAbortHandler) // closes the connection
	}
	body := p.body
	if p.cut {
		body = body[:len(body)/2]
	}
	rw.Header().Set("Content-Type", p.mime)
	rw.Header().Set("Content-Length", fmt.Sprint(len(p.body)))
	if p.location != "" {
		rw.Header().Set("Location", p.location)
	}
	rw.WriteHeader(p.status)
	_, _ = rw.Write([]byte(body)) // the crawler may be gone
	if p.cut {
		_ = http.NewResponseController(rw).Flush()
		panic(http.ErrAbortHandler)
	}
}

// differs says how a record differs from what it must be; "" if it does not. p is nil for a URL that the web does not have.
func (p *demoPage) differs(got *blobschema.Page) string {
	switch {
	case p == nil:
		return "is not expected"
	case got.Outcome != p.want && (p.or == 0 || got.Outcome != p.or):
		return fmt.Sprintf("%v, expected %v", got.Outcome, p.want)
	case int(got.Status) != p.status:
		return fmt.Sprintf("status %d, expected %d", got.Status, p.status)
	case got.Redirect != p.location:
		return fmt.Sprintf("redirect to %q, expected %q", got.Redirect, p.location)
	case got.Digest != "" && !p.cut && got.Digest != warc.PayloadDigest([]byte(p.body)):
		return "another body"
	}
	return ""
}
