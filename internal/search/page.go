package search

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed" // the page is one file
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/internal/weburl"
)

// Handler serves the search page, below any folder: all links on it are relative.
//
//	GET .../            the page: a form and the results
//	GET .../search.json the same as JSON, an [Answer]
//
// Other names are answered with status 404.
//
// Both take q, and optionally site and lang (repeatable), offset, limit, all=1 and explain=1.
// The page needs no script, and its policy allows none.
type Handler struct {
	// Open returns the index; it is called for every query, by several goroutines.
	Open func(context.Context) (*Index, error)
	// Done is called for every query with its answer or error. It may be nil.
	Done func(*http.Request, *Answer, error)
	// Links lead from the page to others of the server. Page returns the address of a page about a URL; nil if there is none.
	Links []Link
	Page  func(url string) string
}

// Link is a link with its text.
type Link struct{ Name, URL string }

const (
	queryTimeout = 20 * time.Second
	pageLimit    = 100 // most results on a page
	maxFilters   = 8
)

var (
	//go:embed page.css
	style string
	//go:embed page.html
	pageHTML string

	pageTemplate = template.Must(template.New("page").Funcs(functions()).Parse(pageHTML))
)

// policy returns a policy that lets a browser show the page and send the form, and nothing else.
func policy() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy())
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Robots-Tag", "noindex")
	asJSON := false
	switch last := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]; {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
		return
	case last == "search.json":
		asJSON = true
	case last != "":
		http.NotFound(w, r)
		return
	}
	req, asked, err := readRequest(r.URL)
	if !asJSON {
		req.Limit = min(req.Limit, pageLimit)
	}
	var a *Answer
	if err == nil && asked {
		if a, err = h.answer(r.Context(), req); h.Done != nil {
			h.Done(r, a, err)
		}
	} else if err == nil && asJSON {
		err = badQuery("q is missing")
	}
	status, text := statusOf(err)
	if asJSON {
		writeJSON(w, status, a, text)
		return
	}
	var b bytes.Buffer
	req.Query = cutText(req.Query, maxQuery)
	if err := pageTemplate.Execute(&b, &shown{Style: template.CSS(style), Syntax: Syntax, Error: text, Request: req, Answer: a, Links: h.Links, page: h.Page}); err != nil {
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	header.Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the client may be gone
}

func (h *Handler) answer(ctx context.Context, req Request) (*Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	ix, err := h.Open(ctx)
	if err != nil {
		return nil, err
	}
	return ix.Search(ctx, req)
}

// statusOf returns the status and the message of an error. It hides faults of the index, which are for its operator.
func statusOf(err error) (int, string) {
	switch {
	case err == nil:
		return http.StatusOK, ""
	case errors.Is(err, ErrQuery):
		return http.StatusBadRequest, "This cannot be searched for: " + strings.TrimPrefix(err.Error(), ErrQuery.Error()+": ") + "."
	case errors.Is(err, ErrNoIndex):
		return http.StatusServiceUnavailable, "Nothing is indexed yet."
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable, "The search took too long."
	}
	return http.StatusInternalServerError, "The index could not be searched."
}

// readRequest reads the request of a URL, and whether there is a query.
func readRequest(u *url.URL) (req Request, asked bool, err error) {
	if len(u.RawQuery) > 4*maxQuery { // more than any valid query, escaped
		return req, false, badQuery("the request has %d bytes", len(u.RawQuery))
	}
	v := u.Query()
	req = Request{Query: v.Get("q"), Sites: filled(v["site"]), Langs: filled(v["lang"]), All: v.Get("all") == "1", Explain: v.Get("explain") == "1"}
	if len(req.Sites)+len(req.Langs) > maxFilters {
		req.Sites, req.Langs = nil, nil
		return req, false, badQuery("it has more than %d filters", maxFilters)
	}
	for name, to := range map[string]*int{"offset": &req.Offset, "limit": &req.Limit} {
		if s := v.Get(name); s != "" {
			if *to, err = strconv.Atoi(s); err != nil || *to < 0 {
				return Request{Query: req.Query}, false, badQuery("%s is %.20q, not a number", name, s)
			}
		}
	}
	return req, strings.TrimSpace(req.Query) != "" || len(req.Sites)+len(req.Langs) > 0, nil
}

func filled(list []string) []string {
	return slices.DeleteFunc(list, func(s string) bool { return s == "" })
}

func writeJSON(w http.ResponseWriter, status int, a *Answer, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	var v any = a
	if a == nil {
		v = map[string]string{"error": text}
	}
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}

// shown is the data of the template.
type shown struct {
	Style         template.CSS
	Syntax, Error string
	Request
	Answer *Answer // nil if there is none
	Links  []Link
	page   func(url string) string
}

// About returns the address of the page about a result, "" if there is none.
func (p *shown) About(r Result) string {
	if p.page == nil {
		return ""
	}
	return p.page(r.URL)
}

const maxLanguages = 6 // number of languages offered

// To returns the address of the page for a request with one parameter changed, or removed if it is empty. Unless
// it changes the offset, the address is that of the first results.
func (p *shown) To(name, value string) string {
	v := url.Values{"q": {p.Query}, "site": p.Sites, "lang": p.Langs}
	if p.Limit > 0 {
		v.Set("limit", strconv.Itoa(p.Limit))
	}
	if p.All {
		v.Set("all", "1")
	}
	if p.Explain {
		v.Set("explain", "1")
	}
	v.Set(name, value)
	maps.DeleteFunc(v, func(_ string, list []string) bool { return len(list) == 0 || list[0] == "" })
	return "?" + v.Encode()
}

// Languages returns the languages to choose from, if there is a choice.
func (p *shown) Languages() []Count {
	if len(p.Langs) > 0 || len(p.Answer.Languages) < 2 {
		return nil
	}
	return p.Answer.Languages[:min(maxLanguages, len(p.Answer.Languages))]
}

// First returns the place of the first result.
func (p *shown) First() int { return p.Offset + 1 }

// Previous and Next return the addresses of the results before and after these, "" if there are none.
func (p *shown) Previous() string {
	if p.Offset == 0 {
		return ""
	}
	return p.To("offset", strconv.Itoa(max(0, p.Offset-p.Answer.Limit)))
}

func (p *shown) Next() string {
	if !p.Answer.More {
		return ""
	}
	return p.To("offset", strconv.Itoa(p.Offset+p.Answer.Limit))
}

// Similar reports whether the page leaves near-duplicates out.
func (p *shown) Similar() bool {
	return slices.ContainsFunc(p.Answer.Results, func(r Result) bool { return r.Similar > 0 })
}

// functions are those of the template.
func functions() template.FuncMap {
	return template.FuncMap{
		"line":    oneLine,
		"summary": Summary,
		"title": func(r Result) Marked {
			if strings.TrimSpace(r.Title.Text) == "" {
				return Marked{Text: oneLine(r.URL)}
			}
			return r.Title
		},
		"link": func(address string) string {
			u, err := weburl.Parse(address) // takes http and https only
			if err != nil {
				return ""
			}
			return u.String()
		},
		"date": func(r Result, layout string) string { return r.Date().UTC().Format(layout) },
	}
}

// Summary formats the number of results and the time.
func Summary(a *Answer) string {
	n := strconv.FormatInt(a.Total, 10) + " results"
	if a.Total == 1 {
		n = "1 result"
	}
	if a.Cut {
		n = "at least " + n
	}
	s := fmt.Sprintf("%s in %s", n, milliseconds(a.Took))
	if a.Cut {
		s += "; the query was cut short, as it would have taken too long: give it rarer words"
	}
	return s
}

// milliseconds formats a duration.
func milliseconds(d time.Duration) string {
	ms := float64(d.Microseconds()) / 1000
	if ms < 10 {
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.0f ms", ms)
}

// String formats an explanation for people.
func (x *Explanation) String() string {
	var b strings.Builder
	for _, w := range x.Words {
		form := ""
		if !w.Exact {
			form = ", only in another form"
		}
		fmt.Fprintf(&b, "%8.4f  %s: idf %.3f (%d documents)%s\n", w.Score, oneLine(w.Word), w.IDF, w.Documents, form)
		for _, f := range w.Fields {
			fmt.Fprintf(&b, "          %s: %d of %d words, %.3f\n", f.Field, f.Freq, f.Length, f.Part)
		}
	}
	if x.Exact > 0 {
		fmt.Fprintf(&b, "%8.4f  words as they were written\n", x.Exact)
	}
	if x.Titled > 0 {
		fmt.Fprintf(&b, "%8.4f  the title has all words\n", x.Titled)
	}
	fmt.Fprintf(&b, "%8.4f  rank: %.3f times the mean\n", x.Rank.Score, x.Rank.Rank)
	fmt.Fprintf(&b, "%8.4f  in all", x.Score)
	return b.String()
}
