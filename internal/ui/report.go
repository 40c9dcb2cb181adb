package ui

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/view"
)

// reporter makes link reports, one at a time, and keeps the last one.
type reporter struct {
	work sync.WaitGroup
	stop chan struct{} // closed to end the report under way

	mu      sync.Mutex
	crawl   string
	report  *view.LinkReport // nil before the first
	err     error            // of the last attempt
	started time.Time        // of the attempt under way; zero if there is none
}

// end ends the report under way.
func (p *reporter) end() {
	close(p.stop)
	p.work.Wait()
}

// Bounds of reports on the page.
const (
	reportRows  = 1000             // in each list
	reportEvery = 5 * time.Minute  // least time between two reports of a crawl that runs
	reportWait  = 2 * time.Second  // a page waits this long for a report before it says that it is being made
	reportLimit = 30 * time.Minute // longest time that a report may take
)

// get returns the last report, and when the report that is being made was started. It starts one if the crawl has
// commits that the last one has not read.
func (p *reporter) get(v *view.View, commits uint64) (*view.LinkReport, time.Time, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.crawl != v.ID() {
		p.crawl, p.report, p.err = v.ID(), nil, nil
	}
	old := p.report == nil || p.report.Commits != commits && time.Since(p.report.Made) > reportEvery
	if !old || !p.started.IsZero() || p.err != nil {
		err := p.err
		p.err = nil // the next request tries again
		return p.report, p.started, err
	}
	p.started = time.Now()
	done := make(chan struct{})
	p.work.Go(func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(context.Background(), reportLimit)
		defer cancel()
		p.work.Go(func() {
			select {
			case <-p.stop:
				cancel()
			case <-ctx.Done():
			}
		})
		r, err := v.LinkReport(ctx, "", reportRows)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.err, p.started = err, (time.Time{}); err == nil && p.crawl == v.ID() {
			p.report = r
		}
	})
	p.mu.Unlock()
	select {
	case <-done:
	case <-time.After(reportWait):
	}
	p.mu.Lock()
	return p.report, p.started, p.err
}

// links is the data of a link report.
type links struct {
	*view.LinkReport // nil before the first one is made
	Started          time.Time
	Tables           []*table
	Style            template.CSS // of a file
	Script           template.JS  // likewise
	Policy           string       // likewise
	Name             string       // likewise
}

func (s *Server) reportPage(ctx context.Context, v *view.View, r *http.Request) (string, string, any, error) {
	f, err := s.figures(ctx, v)
	if err != nil {
		return "", "", nil, err
	}
	commits := uint64(0)
	for i := range f.Heads {
		commits += f.Heads[i].Seq
	}
	l := &links{}
	if l.LinkReport, l.Started, err = s.report.get(v, commits); err != nil {
		return "", "", nil, err
	}
	if l.LinkReport != nil {
		l.Tables = reportTables(l.LinkReport, r.URL.Query(), explainLink)
	}
	return "report", "Links", l, nil
}

// reportFile answers with the last report as a file.
func (s *Server) reportFile(w http.ResponseWriter, _ *http.Request) {
	s.report.mu.Lock()
	r := s.report.report
	s.report.mu.Unlock()
	var b bytes.Buffer
	err := error(&problem{http.StatusNotFound, "There is no report yet: open the page of links first."})
	if r != nil {
		err = WriteReport(&b, s.Name, r)
	}
	if err != nil {
		s.fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="links-`+r.Crawl+`.html"`)
	_, _ = w.Write(b.Bytes()) // the browser may be gone
}

// WriteReport writes a link report of a crawl as one HTML file, which refers to no other. name is that of the folder or
// the deployment.
func WriteReport(w io.Writer, name string, r *view.LinkReport) error {
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return templates.ExecuteTemplate(w, "file", &links{
		LinkReport: r, Tables: reportTables(r, nil, liveLink), Style: template.CSS(style), Script: template.JS(script), Name: name,
		Policy: "default-src 'none'; base-uri 'none'; form-action 'none'; style-src " + hash(style) + "; script-src " + hash(script),
	})
}

// reportTables makes the tables of a report. link makes links of URLs.
func reportTables(r *view.LinkReport, q url.Values, link func(string) string) []*table {
	return []*table{
		listed(q, "broken", "Broken links", "No link leads to an error.", r.Broken.First, r.Broken.All, []column[view.BrokenLink]{
			{Name: "URL", Text: func(b view.BrokenLink) string { return line(b.URL) }, Link: func(b view.BrokenLink) string { return link(b.URL) }},
			{Name: "answer", Text: func(b view.BrokenLink) string { return strings.TrimSpace(b.Outcome + " " + status(b.Status)) }},
			{Name: "linked from pages", Num: func(b view.BrokenLink) float64 { return float64(b.Pages) }},
			{Name: "such as", Fixed: true, Text: func(b view.BrokenLink) string { return "" }, More: func(b view.BrokenLink) (out []cell) {
				for _, l := range b.From[:min(3, len(b.From))] {
					text := line(l.Source)
					if l.Anchor != "" {
						text += " “" + line(l.Anchor) + "”"
					}
					out = append(out, cell{Text: text, Link: link(l.Source)})
				}
				return out
			}},
		}),
		listed(q, "redirects", "Redirects", "Nothing redirects.", r.Redirects.First, r.Redirects.All, []column[view.Redirect]{
			{Name: "URL", Text: func(h view.Redirect) string { return line(h.Hops[0]) }, Link: func(h view.Redirect) string { return link(h.Hops[0]) }},
			{Name: "hops", Num: func(h view.Redirect) float64 { return float64(len(h.Hops) - 1) }},
			{Name: "linked from pages", Num: func(h view.Redirect) float64 { return float64(h.Pages) }},
			{Name: "ends with", Text: func(h view.Redirect) string {
				if h.Loop {
					return "a loop"
				}
				return strings.TrimSpace(h.Outcome + " " + status(h.End))
			}, Class: func(h view.Redirect) string {
				if h.Broken() {
					return "bad"
				}
				return ""
			}},
			{Name: "leads to", Fixed: true, Text: func(h view.Redirect) string { return "" }, More: func(h view.Redirect) []cell { return urls(h.Hops[1:], link) }},
		}),
		listed(q, "duplicates", "Duplicates", "Each payload has one URL.", r.Duplicates.First, r.Duplicates.All, []column[view.Duplicate]{
			{Name: "URLs", Num: func(d view.Duplicate) float64 { return float64(d.Count) }},
			{Name: "bytes", Num: func(d view.Duplicate) float64 { return float64(d.Bytes) }},
			{Name: "such as", Fixed: true, Text: func(d view.Duplicate) string { return "" }, More: func(d view.Duplicate) []cell { return urls(d.URLs, link) }},
		}),
		listed(q, "slow", "Slowest answers", "No time was measured.", r.Slow.First, r.Slow.All, pageColumns(link, column[blobschema.Page]{
			Name: "time", Num: func(p blobschema.Page) float64 { return float64(p.Total) }, Text: func(p blobschema.Page) string {
				return count(int64(p.Total)) + " ms"
			},
		})),
		listed(q, "large", "Largest payloads", "No page has a payload.", r.Large.First, r.Large.All, pageColumns(link, column[blobschema.Page]{
			Name: "bytes", Num: func(p blobschema.Page) float64 { return float64(p.BodyBytes) },
		})),
		listed(q, "changed", "Changed pages", "No page that was fetched again had changed.", r.Changed.First, r.Changed.All, pageColumns(link, column[blobschema.Page]{
			Name: "requested", Num: func(p blobschema.Page) float64 { return float64(p.Time.UnixMicro()) }, Text: func(p blobschema.Page) string { return at(p.Time) },
		})),
	}
}

// listed makes the table of a list of a report.
func listed[T any](q url.Values, id, caption, empty string, first []T, all int64, columns []column[T]) *table {
	t := newTable(q, id, caption, "", slices.Clone(first), columns)
	t.ID, t.All, t.Empty = id, all, empty
	if n := int64(len(first)); n < all {
		t.Cut = n
	}
	return t
}

// pageColumns are the columns of a list of pages: one figure, and what the page is.
func pageColumns(link func(string) string, c column[blobschema.Page]) []column[blobschema.Page] {
	type page = blobschema.Page
	return []column[page]{
		c,
		{Name: "URL", Text: func(p page) string { return line(p.URL) }, Link: func(p page) string { return link(p.URL) }},
		{Name: "title", Text: func(p page) string { return line(p.Title) }},
		{Name: "answer", Text: func(p page) string { return fmt.Sprintf("%s %s", status(p.Status), line(p.MIME)) }},
	}
}

// linkColumns are the columns of a list of links.
func linkColumns(link func(string) string) []column[view.Link] {
	return []column[view.Link]{
		{Name: "page", Text: func(l view.Link) string { return line(l.Source) }, Link: func(l view.Link) string { return link(l.Source) }},
		{Name: "text", Text: func(l view.Link) string { return line(l.Anchor) }},
		{Name: "kind", Text: func(l view.Link) string {
			if l.NoFollow {
				return l.Kind + ", nofollow"
			}
			return l.Kind
		}},
	}
}

func urls(list []string, link func(string) string) (out []cell) {
	for _, u := range list {
		out = append(out, cell{Text: line(u), Link: link(u)})
	}
	return out
}
