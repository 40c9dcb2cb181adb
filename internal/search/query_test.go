package search

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/orbweaver/orbweaver/internal/ledger"
)

// compounds returns a query of n words with many parts.
func compounds(n int) string {
	var words []string
	for i := range n {
		var parts []string
		for j := range 30 {
			parts = append(parts, string(rune('a'+i))+string(rune('a'+j%26))+string(rune('a'+j/26)))
		}
		words = append(words, strings.Join(parts, "."))
	}
	return strings.Join(words, " ")
}

// show formats a parsed query.
func show(q *Query) string {
	var parts []string
	leaf := func(l leaf) string {
		s := l.text
		if len(l.words) > 1 {
			s = `"` + s + `"`
		}
		if l.fields != allFields {
			s = fmt.Sprintf("%05b:%s", l.fields, s)
		}
		return s
	}
	for _, c := range q.clauses {
		var any []string
		for _, l := range c {
			any = append(any, leaf(l))
		}
		parts = append(parts, strings.Join(any, "|"))
	}
	for _, l := range q.not {
		parts = append(parts, "-"+leaf(l))
	}
	for name, list := range map[string][]string{"site:": q.sites, "-site:": q.notSites, "lang:": q.langs, "-lang:": q.notLangs} {
		for _, s := range list {
			parts = append(parts, name+s)
		}
	}
	return strings.Join(parts, " ")
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a b", "a b"},
		{"  a\tb\n", "a b"},
		{"a\x00b \x1b[31m", "a b 31m"},
		{`"a b" c`, `"a b" c`},
		{`"a b`, "!the quote at character 1 is not closed"},
		{`Ä “b" "c`, "!the quote at character 7 is not closed"},
		{`12" disk`, "!the quote at character 3 is not closed"},
		{`a"b c"d`, `a "b c" d`},
		{`""`, "!no word"},
		{"a OR b OR c d", "a|b|c d"},
		{"OR a", "a"},
		{"a OR", "a"},
		{"OR", "!no word"},
		{"a OR OR b", "a|b"},
		{"a or b", "a or b"},
		{"-a OR b", "!OR stands"},
		{"a OR -b", "!OR stands"},
		{"site:x.org OR b", "!OR stands"},
		{"a OR b/c", `a|"b/c"`},
		{"b/c", "b c"},
		{"-b/c a", `a -"b/c"`},
		{"a - b", "a b"},
		{"a--b", "a b"},
		{"-a", "!only excludes"},
		{"-site:a.org", "!only excludes"},
		{"title:a", "00001:a"},
		{"TITLE:a", "00001:a"},
		{`title:"a b"`, `00001:"a b"`},
		{"url:a*", "10000:a*"},
		{"title: a", "!the field at character 1 is empty"},
		{"ä -title:", "!the field at character 3 is empty"},
		{"a title:...", "!the field at character 3 is empty"},
		{`a title:"" b`, "!the field at character 3 is empty"},
		{"a lang:", "!the field at character 3 is empty"},
		{`a site:" "`, "!the field at character 3 is empty"},
		{"titel:a", "!no field titel at character 1; fields are title, headings,"},
		{`a -titel:"b c"`, "!no field titel at character 4;"},
		{`"titel:a"`, "titel:a"},
		{"panic: error", "panic error"},
		{"std::vector a:8080 12:30 C:\\x", "std vector a:8080 12:30 C x"},
		{"aside:a", "100000:a"},
		{"https://a.org/b", "https a.org b"},
		{"*", "!no word"},
		{"a**", "a*"},
		{"site:A.org. x", "x site:a.org"},
		{"site:http://a.org:80/x/y", "site:a.org:80"},
		{"site:a..b", "!is no site"},
		{`site:"a.org"`, "site:a.org"},
		{"lang:EN x", "x lang:en"},
		{"… — ?", "!no word"},
		{"", "!no word"},
		{strings.Repeat("a ", 32), strings.TrimSpace(strings.Repeat("a ", 32))},
		{strings.Repeat("a ", 33), "!more than 32 words"},
		{strings.Repeat("a* ", 33), "!more than 32 words"},
		{strings.Repeat("a* ", 9), "!9 prefixes"},
		{compounds(25), "! terms and"},
		{compounds(2), compounds(2)},
		{`"` + strings.Repeat("a ", 33) + `"`, "!more than 32 words"},
		{strings.Repeat("天", 200), "!more than 32 words"},
		{strings.Repeat("a", maxQuery+1), "!more than 4096"},
		{strings.Repeat("site:a.org ", 40) + "x", "x site:a.org"},
	} {
		q, err := parse(c.text, &Request{})
		got := ""
		if err != nil {
			got = "!" + err.Error()
			if !errors.Is(err, ErrQuery) {
				t.Errorf("%.40q: %v is not ErrQuery", c.text, err)
			}
		} else {
			got = show(q)
		}
		if part, bad := strings.CutPrefix(c.want, "!"); bad && (err == nil || !strings.Contains(got, part)) || !bad && got != c.want {
			t.Errorf("%.60q: %s, want %s", c.text, got, c.want)
		}
	}
}

// TestHugeQuery checks that rejecting a query that is too long is cheap.
func TestHugeQuery(t *testing.T) {
	ix := one(t, &page{url: site, body: "coffee"})
	long := Request{Query: strings.Repeat("天 \"", 100_000)}
	began := ledger.Processor()
	for range 1000 {
		if _, err := ix.Search(t.Context(), long); !errors.Is(err, ErrQuery) {
			t.Fatal(err)
		}
	}
	if took := ledger.Processor() - began; took > 200*time.Millisecond {
		t.Errorf("1000 queries took %v", took)
	}
}

var hostile = []string{
	"", "-", "--", "OR OR", `"`, `"""`, "title:", "title:title:title:", "site:", "site:[", "lang:", "-lang:-", "*", "a*b*", "\xff\xfe", "a\u202eb",
	strings.Repeat("(", 4096), strings.Repeat("a OR ", 800), strings.Repeat(`"a `, 1000), strings.Repeat("-a ", 1300), strings.Repeat("ก", 1365),
	"\u0301\u0301\u0301", "𝒶𝒷𝒸", "İstanbul", "ß*", "title:\u200d*", "site:..", "site:xn--", "site:" + strings.Repeat("a.", 2000) + "a", "0x7f.1", "site:0x7f.1",
}

// FuzzSearch checks that no query fails except with ErrQuery, and that texts of results are within bounds.
func FuzzSearch(f *testing.F) {
	for _, q := range hostile {
		f.Add(q, 0, 10, false)
	}
	f.Add("coffee OR tea", 5, 1000, true)
	ix := one(f,
		&page{url: site + "a", lang: "en", title: "Roasting coffee", body: "Coffee beans \x1b[31m are roasted.\nA ก กขค light roast. " + strings.Repeat("tea ", 200), anchor: "a b"},
		&page{url: site + "b", lang: "zh", title: "搜索引擎", body: strings.Repeat("深圳的天气预报说明天下雨", 50), rank: 0.5},
	)
	f.Fuzz(func(t *testing.T, query string, offset, limit int, all bool) {
		a, err := ix.Search(t.Context(), Request{Query: query, Offset: offset, Limit: limit, All: all, Explain: all})
		if err != nil {
			if !errors.Is(err, ErrQuery) || len(err.Error()) > 500 || !utf8.ValidString(err.Error()) {
				t.Fatalf("%q: %v", query, err)
			}
			return
		}
		for _, r := range a.Results {
			for _, m := range []Marked{r.Title, r.Snippet} {
				checkMarked(t, m)
			}
			if len(r.Snippet.Text) > snippetBytes+10 {
				t.Errorf("%q: a snippet of %d bytes", query, len(r.Snippet.Text))
			}
		}
	})
}

// checkMarked checks that the pieces of a text are whole characters, not empty, and make up the text.
func checkMarked(t testing.TB, m Marked) {
	t.Helper()
	var b strings.Builder
	for _, p := range m.Pieces() {
		b.WriteString(p.Text)
		if p.Text == "" || !utf8.ValidString(p.Text) {
			t.Errorf("%+v: a piece %q", m, p.Text)
		}
	}
	if b.String() != m.Text || strings.ContainsAny(m.Text, "\x1b\n\u202e") {
		t.Errorf("%+v: pieces are %q", m, b.String())
	}
}
