package simweb

import (
	"bytes"
	"io"
	"net/http"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pageOf returns a page of a kind, numbered from or higher, on a host that answers.
func pageOf(t *testing.T, w *Web, k kind, from int, host func(*host) bool) (h, p int) {
	t.Helper()
	for h := range w.hosts {
		if x := &w.hosts[h]; x.down != FaultNone || host != nil && !host(x) {
			continue
		}
		for p := from; p < w.hosts[h].pages; p++ {
			if w.hosts[h].kinds[p] == k {
				return h, p
			}
		}
	}
	t.Fatalf("no page of kind %d", k)
	return 0, 0
}

func TestTouch(t *testing.T) {
	cfg := everything()
	cfg.Validators = 1
	cfg.Robots.Error, cfg.Down = 0, DownShares{} // a link to them by chance would be a new URL
	cfg.Connection.Gzip = 0.5
	w := mustNew(t, cfg)
	for name, k := range map[string]kind{"plain": plain, "duplicate": duplicate, "media": media, "redirect": redirect, "base": based} {
		for _, zipped := range []bool{false, true} {
			h, p := pageOf(t, w, k, 2, func(x *host) bool { return x.gzip == zipped })
			url := w.URL(h, p)
			before := w.Answer(Request{URL: url, AcceptGzip: true})
			truth := w.Truth(Scope{}).Pages
			again := Request{URL: url, AcceptGzip: true, IfNoneMatch: before.Get("ETag")}
			if r := w.Answer(again); (r.Status == 304) != (before.Status == 200) {
				t.Errorf("%s: status %d of a page that did not change", name, r.Status)
			}
			version := w.Touch(url)
			if version == 0 || w.Touch(url) != version+1 {
				t.Fatalf("%s: version %d", name, version)
			}
			after := w.Answer(again)
			now := w.Truth(Scope{}).Pages
			if k == redirect {
				if !reflect.DeepEqual(before, after) {
					t.Errorf("%s is another one now", name)
				}
				continue
			}
			if after.Status != 200 || bytes.Equal(before.Body, after.Body) || before.Get("ETag") == after.Get("ETag") ||
				before.Get("Last-Modified") == after.Get("Last-Modified") {
				t.Errorf("%s: %+v, then %+v", name, before.Header, after.Header)
			}
			if digest := digestOf(after.Body); now[url].Encoded != digest || truth[url].Encoded == digest {
				t.Errorf("%s: digest %s, in the truth %s and before %s", name, digest, now[url].Encoded, truth[url].Encoded)
			}
			var changed []string
			for u, e := range now {
				if truth[u].Digest != e.Digest {
					changed = append(changed, u)
				}
			}
			if k == plain && !slices.Contains(changed, url) || k == media && len(changed) != 1 || len(now) != len(truth) {
				t.Errorf("%s: %d URLs, then %d; changed: %v", name, len(truth), len(now), changed)
			}
		}
	}
	for _, url := range []string{"http://nowhere.example/", w.Seeds()[0] + "d0/p99999.html", ""} {
		if v := w.Touch(url); v != 0 {
			t.Errorf("%q has version %d", url, v)
		}
	}
}

// TestTouchedWebsAreReachable checks that changes of links leave every page reachable, and that the truth
// follows them.
func TestTouchedWebsAreReachable(t *testing.T) {
	cfg := mapped()
	cfg.Robots.Error, cfg.Down = 0, DownShares{} // as above
	w := mustNew(t, cfg)
	before := w.Truth(Scope{})
	other := 0
	for _, url := range before.Reachable() {
		links := w.Links(url)
		w.Touch(url)
		if !cmp.Equal(links, w.Links(url)) {
			other++
		}
	}
	if d := cmp.Diff(before.Reachable(), w.Truth(Scope{}).Reachable()); d != "" {
		t.Error(d)
	}
	if other < len(before.Pages)/4 {
		t.Errorf("only %d of %d URLs have other links", other, len(before.Pages))
	}
	checkByFunction(t, w, Scope{})
}

func TestValidators(t *testing.T) {
	cfg := everything()
	cfg.Validators = 0.5
	cfg.Connection.Chunked, cfg.Connection.Gzip = 1, 1
	w := mustNew(t, cfg)
	h, p := pageOf(t, w, plain, 1, func(x *host) bool { return x.validates })
	full := w.Answer(Request{URL: w.URL(h, p), AcceptGzip: true})
	etag, modified := full.Get("ETag"), full.Get("Last-Modified")
	for name, tc := range map[string]struct {
		match, since string
		status       int
	}{
		"neither":              {"", "", 200},
		"the tag":              {etag, "", 304},
		"one of the tags":      {`"x", W/` + etag + ` , "y"`, "", 304},
		"any tag":              {"*", "", 304},
		"another tag":          {`"x"`, "", 200},
		"another tag, a time":  {`"x"`, modified, 200},
		"the time":             {"", modified, 304},
		"a later time":         {"", "Fri, 01 Jan 2027 00:00:00 GMT", 304},
		"an earlier time":      {"", "Fri, 01 Jan 2021 00:00:00 GMT", 200},
		"no time":              {"", "yesterday", 200},
		"the tag, an old time": {etag, "Fri, 01 Jan 2021 00:00:00 GMT", 304},
	} {
		r := w.Answer(Request{URL: w.URL(h, p), AcceptGzip: true, IfNoneMatch: tc.match, IfModifiedSince: tc.since})
		if r.Status != tc.status {
			t.Errorf("%s: status %d, want %d", name, r.Status, tc.status)
		}
		if r.Status == 304 && (len(r.Body) > 0 || r.Get("ETag") != etag || r.Get("Content-Length")+r.Get("Transfer-Encoding")+r.Get("Content-Encoding") != "") {
			t.Errorf("%s: %+v", name, r)
		}
	}
	h, p = pageOf(t, w, plain, 1, func(x *host) bool { return !x.validates })
	full = w.Answer(Request{URL: w.URL(h, p)})
	etag = full.Get("ETag")
	if r := w.Answer(Request{URL: w.URL(h, p), IfNoneMatch: etag}); r.Status != 200 {
		t.Errorf("a host without validators answers %d", r.Status)
	}
	for _, k := range []kind{gone, cut, surplus} {
		h, p = pageOf(t, w, k, 1, nil)
		if r := w.Answer(Request{URL: w.URL(h, p), IfNoneMatch: "*"}); r.Status == 304 {
			t.Errorf("kind %d answers 304", k)
		}
	}
}

// TestRevisitsOverSockets changes a served web, and gets 304 and other answers over one connection.
func TestRevisitsOverSockets(t *testing.T) {
	s := serve(t, Config{Hosts: 1, Validators: 1})
	w := s.Web()
	url := w.URL(0, 3)
	var tr http.Transport
	defer tr.CloseIdleConnections()
	var etag, modified string
	for i, want := range []int{200, 304, 304, 200, 304} {
		if i == 3 {
			w.Touch(url)
		}
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if i%2 == 1 {
			req.Header.Set("If-None-Match", etag)
		} else if i > 0 {
			req.Header.Set("If-Modified-Since", modified)
		}
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != want || (len(body) == 0) != (want == 304) {
			t.Errorf("request %d: status %d, %d bytes, %v; want %d", i, resp.StatusCode, len(body), err, want)
		}
		etag, modified = resp.Header.Get("ETag"), resp.Header.Get("Last-Modified")
	}
	if s.Requests()[url] != 5 {
		t.Errorf("%v", s.Requests())
	}
}

func TestSitemaps(t *testing.T) {
	w := mustNew(t, mapped())
	with, without := w.Truth(Scope{SkipDigests: true}), w.Truth(Scope{SkipDigests: true, SkipSitemaps: true})
	seen := make(map[sitemap]int)
	only := 0
	for h := range w.hosts {
		x := &w.hosts[h]
		if w.Host(h).Sitemap != (x.sitemap != sitemapNone) || x.sitemap != sitemapNone && !x.robots.names() {
			t.Errorf("host %d, robots.txt %v: sitemap %d", h, x.robots, x.sitemap)
		}
		if x.crawlable() {
			seen[x.sitemap]++
		}
		for p, k := range x.kinds {
			if k != unlinked {
				continue
			}
			url := w.URL(h, p)
			_, ok := without.Pages[url]
			e, ok2 := with.Pages[url]
			if ok || ok2 != x.crawlable() || x.sitemap == sitemapNone {
				t.Errorf("%s: found by links %v, by sitemap %v", url, ok, ok2)
			}
			if ok2 && e.Kind == KindPage {
				only++
			}
		}
	}
	if seen[sitemapFile] == 0 || seen[sitemapIndex] == 0 || seen[sitemapNone] == 0 || only < 20 {
		t.Errorf("hosts by sitemap: %v; %d pages that only sitemaps list", seen, only)
	}
	if d := cmp.Diff(mustNew(t, everything()).Truth(Scope{SkipDigests: true}), without); d == "" {
		t.Error("no page was taken out of the links")
	}
}
