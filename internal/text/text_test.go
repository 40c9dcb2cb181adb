package text

import (
	"bytes"
	"fmt"
	"math/bits"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"

	"github.com/orbweaver/orbweaver/internal/ledger"
)

const para = "The frontier holds what is known and not yet fetched, ordered by what it is worth, and a step takes from it what is due."

func TestExtract(t *testing.T) {
	page := `<!doctype html><html lang="en-GB"><head><title> How a crawler
 waits </title><meta name=description content="On  politeness"><meta property="article:published_time" content="2024-05-06T07:08:09+02:00">
<style>p { color: red }</style><script>var hidden = "script";</script></head><body>
<header><h1>Site name</h1><a href=/>Home</a></header><nav><ul><li><a href=/a>Archive</a><li><a href=/b>About</a></ul></nav>
<div id=sidebar class=widget><p>` + strings.Repeat("Widgets ", 15) + `</p></div>
<main><h2>Waiting<a href=#w>¶</a></h2><p>` + para + `<p>Second &amp; last: ` + para + `<br>A new line.
<pre>go  build
  ./...</pre></main>
<div class="related-posts"><h3>Related</h3><p>` + para + `</p></div>
<footer>© 2024 Somebody, ` + para + `</footer></body></html>`
	got, ok := Extract("text/html; charset=utf-8", []byte(page), "https://example.org/wait")
	want := Document{
		Title:       "How a crawler waits",
		Headings:    "Site name\nWaiting",
		Body:        "Waiting\n" + para + "\nSecond & last: " + para + "\nA new line.\ngo build\n./...",
		Description: "On politeness",
		Lang:        "en",
		SimHash:     got.SimHash,
		Published:   time.Date(2024, 5, 6, 5, 8, 9, 0, time.UTC),
	}
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("ok %v, -want +got:\n%s", ok, diff)
	}
	if got.SimHash == 0 {
		t.Error("no SimHash")
	}
}

// TestWhatIsLeftOut reads pages of several kinds, with words that belong to the text and words that do not.
func TestWhatIsLeftOut(t *testing.T) {
	links := func(n int, word string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "<li><a href=/%d>%s number %d</a></li>", i, word, i)
		}
		return b.String()
	}
	paras := func(n int, word string) string {
		return strings.Repeat("<p>"+word+" "+para+"</p>", n)
	}
	chinese := strings.Repeat("抓取程序把已知而未取的网址放在边界里，按价值排序，每一步取走到期的部分。", 3)
	for _, c := range []struct {
		name, page string
		in, out    []string
	}{
		{
			"blog", "<body><div class=menu>" + links(5, "MENU") + "</div><div class=post><h1>TITLE</h1>" + paras(3, "TEXT") +
				"</div><div class=comments><h3>COMMENTS</h3>" + paras(1, "REMARK") + "</div><div class=foot><p>IMPRINT</p></div>",
			[]string{"TITLE", "TEXT"},
			[]string{"MENU", "COMMENTS", "REMARK", "IMPRINT"},
		},
		{
			"sections with ids made of headings", "<body><main>" + paras(9, "TEXT") + "<section id=exceptions-for-shared-memory><h2>SHARED</h2>" + paras(1, "MEMORY") +
				"</section><section id=note-legali><h2>NOTE</h2>" + paras(1, "LEGALI") + "</section></main><section id=comments>" + paras(1, "REMARK") + "</section>",
			[]string{"TEXT", "SHARED", "MEMORY", "NOTE", "LEGALI"},
			[]string{"REMARK"},
		},
		{
			"forum: comments are the text", "<body><nav>" + links(5, "MENU") + "</nav><h1>TITLE</h1><div id=comments>" +
				strings.Repeat("<div class=comment>"+paras(1, "REMARK")+"</div>", 8) + "</div>",
			[]string{"REMARK"},
			[]string{"MENU"},
		},
		{
			"listing: links are the text", "<body><nav>" + links(3, "MENU") + "</nav><h1>TITLE</h1><ul>" + links(40, "ENTRY") + "</ul>",
			[]string{"TITLE", "ENTRY"},
			[]string{"MENU"},
		},
		{
			"nothing but navigation", "<body><nav>" + links(3, "MENU") + "</nav>",
			nil,
			[]string{"MENU"},
		},
		{
			"all in a footer", "<body><footer>" + paras(3, "TEXT") + "</footer>",
			[]string{"TEXT"},
			nil,
		},
		{
			"tables for layout", "<body><table><tr><td><ul>" + links(9, "MENU") + "</ul><td><h2>TITLE<h2><p>TEXT " + para + "<p>TEXT " + para +
				"<table><tr><th>Name<th>CELL<tr><td>a<td>CELL</table><p>LAST " + para + "<td>SIDE</table>",
			[]string{"TITLE", "TEXT", "CELL", "LAST"},
			[]string{"MENU", "SIDE"},
		},
		{
			"chinese", "<body><div class=nav>" + links(6, "菜单") + "</div><div><h1>标题</h1><p>正文" + chinese + "</p><p>正文" + chinese +
				"</p></div><div class=footer>版权 " + links(2, "备案") + "</div>",
			[]string{"标题", "正文"},
			[]string{"菜单", "版权"},
		},
		{
			"accordion", "<body><nav>" + links(3, "MENU") + "</nav><h2><button>QUESTION</button></h2>" + paras(1, "ANSWER") + "<button>SEND</button>",
			[]string{"QUESTION", "ANSWER"},
			[]string{"MENU", "SEND"},
		},
		{
			"short", "<body><nav>" + links(9, "MENU") + "</nav><h1>TITLE</h1><p>TEXT<footer>" + links(9, "IMPRINT") + "</footer>",
			[]string{"TITLE", "TEXT"},
			[]string{"MENU", "IMPRINT"},
		},
		{
			"sloppy", "<p><a name=x>TEXT " + para + "<p><a href=/>one <a href=/>two</div></td><div>MORE " + para + "</span></table><p>END " + para,
			[]string{"TEXT", "MORE", "END"},
			nil,
		},
		{
			"hidden", "<body>" + paras(2, "TEXT") + "<div hidden>SECRET</div><div style='display: none'>SECRET</div><template>SECRET</template>" +
				"<svg><title>SECRET</title><text>SECRET</text></svg><noscript>SECRET</noscript><select><option>SECRET</select><p>END " + para,
			[]string{"TEXT", "END"},
			[]string{"SECRET"},
		},
		{
			"links behind the text", "<body><div>" + paras(2, "TEXT") + "<h2>KEPT</h2>" + paras(1, "TEXT") + "<h2>READ ON</h2><ul>" + links(5, "OTHER") + "</ul></div>",
			[]string{"TEXT", "KEPT"},
			[]string{"OTHER"},
		},
	} {
		d, ok := Extract("text/html", []byte(c.page), "")
		if !ok {
			t.Errorf("%s: not a document", c.name)
		}
		for _, w := range c.in {
			if !strings.Contains(d.Body, w) {
				t.Errorf("%s: %s is missing in\n%s", c.name, w, d.Body)
			}
		}
		for _, w := range c.out {
			if strings.Contains(d.Body, w) {
				t.Errorf("%s: %s is in\n%s", c.name, w, d.Body)
			}
		}
	}
}

func TestMediaTypes(t *testing.T) {
	jpeg := "\xff\xd8\xff\xe0\x00\x10JFIF"
	noise := make([]byte, 4000)
	for i := range noise {
		noise[i] = byte(i * i >> 3)
	}
	for _, c := range []struct {
		mime, url, body string
		ok              bool
		title, text     string
	}{
		{"text/plain", "", "One  line\nof two.\n\nNext.", true, "", "One line\nof two.\nNext."},
		{"text/plain; charset=utf-8", "/a.txt", "# no heading", true, "", "# no heading"},
		{"text/markdown", "", "# Title\ntext\n\nSub\n---\n```\n# code\n```\n", true, "Title", "Title\ntext\nSub\n# code"},
		{"text/plain", "https://a.example/README.md?x", "## Title #\n\ntext", true, "Title", "Title\ntext"},
		{"", "", "<html><title>T</title><p>text", true, "T", "text"},
		{"", "", "just words", true, "", "just words"},
		{"application/octet-stream", "", "just words", false, "", ""},
		{"application/xhtml+xml", "", "<html xmlns='http://www.w3.org/1999/xhtml'><head><title>T</title><script/></head><body><p>text</p></body></html>", true, "T", "text"},
		{"application/xml", "", "<?xml version='1.0'?><html><head><title>T</title><style>p {}</style></head><body>text</body></html>", true, "T", "text"},
		{"application/rss+xml", "", "<rss><channel><title>Feed</title><item><title>One</title><description><![CDATA[text]]></description></item></channel></rss>", true, "Feed", "Feed\nOne\ntext"},
		{"text/xml", "", "<doc><par>one<b>two</b></par></doc>", true, "", "one\ntwo"},
		{"application/xml", "", "<urlset><url><loc>https://a.example/</loc></url></urlset>", false, "", ""},
		{"text/html", "", jpeg + strings.Repeat("\x01\x02", 99), false, "", ""},
		{"text/html", "", string(noise), false, "", ""},
		{"text/plain", "", "%PDF-1.7 and so on", false, "", ""},
		{"application/pdf", "", "%PDF-1.7", false, "", ""},
		{"application/json", "", `{"a": 1}`, false, "", ""},
		{"text/css", "", "p { color: red }", false, "", ""},
		{"text/javascript", "", "var a", false, "", ""},
		{"image/svg+xml", "", "<svg><text>a</text></svg>", false, "", ""},
		{"text/html", "", "", true, "", ""},
	} {
		d, ok := Extract(c.mime, []byte(c.body), c.url)
		if ok != c.ok || d.Title != c.title || d.Body != c.text {
			t.Errorf("%s %.40q: %v, title %q, body %q", c.mime, c.body, ok, d.Title, d.Body)
		}
	}
}

func TestCharsets(t *testing.T) {
	encode := func(s string, err error) []byte {
		if err != nil {
			t.Fatal(err)
		}
		return []byte(s)
	}
	ru, ja := "Очередь сообщений и функции", "メッセージのキューと関数です"
	for _, c := range []struct {
		mime string
		body []byte
		want string
	}{
		{"text/html; charset=windows-1251", encode(charmap.Windows1251.NewEncoder().String("<p>" + ru)), ru},
		{"text/html", encode(charmap.Windows1251.NewEncoder().String("<meta charset=windows-1251><p>" + ru)), ru},
		{"text/plain; charset=koi8-r", encode(charmap.KOI8R.NewEncoder().String(ru)), ru},
		{"text/html; charset=Shift_JIS", encode(japanese.ShiftJIS.NewEncoder().String("<p>" + ja)), ja},
		{"text/html", encode(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String("<p>" + ja)), ja},
		{"text/html; charset=nonsense", []byte("<p>" + ru), ru},
		{"text/html", []byte("\xef\xbb\xbf<p>" + ru), ru},
		{"text/html; charset=utf-8", []byte("<p>caf\xe9"), "caf\ufffd"},
	} {
		if d, ok := Extract(c.mime, c.body, ""); !ok || d.Body != c.want {
			t.Errorf("%s: %v %q, want %q", c.mime, ok, d.Body, c.want)
		}
	}
}

func TestPublished(t *testing.T) {
	day := time.Date(2023, 4, 5, 0, 0, 0, 0, time.UTC)
	for page, want := range map[string]time.Time{
		"<meta itemprop=datePublished content=2023-04-05>":                                    day,
		`<script type="application/ld+json">{"datePublished" : "2023-04-05T00:00Z"}</script>`: day,
		"<p><time datetime=2023-04-05>yesterday</time>":                                       day,
		"<meta name=date content='Wed, 05 Apr 2023 00:00:00 GMT'>":                            day,
		"<meta name=date content=yesterday>":                                                  {},
		"<time datetime=1848-03-01>March</time>":                                              {},
		`<script>{"datePublished": 5}</script><script>"datePublished"`:                        {},
	} {
		if d, _ := Extract("text/html", []byte(page), ""); !d.Published.Equal(want) {
			t.Errorf("%s: %v", page, d.Published)
		}
	}
}

func TestLanguage(t *testing.T) {
	for _, c := range []struct{ told, text, want string }{
		{"", para, "en"},
		{"de", para, "en"},
		{"", "Die Schlange hält, was bekannt ist und noch nicht geholt wurde, und ein Schritt nimmt sich, was fällig ist.", "de"},
		{"", "La file contient ce qui est connu et pas encore lu, et une étape y prend ce qui est dû pour la suite.", "fr"},
		{"", "Очередь хранит то, что известно и ещё не получено, и шаг берёт из неё то, что пора.", "ru"},
		{"", "Черга зберігає те, що відоме і ще не отримане, та крок бере з неї те, що вже час.", "uk"},
		{"", "边界里放着已知而未取的网址，按价值排序。", "zh"},
		{"", "クローラーは待ち行列から期限の来たものを取り出します。", "ja"},
		{"", "크롤러는 대기열에서 기한이 된 것을 꺼냅니다.", "ko"},
		{"", "This is a translation of the guide into Korean. 이 문서는 크롤러의 설명서를 한글로 옮긴 것입니다. 대기열에서 기한이 된 것을 꺼냅니다.", "ko"},
		{"", "Ο ανιχνευτής παίρνει από την ουρά ό,τι έχει λήξει.", "el"},
		{"", "הזחלן לוקח מהתור את מה שהגיע זמנו.", "he"},
		{"", "โปรแกรมรวบรวมข้อมูลจะนำสิ่งที่ถึงกำหนดออกจากคิว", "th"},
		{"", "الزاحف يأخذ من قائمة الانتظار ما حان وقته في هذا اليوم، مع كل ما هو على الجدول.", "ar"},
		{"pt-BR", "Tabela 4711 preços", "pt"},
		{"ru", "Tabela 4711 preços", ""},
		{"", "x 12", ""},
		{"en", "", ""},
	} {
		if got := language("", c.text, c.told); got != c.want {
			t.Errorf("%q (said to be %q): %q, want %q", c.text, c.told, got, c.want)
		}
	}
}

func TestSimHash(t *testing.T) {
	var b strings.Builder
	for i := range 400 {
		fmt.Fprintf(&b, "word%d ", i*i%97)
	}
	one := b.String()
	near := strings.Replace(strings.ToUpper(one), "WORD1 ", "another ", 1) + " end."
	other := strings.ReplaceAll(one, "word", "thing")
	if d := bits.OnesCount64(simHash(one) ^ simHash(near)); d > 3 {
		t.Errorf("near-duplicates differ in %d bits", d)
	}
	if d := bits.OnesCount64(simHash(one) ^ simHash(other)); d < 12 {
		t.Errorf("different texts differ in %d bits", d)
	}
	if simHash("") != 0 || simHash("...") != 0 {
		t.Error("a text without words has a hash")
	}
	if simHash("one") == 0 || simHash("one") == simHash("two") || simHash("边界里放着网址") == simHash("边界里放着数字") {
		t.Error("short texts have the same hash")
	}
}

func TestBounds(t *testing.T) {
	long := strings.Repeat("wörter ", MaxText/4)
	page := "<title>" + long + "</title><meta name=description content='" + long[:99_999] + "'>" + strings.Repeat("<h1>"+long[:1000]+"</h1><p>"+para, 999) + "<p>" + long
	d, ok := Extract("text/html", []byte(page), "")
	check(t, d)
	if !ok || len(d.Body) < MaxText/2 || len(d.Headings) < maxHeadings/2 || len(d.Title) < maxTitle/2 || len(d.Description) < maxDescription/2 {
		t.Errorf("too little: %d %d %d %d", len(d.Body), len(d.Headings), len(d.Title), len(d.Description))
	}
}

// check checks the promises of a document.
func check(t *testing.T, d Document) {
	t.Helper()
	for _, f := range []struct {
		name, text string
		max        int
	}{{"title", d.Title, maxTitle}, {"headings", d.Headings, maxHeadings}, {"body", d.Body, MaxText}, {"description", d.Description, maxDescription}} {
		if len(f.text) > f.max || !utf8.ValidString(f.text) || strings.TrimSpace(f.text) != f.text || strings.Contains(f.text, "  ") || strings.Contains(f.text, "\n\n") {
			t.Errorf("%s of %d bytes: %.100q", f.name, len(f.text), f.text)
		}
	}
	if d.Lang != "" && len(d.Lang) != 2 {
		t.Errorf("language %q", d.Lang)
	}
	if d.Body == "" && d.SimHash != 0 {
		t.Error("an empty body has a SimHash")
	}
}

// TestHostile reads the most expensive bodies: a megabyte takes at most a second, even on a busy machine.
func TestHostile(t *testing.T) {
	const size = 1 << 20
	fill := func(s string) []byte { return bytes.Repeat([]byte(s), size/len(s)+1)[:size] }
	many := "<x " + strings.Repeat("a ", 500_000)
	var attrs bytes.Buffer
	for i := 0; attrs.Len() < size/2; i++ {
		fmt.Fprintf(&attrs, " a%d", i)
	}
	for name, body := range map[string][]byte{
		"deep":                  fill("<div>"),
		"deep and closed":       append(fill("<div>")[:size/2], fill("</p></div>")[:size/2]...),
		"stray end tags":        append(fill("<div>")[:5*400], fill("</li>")...),
		"lists":                 fill("<ul><li>"),
		"items":                 fill("<li>a"),
		"tables":                fill("<table><tr><td>"),
		"cells":                 append([]byte("<table>"), fill("<td>a")...),
		"svg":                   fill("<svg><script>"),
		"paragraphs":            fill("<p>a"),
		"inline":                fill("<b><i>a"),
		"links":                 fill("<a href=x>a"),
		"attributes":            fill(many),
		"attributes, then tags": append(append([]byte("<p"), attrs.Bytes()...), fill("<b>")[:size/2]...),
		"classes":               fill("<p class=" + strings.Repeat("nav", 90) + ">"),
		"entities":              fill("&nGt;&amp;&#x1F600;"),
		"references":            fill("&"),
		"one word":              fill("a"),
		"one han":               fill("语"),
		"marks":                 fill("e\u0301\u0301\u0301"),
		"brackets":              fill("<"),
		"comments":              fill("<!--"),
		"titles":                fill("<title>"),
		"breaks":                fill("a<br><br>"),
		"pre":                   fill("<pre>\n\na\n"),
		"json":                  fill(`<script>"datePublished"</script>`),
		"dates":                 fill("<time datetime=2001-01-01x>"),
		"meta":                  fill("<meta name=robots content=a,b,c,d,e,f>"),
		"cdata":                 fill("<![CDATA[a]]>"),
		"not UTF-8":             append([]byte("<p>"+strings.Repeat("text ", 9999)), fill("\xff\xfea")...),
	} {
		mimes := []string{"text/html"}
		if strings.HasPrefix(name, "one ") || name == "breaks" {
			mimes = append(mimes, "application/xml", "text/plain", "text/markdown")
		}
		for _, mime := range mimes {
			start := ledger.Processor()
			d, _ := Extract(mime, body, "")
			if took := ledger.Processor() - start; took > time.Second {
				t.Errorf("%s as %s took %v", name, mime, took)
			} else if testing.Verbose() && took > 100*time.Millisecond {
				t.Logf("%s as %s: %v", name, mime, took)
			}
			check(t, d)
		}
	}
}

func FuzzExtract(f *testing.F) {
	for _, s := range []string{
		"", "<p>text", "<title>t</title><nav><a href=x>a</a></nav><p>" + para, "<ul><li>a<li>b<table><td>c</ul>d</table>e", "# a\n\nb\n===\n```\n#c",
		"<pre>\n a\n\n b</pre><br><br>x", "<svg><title>a</svg><select><p>b</select>c", "<rss><title>a</title><x>b</x></rss>", "\xff\xfe<\x00p\x00>\x00a\x00",
	} {
		f.Add("text/html", s)
		f.Add("application/xml", s)
		f.Add("text/markdown; charset=gbk", s)
	}
	f.Fuzz(func(t *testing.T, mime, body string) {
		d, ok := Extract(mime, []byte(body), "")
		check(t, d)
		again, okAgain := Extract(mime, []byte(body), "")
		if ok != okAgain || d != again {
			t.Errorf("the second time %v %+v, the first %v %+v", okAgain, again, ok, d)
		}
		if !ok && d != (Document{}) {
			t.Errorf("not a document, and %+v", d)
		}
	})
}
