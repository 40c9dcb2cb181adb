package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// changes is the number of pages with new words, of those with new times, and of those removed.
const changes = 5

// A trial is a site, its server, a crawler, and what has been compared.
type trial struct {
	out      io.Writer
	site     *site
	server   server
	crawler  crawler
	warcio   string
	compared int
	wrong    int

	spelled map[string]string // by key: the crawler's spelling of URLs with status 200
	records int               // page records of all phases
	last    blobschema.Totals // of the previous phase
	words   *corpus           // of the first phase
}

// A table has what is compared, by the name of the thing that it belongs to.
type table map[string]string

// compare counts and prints the differences between two tables.
func (t *trial) compare(what string, got, want table) {
	t.compared++
	names := maps.Clone(got)
	maps.Copy(names, want)
	var lines []string
	for _, k := range slices.Sorted(maps.Keys(names)) {
		g, inGot := got[k]
		w, inWant := want[k]
		if g != w || inGot != inWant {
			lines = append(lines, fmt.Sprintf("    %s: got %q, want %q", k, g, w))
		}
	}
	if len(lines) == 0 {
		fmt.Fprintf(t.out, "  %-16s %d as expected\n", what, len(names))
		return
	}
	t.wrong++
	fmt.Fprintf(t.out, "  %-16s %d of %d DIFFER\n%s\n", what, len(lines), len(names), strings.Join(lines[:min(20, len(lines))], "\n"))
}

// near is the text of want if got is as near as digits require, else of got.
func near(got, want, digits float64) string {
	if math.Abs(got-want) <= digits*math.Abs(want) {
		got = want
	}
	return fmt.Sprint(got)
}

// A want is what a phase must bring for a URL.
type want struct {
	status int
	kind   string // "response" or "revisit"; "" if both are right, as two files may be equal
	result string // of the command recrawl
}

// all makes the phases, one after another until one differs.
func (t *trial) all(ctx context.Context, partitions int) error {
	if err := t.site.walk(); err != nil {
		return err
	}
	wants := map[string]want{}
	for k, p := range t.site.pages {
		wants[k] = want{status: p.status}
	}
	err := t.phase(ctx, "crawl", 0, wants, func() (*summary, error) {
		return t.crawler.fetch(ctx, "", "crawl", "--delay", "0s", "--scope", "host", "--partitions", strconv.Itoa(partitions), t.site.home.String())
	})
	if err != nil || t.wrong > 0 {
		return err
	}
	if err := t.index(ctx); err != nil {
		return err
	}
	t.words = t.site.corpus()
	if err := t.ranks(ctx); err != nil {
		return err
	}
	if err := t.crawler.serve(ctx, func(s searcher) error { return t.searches(ctx, s) }); err != nil {
		return err
	}
	picked, err := t.pick(3 * changes)
	if err != nil {
		return err
	}
	for generation, change := range []func([]string, map[string]want) (table, error){nothing, t.change, t.remove} {
		wants := map[string]want{}
		for k, p := range t.site.pages {
			if p.status == http.StatusOK {
				wants[k] = want{status: http.StatusNotModified, kind: "revisit", result: "unchanged"}
			}
		}
		found, err := change(picked, wants)
		if err != nil {
			return err
		}
		urls := slices.Sorted(maps.Values(t.spelled))
		name := []string{"recrawl", "changes", "removals"}[generation]
		err = t.phase(ctx, name, uint32(generation)+1, wants, func() (*summary, error) {
			return t.crawler.fetch(ctx, strings.Join(urls, "\n")+"\n", "recrawl", "--urls", "-")
		})
		if err != nil || t.wrong > 0 {
			return err
		}
		if err := t.ranks(ctx); err != nil { // index and ranks follow by themselves
			return err
		}
		if err := t.crawler.serve(ctx, func(s searcher) error { return t.lookUp(ctx, s, found) }); err != nil {
			return err
		}
	}
	return nil
}

// pick chooses pages that are far apart, each the file of one URL only and with an own word.
func (t *trial) pick(n int) ([]string, error) {
	users := map[string]int{}
	for _, p := range t.site.pages {
		users[p.file]++
	}
	all := slices.DeleteFunc(slices.Clone(t.words.keys), func(k string) bool {
		return users[t.site.pages[k].file] != 1 || k == key(t.site.home) || len(t.words.own[k]) == 0
	})
	if len(all) < n {
		return nil, fmt.Errorf("only %d HTML pages have a word of their own; %d are needed", len(all), n)
	}
	picked := make([]string, n)
	for i := range picked {
		picked[i] = all[i*len(all)/n]
	}
	return picked, nil
}

func nothing([]string, map[string]want) (table, error) { return nil, nil }

// change replaces the own words of some pages, and changes the times of others. It returns
// the pages that words must find.
func (t *trial) change(picked []string, wants map[string]want) (table, error) {
	found := table{}
	for i, k := range picked[:2*changes] {
		p, old := t.site.pages[k], t.words.own[k][0]
		if i >= changes {
			if err := touch(p.file); err != nil {
				return nil, err
			}
			found[old] = k
			wants[k] = want{status: http.StatusOK, kind: "revisit", result: "unchanged"}
			continue
		}
		word := fmt.Sprintf("q%czkxvq", 'a'+i) // no two are forms of one word
		if err := replaceWord(p.file, old, word); err != nil {
			return nil, err
		}
		data, err := os.ReadFile(p.file)
		if err != nil {
			return nil, err
		}
		p.sum = sha256.Sum256(data)
		found[old], found[word] = "", k
		wants[k] = want{status: http.StatusOK, kind: "response", result: "changed"}
	}
	return found, nil
}

// remove removes pages, whose own words then find nothing.
func (t *trial) remove(picked []string, wants map[string]want) (table, error) {
	found := table{}
	for _, k := range picked[2*changes:] {
		if err := os.Remove(t.site.pages[k].file); err != nil {
			return nil, err
		}
		t.site.pages[k] = &page{status: http.StatusNotFound}
		found[t.words.own[k][0]] = ""
		wants[k] = want{status: http.StatusNotFound, result: "gone"}
	}
	return found, nil
}

// phase runs the crawler while the server answers, and compares what came of it.
func (t *trial) phase(ctx context.Context, name string, generation uint32, wants map[string]want, work func() (*summary, error)) error {
	began, sum := time.Now(), (*summary)(nil)
	asked, err := t.server.during(ctx, func() (err error) {
		sum, err = work()
		return err
	})
	if err != nil {
		return err
	}
	seconds := time.Since(began).Seconds()
	dir := filepath.Join(t.server.dir, "warc-"+name)
	if _, err := t.crawler.run(ctx, "", "export", "--format", "warc", "--out", dir); err != nil {
		return err
	}
	a, err := readArchive(dir)
	if err != nil {
		return err
	}
	pages, err := t.crawler.pages(ctx)
	if err != nil {
		return err
	}
	sent := int64(0)
	for i := range asked {
		sent += asked[i].Bytes
	}
	fmt.Fprintf(t.out, "%s: %d pages in %.1f s, %d requests, %d bytes received, %d bytes stored\n",
		name, len(wants), seconds, len(asked), sent, sum.Totals.Stored-t.last.Stored)
	t.compareRequests(asked, wants, generation > 0)
	results, expected := table{}, table{}
	for _, r := range sum.Requested {
		results[keyOf(r.URL)] = r.Result
	}
	for k, w := range wants {
		if w.result != "" {
			expected[k] = w.result
		}
	}
	t.compare("results", results, expected)
	outcomes := int64(0)
	for _, n := range sum.Totals.Outcomes {
		outcomes += n
	}
	t.records += len(wants)
	captures := int64(0)
	for i := range pages {
		if pages[i].WARC != "" {
			captures++
		}
	}
	pages = slices.DeleteFunc(pages, func(p blobschema.Page) bool { return p.Robots })
	t.comparePages(pages, a, generation, wants)
	count := func(n ...int64) string { return fmt.Sprint(n) }
	totals := &sum.Totals
	t.compare("figures", table{
		"exit status": count(int64(sum.Status)), "left": count(totals.Pending, totals.Unexamined, totals.Held, totals.DeadMail),
		"page records": count(int64(len(pages)), outcomes), "captures": count(int64(len(a.captures))),
		"bytes stored": count(totals.Stored), "bytes received": count(totals.Bytes - t.last.Bytes),
	}, table{
		"exit status": count(0), "left": count(0, 0, 0, 0),
		"page records": count(int64(t.records), int64(t.records)), "captures": count(captures),
		"bytes stored": count(a.bytes), "bytes received": count(sent),
	})
	t.last = sum.Totals
	return t.verify(ctx, a)
}

// comparePages compares the page records of a generation, and the payloads that they refer
// to, with the files.
func (t *trial) comparePages(pages []blobschema.Page, a *archive, generation uint32, wants map[string]want) {
	got, expected := table{}, table{}
	t.spelled = map[string]string{}
	for i := range pages {
		p := &pages[i]
		k := keyOf(p.URL)
		if o := t.site.pages[k]; o != nil && o.status == http.StatusOK {
			t.spelled[k] = p.URL
		}
		if p.Generation != generation {
			continue
		}
		text := fmt.Sprintf("%d %s %s", p.Status, p.Outcome, p.Truncated)
		if p.WARC != "" {
			payload, kind, err := a.payload(p)
			switch {
			case err != nil:
				text += err.Error()
			case t.site.pages[k] != nil && t.site.pages[k].file != "":
				text += fmt.Sprintf("%x", payload)
			}
			if wants[k].kind != "" {
				text += " " + kind
			}
		}
		if got[k] != "" {
			text = "two records: " + got[k] + ", " + text
		}
		got[k] = text
	}
	for k, w := range wants {
		outcome := map[int]blobschema.Outcome{
			http.StatusOK: blobschema.OutcomeOK, http.StatusMovedPermanently: blobschema.OutcomeRedirect, http.StatusNotModified: blobschema.OutcomeUnchanged,
		}[w.status]
		if w.status >= http.StatusBadRequest {
			outcome = blobschema.OutcomeClientError
		}
		expected[k] = fmt.Sprintf("%d %s ", w.status, outcome)
		if p := t.site.pages[k]; p.file != "" {
			expected[k] += fmt.Sprintf("%x", p.sum)
		}
		if w.kind != "" {
			expected[k] += " " + w.kind
		}
	}
	t.compare("pages", got, expected)
}

// compareRequests compares the server's log with one request for each URL. robots.txt may be
// requested once.
func (t *trial) compareRequests(asked []request, wants map[string]want, conditional bool) {
	got, expected := table{}, table{}
	for i := range asked {
		r := &asked[i]
		condition := r.IfNoneMatch != "" || r.IfModifiedSince != ""
		got[keyOf(r.URI)] += fmt.Sprintf("%s %d, conditional %t\n", r.Method, r.Status, condition)
	}
	for k, w := range wants {
		expected[k] = fmt.Sprintf("GET %d, conditional %t\n", w.status, conditional)
	}
	const robots = "/robots.txt"
	if _, ok := got[robots]; ok {
		expected[robots] = fmt.Sprintf("GET %d, conditional false\n", http.StatusNotFound)
	}
	t.compare("requests", got, expected)
}

// verify compares the findings of fsck and of warcio with none.
func (t *trial) verify(ctx context.Context, a *archive) error {
	out, err := t.crawler.run(ctx, "", "fsck", "--json")
	var report struct {
		Found      int             `json:"found"`
		Violations json.RawMessage `json:"violations"`
	}
	if json.Unmarshal(out, &report) != nil || err != nil && report.Found == 0 {
		return fmt.Errorf("fsck: %w: %s", err, out)
	}
	if report.Found == 0 {
		report.Violations = nil
	}
	t.compare("fsck", table{"violations": string(report.Violations)}, table{"violations": ""})
	if t.warcio != "" {
		said, err := exec.CommandContext(ctx, t.warcio, append([]string{"check"}, a.files...)...).CombinedOutput()
		if err != nil {
			said = fmt.Append(said, err)
		}
		t.compare("warcio", table{"check": string(bytes.TrimSpace(said))}, table{"check": ""})
	}
	return nil
}
