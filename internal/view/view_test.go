package view_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/control"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/fsck"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
	"github.com/orbweaver/orbweaver/platform"
)

func open(t testing.TB, dir string) *view.View {
	t.Helper()
	v, err := view.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}

func all(t testing.TB, v *view.View, which view.Records) (pages []blobschema.Page) {
	t.Helper()
	for pg, err := range v.Pages(t.Context(), which) {
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, pg)
	}
	return pages
}

func mustParse(t testing.TB, s string) weburl.URL {
	t.Helper()
	u, err := weburl.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestWhole reads a finished crawl from its folder.
func TestWhole(t *testing.T) {
	dir, web := folder(t, 0)
	v := open(t, dir)
	pages := all(t, v, view.EveryRecord)

	t.Run("pages", func(t *testing.T) {
		got := map[string]simweb.Got{}
		for _, pg := range pages {
			if !pg.Robots {
				got[pg.URL] = simweb.GotOf(pg)
			}
		}
		if d := simweb.Diff(web.Truth(simweb.Scope{Agent: "orbweaver"}), got); d != "" {
			t.Error(d)
		}
	})
	t.Run("status", func(t *testing.T) {
		s, err := v.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ok := int64(0)
		for _, pg := range pages {
			if pg.Outcome == blobschema.OutcomeOK && !pg.Robots {
				ok++
			}
		}
		if s.State != view.Finished || s.Live != nil || s.Totals.Pages != ok || s.Unread != 0 || len(s.Heads) != 4 {
			t.Errorf("status %+v, %d pages are there", s, ok)
		}
	})
	t.Run("page", func(t *testing.T) { testPages(t, v, pages) })
	t.Run("explain", func(t *testing.T) { testExplain(t, v, pages) })
	t.Run("index", func(t *testing.T) { testIndex(t, v, pages) })
	t.Run("check", func(t *testing.T) {
		rep, err := fsck.Check(t.Context(), v.Store(), fsck.Options{})
		if err != nil || !rep.Clean() || rep.Pages != int64(len(pages)) {
			t.Errorf("check: %v, %+v", err, rep)
		}
	})
}

// testPages reads every answer back.
func testPages(t *testing.T, v *view.View, pages []blobschema.Page) {
	bodies := 0
	for _, want := range pages {
		list, err := v.History(t.Context(), mustParse(t, want.URL))
		if err != nil || len(list) == 0 || list[0].URL != want.URL {
			t.Fatalf("pages of %s: %v, %v", want.URL, list, err)
		}
		pg := list[0]
		rec, err := v.Response(t.Context(), pg)
		if (err == nil) != (pg.WARC != "") {
			t.Errorf("response of %s (%s): %v", pg.URL, pg.Outcome, err)
		}
		if err == nil && int64(len(rec.Body)) == pg.BodyBytes {
			bodies++
		}
	}
	if bodies < 50 {
		t.Errorf("%d bodies were read", bodies)
	}
	if list, err := v.History(t.Context(), mustParse(t, "http://nobody.example/")); len(list) > 0 || err != nil {
		t.Errorf("a page that is not there: %v, %v", list, err)
	}
}

// testExplain asks about a URL in every state.
func testExplain(t *testing.T, v *view.View, pages []blobschema.Page) {
	first := func(is func(blobschema.Page) bool) blobschema.Page {
		i := slices.IndexFunc(pages, is)
		if i < 0 {
			t.Fatal("no such page")
		}
		return pages[i]
	}
	ok := first(func(p blobschema.Page) bool { return p.Outcome == blobschema.OutcomeOK && !p.Robots })
	forbidden := first(func(p blobschema.Page) bool { return p.Outcome == blobschema.OutcomeRobots })
	redirect := first(func(p blobschema.Page) bool { return p.Outcome == blobschema.OutcomeRedirect && !p.Robots })
	robots := first(func(p blobschema.Page) bool { return p.Robots && p.Outcome == blobschema.OutcomeOK })
	host := mustParse(t, ok.URL).Host()
	root := "http://" + string(host)
	for _, tt := range []struct{ url, state, why string }{
		{ok.URL, "fetched", "status 200"},
		{redirect.URL, "fetched", redirect.Redirect},
		{forbidden.URL, "refused", "robots.txt forbids it"},
		{robots.URL, "ok", "by the crawler itself"},
		{root + "/not/linked/to", view.Unknown, "no link to it is known"},
		{root + "/never", view.Unknown, "--exclude"},
		{"http://other.example/", view.Unknown, "no link"},
	} {
		r, err := v.ExplainURL(t.Context(), mustParse(t, tt.url))
		if err != nil {
			t.Errorf("%s: %v", tt.url, err)
			continue
		}
		if r.State != tt.state || !strings.Contains(strings.Join(r.Why, "\n"), tt.why) {
			t.Errorf("%s is %s: %q, want %s: %q", tt.url, r.State, r.Why, tt.state, tt.why)
		}
	}
	r, err := v.ExplainURL(t.Context(), mustParse(t, forbidden.URL))
	if err != nil || r.Robots.Allowed || r.Robots.Line == 0 || !strings.HasPrefix(r.Robots.Rule, "Disallow: ") {
		t.Errorf("the rule that forbids %s: %+v, %v", forbidden.URL, r.Robots, err)
	}
	h, err := v.ExplainHost(t.Context(), host)
	if err != nil || !h.Known || h.Outcomes["ok"] == 0 || h.Requests == 0 || !h.RobotsHTTP.Read || h.Pending != 0 {
		t.Errorf("host %s: %+v, %v", host, h, err)
	}
	h, err = v.ExplainHost(t.Context(), "other.example")
	if err != nil || h.Known || len(h.Why) != 1 {
		t.Errorf("a host that is not known: %+v, %v", h, err)
	}
}

// testIndex compares the index with the page records, and reads by it.
func testIndex(t *testing.T, v *view.View, pages []blobschema.Page) {
	var out bytes.Buffer
	n, err := v.CDXJ(t.Context(), &out, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(bytes.TrimSuffix(out.Bytes(), []byte("\n")), []byte("\n"))
	if !slices.IsSortedFunc(lines, warc.CompareCDXJ) || int64(len(lines)) != n {
		t.Errorf("%d lines, sorted: %v", n, slices.IsSortedFunc(lines, warc.CompareCDXJ))
	}
	var got, want []string
	for _, line := range lines {
		var c struct{ URL, Filename string }
		fields := bytes.SplitN(line, []byte(" "), 3)
		if err := json.Unmarshal(fields[2], &c); err != nil {
			t.Fatal(err)
		}
		got = append(got, c.URL+" "+c.Filename)
		if k := mustParse(t, c.URL).Key(); string(fields[0]) != k {
			t.Errorf("key %s of %s, want %s", fields[0], c.URL, k)
		}
	}
	for _, pg := range pages {
		if pg.WARC != "" {
			want = append(want, pg.URL+" "+path.Base(pg.WARC))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("captures (-want +got):\n%s", d)
	}
}

// TestWriteCDXJ stores the index, twice.
func TestWriteCDXJ(t *testing.T) {
	p, err := drivers.Memory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	crawlInto(t, p, 0)
	v, err := view.New(t.Context(), engine.Store{Platform: p})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := v.WriteCDXJ(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := p.Bucket.ReadAll(t.Context(), naming.CDXJIndex(crawlID))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := v.CDXJ(t.Context(), &out, ""); err != nil || !bytes.Equal(out.Bytes(), stored) || out.Len() == 0 {
		t.Errorf("%d bytes are stored, want %d: %v", len(stored), out.Len(), err)
	}
}

// TestPartly views a crawl that stopped at its limit.
func TestPartly(t *testing.T) {
	dir, _ := folder(t, 30)
	v := open(t, dir)
	s, err := v.Status(t.Context())
	if err != nil || s.State != view.Limited || s.Totals.Pages != 30 || s.Totals.Pending == 0 {
		t.Errorf("status %+v, %v", s, err)
	}
	hosts := map[weburl.Host]bool{}
	for _, pg := range all(t, v, view.EveryRecord) {
		hosts[mustParse(t, pg.URL).Host()] = true
		if pg.Redirect != "" {
			hosts[mustParse(t, pg.Redirect).Host()] = true
		}
	}
	pending := int64(0)
	for name := range hosts {
		r, err := v.ExplainHost(t.Context(), name)
		if err != nil || r.Pending > 0 && r.Left == "" {
			t.Fatalf("host %s: %+v, %v", name, r, err)
		}
		pending += r.Pending
	}
	if pending == 0 || pending > s.Totals.Pending {
		t.Errorf("%d URLs are pending by host, %d in all", pending, s.Totals.Pending)
	}
	testPending(t, v)
}

// testPending explains pending URLs, found by the links to them.
func testPending(t *testing.T, v *view.View) {
	done := map[string]bool{}
	var ok []blobschema.Page
	for _, pg := range all(t, v, view.EveryRecord) {
		done[pg.URL] = true
		if pg.Outcome == blobschema.OutcomeRedirect && !pg.Robots {
			ok = append(ok, pg)
		}
	}
	for _, pg := range ok {
		r, err := v.ExplainURL(t.Context(), mustParse(t, pg.Redirect))
		if err != nil {
			t.Fatal(err)
		}
		if !done[pg.Redirect] && r.State == "pending" && len(r.Why) > 0 {
			return
		}
	}
	t.Skip("no redirect leads to a URL that is pending")
}

// TestOwned views a folder that another process owns, over its socket. After the process has ended, the folder is read.
func TestOwned(t *testing.T) {
	for name, dir := range map[string]string{
		"short": t.TempDir(),
		"long":  filepath.Join(t.TempDir(), strings.Repeat("long/", 30)),
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			p, err := drivers.Local(dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			crawlInto(t, p, 20)
			stale(t, dir)
			stop, err := control.Serve(t.Context(), dir, p, control.Owner{Snapshot: func() any { return map[string]int{"pages": 42} }})
			if err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(filepath.Join(dir, "orbweaver.sock")); err != nil || info.Mode() != os.ModeSocket|0o600 {
				t.Errorf("socket: %v, %v", info.Mode(), err)
			}
			v := open(t, dir)
			s, err := v.Status(t.Context())
			if err != nil || s.State != view.Running || s.Live.PID != os.Getpid() || string(s.Live.Snapshot) != `{"pages":42}` {
				t.Fatalf("status %+v, %v", s, err)
			}
			frozen, err := v.Freeze(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			owned := all(t, frozen, view.LatestRecord)
			if values, err := v.Store().Records(t.Context(), "nothing"); err != nil || values[0] != nil {
				t.Errorf("a record that does not exist: %q, %v", values, err)
			}
			if err := errors.Join(stop(), p.Close()); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(owned, all(t, v, view.LatestRecord)); d != "" || len(owned) < 20 {
				t.Errorf("%d pages; once the owner has ended (-owned +read):\n%s", len(owned), d)
			}
			if v.Live(t.Context()) != nil {
				t.Error("an owner that has ended is live")
			}
			if list, err := os.ReadDir(dir); err != nil || len(list) != 2 {
				t.Errorf("the folder holds %v, %v", list, err)
			}
		})
	}
}

// TestRenew views an idle folder for a long time, while others use it.
func TestRenew(t *testing.T) {
	dir := t.TempDir()
	work := func(key string) *platform.Platform {
		p, err := drivers.Local(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := engine.WriteRecord(t.Context(), p, actor.WriteRecord{Key: key, Value: []byte("1")}); err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := work("1")
	crawlInto(t, p, 5)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	store := open(t, dir).Store()
	expect := func(key string, want bool) {
		t.Helper()
		values, err := store.Records(t.Context(), key)
		if err != nil || (values[0] != nil) != want {
			t.Errorf("record %s: %q, %v, want %v", key, values, err, want)
		}
	}
	expect("1", true)
	p = work("2")
	expect("2", false) // it does not answer
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	expect("2", true)
	p = work("3")
	stop, err := control.Serve(t.Context(), dir, p, control.Owner{Snapshot: func() any { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	expect("3", true)
	if err := errors.Join(stop(), p.Close()); err != nil {
		t.Fatal(err)
	}
	expect("3", true)
	expect("3", true)
}

// stale leaves a socket as a killed process does.
func stale(t *testing.T, dir string) {
	t.Helper()
	t.Chdir(dir)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "orbweaver.sock", Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFrozen checks that a frozen view does not change.
func TestFrozen(t *testing.T) {
	_, s, v := overlaid(t, 10)
	frozen, err := v.Freeze(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := all(t, frozen, view.EveryRecord)
	for q := range partition.ID(4) {
		s.records[naming.HeadKey(crawlID, q)] = blobschema.Head{Partition: q}
	}
	if n := len(all(t, v, view.EveryRecord)); n != 0 {
		t.Errorf("%d pages of no commits", n)
	}
	if d := cmp.Diff(before, all(t, frozen, view.EveryRecord)); d != "" || len(before) < 10 {
		t.Errorf("%d pages, then (-before +after):\n%s", len(before), d)
	}
}

func TestOpenErrors(t *testing.T) {
	empty := t.TempDir()
	if _, err := view.Open(t.Context(), empty); !errors.Is(err, view.ErrNoFolder) {
		t.Errorf("an empty folder: %v", err)
	}
	if _, err := view.Open(t.Context(), filepath.Join(empty, "none")); !errors.Is(err, view.ErrNoFolder) {
		t.Errorf("no folder: %v", err)
	}
	if list, err := os.ReadDir(empty); err != nil || len(list) > 0 {
		t.Errorf("looking made %v, %v", list, err)
	}
	fresh := t.TempDir()
	p, err := drivers.Local(fresh, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := view.Open(t.Context(), fresh); !errors.Is(err, view.ErrNoCrawl) {
		t.Errorf("a folder without a crawl: %v", err)
	}
}

// TestScope checks the reason why no links to a host are followed.
func TestScope(t *testing.T) {
	web, s, v := overlaid(t, 10)
	c, err := v.Crawl(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seed := string(mustParse(t, web.Seeds()[0]).Host())
	set := func(change func(*blobschema.Settings)) {
		c := c
		change(&c.Settings)
		s.records[naming.CrawlKey(crawlID)] = c
	}
	s.records[naming.DesiredKey(crawlID)] = blobschema.DesiredState{Scope: []string{"www.added.example"}}
	for _, tt := range []struct {
		scope     blobschema.Scope
		url, says string
	}{
		{blobschema.ScopeHost, "http://other.example/x", "--scope host the crawl keeps to " + seed},
		{blobschema.ScopeHost, "http://added.example/x", "--scope host"},
		{blobschema.ScopeHost, "http://www.added.example/x", "no link"},
		{blobschema.ScopeDomain, "http://added.example/x", "no link"},
		{blobschema.ScopeDomain, "http://other.example/x", "--scope domain"},
		{blobschema.ScopeAny, "http://other.example/y", "no --include matches it"},
		{blobschema.ScopeAny, "http://other.example/x", "no link"},
		{blobschema.ScopeAny, "http://other.example/x.png", "--exclude"},
	} {
		set(func(s *blobschema.Settings) {
			s.Scope, s.Include, s.Exclude = tt.scope, []string{"/x"}, []string{"png$"}
		})
		r, err := v.ExplainURL(t.Context(), mustParse(t, tt.url))
		if err != nil || r.State != view.Unknown || !strings.Contains(r.Why[0], tt.says) {
			t.Errorf("%s, --scope %s: %q, %v, want %q", tt.url, tt.scope, r.Why, err, tt.says)
		}
	}
}

// overlay is a store with some records replaced.
type overlay struct {
	blobschema.Store
	platform *platform.Platform
	records  map[string]any
}

func (o overlay) Records(ctx context.Context, keys ...string) ([][]byte, error) {
	values, err := o.Store.Records(ctx, keys...)
	for i, key := range keys {
		if v, ok := o.records[key]; ok && err == nil {
			values[i], err = json.Marshal(v)
		}
	}
	return values, err
}

// TestVersion checks that objects of another version are refused.
func TestVersion(t *testing.T) {
	p, err := drivers.Memory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s := overlay{engine.Store{Platform: p}, p, map[string]any{
		naming.ActiveKey: map[string]string{"crawl": "x"}, naming.CrawlKey("x"): blobschema.Crawl{ID: "x", Version: 99},
	}}
	if _, err := view.New(t.Context(), s); !errors.Is(err, wire.ErrVersion) {
		t.Errorf("error %v", err)
	}
}
