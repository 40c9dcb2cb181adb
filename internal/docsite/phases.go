package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// changes is how many pages are changed, and how many get a new time only.
const changes = 5

// A trial is a site, its server and a crawler, and what they have come to.
type trial struct {
	settings *settings
	dir      string
	site     site
	server   *server
	crawler  crawler
	stderr   io.Writer
	report   report

	truth   map[string]answer // by key
	urls    map[string]string // by key: the crawler's spelling of the pages with status 200
	records int               // page records, without those of robots.txt
	stored  int64             // bytes of WARC files
	totals  blobschema.Totals // of the crawler
}

// crawlAndCheck makes the phases in dir, one after another as long as nothing is wrong.
func crawlAndCheck(ctx context.Context, s *settings, nginx, dir string, stderr io.Writer) (*report, error) {
	t := &trial{
		settings: s, dir: dir, stderr: stderr, report: report{Docs: s.docs},
		crawler: crawler{binary: s.binary, data: filepath.Join(dir, "crawl"), partitions: s.partitions, progress: stderr},
	}
	www := filepath.Join(dir, webDir)
	var err error
	if t.report.Files, err = copyTree(www, s.docs); err != nil {
		return nil, fmt.Errorf("copy %s: %w", s.docs, err)
	}
	if t.server, err = startServer(ctx, nginx, dir); err != nil {
		return nil, err
	}
	defer t.server.stop()
	t.site = site{root: www, home: &url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", t.server.port), Path: "/index.html"}}
	if t.truth, err = t.site.walk(); err != nil {
		return nil, err
	}
	t.report.URLs = len(t.truth)
	fmt.Fprintf(stderr, "%s: %s; links lead to %s\n", s.docs, plural(t.report.Files, "file"), plural(len(t.truth), "URL"))

	for generation, run := range []func(context.Context, uint32) (*phase, error){t.crawl, t.recrawl, t.change} {
		p, err := run(ctx, uint32(generation))
		if err != nil {
			return nil, err
		}
		t.report.Phases = append(t.report.Phases, p)
		if p.wrong() > 0 {
			return &t.report, nil // all that follows would be wrong too
		}
	}
	t.report.OK = true
	return &t.report, nil
}

// crawl crawls everything that links lead to.
func (t *trial) crawl(ctx context.Context, generation uint32) (*phase, error) {
	wants := map[string]want{}
	for k, a := range t.truth {
		wants[k] = want{status: a.status, file: a.file}
	}
	return t.phase(ctx, "crawl", generation, wants, func() (*summary, error) {
		return t.crawler.crawl(ctx, t.site.home.String())
	})
}

// recrawl asks for all pages again.
func (t *trial) recrawl(ctx context.Context, generation uint32) (*phase, error) {
	return t.again(ctx, "recrawl", generation, t.unchanged())
}

// unchanged is what a recrawl must bring if nothing has changed.
func (t *trial) unchanged() map[string]want {
	wants := map[string]want{}
	for k, a := range t.truth {
		if a.status == http.StatusOK {
			wants[k] = want{status: http.StatusNotModified, file: a.file, storing: revisit}
		}
	}
	return wants
}

// change changes some pages, and the times only of some others, and asks for all pages
// again.
func (t *trial) change(ctx context.Context, generation uint32) (*phase, error) {
	picked, err := t.pick(2 * changes)
	if err != nil {
		return nil, err
	}
	wants := t.unchanged()
	for i, k := range picked {
		w := want{status: http.StatusOK, file: t.truth[k].file, storing: revisit}
		addition := ""
		if i < changes {
			w.storing = anew
			addition = fmt.Sprintf("\n<!-- change %d -->\n", i) // equal files become different ones
		}
		if err := alter(w.file, addition); err != nil {
			return nil, err
		}
		wants[k] = w
	}
	return t.again(ctx, "changes", generation, wants)
}

// pick chooses documents that are far apart, each of which is the file of one URL only.
func (t *trial) pick(n int) ([]string, error) {
	users := map[string]int{}
	for _, a := range t.truth {
		users[a.file]++
	}
	var all []string
	for _, k := range slices.Sorted(maps.Keys(t.truth)) {
		if a := t.truth[k]; isDocument(a.file) && users[a.file] == 1 {
			all = append(all, k)
		}
	}
	if len(all) < n {
		return nil, wrongUse(fmt.Sprintf("there are %s, too few to change some", plural(len(all), "HTML page")))
	}
	picked := make([]string, n)
	for i := range picked {
		picked[i] = all[i*len(all)/n]
	}
	return picked, nil
}

// alter appends to a file, perhaps nothing, and gives it another time.
func alter(file, addition string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(addition)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	later := info.ModTime().Add(time.Hour)
	return os.Chtimes(file, later, later)
}

// again asks for all pages once more.
func (t *trial) again(ctx context.Context, name string, generation uint32, wants map[string]want) (*phase, error) {
	return t.phase(ctx, name, generation, wants, func() (*summary, error) {
		return t.crawler.recrawl(ctx, slices.Sorted(maps.Values(t.urls)))
	})
}

// phase runs the crawler, and checks and tells what came of it.
func (t *trial) phase(ctx context.Context, name string, generation uint32, wants map[string]want, work func() (*summary, error)) (*phase, error) {
	fmt.Fprintf(t.stderr, "%s:\n", name)
	began := time.Now()
	sum, err := work()
	if err != nil {
		return nil, err
	}
	p := &phase{Name: name, Pages: len(wants), Seconds: time.Since(began).Seconds(), Statuses: map[int]int{}}
	p.PagesPerSecond = float64(p.Pages) / p.Seconds
	asked, err := t.server.requests(ctx)
	if err != nil {
		return nil, err
	}
	pages, err := t.crawler.pages(ctx)
	if err != nil {
		return nil, err
	}
	files := filepath.Join(t.dir, "warc-"+name)
	if err := t.crawler.export(ctx, files); err != nil {
		return nil, err
	}
	a, err := readArchive(files)
	if err != nil {
		return nil, err
	}
	bytes, err := checkBytes(a, pages, generation, wants)
	if err != nil {
		return nil, err
	}
	fsck, err := checkFsck(ctx, &t.crawler)
	if err != nil {
		return nil, err
	}
	p.Requests = len(asked)
	for i := range asked {
		p.Statuses[asked[i].Status]++
		p.Sent += asked[i].Bytes
	}
	p.Received, p.Stored = sum.Totals.Bytes-t.totals.Bytes, a.bytes-t.stored
	given := wants
	if generation == 0 {
		given = nil
	}
	p.Checks = []check{
		checkPages(pages, generation, t.records, wants), bytes, checkRequests(asked, wants, generation > 0), checkSummary(sum, a, pages, given, p), fsck,
	}
	if t.settings.warcio != "" {
		warcio, err := checkWarcio(ctx, t.settings.warcio, a)
		if err != nil {
			return nil, err
		}
		p.Checks = append(p.Checks, warcio)
	}
	p.write(t.stderr)
	t.remember(sum, a, pages)
	return p, nil
}

// remember keeps what the next phase is compared with.
func (t *trial) remember(sum *summary, a *archive, pages []blobschema.Page) {
	t.totals, t.stored, t.records, t.urls = sum.Totals, a.bytes, 0, map[string]string{}
	for i := range pages {
		p := &pages[i]
		if p.Robots {
			continue
		}
		t.records++
		if u, err := url.Parse(p.URL); err == nil && t.truth[key(u)].status == http.StatusOK {
			t.urls[key(u)] = p.URL
		}
	}
}
