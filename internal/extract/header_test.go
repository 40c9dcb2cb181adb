package extract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLinkHeader(t *testing.T) {
	for _, tt := range []struct {
		name  string
		value string // values separated by newlines
		want  []string
	}{
		{"canonical, next, prev, previous", `</c>; rel=canonical, <n>;rel="next" , <?p>; rel = "PREV"` + "\n" + `<http://other.example/>; rel="up previous"`,
			[]string{"header http://example.com/c", "header http://example.com/dir/n", "header http://example.com/dir/page.html?p", "header http://other.example/"}},
		{"alternate", `</de>; rel=alternate; hreflang=de, </f>; rel=alternate; type="application/atom+xml", </p>; rel=alternate; type=application/pdf`,
			[]string{"header http://example.com/de", "feed http://example.com/f"}},
		{"no pages", `</s>; rel=stylesheet, </p>; rel=preload; as=script, <//cdn.example>; rel=preconnect, </x>, </y>; rev=next, </z>; rel`, nil},
		{"commas and semicolons in targets and strings", `</a,b;c>; title="x, <y>; rel=\"canonical\""; rel=next, </d>; rel=next`, []string{"header http://example.com/a,b;c", "header http://example.com/d"}},
		{"first rel counts", `</a>; rel=stylesheet; rel=next, </b>; rel=next; rel=stylesheet`, []string{"header http://example.com/b"}},
		{"nofollow", `</a>; rel="next nofollow", </b>; rel=nofollow, </c>; rel="next nofollow", </c>; rel=next`, []string{"header http://example.com/a !", "header http://example.com/c"}},
		{"anchor", `</a>; rel=next; anchor="", </b>; rel=next; anchor="#foo", </c>; rel=next; anchor="/other", </d>; rel=next; anchor="mailto:x"`,
			[]string{"header http://example.com/a", "header http://example.com/b"}},
		{"title with an encoding", `</a>; rel=next; title=One; title*=UTF-8''One`, []string{"header http://example.com/a"}},
		{"self, fragment, other schemes", `<>; rel=canonical, <#x>; rel=next, <mailto:a@b>; rel=next, <data:,x>; rel=next`, nil},
		{"white space and empty links", " ,, \t</a> ;  ; rel = next ;,,", []string{"header http://example.com/a"}},
		{"not closed", `</a>; rel=next, </b; rel=next` + "\n" + `</c>; rel="next`, []string{"header http://example.com/a", "header http://example.com/c"}},
		{"no grammar", `/a; rel=next` + "\n" + `</b>; rel=next x, </c>; rel=next` + "\n" + `</d>; rel=next; "x", </e>; rel=next`,
			[]string{"header http://example.com/d", "header http://example.com/e"}},
		{"raw bytes", "</\xe9\x00x>; rel=next", []string{"header http://example.com/%E9%00x"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := showAll(AddLinkHeader(nil, strings.Split(tt.value, "\n"), mustParse(t, selfURL)))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("links (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLinkHeaderBounds(t *testing.T) {
	var values []string
	for i := range 2 * maxHeaderLinks {
		values = append(values, fmt.Sprintf("</%d>; rel=next, </a%d>; rel=next", i, i))
	}
	if links := AddLinkHeader(nil, values, mustParse(t, selfURL)); len(links) != maxHeaderLinks {
		t.Errorf("%d links", len(links))
	}
	long := "</" + strings.Repeat("x", 1<<20) + ">; rel=next, </a>; rel=next"
	if links := AddLinkHeader(nil, []string{long}, mustParse(t, selfURL)); len(links) != 1 {
		t.Errorf("%d links", len(links))
	}
}
