package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/partition"
)

// sought is a web like the demo's, but without faults, and an English site.
type sought struct {
	web   *simweb.Web
	seeds []string
	urls  []string // of the English pages
}

// english holds pages whose words have other forms than those in the queries.
var english = map[string]string{
	"/":        `<title>A shelf of small books</title><h1>Small books</h1><p>Each of these stories is told in a few pages. <a href="/foxes">The running foxes</a> come first.</p>`,
	"/foxes":   `<title>The running foxes</title><h1>The running foxes</h1><p>Two foxes were running through the orchards at night, because the gardener had hidden apples there.</p>`,
	"/weavers": `<title>Weavers</title><p>A spider that weaves orbs mends its web each morning. <a href="/">Back</a></p>`,
}

func (w *world) seek(ctx context.Context) (*sought, error) {
	cfg := simweb.Demo()
	cfg.Seed = 35
	// No faults, because retries take time.
	cfg.Kinds.Loop, cfg.Kinds.Broken, cfg.Kinds.Flaky, cfg.Kinds.Slow = 0, 0, 0, 0
	cfg.Kinds.Cut, cfg.Kinds.Reset, cfg.Kinds.Garbage, cfg.Kinds.Surplus = 0, 0, 0, 0
	cfg.Robots.Error, cfg.Down = 0, simweb.DownShares{}
	srv, err := w.serve(ctx, cfg)
	if err != nil {
		return nil, err
	}
	s := &sought{web: srv.Web(), seeds: srv.Web().Seeds()}
	site, done := page(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := english[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, "<!DOCTYPE html><html lang=en>%s</html>", body)
	}))
	w.opened = append(w.opened, done)
	for path := range english {
		s.urls = append(s.urls, site+path)
		s.seeds = append(s.seeds, site+path)
	}
	return s, nil
}

// titles returns the titles of the pages that searches must find, and the URLs that they must not find.
func (s *sought) titles() (found map[string]string, hidden []string) {
	found = map[string]string{}
	for u, e := range s.web.Truth(simweb.Scope{Attempts: 3, SkipSitemaps: true}).Pages {
		a := s.web.Answer(simweb.Request{URL: u, Attempt: 9})
		// The body decides, because the truth has no NoIndex for duplicates.
		if noIndex := bytes.Contains(a.Body, []byte("noindex")); noIndex || e.Kind != simweb.KindPage || e.Outcome != blobschema.OutcomeOK {
			hidden = append(hidden, u)
			continue
		}
		_, rest, ok := bytes.Cut(a.Body, []byte("<title>"))
		title, _, closed := bytes.Cut(rest, []byte("</title>"))
		if ok && closed { // otherwise it is not HTML
			found[u] = string(title)
		}
	}
	return found, hidden
}

// maxStill bounds the time without progress of index and ranks: a step stores its work within half a minute,
// and a tick resends a lost job within a minute.
const maxStill = 2 * time.Minute

// followed waits until index and ranks include everything that was committed, and returns that status. It fails
// if they make no progress for maxStill, but not because this machine is slow.
func (w *world) followed(ctx context.Context, v *view.View) (view.Status, error) {
	progress := time.Now()
	for last := ""; ; {
		s, err := v.Status(ctx)
		if err != nil || follows(s) {
			return s, err
		}
		state, err := json.Marshal([]any{s.Index, s.Ranks}) // changes with each of their commits
		if err != nil {
			return s, err
		}
		if string(state) != last {
			last, progress = string(state), time.Now()
		}
		if time.Since(progress) > maxStill {
			return s, fmt.Errorf("index and ranks are behind, and made no progress for %v: %s", maxStill, state)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// follows reports whether index and ranks include everything that was committed.
func follows(s view.Status) bool {
	job := &s.Ranks.Job
	ready := job.Number > 0 && !job.Done.IsZero() && s.Behind() == 0 && len(s.Index) == len(s.Heads)
	for _, x := range s.Index {
		ready = ready && x.Anchors == job.Number
	}
	ranked := map[partition.ID]uint64{}
	for _, in := range job.Inputs {
		ranked[in.Partition] = in.Seq
	}
	for i := range s.Heads {
		ready = ready && ranked[s.Heads[i].Partition] == s.Heads[i].Seq
	}
	return ready
}

// documents returns the number of documents in the index.
func documents(s view.Status) (n int64) {
	for _, x := range s.Index {
		n += x.Documents
	}
	return n
}

// found holds the parts of a search's answer that are checked here.
type found struct {
	Total     int      `json:"total"`
	Results   []result `json:"results"`
	TookMS    float64  `json:"took_ms"`
	Reads     int64    `json:"reads"`
	ReadBytes int64    `json:"read_bytes"`
}

type result struct {
	URL string `json:"url"`
}

func (f *found) has(u string) bool {
	return slices.ContainsFunc(f.Results, func(r result) bool { return r.URL == u })
}

// ask requests a path of the query function's address.
func (w *world) ask(ctx context.Context, path string) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.searchURL+path, nil)
	if err != nil {
		return 0, nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

func (w *world) query(ctx context.Context, words string) (f found, err error) {
	status, body, err := w.ask(ctx, "/search.json?"+url.Values{"q": {words}, "limit": {"1000"}, "all": {"1"}}.Encode())
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%.300s", body)
	}
	if err == nil {
		err = json.Unmarshal(body, &f)
	}
	if err != nil {
		return f, fmt.Errorf("search for %s: status %d: %w", words, status, err)
	}
	return f, nil
}

// searchable crawls a web with an index, while index and rank functions are killed. Each page must
// then be found by its own title. The calls of searches are counted twice.
func searchable(ctx context.Context, w *world) (map[string]any, error) {
	if err := w.quiet(ctx); err != nil {
		return nil, err
	}
	s, err := w.seek(ctx)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	killing, stop := context.WithCancel(ctx)
	defer stop()
	kills := map[string]chan int{"index": make(chan int, 1), "rank": make(chan int, 1)}
	for name, c := range kills {
		go func() { c <- w.kill(killing, 3, 50*time.Millisecond, name) }()
	}
	if _, err := w.crawl(ctx, s.seeds, "--new", "--json", "--index", "--delay", "0s", "--timeout", "8s"); err != nil {
		return nil, err
	}
	v, err := w.openView(ctx)
	if err != nil {
		return nil, err
	}
	status, err := w.followed(ctx, v)
	if err != nil {
		return nil, err
	}
	job := &status.Ranks.Job
	figures := map[string]any{"documents": documents(status), "seconds": time.Since(begin).Seconds(), "rounds": job.Rounds, "links": job.Totals.Links}
	stop()
	for name, c := range kills {
		n := <-c
		if figures["killed_"+name] = n; n == 0 {
			return figures, fmt.Errorf("no %s function was killed, which shows nothing", name)
		}
	}
	if err := w.quiet(ctx); err != nil {
		return figures, err
	}
	k, err := w.watch(ctx)
	if err != nil {
		return figures, err
	}
	if err := w.findsAll(ctx, s, documents(status), figures); err != nil {
		return figures, err
	}
	told, seen, err := k.both()
	if err != nil {
		return figures, err
	}
	figures["searches"] = told.of("query")
	return figures, equal(told.all, seen)
}

// findsAll searches for each page by its title, and for English words in other forms.
func (w *world) findsAll(ctx context.Context, s *sought, documents int64, figures map[string]any) error {
	titles, hidden := s.titles()
	begin := time.Now()
	var took float64
	for u, title := range titles {
		f, err := w.query(ctx, `title:"`+title+`"`)
		if err != nil {
			return err
		}
		if !f.has(u) {
			return fmt.Errorf("%s is not among the %d results of its title %q", u, f.Total, title)
		}
		for _, h := range hidden {
			if f.has(h) {
				return fmt.Errorf("%s is found, and must not be", h)
			}
		}
		took += f.TookMS
	}
	if len(titles) < 50 || int64(len(titles)+len(english)) > documents {
		return fmt.Errorf("%d pages with titles, and %d documents in the index", len(titles), documents)
	}
	figures["queries"], figures["query_ms"], figures["asked_ms"] = len(titles), took/float64(len(titles)), float64(time.Since(begin).Milliseconds())/float64(len(titles))
	for words, path := range map[string]string{"fox running": "/foxes", "apple orchard": "/foxes", "orb spiders": "/weavers", `"in a few pages"`: "/"} {
		f, err := w.query(ctx, words)
		if err != nil {
			return err
		}
		if len(f.Results) == 0 || !strings.HasSuffix(f.Results[0].URL, path) {
			return fmt.Errorf("a search for %s does not have %s first: %+v", words, path, f.Results)
		}
	}
	// The search page itself, and an invalid query.
	if status, body, err := w.ask(ctx, "/?q=fox"); err != nil || status != http.StatusOK || !bytes.Contains(body, []byte("running foxes")) && !bytes.Contains(body, []byte("</mark>")) {
		return fmt.Errorf("the page: status %d, %v\n%.500s", status, err, body)
	}
	if status, _, err := w.ask(ctx, "/search.json?q="+strings.Repeat("long+", 1000)); err != nil || status != http.StatusBadRequest {
		return fmt.Errorf("a query of 5,000 bytes: status %d, %v", status, err)
	}
	// A query on a cold instance.
	w.functions["query"].Recycle()
	begin = time.Now()
	f, err := w.query(ctx, "fox running")
	figures["cold_query_ms"], figures["cold_reads"], figures["cold_read_bytes"] = float64(time.Since(begin).Milliseconds()), f.Reads, f.ReadBytes
	return err
}
