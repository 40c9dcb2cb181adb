package crawl

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
)

// answers is a web: the answer for each URL. Any other URL is not found.
type answers map[string]func(*actor.Outcome)

// serve makes the world's web answer like that, and returns the requests in order.
func (w *world) serve(a answers) *[]actor.Request {
	requests := &[]actor.Request{}
	w.web = func(req actor.Request) *actor.Outcome {
		*requests = append(*requests, req)
		o := actor.Aborted(req, w.Now().Wall)
		o.Temporary = false
		o.Page.Outcome, o.Page.Status = blobschema.OutcomeClientError, 404
		o.Record, o.ResponseAt = []byte("request|answer of "+o.Page.URL), len("request|")
		o.Page.Length = int64(len(o.Record) - o.ResponseAt)
		if answer := a[o.Page.URL]; answer != nil {
			o.Page.Outcome, o.Page.Status = blobschema.OutcomeOK, 200
			answer(o)
		}
		return o
	}
	return requests
}

// linking returns an answer with links of one kind.
func linking(t testing.TB, kind actor.LinkKind, to ...string) func(*actor.Outcome) {
	list := urls(t, to...)
	return func(o *actor.Outcome) {
		if kind == actor.LinkRedirect {
			o.Page.Outcome, o.Page.Status, o.Page.Redirect = blobschema.OutcomeRedirect, 301, to[0]
		}
		for _, u := range list {
			o.Links = append(o.Links, actor.Link{URL: u, Kind: kind})
		}
	}
}

// depths returns the requested URLs with their depths.
func depths(requests []actor.Request) map[string]int {
	out := map[string]int{}
	for _, r := range requests {
		if !r.Robots {
			out[r.URL.String()] = int(r.Depth)
		}
	}
	return out
}

// TestFollow checks that the links of a page are followed if they are in scope, not too deep and no traps. Each kind of
// dropped link has its figure. A link out of scope is stored once, because the scope may widen.
func TestFollow(t *testing.T) {
	const at = "https://www.example"
	c := newCrawl(1)
	c.Settings.Scope, c.Settings.MaxDepth, c.Settings.MaxSegments, c.Settings.Exclude = blobschema.ScopeHost, 2, 3, []string{`\.pdf$`}
	w := newWorld(t)
	first := linking(t, actor.LinkAnchor, at+"/a", at+"/x.pdf", at+"/1/2/3", at+"/1/2/3/4", at+"/no", "https://other.example/")
	requests := w.serve(answers{
		at + "/":  func(o *actor.Outcome) { first(o); o.Links[4].NoFollow, o.Links[0].Anchor = true, "the first" },
		at + "/a": linking(t, actor.LinkAnchor, at+"/b", at+"/", "https://other.example/", "https://other.example/2"),
		at + "/b": linking(t, actor.LinkAnchor, at+"/c"),
	})
	c = w.begin(c, at+"/")
	w.step(StepConfig{Crawl: c, Process: "p"}, nil)
	want := map[string]int{at + "/": 0, at + "/a": 1, at + "/1/2/3": 1, at + "/b": 2}
	if d := cmp.Diff(want, depths(*requests)); d != "" {
		t.Errorf("requested, by depth (-want +got):\n%s", d)
	}
	tot := w.head(c.ID, 0).Totals
	if tot.OutOfScope != 4 || tot.Trapped != 1 || tot.Duplicates != 1 || tot.Robots != 1 || tot.Pages != 3 {
		t.Errorf("%+v", tot)
	}
	if d := cmp.Diff(map[string]int64{"ok": 3, "client-error": 1}, tot.Outcomes); d != "" {
		t.Errorf("outcomes (-want +got):\n%s", d)
	}
	var outside, graph []string
	for _, commit := range w.commits(c.ID, 0) {
		links, err := commit.Outside()
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range links {
			outside = append(outside, fmt.Sprint(q.URL, " ", q.Depth))
		}
		pages, err := commit.Links()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pages {
			for _, l := range p.Targets {
				graph = append(graph, fmt.Sprintf("%s %v %v %s", l.Host, l.Followed, l.NoFollow, l.Anchor))
			}
		}
	}
	if d := cmp.Diff([]string{"https://other.example/ 1", "https://other.example/2 2"}, outside); d != "" {
		t.Errorf("kept though out of scope (-want +got):\n%s", d)
	}
	wantGraph := []string{
		"www.example true false the first", "www.example false false ", "www.example true false ", "www.example false false ",
		"www.example false true ", "other.example false false ",
		"www.example true false ", "www.example true false ", "other.example false false ", "other.example false false ",
		"www.example false false ",
	}
	if d := cmp.Diff(wantGraph, graph); d != "" {
		t.Errorf("the link graph (-want +got):\n%s", d)
	}
}

// TestFollowRedirects checks that a redirect does not increase the depth, that redirects of a seed widen the scope for five
// hops, and that a chain ends after ten.
func TestFollowRedirects(t *testing.T) {
	for _, k := range []struct {
		name  string
		url   func(hop int) string
		asked int
		tot   blobschema.Totals
	}{
		{"on one host", func(hop int) string { return fmt.Sprintf("https://www.example/%d", hop) }, 1 + maxRedirects, blobschema.Totals{Trapped: 1}},
		{"from host to host", func(hop int) string { return fmt.Sprintf("https://h%d.example/", hop) }, 1 + 5, blobschema.Totals{OutOfScope: 1}},
		{"what looks like a trap", func(hop int) string { return fmt.Sprintf("https://www.example/%s", strings.Repeat("x/", hop)) }, 1 + 5, blobschema.Totals{Trapped: 1}},
	} {
		t.Run(k.name, func(t *testing.T) {
			c, w, web := newCrawl(1), newWorld(t), answers{}
			c.Settings.Scope, c.Settings.MaxDepth, c.Settings.MaxRepeats = blobschema.ScopeHost, 0, 1
			for hop := range 2 * maxRedirects {
				web[k.url(hop)] = linking(t, actor.LinkRedirect, k.url(hop+1))
			}
			requests := w.serve(web)
			c = w.begin(c, k.url(0))
			w.step(StepConfig{Crawl: c, Process: "p"}, nil)
			got := depths(*requests)
			for hop := range k.asked {
				if depth, ok := got[k.url(hop)]; !ok || depth != 0 {
					t.Errorf("hop %d: requested %v, at depth %d", hop, ok, depth)
				}
			}
			if told := w.head(c.ID, 0).Scope; strings.HasPrefix(k.name, "from host") != (len(told) == 5) {
				t.Errorf("hosts that came into the scope, as the head tells: %v", told)
			}
			if tot := w.head(c.ID, 0).Totals; len(got) != k.asked || tot.Trapped != k.tot.Trapped || tot.OutOfScope != k.tot.OutOfScope {
				t.Errorf("requested %v; %+v", slices.Collect(maps.Keys(got)), tot)
			}
		})
	}
}

// TestFollowSitemaps checks that a crawl with sitemaps reads those that a robots.txt names, and those that they name, for
// five hops. Their pages are a link deeper. A page that only looks like a sitemap is a page, and a robots.txt that another
// one redirects to is not.
func TestFollowSitemaps(t *testing.T) {
	const at = "https://www.example"
	for _, wanted := range []bool{true, false} {
		c, w := newCrawl(1), newWorld(t)
		c.Settings.Sitemaps = wanted
		web := answers{
			at + "/robots.txt":       linking(t, actor.LinkRedirect, at+"/robots-moved.txt"),
			at + "/robots-moved.txt": linking(t, actor.LinkSitemap, at+"/sitemap0"),
			at + "/":                 linking(t, actor.LinkSitemap, at+"/looks-like-one"),
		}
		for i := range 6 {
			list := linking(t, actor.LinkListed, fmt.Sprintf("%s/page%d", at, i))
			more := linking(t, actor.LinkSitemap, fmt.Sprintf("%s/sitemap%d", at, i+1))
			web[fmt.Sprintf("%s/sitemap%d", at, i)] = func(o *actor.Outcome) { list(o); more(o) }
		}
		requests := w.serve(web)
		c = w.begin(c, at+"/")
		w.step(StepConfig{Crawl: c, Process: "p"}, nil)
		want := map[string]string{at + "/": "0 false", at + "/looks-like-one": "1 false"}
		for i := range 6 {
			if wanted {
				want[fmt.Sprintf("%s/sitemap%d", at, i)], want[fmt.Sprintf("%s/page%d", at, i)] = "0 true", "1 false"
			}
		}
		if wanted {
			want[at+"/sitemap6"] = "1 false" // nested too deep
		}
		got := map[string]string{}
		for _, r := range *requests {
			if !r.Robots {
				got[r.URL.String()] = fmt.Sprint(r.Depth, " ", r.Sitemap)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("wanted %v (-want +got):\n%s", wanted, d)
		}
		for _, commit := range w.commits(c.ID, 0) {
			links, err := commit.Links()
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range links {
				if l.Source == hashOf(t, c).Fingerprint(at+"/robots.txt") {
					t.Error("a robots.txt is in the link graph")
				}
			}
		}
	}
}

// TestSitemapsLeaveRoom checks that a sitemap that lists more URLs than the cap fills half of it. Links of a page in
// another partition and the redirect of a seed are still fetched, although a sitemap lists them too.
func TestSitemapsLeaveRoom(t *testing.T) {
	c, w := newCrawl(2), newWorld(t)
	here, there := "https://"+ofPartition(t, c, 0), "https://"+ofPartition(t, c, 1)
	c.Settings.Sitemaps, c.Settings.MaxHostURLs = true, 20
	var listed []string
	for i := range 100 {
		listed = append(listed, fmt.Sprintf("%s/listed%d", there, i))
	}
	w.serve(answers{
		here + "/robots.txt": linking(t, actor.LinkSitemap, here+"/sitemap"),
		here + "/sitemap":    linking(t, actor.LinkListed, listed...),
		here + "/":           linking(t, actor.LinkAnchor, there+"/linked", listed[99]),
		there + "/linked":    linking(t, actor.LinkRedirect, there+"/redirected"),
	})
	c = w.begin(c, here+"/")
	for range 2 {
		w.step(StepConfig{Crawl: c, Process: "p"}, nil)
		w.step(StepConfig{Crawl: c, Process: "p", Partition: 1}, nil)
	}
	got := w.visible(c.ID, 1)
	for _, url := range []string{there + "/linked", there + "/redirected", listed[99]} {
		if got[url] != 1 {
			t.Errorf("%s is not fetched", url)
		}
	}
	if known := w.head(c.ID, 1).Totals.Known; known < 12 || known > 13 { // half of the cap, and three
		t.Errorf("%d URLs are known", known)
	}
}

// TestWhereAnswersAre checks that a page record names the place of its answer, that WARC objects keep their bounds, and
// that each is put before the commit that names it.
func TestWhereAnswersAre(t *testing.T) {
	large := bytes.Repeat([]byte("x"), maxWARCBytes/3)
	for _, k := range []struct {
		name   string
		pages  int
		record func(url string) []byte
		warcs  int
	}{
		{"small", maxWARCPages + 1, func(url string) []byte { return []byte("request|answer of " + url) }, 2},
		{"large", 5, func(string) []byte { return large }, 3},
	} {
		t.Run(k.name, func(t *testing.T) {
			c, w := newCrawl(1), newWorld(t)
			c.Settings.Delay = time.Millisecond
			var seeds []string
			web := answers{}
			for i := range k.pages {
				url := fmt.Sprintf("https://h%d.example/", i%40) + fmt.Sprint(i)
				seeds = append(seeds, url)
				web[url] = func(o *actor.Outcome) { o.Record = k.record(url); o.Page.Length = int64(len(o.Record) - o.ResponseAt) }
			}
			requests := w.serve(web)
			serve := w.web
			w.web = func(r actor.Request) *actor.Outcome {
				o := serve(r)
				if r.Robots {
					o.Record = nil // and so in no object
				}
				return o
			}
			c = w.begin(c, seeds...)
			w.fault = func(e actor.Effect) (before, after error) {
				if put, ok := e.(actor.PutObject); ok && !strings.Contains(put.Name, "/warc/") {
					man := w.openData(bytes.Join(put.Parts, nil))
					for _, name := range man.WARCs {
						if w.Objects[name] == nil {
							t.Errorf("%s is named before it is put", name)
						}
					}
				}
				return nil, nil
			}
			w.step(StepConfig{Crawl: c, Process: "p", Compressed: true, Software: "test", CommitPages: 10 * k.pages, CommitEvery: time.Hour}, nil)
			answers, stored := map[string]int{}, 0
			for _, commit := range w.commits(c.ID, 0) {
				pages, err := commit.Pages()
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range pages {
					answers[p.WARC]++
					record := k.record(p.URL)
					if got := w.Objects[p.WARC][p.Offset:][:p.Length]; !bytes.Equal(got, record[len("request|"):]) {
						t.Fatalf("%s is not at %d of %s", p.URL, p.Offset, p.WARC)
					}
				}
			}
			for name, n := range answers {
				stored += len(w.Objects[name])
				if n > maxWARCPages || len(w.Objects[name]) > maxWARCBytes {
					t.Errorf("%s has %d answers, %d bytes", name, n, len(w.Objects[name]))
				}
			}
			if tot := w.head(c.ID, 0).Totals; len(answers) != k.warcs || tot.Stored != int64(stored) || tot.Robots != 0 || tot.Pages != int64(k.pages) || len(*requests) < k.pages {
				t.Errorf("%d objects of %d bytes, asked %d times; %+v", len(answers), stored, len(*requests), tot)
			}
		})
	}
}

// openData returns the manifest of a commit object that is not visible yet.
func (w *world) openData(data []byte) blobschema.Manifest {
	w.t.Helper()
	c, err := blobschema.OpenCommit(data)
	if err != nil {
		w.t.Fatal(err)
	}
	man, err := c.Manifest()
	if err != nil {
		w.t.Fatal(err)
	}
	return man
}

// TestSamePayload checks that a payload that the partition has stored already becomes a reference, whatever its URL, unless
// it is too short or truncated.
func TestSamePayload(t *testing.T) {
	const at = "https://www.example"
	answer := func(digest string, bytes int64, change func(*actor.Outcome)) func(*actor.Outcome) {
		return func(o *actor.Outcome) {
			o.Page.Digest, o.Page.BodyBytes, o.Head = digest, bytes, []byte("HTTP/1.1 200 OK\r\n\r\n")
			change(o)
		}
	}
	as := func(*actor.Outcome) {}
	c, w := newCrawl(1), newWorld(t)
	list := []struct {
		answer  func(*actor.Outcome)
		revisit bool
	}{
		{answer("sha1:A", minRevisit, as), false},
		{answer("sha1:A", minRevisit, as), true},
		{answer("sha1:B", minRevisit, as), false}, // another payload
		{answer("sha1:A", minRevisit-1, as), false},
		{answer("sha1:A", minRevisit, func(o *actor.Outcome) { o.Page.Truncated = "length" }), false},
		{answer("sha1:A", minRevisit, func(o *actor.Outcome) { o.Head = nil }), false}, // a revisit already
		{answer("sha1:C", minRevisit, func(o *actor.Outcome) { o.Page.Truncated = "length" }), false},
		{answer("sha1:C", minRevisit, as), false}, // a truncated answer is no original
		{answer("sha1:C", minRevisit, as), true},
		{answer("sha1:D", minRevisit-1, as), false},
		{answer("sha1:D", minRevisit, as), false}, // nor is a short one
		{answer("sha1:E", minRevisit, func(o *actor.Outcome) { o.Head = nil }), false},
		{answer("sha1:E", minRevisit, as), false},
		{answer("sha1:A", minRevisit, as), true},
	}
	web, links := answers{}, []string{}
	for i, a := range list {
		url := fmt.Sprintf("%s/%02d", at, i)
		web[url] = a.answer
		links = append(links, url)
	}
	w.serve(web)
	c = w.begin(c, links...)
	w.step(StepConfig{Crawl: c, Process: "p", CommitEvery: 3 * time.Second}, nil)
	records := map[string]blobschema.Page{}
	revisits := int64(0)
	for i, a := range list {
		got := w.records(c.ID, 0, links[i])
		if len(got) != 1 || (got[0].Original != nil) != a.revisit {
			t.Fatalf("page %d: %+v", i, got)
		}
		p := got[0]
		records[p.URL] = p
		stored := string(w.Objects[p.WARC][p.Offset:][:p.Length])
		if !a.revisit {
			if stored != "answer of "+p.URL {
				t.Errorf("page %d: %q is stored", i, stored)
			}
			continue
		}
		revisits++
		original := records[p.Original.URL]
		if d := cmp.Diff(original.Payload(), *p.Original); d != "" || original.Digest != p.Digest || original.Original != nil {
			t.Errorf("page %d has a wrong reference (-want +got):\n%s", i, d)
		}
		request := string(w.Objects[p.WARC][p.Offset-int64(len("request|")) : p.Offset])
		if request != "request|" || !strings.Contains(stored, "WARC-Type: revisit") || !strings.Contains(stored, p.Original.URL) {
			t.Errorf("page %d: %s is stored behind %s", i, stored, request)
		}
	}
	if tot := w.head(c.ID, 0).Totals; tot.Revisits != revisits || tot.Pages != int64(len(list)) {
		t.Errorf("%+v", tot)
	}
}

// TestFiguresOfAnswers checks that received bytes are counted, also by topic. A retry has a figure but no record, and an
// aborted request has neither.
func TestFiguresOfAnswers(t *testing.T) {
	const at = "https://www.example"
	c, w := newCrawl(1), newWorld(t)
	c.Settings.Topics = []blobschema.Topic{{Name: "a", MaxDepth: -1, Scope: blobschema.ScopeAny}}
	tries := map[string]int{}
	failing := func(outcome blobschema.Outcome) func(*actor.Outcome) {
		return func(o *actor.Outcome) {
			if o.Wire = 10; tries[o.Page.URL] == 0 {
				o.Page.Outcome, o.Temporary, o.Record = outcome, true, nil
			}
			tries[o.Page.URL]++
		}
	}
	w.serve(answers{
		at + "/":        linking(t, actor.LinkAnchor, at+"/fails", at+"/aborted", at+"/gone"),
		at + "/fails":   failing(blobschema.OutcomeServerError),
		at + "/aborted": failing(blobschema.OutcomeAborted),
	})
	if _, err := w.run(NewBegin(c, []Seed{{URL: urls(t, at+"/")[0], Topic: 1}}, nil)); err != nil {
		t.Fatal(err)
	}
	w.tick(c.ID)
	w.step(StepConfig{Crawl: c, Process: "p"}, nil)
	checkPages(t, w, c.ID, 0, []string{at + "/", at + "/fails", at + "/aborted", at + "/gone"})
	tot := w.head(c.ID, 0).Totals
	if tot.Bytes != 40 || tot.Retries != 1 || tries[at+"/fails"] != 2 || tries[at+"/aborted"] != 2 || tot.Pages != 3 {
		t.Errorf("%+v after %v", tot, tries)
	}
	if d := cmp.Diff(map[uint8]blobschema.TopicTotals{1: {Pages: 3, Bytes: 40}}, tot.Topics); d != "" {
		t.Errorf("topics (-want +got):\n%s", d)
	}
	for _, p := range w.records(c.ID, 0, at+"/fails") {
		if p.Topic != 1 || p.Depth != 1 {
			t.Errorf("%+v", p)
		}
	}
}
