package ui

import (
	"bytes"
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/search"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// Options describe a server.
type Options struct {
	Name   string        // of the folder or the deployment
	Every  time.Duration // greatest age of figures, and time between two refreshes of a page
	Priced bool          // calls of the platform have prices
	Host   string        // name in addresses of the server, besides localhost and IP addresses; may be empty
	Log    func(error)   // is called for errors that are not the browser's; may be nil

	// Order and Recrawl change the crawl. If they are nil, the server only reads.
	Order   func(context.Context, crawl.Order) (changed bool, err error)
	Recrawl func(context.Context, weburl.URL) error
}

// Server is the handler of all pages.
type Server struct {
	Options
	store   blobschema.Store
	token   string // that a change needs
	handler http.Handler
	heavy   chan struct{} // bounds the requests that read much at the same time
	report  reporter
	earlier bool // the server stays with a crawl that is not the active one
	chosen  bool // a person chose it
	others  *others

	mu       sync.Mutex
	view     *view.View // of the active crawl
	index    *search.Index
	timeline timeline
	points   cached[[]point]
	status   cached[view.Status]
	layout   cached[*heat]
	hosts    cached[*view.Estimates]
}

const (
	heavyAtOnce  = 2
	pageTimeout  = time.Minute
	maxQuery     = 16 << 10 // bytes of a query; the longest URL has 8 KB
	pointsDrawn  = 120
	rowsPerTable = 100
)

// New returns a server for the crawl of a view. If that is the active one of its store, the server continues with the next active
// one. A person may choose another crawl, to look at only.
func New(v *view.View, o Options) *Server {
	s := &Server{Options: o, store: v.Store(), view: v, token: rand.Text(), heavy: make(chan struct{}, heavyAtOnce), others: &others{of: map[string]*Server{}}}
	s.earlier = !v.Active()
	s.report.stop = make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /style.css", asset("text/css; charset=utf-8", style))
	mux.HandleFunc("GET /ui.js", asset("text/javascript; charset=utf-8", script))
	for path, p := range map[string]page{
		"/{$}": s.overview, "/partitions": s.partitions, "/hosts": s.hostsPage, "/topics": s.topics, "/crawls": s.crawls, "/explain": s.explain, "/report": s.reportPage,
	} {
		mux.Handle("GET "+path, s.page(p))
	}
	mux.HandleFunc("GET /report.html", s.reportFile)
	mux.HandleFunc("GET /stored", s.stored)
	mux.HandleFunc("GET /crawls/{id}", s.choose)
	find := &search.Handler{Open: s.openIndex, Links: navigation, Page: func(u string) string { return "/explain?" + url.Values{"url": {u}}.Encode() }}
	mux.Handle("GET /search/{$}", find)
	mux.Handle("GET /search/search.json", find)
	mux.HandleFunc("POST /order", s.order)
	mux.HandleFunc("POST /recrawl", s.recrawl)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		s.fail(w, &problem{http.StatusNotFound, "There is no such page."})
	})
	s.handler = s.guard(mux)
	return s
}

// ServeHTTP answers a request of a browser.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if o := s.others.chosen(r, s.cookie()); o != nil {
		s = o
	}
	s.handler.ServeHTTP(w, r)
}

// Close ends the work that requests have left behind. No request may be under way.
func (s *Server) Close() {
	for _, o := range s.others.of {
		o.report.end()
	}
	s.report.end()
}

// current returns a view of the active crawl, which may be another one than before.
func (s *Server) current(ctx context.Context) (*view.View, error) {
	if s.earlier {
		return s.view, nil
	}
	id, err := blobschema.ActiveCrawl(ctx, s.store)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if id == s.view.ID() {
		return s.view, nil
	}
	v, err := view.New(ctx, s.store)
	if err != nil {
		return nil, err
	}
	s.view, s.index = v, nil
	s.points, s.status, s.layout, s.hosts = cached[[]point]{}, cached[view.Status]{}, cached[*heat]{}, cached[*view.Estimates]{}
	return v, nil
}

// openIndex returns the search index of the active crawl.
func (s *Server) openIndex(ctx context.Context) (*search.Index, error) {
	v, err := s.current(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.index == nil {
		if s.index, err = search.Open(ctx, s.store, v.ID(), search.Options{}); err != nil {
			s.index = nil
		}
		return s.index, err
	}
	return s.index, s.index.Fresh(ctx, 2*s.Every)
}

// Status returns the figures of the active crawl. They may be as old as Options.Every.
func (s *Server) Status(ctx context.Context) (view.Status, error) {
	v, err := s.current(ctx)
	if err != nil {
		return view.Status{}, err
	}
	return read(s, &s.status, func() (view.Status, error) { return v.Status(ctx) })
}

// cached is a value that was read a while ago.
type cached[T any] struct {
	value T
	at    time.Time
}

// read returns the value of c, which read replaces if it is too old. Several requests may read at the same time.
func read[T any](s *Server, c *cached[T], get func() (T, error)) (T, error) {
	s.mu.Lock()
	old := *c
	s.mu.Unlock()
	if time.Since(old.at) < s.Every {
		return old.value, nil
	}
	v, err := get()
	if err == nil {
		s.mu.Lock()
		*c = cached[T]{v, time.Now()}
		s.mu.Unlock()
	}
	return v, err
}

// problem is an error for the person at the browser.
type problem struct {
	status int
	text   string
}

func (p *problem) Error() string { return p.text }

func badRequest(format string, args ...any) error {
	return &problem{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// page reads a page for a request: the name of its template and its data.
type page func(ctx context.Context, v *view.View, r *http.Request) (name, title string, data any, err error)

// frame is the data of every page.
type frame struct {
	*Server
	Crawl, Title, Path string
	Earlier            bool
	Every              int    // seconds between two refreshes
	Token              string // "" if the server only reads
	Links              []search.Link
	Data               any
}

// navigation lists the pages.
var navigation = []search.Link{
	{Name: "Overview", URL: "/"}, {Name: "Hosts", URL: "/hosts"}, {Name: "Partitions", URL: "/partitions"}, {Name: "Topics", URL: "/topics"},
	{Name: "Links", URL: "/report"}, {Name: "Crawls", URL: "/crawls"}, {Name: "Search", URL: "/search/"}, {Name: "Explain", URL: "/explain"},
}

// page returns the handler of a page.
func (s *Server) page(p page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
		defer cancel()
		v, err := s.current(ctx)
		if err != nil {
			s.fail(w, err)
			return
		}
		name, title, data, err := p(ctx, v, r)
		if err != nil {
			s.fail(w, err)
			return
		}
		s.write(w, http.StatusOK, name, &frame{Server: s, Crawl: v.ID(), Title: title, Path: r.URL.Path, Data: data})
	})
}

// busy takes the right to read much; the caller releases it.
func (s *Server) busy(ctx context.Context) (release func(), err error) {
	select {
	case s.heavy <- struct{}{}:
		return func() { <-s.heavy }, nil
	case <-ctx.Done():
		return nil, &problem{http.StatusServiceUnavailable, "Other requests are still reading the crawl. Try again soon."}
	}
}

// fail answers with an error.
func (s *Server) fail(w http.ResponseWriter, err error) {
	p := (*problem)(nil)
	if !errors.As(err, &p) {
		p = &problem{http.StatusInternalServerError, "The crawl could not be read: " + err.Error()}
		if errors.Is(err, context.DeadlineExceeded) {
			p = &problem{http.StatusServiceUnavailable, "Reading the crawl took too long. The command line has no such limit: see 'orbweaver --help'."}
		} else if s.Log != nil && !errors.Is(err, context.Canceled) {
			s.Log(err)
		}
	}
	s.write(w, p.status, "error", &frame{Server: s, Title: http.StatusText(p.status), Data: p})
}

// write executes a template.
func (s *Server) write(w http.ResponseWriter, status int, name string, f *frame) {
	f.Links, f.Every, f.Earlier = navigation, int(s.Every.Seconds()), s.chosen
	if s.Order != nil {
		f.Token = s.token
	}
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, name, f); err != nil {
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		if s.Log != nil {
			s.Log(err)
		}
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the browser may be gone
}

var (
	//go:embed *.tmpl
	templateFiles embed.FS
	//go:embed style.css
	style string
	//go:embed ui.js
	script string

	templates = template.Must(template.New("").Funcs(functions).ParseFS(templateFiles, "*.tmpl"))
)

func asset(kind, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write([]byte(text)) // the browser may be gone
	}
}
