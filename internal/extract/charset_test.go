package extract

import (
	"strings"
	"testing"
)

func TestCharset(t *testing.T) {
	for _, tt := range []struct{ name, contentType, body, want, text string }{
		{"nothing said, ASCII", "", "<a href=1>x</a>", "utf-8", "x"},
		{"nothing said, UTF-8", "", "<a href=1>é</a>", "utf-8", "é"},
		{"nothing said, UTF-8 cut in a character", "", "<a href=1>é\xe2\x82", "utf-8", "é\ufffd\ufffd"},
		{"nothing said, not UTF-8", "", "<a href=1>\xe9</a>", "windows-1252", "é"},
		{"header", "text/html; charset=ISO-8859-2", "<a href=1>\xb1</a>", "iso-8859-2", "ą"},
		{"header, quoted", `text/html;boundary=x; CharSet="koi8-r" ; y=z`, "<a href=1>\xc1</a>", "koi8-r", "а"},
		{"header before meta", "text/html; charset=utf-8", "<meta charset=koi8-r><a href=1>é</a>", "utf-8", "é"},
		{"unknown in the header, meta", "text/html; charset=nonesuch", "<meta charset=koi8-r><a href=1>\xc1</a>", "koi8-r", "а"},
		{"meta", "text/html", "<a href=1>\xc1</a><meta charset=koi8-r>", "koi8-r", "а"},
		{"meta that claims windows-1252 for UTF-8", "text/html", "<meta charset=latin1><a href=1>é</a>", "utf-8", "é"},
		{"header that claims windows-1252 for UTF-8", "text/html; charset=latin1", "<a href=1>é</a>", "windows-1252", "Ã©"},
		{"meta cannot say UTF-16", "text/html", "<meta charset=utf-16><a href=1>é</a>", "utf-8", "é"},
		{"mark before header", "text/html; charset=koi8-r", "\xef\xbb\xbf<a href=1>é</a>", "utf-8", "é"},
		{"UTF-16 by mark", "text/html", "\xfe\xff\x00<\x00a\x00 \x00h\x00r\x00e\x00f\x00=\x001\x00>\x20\xac", "utf-16be", "€"},
		{"UTF-16 by header", "text/html; charset=utf-16", "<\x00a\x00 \x00h\x00r\x00e\x00f\x00=\x001\x00>\x00\xac\x20", "utf-16le", "€"},
		{"UTF-16 cut in a character", "text/html; charset=utf-16", "<\x00a\x00 \x00h\x00r\x00e\x00f\x00=\x001\x00>\x00\xac\x20x", "utf-16le", "€\ufffd"},
		{"reference beside other bytes", "text/html; charset=koi8-r", "<a href=1>\xc1&eacute;&amp;</a>", "koi8-r", "аé&"},
		{"unsafe charsets are not read", "text/html; charset=hz-gb-2312", "<a href=1>x\x80</a>", "replacement", "\ufffd"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := HTML([]byte(tt.body), tt.contentType, mustParse(t, selfURL), Options{})
			if name := detect([]byte(tt.body), tt.contentType, false).name; name != tt.want || len(r.Links) != 1 || r.Links[0].Anchor != tt.text {
				t.Errorf("charset %s, %v; want %s, text %q", name, showAll(r.Links), tt.want, tt.text)
			}
		})
	}
}

// TestQueryCharset checks that the path of a link is encoded in UTF-8 and the query in the charset of the document.
func TestQueryCharset(t *testing.T) {
	for _, tt := range []struct{ contentType, href, want string }{
		{"charset=utf-8", "/é?é=é", "/%C3%A9?%C3%A9=%C3%A9"},
		{"charset=windows-1252", "/\xe9?\xe9=\xe9", "/%C3%A9?%E9=%E9"},
		{"charset=windows-1252", "/\xe9?&eacute;&amp;a=&copy=&#x2f;", "/%C3%A9?%E9&a=&copy=/"},
		{"charset=windows-1252", "?a=&amp;b=\xe9#\xe9", "/dir/page.html?a=&b=%E9"},
		// A character that the charset lacks. The tag needs another byte above 0x7F to be converted; either way the
		// reference means the same URL.
		{"charset=windows-1252", "?\xe9=&#26085;", "/dir/page.html?%E9=%26%2326085%3B"},
		{"charset=windows-1252", "?e=&#26085;", "/dir/page.html?e=%26%2326085%3B"},
		{"charset=windows-1252", "?e=&#233;", "/dir/page.html?e=%E9"},
		{"charset=gbk", "/a?\xb0\xa1|", "/a?%B0%A1%7C"},
		{"charset=big5", "/a?\xb3\x5c\x5c", "/a?%B3%5C%5C"},
		{"charset=utf-16le", "<\x00", ""},
	} {
		r := HTML([]byte("<a href='"+tt.href+"'>"), "text/html;"+tt.contentType, mustParse(t, selfURL), Options{})
		if tt.want == "" {
			if len(r.Links) != 0 {
				t.Errorf("%s: %v", tt.contentType, showAll(r.Links))
			}
			continue
		}
		if len(r.Links) != 1 || r.Links[0].URL.RequestURI() != tt.want {
			t.Errorf("%q, %s: %v, want %s", tt.href, tt.contentType, showAll(r.Links), tt.want)
		}
	}
}

// TestConvertedBound checks the bound on converted tags, because conversion is expensive.
func TestConvertedBound(t *testing.T) {
	body := strings.Repeat("<a href=\xe9>", maxConverted+3) + "<a href=1>"
	r := HTML([]byte(body), "text/html; charset=windows-1252", mustParse(t, selfURL), Options{})
	if len(r.Links) != 2 {
		t.Errorf("%d links, want 2", len(r.Links))
	}
}
