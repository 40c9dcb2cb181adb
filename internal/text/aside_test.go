package text

import (
	"fmt"
	"strings"
	"testing"
)

// TestAside checks that link lists and notes are kept apart from the text, and that navigation is dropped.
func TestAside(t *testing.T) {
	prose := strings.Repeat("A paragraph of running text that says what the page is about, at some length. ", 3)
	links := func(n int, word string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "<li><a href=/%d>%s %d</a></li>", i, word, i)
		}
		return b.String()
	}
	text := "<h1>TITLE</h1><p>TEXT " + prose + "</p><p>TEXT " + prose + "</p>"
	for _, c := range []struct {
		name, page               string
		inText, inAside, dropped []string
	}{
		{
			"see also", "<main>" + text + "<h2>SEE ALSO</h2><ul>" + links(5, "RELATED") + "</ul></main><div class=sidebar><ul>" + links(9, "MENU") + "</ul></div>",
			[]string{"TEXT", "SEE ALSO"}, []string{"RELATED"}, []string{"MENU"},
		},
		{
			"footnotes", "<div class=document>" + text + `<aside class="footnote brackets"><p>NOTE on <a href=/a>one</a></p></aside><footer>IMPRINT</footer></div>`,
			[]string{"TEXT"}, []string{"NOTE"}, []string{"IMPRINT"},
		},
		{
			"references", "<div>" + text + "</div><div class=reflist><ol>" + links(4, "SOURCE") + "</ol></div><div class=more><ul>" + links(4, "ADVERT") + "</ul></div>",
			[]string{"TEXT"}, []string{"SOURCE"}, []string{"ADVERT"},
		},
		{
			"short section of an article", "<nav>" + links(4, "MENU") + "</nav><div role=main><section id=a><h1>TITLE</h1><p>AUTHOR</p><section id=disclaimer><p>LEGAL " + prose +
				"</p></section><section id=b>" + strings.Repeat(text, 9) + "</section></section></div>",
			[]string{"TEXT"}, []string{"AUTHOR", "LEGAL"}, []string{"MENU"},
		},
	} {
		d, ok := Extract("text/html", []byte("<body>"+c.page), "")
		if !ok {
			t.Errorf("%s: no text", c.name)
		}
		for _, w := range c.inText {
			if !strings.Contains(d.Body, w) || strings.Contains(d.Aside, w) && w != "TITLE" {
				t.Errorf("%s: %s is not in the text alone", c.name, w)
			}
		}
		for _, w := range c.inAside {
			if strings.Contains(d.Body, w) || !strings.Contains(d.Aside, w) {
				t.Errorf("%s: %s is not beside the text alone", c.name, w)
			}
		}
		for _, w := range c.dropped {
			if strings.Contains(d.Body+d.Aside, w) {
				t.Errorf("%s: %s is not dropped", c.name, w)
			}
		}
		if t.Failed() {
			t.Fatalf("%s:\n%s\n--\n%s", c.name, d.Body, d.Aside)
		}
	}
}
