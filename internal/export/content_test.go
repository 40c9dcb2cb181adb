package export

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// TestMarkdown converts main text: headings, lists, links, code and tables stay; navigation and scripts go.
func TestMarkdown(t *testing.T) {
	const page = `<!doctype html><title>T</title><nav><a href=/1>One</a> <a href=/2>Two</a></nav><main><h1>Head</h1>
<p>A <b>long</b> paragraph, with enough words that it is taken for the running text of the page, and <a href="../x?a=1">a link</a>.</p>
<h2>Second</h2><ul><li>first<li>second <code>f(*p)</code></ul><pre><code class="language-go">x := "[1]"
</code></pre><table><tr><th>k<th>v<tr><td>1<td>2</table><script>no()</script></main><footer>copyright</footer>`
	want := "# Head\n\nA **long** paragraph, with enough words that it is taken for the running text of the page, and [a link](http://a.example/x?a=1).\n\n" +
		"## Second\n\n- first\n- second `f(*p)`\n\n```go\nx := \"[1]\"\n```\n\n| k | v |\n|---|---|\n| 1 | 2 |"
	got, err := toMarkdown("text/html", []byte(page), "http://a.example/d/p")
	if err != nil || got != want {
		t.Errorf("%v:\n%s\nwant:\n%s", err, got, want)
	}
	if got, err := toMarkdown("text/plain", []byte("*x*"), "http://a.example/x.txt"); err != nil || got != "*x*" {
		t.Errorf("plain text: %q, %v", got, err)
	}
}

// TestHostileMarkup converts markup that takes quadratic time in some converters.
func TestHostileMarkup(t *testing.T) {
	const size = 64 << 10
	for _, piece := range []string{
		"<b>", "<a href=x>y", "<table>", "<tr><td>x", "<font><p>", "<b><p>x", "<ul><li>", "<li>x", "*", "`", "[", "_x ", "<pre>`", "<h1>x", "</p>", "<i></b>",
		"<svg><math>", "<br>", "<code>`</code>", "\xc3",
	} {
		begun := time.Now()
		md, err := toMarkdown("text/html; charset=utf-8", []byte("<p>"+strings.Repeat(piece, size/len(piece))), "http://a.example/")
		if took := time.Since(begun); took > 10*time.Second || len(md) > 4*size || !utf8.ValidString(md) {
			t.Errorf("%q: %v, %d bytes, %v", piece, took, len(md), err)
		}
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string]int{"": 0, " a  b-c, d's": 4, "1.5 x": 3, "日本 x": 3, "é\u0301a": 1} {
		if n := words(text); n != want {
			t.Errorf("%q has %d words, want %d", text, n, want)
		}
	}
}
