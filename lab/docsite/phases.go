package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"golang.org/x/net/html"

	"github.com/orbweaver/orbweaver/blobschema"
)

// changes is how many pages are changed, and how many get a new time only.
const changes = 5

// A trial is a site, its server and a crawler, and what they have come to.
type trial struct {
	settings *settings
	dir      string
	site     site
	linker   linker
	server   *server
	crawler  crawler
	stderr   io.Writer
	report   report

	truth     map[string]answer // by key
	urls      map[string]string // by key: the crawler's spelling of the pages with status 200
	records   int               // page records, without those of robots.txt
	stored    int64             // bytes of WARC files
	totals    blobschema.Totals // of the crawler
	corpus    *corpus           // from the end of the first phase on
	documents int64             // indexed then
	picked    []lookup          // pages to be changed
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
	t.linker = linker{site: &t.site, read: map[string]linked{}}
	if t.truth, err = t.site.walk(); err != nil {
		return nil, err
	}
	t.report.URLs = len(t.truth)
	fmt.Fprintf(stderr, "%s: %s; links lead to %s\n", s.docs, plural(t.report.Files, "file"), plural(len(t.truth), "URL"))

	for generation, run := range []func(context.Context, uint32) (*phase, error){t.crawl, t.recrawl, t.change, t.remove} {
		p, err := run(ctx, uint32(generation))
		if err != nil {
			return nil, err
		}
		t.report.Phases = append(t.report.Phases, p)
		if faults(p.Checks) > 0 {
			return &t.report, nil // all that follows would be wrong too
		}
		if generation == 0 {
			if t.report.Search, err = t.search(ctx); err != nil {
				return nil, err
			}
		}
	}
	t.report.OK = faults(t.report.Search.Checks) == 0
	return &t.report, nil
}

// crawl crawls everything that links lead to.
func (t *trial) crawl(ctx context.Context, generation uint32) (*phase, error) {
	wants := map[string]want{}
	for k, a := range t.truth {
		wants[k] = want{status: a.status, file: a.file}
	}
	return t.phase(ctx, "crawl", generation, wants, nil, func() (*summary, error) {
		return t.crawler.crawl(ctx, t.site.home.String())
	})
}

// recrawl asks for all pages again.
func (t *trial) recrawl(ctx context.Context, generation uint32) (*phase, error) {
	return t.again(ctx, "recrawl", generation, t.unchanged(), nil)
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
	for i := range picked {
		l := &picked[i]
		w := want{status: http.StatusOK, file: t.truth[l.page.key].file, storing: revisit}
		if i < changes {
			w.storing = anew
			l.was, l.word = l.word, fmt.Sprintf("q%czkxvq", 'a'+i) // no two of which are forms of one word
			err = replaceWords(w.file, l.was, l.word)
		} else {
			err = touch(w.file)
		}
		if err != nil {
			return nil, err
		}
		wants[l.page.key] = w
	}
	return t.again(ctx, "changes", generation, wants, picked)
}

// remove removes some pages, and asks for all.
func (t *trial) remove(ctx context.Context, generation uint32) (*phase, error) {
	picked, err := t.pick(3 * changes)
	if err != nil {
		return nil, err
	}
	picked = picked[2*changes:] // which were not changed
	wants := t.unchanged()
	for i := range picked {
		l := &picked[i]
		if err := os.Remove(t.truth[l.page.key].file); err != nil {
			return nil, err
		}
		t.truth[l.page.key] = answer{status: http.StatusNotFound}
		wants[l.page.key] = want{status: http.StatusNotFound}
		l.was, l.word = l.word, ""
	}
	return t.again(ctx, "removals", generation, wants, picked)
}

// A lookup is what a search must say of a page after a phase.
type lookup struct {
	page *document
	word string // finds the page, and no other; if empty, the page is gone
	was  string // finds nothing; "" if there is no such word
}

// pick chooses pages that are far apart, each of which is the file of one URL only, and has a
// word that is its own. The first of them do not depend on n.
func (t *trial) pick(n int) ([]lookup, error) {
	if t.picked == nil {
		users := map[string]int{}
		for _, a := range t.truth {
			users[a.file]++
		}
		var all []lookup
		for i, d := range t.corpus.pages {
			own := slices.DeleteFunc(t.corpus.ownWords(i), func(w string) bool { return w[0] == '"' })
			if users[t.truth[d.key].file] == 1 && d.key != key(t.site.home) && len(own) > 0 {
				all = append(all, lookup{page: d, word: own[0]})
			}
		}
		const needed = 3 * changes
		if len(all) < needed {
			return nil, wrongUse(fmt.Sprintf("there are %s with a word of their own, too few to change some", plural(len(all), "HTML page")))
		}
		for i := range needed {
			t.picked = append(t.picked, all[i*len(all)/needed])
		}
	}
	return slices.Clone(t.picked[:n]), nil
}

// replaceWords puts a new word in place of all in a file that begin as the old one does, in
// what can be seen, and gives the file another time.
func replaceWords(file, old, word string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	pattern, err := regexp.Compile(`(?i)` + regexp.QuoteMeta(first(old, prefixRunes)) + `[\pL\pN\pM]*`)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	replaced := 0
	for z := html.NewTokenizer(bytes.NewReader(data)); ; {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		raw := z.Raw()
		if kind == html.TextToken {
			replaced += len(pattern.FindAllIndex(raw, -1))
			raw = pattern.ReplaceAllLiteral(raw, []byte(word))
		}
		out.Write(raw)
	}
	if replaced == 0 {
		return fmt.Errorf("%s has no %s to be replaced", file, old)
	}
	later, err := laterThan(file)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(file, out.Bytes(), 0o644), os.Chtimes(file, later, later))
}

// touch gives a file another time.
func touch(file string) error {
	later, err := laterThan(file)
	if err != nil {
		return err
	}
	return os.Chtimes(file, later, later)
}

func laterThan(file string) (time.Time, error) {
	info, err := os.Stat(file)
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime().Add(time.Hour), nil
}

// again asks for all pages once more, and then looks some up.
func (t *trial) again(ctx context.Context, name string, generation uint32, wants map[string]want, lookups []lookup) (*phase, error) {
	return t.phase(ctx, name, generation, wants, lookups, func() (*summary, error) {
		return t.crawler.recrawl(ctx, slices.Sorted(maps.Values(t.urls)))
	})
}

// phase runs the crawler, and checks and tells what came of it.
func (t *trial) phase(ctx context.Context, name string, generation uint32, wants map[string]want, lookups []lookup, work func() (*summary, error)) (*phase, error) {
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
	if generation > 0 { // the index follows
		followed, err := t.followed(ctx, lookups)
		if err != nil {
			return nil, err
		}
		p.Checks = append(p.Checks, followed...)
	}
	writeChecks(t.stderr, p.Checks, t.settings.verbose)
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
