package text

import (
	"fmt"
	"strings"
	"testing"
)

// TestAside: what is mostly links, or notes, is kept apart from the text; navigation is dropped. On a page
// with hardly any text links are the text, and what is of the page's frame is dropped all the same.
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
	source := "<div role=navigation><ul><li><a href=/>HOME</a><li>Guide<li class=aside><a href=/_sources>View page source</a></ul></div>"
	for _, c := range []struct {
		name, page               string
		inText, inAside, dropped []string
	}{
		{
			"see also", "<main>" + text + "<h2>SEE ALSO</h2><ul>" + links(5, "RELATED") + "</ul></main><div class=sidebar><ul>" + links(9, "MENU") + "</ul></div>",
			[]string{"TEXT"}, []string{"SEE ALSO", "RELATED"}, []string{"MENU"},
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
		{
			"source link of a short page", source + "<div role=main><h1>TITLE</h1><ul>" + links(9, "CHAPTER") + "</ul></div><div role=contentinfo>IMPRINT</div>",
			[]string{"TITLE", "CHAPTER"}, nil, []string{"View page source", "HOME", "IMPRINT"},
		},
		{
			"source link in the text", "<div><a href=/_sources>View page source</a>" + text + "<p><a href=/e>« Edit this page »</a></p></div>",
			[]string{"TEXT"}, nil, []string{"View page source", "Edit this page"},
		},
		{
			"source link of a page of links", "<div><p><a href=/_sources>View page source</a></p><ul>" + links(9, "CHAPTER") + "</ul></div>",
			[]string{"CHAPTER"}, nil, []string{"View page source"},
		},
		{
			"text about it", "<div>" + text + "<p>Choose View page source, and then save it.</p></div>",
			[]string{"TEXT", "View page source"}, nil, nil,
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
