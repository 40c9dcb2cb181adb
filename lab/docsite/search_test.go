package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadDocument(t *testing.T) {
	d := readDocument([]byte(`<!DOCTYPE html><html><head><title>The
		title — Site</title><style>none</style><meta name=description content="said beside"></head>
		<body><nav>Home <a href=/>there</a></nav><h1>A <em>head</em>ing<a href=#a>¶</a></h1>
		<p>One <b>two</b> three<br>four <img alt=picture src=x> <a href=b>a link</a> five</p>
		<svg><title>none</title></svg><script>none</script><footer>imprint</footer>`))
	want := document{
		title:  "The title — Site",
		body:   []string{"A heading" + gap, "One two three", "four", gap + " five"},
		prose:  []string{"One two three", "four", gap + " five"},
		hidden: []string{"said beside", "Home there", "¶", "picture", "a link", "imprint"},
	}
	if diff := cmp.Diff(want, *d, cmp.AllowUnexported(document{})); diff != "" {
		t.Error(diff)
	}
}

func FuzzReadDocument(f *testing.F) {
	f.Add("<title>x</title><p>a <b>c</p></b></i><svg><title>")
	f.Add("<p>中文 text \"quoted\x00\" 抓取程序把已知而未取的网址放在边界里</a></p></p>")
	f.Fuzz(func(t *testing.T, doc string) {
		d := readDocument([]byte(doc))
		c := &corpus{pages: []*document{d}, prefixes: map[string]owner{}, grams: map[string]owner{}}
		c.note(0, d)
		for _, p := range append(c.ownWords(0), d.phrases()...) {
			if plain(p) == "" || strings.Contains(p, gap) {
				t.Errorf("%q is to be looked for", p)
			}
		}
	})
}

func TestCorpus(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{
		"a.html":                      "<title>Alone - Docs</title><p>Gardening without gardeners, in windowless rooms.",
		"b.html":                      "<title>Twice - Docs</title><p>Rooms with windows. Whatever <a href=c.html>umbrellas</a>",
		"c.html":                      "<title>twice! - Docs</title><p>Umbrellas and Whatever, that is long enough to be said.",
		"translations/zh_CN/a.html":   "<title>中文 - Docs</title><p>抓取程序把网址放在边界里。内存",
		"translations/zh_CN/b.html":   "<title>二 - Docs</title><p>抓取程序把网址取走。内\n存管理",
		"translations/zh_CN/pic.html": "<title>- Docs</title>",
	})
	truth, urls := map[string]answer{}, map[string]string{}
	for _, name := range []string{"a.html", "b.html", "c.html", "translations/zh_CN/a.html", "translations/zh_CN/b.html", "translations/zh_CN/pic.html"} {
		truth["/"+name] = answer{status: 200, file: filepath.Join(root, name)}
		urls["/"+name] = base + "/" + name
	}
	truth["/gone.html"] = answer{status: 404}
	c, err := readCorpus(truth, urls)
	if err != nil {
		t.Fatal(err)
	}
	type page struct {
		Title, Group   string
		Alone, Written bool
		Own            []string
	}
	var got []page
	for i, d := range c.pages {
		got = append(got, page{d.title, d.group, d.alone, d.written(), c.ownWords(i)})
	}
	want := []page{
		{"Alone", "main", true, false, []string{"gardening", "gardeners"}},
		{"Twice", "main", false, false, nil},
		{"twice!", "main", false, false, nil},
		{"中文", "zh_CN", true, true, []string{`"抓取程序把网址放在边界里"`}},
		{"二", "zh_CN", true, true, []string{`"抓取程序把网址取走"`, `"存管理"`}},
		{"- Docs", "zh_CN", true, false, nil},
	}
	want[4].Own = want[4].Own[:1] // the run is cut by the end of a line
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := c.pages[2].phrases(); !slices.Equal(got, []string{"and Whatever, that is", "long enough to be"}) {
		t.Errorf("%q", got)
	}
	if got := asked(`OR "x": -not title* (tcp_rmem)`); got != "or x not title tcp_rmem" {
		t.Errorf("%q", got)
	}
}

func TestReplaceWords(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.html")
	if err := os.WriteFile(file, []byte(`<p class=garden>Gardens and <a href=garden.html>gardening</a>, gardé`), 0o644); err != nil {
		t.Fatal(err)
	}
	before, _ := os.Stat(file)
	if err := replaceWords(file, "gardening", "new"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if want := `<p class=garden>new and <a href=garden.html>new</a>, new`; err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	if after, _ := os.Stat(file); !after.ModTime().After(before.ModTime()) {
		t.Error("it has the same time")
	}
	if err := replaceWords(file, "gardening", "new"); err == nil {
		t.Error("there was nothing to replace")
	}
}

// TestRanks compares the solution in place with plain rounds, on a graph with pages without links.
func TestRanks(t *testing.T) {
	g := graph{keys: []string{"a", "b", "c", "d", "e"}, to: [][]int32{{1, 2}, {2}, {0}, {2, 4}, nil}}
	const d = 0.85
	n := float64(len(g.keys))
	x := []float64{1, 1, 1, 1, 1}
	for range 300 {
		next := make([]float64, len(x))
		for i := range next {
			next[i] = 1 - d + d*x[4]/n
		}
		for i, to := range g.to {
			for _, j := range to {
				next[j] += d * x[i] / float64(len(to))
			}
		}
		x = next
	}
	for i, k := range g.keys {
		if got := g.ranks(d)[k]; math.Abs(got-x[i]) > 1e-12 {
			t.Errorf("%s has %g, not %g", k, got, x[i])
		}
	}
}

func TestGraph(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{
		"index.html":     `<a href=sub><a href=sub><a href=gone.html><a href=index.html#top><a href="http://elsewhere.test/"><a rel=nofollow href=b.html>`,
		"sub/index.html": `<a href=../index.html>back</a>`,
	})
	s := site{root: root, home: home}
	truth, err := s.walk()
	if err != nil {
		t.Fatal(err)
	}
	l := linker{site: &s, read: map[string]linked{}}
	if _, err := l.graph(truth); err != nil {
		t.Fatal(err)
	}
	if err := replaceWords(filepath.Join(root, "sub/index.html"), "back", "forth"); err != nil {
		t.Fatal(err)
	}
	write(t, root, map[string]string{"index.html": ""}) // and nobody looks, for it has its time
	info, err := os.Stat(filepath.Join(root, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	l.read["/index.html"] = linked{info.ModTime(), l.read["/index.html"].keys}
	g, err := l.graph(truth)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for i, k := range g.keys {
		for _, to := range g.to[i] {
			got[k] = append(got[k], g.keys[to])
		}
		slices.Sort(got[k])
	}
	want := map[string][]string{"/index.html": {"/gone.html", "/sub"}, "/sub": {"/sub/"}, "/sub/": {"/index.html"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEnough(t *testing.T) {
	for _, c := range []struct {
		some, n int
		least   float64
		want    bool
	}{{0, 0, 0.9, true}, {1, 2, 0.9, true}, {0, 2, 0.9, false}, {90, 100, 0.9, true}, {89, 100, 0.9, false}} {
		if enough(c.some, c.n, c.least) != c.want {
			t.Errorf("%+v", c)
		}
	}
}
