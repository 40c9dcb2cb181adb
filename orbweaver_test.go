package orbweaver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/control"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/partition"
)

const (
	childVariable = "ORBWEAVER_TEST_CRAWL" // "FOLDER URL..." of the seeds, in the process that crawls
	perHost       = 40                     // pages
)

// TestMain makes this program a crawler if the environment says so.
func TestMain(m *testing.M) {
	if job := os.Getenv(childVariable); job != "" {
		args := strings.Fields(job)
		if err := crawlTwice(args[0], args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var settings = map[string][]string{"allow-net": {"127.0.0.1"}, "delay": {"0s"}, "partitions": {"4"}, "scope": {"any"}}

// crawlTwice crawls sites, and fetches their pages two times more.
func crawlTwice(dir string, sites []string) (err error) {
	ctx := context.Background()
	c, err := Open(ctx, dir, Options{Seeds: sites, Settings: settings})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for range 3 {
		if err := c.Run(ctx); err != nil {
			return err
		}
		var urls []string
		for _, s := range sites {
			for i := range perHost {
				urls = append(urls, fmt.Sprintf("%s/%d", s, i))
			}
		}
		if err := c.Submit(ctx, urls...); err != nil {
			return err
		}
	}
	return nil
}

// changing serves sites that link to one another. Of each four pages one is always the same, one changes with each
// request, one is gone from the second on, and one fails at the second. It calls each with the number of requests so far.
func changing(t *testing.T, sites int, each func(asked int64)) (urls []string) {
	t.Helper()
	var asked atomic.Int64
	var of sync.Map // number of requests, by page
	for range sites {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var n int
			if _, err := fmt.Sscanf(r.URL.Path, "/%d", &n); err != nil && r.URL.Path != "/" || n >= perHost {
				http.NotFound(w, r)
				return
			}
			count := asked.Add(1)
			each(count)
			per, _ := of.LoadOrStore(r.Host+r.URL.Path, new(atomic.Int64))
			mine := per.(*atomic.Int64).Add(1)
			switch {
			case n%4 == 1 && mine > 1:
				w.WriteHeader(http.StatusGone)
				return
			case n%4 == 2 && mine == 2:
				w.WriteHeader(http.StatusForbidden)
				return
			}
			w.Header().Set("Content-Type", "text/html")
			if n%4 == 3 {
				fmt.Fprintf(w, "news %d ", count)
			}
			for _, u := range urls {
				fmt.Fprintf(w, `<a href="%s/%d">next</a> <a href="%[1]s/%[3]d">after</a>`, u, n+1, n+2)
			}
		}))
		t.Cleanup(srv.Close)
		urls = append(urls, srv.URL)
	}
	return urls
}

// line is what a change says, without its cursor.
type line struct {
	URL        string
	Generation int
	Digest     string
}

func lineOf(ch Change) line { return line{ch.Page.URL, ch.Page.Generation, ch.Page.Digest} }

// stored returns all visible records of a crawl.
func stored(t *testing.T, v *view.View) (lines []line) {
	t.Helper()
	for pg, err := range v.Pages(t.Context(), view.EveryRecord) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, linesOf([]blobschema.Page{pg})...)
	}
	return sorted(lines)
}

// linesOf returns the lines of page records, without those of robots.txt.
func linesOf(pages []blobschema.Page) (lines []line) {
	for _, pg := range pages {
		if !pg.Robots {
			lines = append(lines, line{pg.URL, int(pg.Generation), pg.Digest})
		}
	}
	return lines
}

func sorted(lines []line) []line {
	slices.SortFunc(lines, func(a, b line) int {
		return strings.Compare(fmt.Sprint(a.URL, " ", a.Generation, a.Digest), fmt.Sprint(b.URL, " ", b.Generation, b.Digest))
	})
	return lines
}

// checkKinds checks what changes say of the earlier answers, which are in the changes too.
func checkKinds(t *testing.T, changes []Change) {
	t.Helper()
	kinds, last := map[string]int{}, map[string]*Change{}
	for i := range changes {
		ch := &changes[i]
		kinds[ch.Kind]++
		was := last[ch.Page.URL]
		last[ch.Page.URL] = ch
		switch {
		case was == nil && ch.Before != "" && ch.Page.Generation == 0:
			t.Errorf("%s %s: before %s, and it is the first", ch.Kind, ch.Page.URL, ch.Before)
		case was == nil:
		case was.Page.Generation >= ch.Page.Generation:
			t.Errorf("%s: generation %d after %d", ch.Page.URL, ch.Page.Generation, was.Page.Generation)
		case ch.Page.Status != 0 && was.Page.Status != 0 && was.Page.Generation == ch.Page.Generation-1 && ch.Before != was.Page.Digest:
			t.Errorf("%s %s: before %s, and it was %s", ch.Kind, ch.Page.URL, ch.Before, was.Page.Digest)
		}
		if same := ch.Before == ch.Page.Digest; ch.Kind == "unchanged" && ch.Page.Status == 200 && !same || ch.Kind == "changed" && same {
			t.Errorf("%s %s: %s, before %s", ch.Kind, ch.Page.URL, ch.Page.Digest, ch.Before)
		}
	}
	for _, kind := range []string{"new", "changed", "unchanged", "gone", "failed"} {
		if kinds[kind] == 0 {
			t.Errorf("no change is %s: %v", kind, kinds)
		}
	}
	t.Log(kinds)
}

// live crawls in another process until the crawl is done, or the process is killed.
func live(ctx context.Context, dir string, sites []string, kill <-chan struct{}) (dead bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+dir+" "+strings.Join(sites, " "))
	done := make(chan struct{})
	go func() {
		select {
		case <-kill:
			cancel()
		case <-done:
		}
	}()
	out, err := cmd.CombinedOutput()
	close(done)
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return ctx.Err() != nil, err
}

// follower collects the changes of a crawl, each time from its cursor on.
type follower struct {
	dir     string
	cursor  string
	changes []Change
}

// follow takes changes, at most a number of them, until ctx ends or, if every is 0, until there are no more.
func (f *follower) follow(ctx context.Context, most int, every time.Duration) error {
	r, err := OpenReader(ctx, f.dir)
	if err != nil {
		return err
	}
	defer r.Close()
	list := r.Feed(ctx, f.cursor)
	if every > 0 {
		list = r.Follow(ctx, f.cursor, every)
	}
	for ch, err := range list {
		if err != nil {
			return err
		}
		f.changes, f.cursor = append(f.changes, ch), ch.Cursor
		if most--; most == 0 {
			break
		}
	}
	return nil
}

// TestFeedSurvivesKills follows a crawl in another process, which is killed several times. The follower stops at random
// changes and begins again at their cursors. In the end it has seen each record once.
func TestFeedSurvivesKills(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	deaths := []int64{60, 300, 480} // by the number of requests: in the first round, which asks 168 times, and in later ones
	kill := make(chan struct{}, len(deaths))
	sites := changing(t, 4, func(asked int64) {
		if slices.Contains(deaths, asked) {
			kill <- struct{}{}
		}
	})
	rng := rand.New(rand.NewPCG(1, 2))
	f := follower{dir: dir}
	resumed := 0 // times that the follower began at a cursor and found more
	for over := false; !over; {
		done := make(chan struct{})
		go func() {
			defer close(done)
			dead, err := live(t.Context(), dir, sites, kill)
			if over = !dead; over && err != nil {
				t.Error(err)
			}
		}()
		for running := true; running; {
			select {
			case <-done:
				running = false
			case <-time.After(5 * time.Millisecond):
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			before := len(f.changes)
			err := f.follow(ctx, 1+rng.IntN(150), 20*time.Millisecond)
			cancel()
			if err != nil && !errors.Is(err, ErrNoCrawl) && !errors.Is(err, ErrInUse) && ctx.Err() == nil {
				t.Fatal(err)
			}
			if before > 0 && len(f.changes) > before {
				resumed++
			}
		}
	}
	if err := f.follow(t.Context(), 0, 0); err != nil {
		t.Fatal(err)
	}
	r, err := OpenReader(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var got []line
	for _, ch := range f.changes {
		got = append(got, lineOf(ch))
	}
	if d := cmp.Diff(stored(t, r.view), sorted(got)); d != "" {
		t.Error(d)
	}
	checkKinds(t, f.changes)
	if len(kill) > 0 || resumed < 2 {
		t.Errorf("the crawl survived %d kills, and the follower resumed %d times", len(kill), resumed)
	}
	t.Logf("%d changes, resumed %d times", len(f.changes), resumed)
}

// TestFeedOfElasticPartitions changes the partitions of a crawl between the reads of its feed: into more partitions, and into fewer.
func TestFeedOfElasticPartitions(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c, err := Open(ctx, "mem://", Options{Seeds: changing(t, 16, func(int64) {}), Settings: map[string][]string{
		"allow-net": {"127.0.0.1"}, "delay": {"0s"}, "partitions": {"1"}, "scope": {"any"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var got []line
	var widest int
	cursor := ""
	for _, parts := range []int{1, 5, 2} {
		l, err := c.view.Layout(ctx)
		if err != nil {
			t.Fatal(err)
		}
		m, err := partition.NewMap(l.Map.Slots(), parts)
		if err != nil {
			t.Fatal(err)
		}
		if parts > 1 {
			if err := c.own().Repartition(ctx, control.Change{Version: l.Record.Version, Map: m}); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Run(ctx); err != nil {
			t.Fatal(err)
		}
		for ch, err := range c.Feed(ctx, cursor) {
			if err != nil {
				t.Fatal(err)
			}
			got, cursor = append(got, lineOf(ch)), ch.Cursor
			widest = max(widest, len(cursor))
		}
		var again []string
		for page, err := range c.Pages(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			again = append(again, page.URL)
		}
		if err := c.Submit(ctx, again...); err != nil {
			t.Fatal(err)
		}
	}
	heads, err := c.view.Heads(ctx)
	if err != nil {
		t.Fatal(err)
	}
	worked := 0
	for i := range heads {
		if heads[i].Totals.Stored > 0 {
			worked++
		}
	}
	if worked < 3 {
		t.Errorf("only %d partitions have stored something", worked)
	}
	if d := cmp.Diff(stored(t, c.view), sorted(got)); d != "" {
		t.Error(d)
	}
	if widest > 120 {
		t.Errorf("a cursor has %d bytes", widest)
	}
}

// TestDeletedCommits deletes the first commits of a crawl. The error says where to go on, and that works.
func TestDeletedCommits(t *testing.T) {
	t.Parallel()
	dir, sites := t.TempDir(), changing(t, 2, func(int64) {})
	if err := crawlTwice(dir, sites); err != nil {
		t.Fatal(err)
	}
	var commits []string
	objects := filepath.Join(dir, naming.ObjectsFolder)
	if err := filepath.WalkDir(objects, func(name string, _ fs.DirEntry, err error) error {
		if err == nil {
			name, err = filepath.Rel(objects, name)
		}
		if _, _, _, no := naming.ParseCommit(filepath.ToSlash(name)); no == nil {
			commits = append(commits, name)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	r, err := OpenReader(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	heads, err := r.view.Heads(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The first commit of each partition is deleted, or of many commits the first third.
	deleted := map[partition.ID]uint64{}
	for i := range heads {
		deleted[heads[i].Partition] = min(max(1, heads[i].Seq/3), heads[i].Seq-1)
	}
	commits = slices.DeleteFunc(commits, func(name string) bool {
		p, seq, _, err := naming.ParseCommit(filepath.ToSlash(name))
		return err != nil || seq > deleted[p]
	})
	var want []line
	for c, err := range r.view.CommitsAfter(t.Context(), nil, func(p partition.ID) uint64 { return deleted[p] }) {
		if err != nil {
			t.Fatal(err)
		}
		pages, err := c.Pages()
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, linesOf(pages)...)
	}
	for _, name := range commits {
		if err := os.Remove(filepath.Join(objects, name)); err != nil {
			t.Fatal(err)
		}
	}
	var got []line
	cursor, errs := "", 0
	for over := false; !over; {
		over = true
		for range r.Feed(t.Context(), cursor) { // a loop that ends before the error
			break
		}
		for ch, err := range r.Feed(t.Context(), cursor) {
			if err != nil {
				_, text, found := strings.Cut(err.Error(), "give the cursor ")
				text, _, _ = strings.Cut(text, " ")
				if errs++; !found || errs > len(heads) {
					t.Fatal(err)
				}
				cursor, over = text, false
				break
			}
			got, cursor = append(got, lineOf(ch)), ch.Cursor
		}
	}
	if d := cmp.Diff(sorted(want), sorted(got)); d != "" || errs == 0 || len(got) == 0 {
		t.Errorf("%d errors, %d changes: %s", errs, len(got), d)
	}
}

// TestOnPage stops a crawl by an error of OnPage, and resumes it. Each change comes once, the refused one twice.
func TestOnPage(t *testing.T) {
	t.Parallel()
	full, calls := errors.New("full"), 0
	var got []line
	c, err := Open(t.Context(), t.TempDir(), Options{Seeds: changing(t, 3, func(int64) {}), Settings: settings, OnPage: func(ch Change) error {
		if calls++; calls == 10 {
			return full
		}
		got = append(got, lineOf(ch))
		if body, err := ch.Page.Body(t.Context()); err != nil || ch.Page.Status == http.StatusOK && !strings.Contains(string(body), ">next</a>") {
			t.Errorf("%s: %q, %v", ch.Page.URL, body, err)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Run(t.Context()); !errors.Is(err, full) || len(got) != 9 {
		t.Fatalf("%v after %d changes", err, len(got))
	}
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(stored(t, c.view), sorted(got)); d != "" {
		t.Error(d)
	}
}

// TestSharedPlatform crawls as a worker of a platform that several processes share, stops and resumes.
func TestSharedPlatform(t *testing.T) {
	t.Parallel()
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	defer srv.WaitForShutdown()
	defer srv.Shutdown()
	location := srv.ClientURL() + "?sync=confirmed&blobs=file://" + filepath.ToSlash(t.TempDir())
	asked := make(chan struct{})
	sites := changing(t, 2, func(n int64) {
		if n == 10 {
			close(asked)
		}
	})
	c, err := Open(t.Context(), location, Options{Seeds: sites, Settings: settings, Filter: func(_, link string) bool { return !strings.HasSuffix(link, "/7") }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		<-asked
		stop()
	}()
	if err := c.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := OpenReader(t.Context(), location)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	n := 0
	for ch, err := range r.Feed(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(ch.Page.URL, "/7") {
			t.Errorf("the filter let %s through", ch.Page.URL)
		}
		n++
	}
	if want := len(sites) * (perHost + 1); n != want { // /, 1 to 39 without 7, 40 and 41
		t.Errorf("%d changes, want %d", n, want)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	set := func(name, value string) Options {
		return Options{Seeds: []string{"http://a.example/"}, Settings: map[string][]string{name: {value}}}
	}
	for _, c := range []struct {
		options Options
		want    string
	}{
		{Options{}, "give a seed"},
		{Options{Seeds: []string{"a b"}}, "cannot use URL"},
		{set("colour", "red"), "no such setting"},
		{set("max-pages", "many"), "setting max-pages: "},
		{set("partitions", "1000000"), "setting partitions: "},
	} {
		if _, err := Open(t.Context(), dir, c.options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if _, err := OpenReader(t.Context(), filepath.Join(dir, "none")); !errors.Is(err, ErrNoCrawl) {
		t.Errorf("reading nothing: %v", err)
	}
	c, err := Open(t.Context(), dir, set("scope", "domain"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir, Options{}); !errors.Is(err, ErrInUse) {
		t.Errorf("opened twice: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir, set("scope", "any")); err == nil || !strings.Contains(err.Error(), "created with domain") {
		t.Errorf("another scope: %v", err)
	}
	c, err = Open(t.Context(), dir, set("max-pages", "7"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.record.Settings.MaxPages != 7 {
		t.Errorf("the limit is %d", c.record.Settings.MaxPages)
	}
	for _, cursor := range []string{"x", "now now", "AAAAAAAAAAAA"} {
		for _, err := range c.Feed(t.Context(), cursor) {
			if err == nil || !strings.Contains(err.Error(), "not the whole text of a cursor") {
				t.Errorf("%q: %v", cursor, err)
			}
		}
	}
}
