package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// changes is the number of pages that get new words, of pages that get new times, and of removed pages.
const changes = 5

// A trial is a site, its server, a crawler, and the count of comparisons.
type trial struct {
	out      io.Writer
	site     *site
	server   *server
	binary   string // the orbweaver program
	data     string // its folder
	compared int
	wrong    int

	words   map[string]string // by key: a word that finds this page alone, see mark
	spelled map[string]string // by key: the crawler's spelling of URLs with status 200
	records int               // page records of all phases
	last    blobschema.Totals // of the previous phase
}

// A table holds values to compare, by name.
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
		fmt.Fprintf(t.out, "  %-10s %d as expected\n", what, len(names))
		return
	}
	t.wrong++
	fmt.Fprintf(t.out, "  %-10s %d of %d DIFFER\n%s\n", what, len(lines), len(names), strings.Join(lines[:min(20, len(lines))], "\n"))
}

// A want is the expected result of a phase for a URL.
type want struct {
	status int
	kind   string // "response" or "revisit"; "" if both are right, as two files may be equal
	result string // of the command recrawl
}

// run runs both phases. It ends after the first if that differs.
func (t *trial) run(ctx context.Context) error {
	if err := t.site.walk(); err != nil {
		return err
	}
	if err := t.mark(); err != nil {
		return err
	}
	wants := map[string]want{}
	for k, p := range t.site.pages {
		wants[k] = want{status: p.status}
	}
	err := t.phase(ctx, "crawl", 0, wants, "", "crawl", "--delay", "0s", "--scope", "host", "--partitions", "2", "--requisites=false", t.site.home.String())
	if err != nil || t.wrong > 0 {
		return err
	}
	if _, err := t.orbweaver(ctx, "", "index"); err != nil { // it computes ranks too
		return err
	}
	if err := t.ranks(ctx); err != nil {
		return err
	}
	if err := t.known(ctx); err != nil {
		return err
	}
	urls := slices.Sorted(maps.Values(t.spelled))
	wants, found, err := t.change()
	if err != nil {
		return err
	}
	if err := t.phase(ctx, "recrawl", 1, wants, strings.Join(urls, "\n")+"\n", "recrawl", "--urls", "-"); err != nil {
		return err
	}
	if err := t.ranks(ctx); err != nil { // index and ranks follow without a command
		return err
	}
	return t.findWords(ctx, found)
}

// mark gives some HTML pages a word that no other page has, in a paragraph after their heading, because only main text is
// indexed. The pages are far apart, and each is the file of one URL only.
func (t *trial) mark() error {
	users := map[string]int{}
	for _, p := range t.site.pages {
		users[p.file]++
	}
	var all []string
	for k, p := range t.site.pages {
		if p.heading && users[p.file] == 1 && k != key(t.site.home) {
			all = append(all, k)
		}
	}
	if slices.Sort(all); len(all) < 3*changes {
		return fmt.Errorf("only %d HTML pages with a heading can change; %d are needed", len(all), 3*changes)
	}
	t.words = map[string]string{}
	for i := range 3 * changes {
		k := all[i*len(all)/(3*changes)]
		t.words[k] = made("old", i)
		if err := t.site.pages[k].rewrite(func(data []byte) []byte {
			return bytes.Replace(data, []byte(headingEnd), []byte(headingEnd+"<p>"+t.words[k]+"</p>"), 1)
		}); err != nil {
			return err
		}
	}
	return nil
}

// made returns a word that is not a form of another.
func made(start string, i int) string { return fmt.Sprintf("q%c%szkxvq", 'a'+i, start) }

// change replaces the words of some marked pages, changes the times of others and removes more.
// It returns the expected results of a recrawl by page, and the pages that words must find.
func (t *trial) change() (wants map[string]want, found table, err error) {
	wants, found = map[string]want{}, table{}
	for k, p := range t.site.pages {
		if p.status == http.StatusOK {
			wants[k] = want{status: http.StatusNotModified, kind: "revisit", result: "unchanged"}
		}
	}
	for i, k := range slices.Sorted(maps.Keys(t.words)) {
		p, old := t.site.pages[k], t.words[k]
		switch i % 3 {
		case 0:
			word := made("new", i)
			err = p.rewrite(func(data []byte) []byte { return bytes.ReplaceAll(data, []byte(old), []byte(word)) })
			wants[k] = want{status: http.StatusOK, kind: "response", result: "changed"}
			found[old], found[word] = "", k
		case 1:
			err = touch(p.file)
			wants[k] = want{status: http.StatusOK, kind: "revisit", result: "unchanged"}
			found[old] = k
		default:
			err = os.Remove(p.file)
			t.site.pages[k] = &page{status: http.StatusNotFound}
			wants[k] = want{status: http.StatusNotFound, result: "gone"}
			found[old] = ""
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return wants, found, nil
}

// rewrite changes a page's file, and gives it another time.
func (p *page) rewrite(change func(data []byte) []byte) error {
	data, err := os.ReadFile(p.file)
	if err != nil {
		return err
	}
	data = change(data)
	p.sum = sha256.Sum256(data)
	if err := os.WriteFile(p.file, data, 0o600); err != nil {
		return err
	}
	return touch(p.file)
}

// touch gives a file a later time.
func touch(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	later := info.ModTime().Add(time.Hour)
	return os.Chtimes(file, later, later)
}

// orbweaver runs the command that begins args and returns its standard output. Its error has the standard error.
func (t *trial) orbweaver(ctx context.Context, stdin string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, t.binary, append(args, "--data", t.data)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &said
	if err := cmd.Run(); err != nil {
		return out.Bytes(), fmt.Errorf("orbweaver %s: %w\n%s", args[0], err, bytes.TrimSpace(said.Bytes()))
	}
	return out.Bytes(), nil
}

// A summary is the end of a command that fetches.
type summary struct {
	Status    int               `json:"status"`
	Totals    blobschema.Totals `json:"totals"` // of the whole crawl
	Requested []struct {
		URL    string `json:"url"`
		Result string `json:"result"`
	} `json:"requested"`
}

// phase runs a command that fetches while the server answers, and compares the results.
func (t *trial) phase(ctx context.Context, name string, generation uint32, wants map[string]want, stdin string, args ...string) error {
	began, out := time.Now(), []byte(nil)
	requests, err := t.server.during(ctx, func() (err error) {
		out, err = t.orbweaver(ctx, stdin, append(args, "--json", "--allow-net=127.0.0.1")...)
		return err
	})
	if err != nil {
		return err
	}
	seconds := time.Since(began).Seconds()
	events, err := decodeLines[struct{ Summary *summary }](out)
	if err != nil || len(events) == 0 || events[len(events)-1].Summary == nil {
		return fmt.Errorf("orbweaver %s printed no summary (%w): %.200s", args[0], err, out)
	}
	sum := events[len(events)-1].Summary
	pages, size, err := t.stored(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.out, "%s: %d pages in %.1f s\n", name, len(wants), seconds)
	t.compareRequests(requests, wants, generation > 0)
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
	t.comparePages(pages, generation, wants)
	t.records += len(wants)
	t.compareFigures(&sum.Totals, pages, size, requests)
	t.last = sum.Totals
	_, err = t.orbweaver(ctx, "", "fsck") // fails if it finds a violation
	return err
}

// compareRequests compares the server's log with one request for each URL. The crawler may
// request robots.txt once.
func (t *trial) compareRequests(requests []request, wants map[string]want, conditional bool) {
	got, expected := table{}, table{}
	for _, r := range requests {
		got[keyOf(r.URI)] += fmt.Sprintf("%s %d, conditional %t\n", r.Method, r.Status, r.Condition != "")
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

// comparePages compares the page records of a generation, and the payloads that they refer
// to, with the files.
func (t *trial) comparePages(pages []stored, generation uint32, wants map[string]want) {
	got, expected := table{}, table{}
	t.spelled = map[string]string{}
	for i := range pages {
		p := &pages[i]
		k := keyOf(p.URL)
		if o := t.site.pages[k]; o != nil && o.status == http.StatusOK {
			t.spelled[k] = p.URL
		}
		if p.Generation != generation || p.Robots {
			continue
		}
		text := fmt.Sprintf("%d %s%s", p.Status, p.Outcome, p.Truncated)
		if o := t.site.pages[k]; p.WARC != "" && o != nil && o.file != "" {
			text += fmt.Sprintf(" %x", p.sum)
		}
		switch {
		case p.WARC == "" || wants[k].kind == "":
		case p.Original != nil:
			text += " revisit"
		default:
			text += " response"
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
		expected[k] = fmt.Sprintf("%d %s", w.status, outcome)
		if p := t.site.pages[k]; p.file != "" {
			expected[k] += fmt.Sprintf(" %x", p.sum)
		}
		if w.kind != "" {
			expected[k] += " " + w.kind
		}
	}
	t.compare("pages", got, expected)
}

// compareFigures compares the crawler's figures with the page records, the size of the WARC files and the server's log.
func (t *trial) compareFigures(totals *blobschema.Totals, pages []stored, size int64, requests []request) {
	var outcomes, sent int64
	for _, n := range totals.Outcomes {
		outcomes += n
	}
	for _, r := range requests {
		sent += r.Bytes
	}
	records := 0
	for _, p := range pages {
		if !p.Robots {
			records++
		}
	}
	fmt.Fprintf(t.out, "  %d requests, %d bytes received, %d bytes stored\n", len(requests), sent, totals.Stored-t.last.Stored)
	t.compare("figures", table{
		"left":         fmt.Sprint(totals.Pending, totals.Unexamined, totals.Buffered, totals.DeadMail),
		"page records": fmt.Sprint(records, outcomes),
		"bytes stored": fmt.Sprint(totals.Stored), "bytes received": fmt.Sprint(totals.Bytes - t.last.Bytes),
	}, table{
		"left":         fmt.Sprint(0, 0, 0, 0),
		"page records": fmt.Sprint(t.records, t.records),
		"bytes stored": fmt.Sprint(size), "bytes received": fmt.Sprint(sent),
	})
}
