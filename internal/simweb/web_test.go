package simweb

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	whatwg "github.com/nlnwa/whatwg-url/url"
)

func mustNew(t testing.TB, c Config) *Web {
	t.Helper()
	w, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// faultless returns a small web that serves all of its pages.
func faultless() Config {
	return Config{Seed: 7, Hosts: 9, Pages: Pages{Min: 3, Max: 40}, PageBytes: 2000, LinksPerPage: 10, Names: true}
}

// everything returns a web that has every behaviour and still answers most requests.
func everything() Config {
	c := Small(11)
	c.Hosts = 24
	c.Pages = Pages{Min: 20, Max: 60}
	c.Robots.Huge = 0.05
	return c
}

// mapped returns everything with sitemaps.
func mapped() Config {
	c := everything()
	c.Sitemaps = Sitemaps{Hosts: 0.7, Index: 0.4, Unlinked: 0.1}
	return c
}

// large returns a web of 32,000 pages of about 30 KB without faults, as measurements use it.
func large() Config {
	return Config{Seed: 1, Hosts: 64, Pages: Pages{Min: 500}, PageBytes: 30 << 10, LinksPerPage: 45}
}

func TestGolden(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg  Config
		want string
	}{
		"large": {large(), "66f28d4f4fbf743f"},
		"small": {Small(5), "e0fe714f2f4db269"},
		"demo":  {Demo(), "3a107fd23a1b906c"},
	} {
		w := mustNew(t, tc.cfg)
		sum := sha256.New()
		for h := range min(w.Hosts(), 8) {
			for p := range min(w.hosts[h].pages, 20) {
				resp := w.Answer(Request{URL: w.URL(h, p)})
				sum.Write([]byte(w.URL(h, p)))
				sum.Write(resp.Body)
				for _, f := range resp.Header {
					sum.Write([]byte(f.Name + f.Value))
				}
			}
		}
		if got := hex.EncodeToString(sum.Sum(nil)[:8]); got != tc.want {
			t.Errorf("%s: pages hash to %s, want %s: what was measured on this web before is no longer comparable", name, got, tc.want)
		}
	}
}

func TestSameSeedSameWeb(t *testing.T) {
	a, b := mustNew(t, everything()), mustNew(t, everything())
	other := everything()
	other.Seed++
	c := mustNew(t, other)
	ta, tb, tc := a.Truth(Scope{}), b.Truth(Scope{}), c.Truth(Scope{})
	if d := cmp.Diff(ta, tb); d != "" {
		t.Errorf("same configuration, another truth (-first +second):\n%s", d)
	}
	if cmp.Equal(ta, tc) {
		t.Error("another seed, same truth")
	}
	// The order of requests does not matter either.
	urls := ta.Reachable()
	for i := range urls {
		url := urls[len(urls)-1-i]
		if ra, rb := a.Answer(Request{URL: url}), b.Answer(Request{URL: url}); !reflect.DeepEqual(ra, rb) {
			t.Fatalf("%s (-first +second):\n%s", url, cmp.Diff(ra, rb))
		}
		b.Answer(Request{URL: urls[i], AcceptGzip: true})
	}
}

func TestURLsFindTheirPages(t *testing.T) {
	for _, cfg := range []Config{everything(), Demo(), large()} {
		w := mustNew(t, cfg)
		for h := range w.Hosts() {
			for p := range w.hosts[h].pages + min(w.hosts[h].days, 400) {
				url := w.URL(h, p)
				gh, uri, ok := w.split(url)
				gp, ok2 := w.lookup(gh, uri)
				if !ok || !ok2 || gh != h || gp != p {
					t.Fatalf("%s is (%d, %d, %v, %v), want (%d, %d)", url, gh, gp, ok, ok2, h, p)
				}
			}
		}
	}
}

func TestUnknownURLs(t *testing.T) {
	w := mustNew(t, everything())
	root := w.Seeds()[0]
	for _, url := range []string{
		root + "d0/p99999.html", root + "calendar/x", root + "9999999999999999999999", root + "?copy=5",
		root + "go/1.html", root + "robots-7.txt", root + "robots-0.txt", root + "-1", root + "decoy/0", root + "%",
	} {
		if r := w.Answer(Request{URL: url}); r.Status != 404 {
			t.Errorf("%s: status %d, want 404", url, r.Status)
		}
	}
	for _, url := range []string{"", "http://", "https://h0.site0.example/", "http://nowhere.example/", "h0"} {
		if r := w.Answer(Request{URL: url}); r.Fault != FaultDNS {
			t.Errorf("%q: fault %v, want dns", url, r.Fault)
		}
	}
}

// TestURLsAreCanonical checks that URLs are canonical under the URL standard; further escapes are checked by
// hand.
func TestURLsAreCanonical(t *testing.T) {
	w := mustNew(t, everything())
	for url := range w.Truth(Scope{SkipDigests: true}).Pages {
		u, err := whatwg.Parse(url)
		if err != nil {
			t.Fatal(err)
		}
		if u.Href(true) != url || strings.Contains(url, "%7E") {
			t.Errorf("%s canonicalises to %s", url, u.Href(true))
		}
	}
}

func TestEverythingIsReachable(t *testing.T) {
	for seed := range uint64(20) {
		cfg := Small(seed)
		cfg.Robots, cfg.Down, cfg.Trap = RobotsShares{}, DownShares{}, Trap{}
		cfg.CrossHost = -1
		w := mustNew(t, cfg)
		pages := w.Truth(Scope{SkipDigests: true}).Pages
		hiddenPages := 0
		for h := range w.Hosts() {
			for p := range w.hosts[h].pages {
				_, ok := pages[w.URL(h, p)]
				if isHidden := w.hosts[h].kinds[p] == hidden; ok == isHidden {
					t.Errorf("seed %d: %s, of kind %d, in the truth: %v", seed, w.URL(h, p), w.hosts[h].kinds[p], ok)
				} else if isHidden {
					hiddenPages++
				}
			}
		}
		if len(pages)+hiddenPages != w.Pages() {
			t.Errorf("seed %d: %d pages, %d hidden, of %d", seed, len(pages), hiddenPages, w.Pages())
		}
	}
}

// TestEveryHostIsFound checks that a host that cannot be crawled hides no other host.
func TestEveryHostIsFound(t *testing.T) {
	for seed := range uint64(20) {
		cfg := Small(seed)
		cfg.Robots.Error, cfg.Down.Refused, cfg.CrossHost = 0.3, 0.3, -1
		w := mustNew(t, cfg)
		pages := w.Truth(Scope{SkipDigests: true, Agent: "stranger"}).Pages
		for h := range w.Hosts() {
			if _, ok := pages[w.URL(h, 0)]; !ok {
				t.Errorf("seed %d: the root of host %d is not found", seed, h)
			}
		}
	}
}

func TestSharesAreMet(t *testing.T) {
	cfg := Config{Seed: 1, Hosts: 500, Pages: Pages{Min: 60}, Connection: Connection{
		LatencyMin: 5 * time.Millisecond, LatencyMax: 200 * time.Millisecond, OneRequest: 0.24,
	}}
	cfg.Kinds = PageShares{Redirect: 0.1, Gone: 0.05, Hidden: 0.02}
	cfg.Down = DownShares{Refused: 0.1}
	w := mustNew(t, cfg)
	one, down := 0, 0
	kinds := make(map[kind]int)
	for h := range w.hosts {
		f := w.Host(h)
		if f.RequestsPerConnection == 1 {
			one++
		}
		if f.Down == FaultRefused {
			down++
		}
		if f.Latency < cfg.Connection.LatencyMin || f.Latency > cfg.Connection.LatencyMax {
			t.Errorf("host %d: latency %v", h, f.Latency)
		}
		for _, k := range w.hosts[h].kinds {
			kinds[k]++
		}
	}
	if one != 120 || down != 50 {
		t.Errorf("%d hosts take one request per connection, %d are down, want 120 and 50", one, down)
	}
	for k, share := range map[kind]float64{redirect: 0.1, gone: 0.05, hidden: 0.02} {
		if got := float64(kinds[k]) / float64(w.Pages()); math.Abs(got-share) > 0.005 {
			t.Errorf("kind %d is %.3f of all pages, want %.3f", k, got, share)
		}
	}
}

func TestPagesPerHost(t *testing.T) {
	w := mustNew(t, Config{Hosts: 10, Pages: Pages{Min: 5, Max: 1000, Zipf: 1}})
	var got []int
	for h := range w.Hosts() {
		got = append(got, w.Host(h).Pages)
	}
	if d := cmp.Diff([]int{1000, 500, 333, 250, 200, 166, 142, 125, 111, 100}, got); d != "" {
		t.Error(d)
	}
}

// TestBodiesAreRealistic checks the size of pages, their number of links and how well they compress, on which
// measurements depend.
func TestBodiesAreRealistic(t *testing.T) {
	w := mustNew(t, large())
	var size, zipped, links, pages int
	for p := range 80 {
		b := w.appendHTML(nil, 3, p, 0)
		size += len(b)
		zipped += len(zip(b))
		links += strings.Count(string(b), "<a ")
		pages++
	}
	if mean := size / pages; mean < 28<<10 || mean > 32<<10 {
		t.Errorf("mean size %d", mean)
	}
	if mean := float64(links) / float64(pages); mean < 38 || mean > 50 {
		t.Errorf("mean number of links %.1f", mean)
	}
	if ratio := float64(size) / float64(zipped); ratio < 2.8 || ratio > 4 {
		t.Errorf("gzip makes pages %.2f times smaller, want 2.8 to 4", ratio)
	}
}

func TestDemoShowsEverything(t *testing.T) {
	w := mustNew(t, Demo())
	robots, kinds := make(map[robotsKind]int), make(map[kind]int)
	for i := range w.hosts {
		if w.hosts[i].down == FaultNone {
			robots[w.hosts[i].robots]++
		}
	}
	truth := w.Truth(Scope{SkipDigests: true})
	for url := range truth.Pages {
		h, uri, _ := w.split(url)
		p, _ := w.lookup(h, uri)
		k, _ := w.kind(h, p)
		kinds[k]++
	}
	for k := robotsNone; k <= robotsSoft404; k++ {
		if robots[k] == 0 {
			t.Errorf("no host that can be reached has robots.txt %v", k)
		}
	}
	for k := plain; k <= trap; k++ {
		if k != silent && k != hidden && k != late && k != steady && k != busy && k != unlinked && kinds[k] == 0 {
			t.Errorf("no page of kind %d", k)
		}
	}
	if truth.Count(KindDenied) == 0 {
		t.Error("no page is denied")
	}
}

func TestLargeWebIsFaultless(t *testing.T) {
	truth := mustNew(t, large()).Truth(Scope{SkipDigests: true})
	if len(truth.Pages) != 32000 || truth.Count(KindPage) != 32000 {
		t.Errorf("%d URLs, %d pages, want 32,000", len(truth.Pages), truth.Count(KindPage))
	}
}

func TestConfigSurvivesJSON(t *testing.T) {
	b, err := json.Marshal(Demo())
	if err != nil {
		t.Fatal(err)
	}
	var c Config
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(Demo(), c); d != "" {
		t.Error(d)
	}
}

func TestBadConfigs(t *testing.T) {
	for name, c := range map[string]Config{
		"all pages": {Hosts: 1 << 14, Pages: Pages{Min: 1 << 20}},
		"share":     {Kinds: PageShares{Gone: 1.5}},
		"sum":       {Kinds: PageShares{Gone: 0.5, Slow: 0.6}},
		"robots":    {Robots: RobotsShares{Error: 0.6, Drip: 0.5}},
		"down":      {Down: DownShares{DNS: 0.6, Silent: 0.5}},
	} {
		if _, err := New(c); !errors.Is(err, errConfig) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
