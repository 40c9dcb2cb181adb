package extract

import "testing"

func TestMedia(t *testing.T) {
	for _, c := range []struct{ mime, body, want string }{
		{"text/html; charset=utf-8", "<p>", "text/html"},
		{"Text/Plain", "<html>", "text/plain"},
		{"", "<html>", "text/html"},
		{"", "<?xml version='1.0'?><html>", "application/xhtml+xml"},
		{"text/html", "<urlset><url/></urlset>", "application/x-sitemap+xml"},
		{"text/xml", "<!-- a --><sitemapindex/>", "application/x-sitemap+xml"},
		{"application/rss+xml", "<rss/>", "application/xml"},
		{"text/html", "<feed/>", "application/xml"},
		{"application/octet-stream", "words", "application/octet-stream"},
		{"", "words", ""},
	} {
		if got := Media(c.mime, []byte(c.body)); got != c.want {
			t.Errorf("%q %s: %q, want %q", c.mime, c.body, got, c.want)
		}
	}
}

func TestUTF8(t *testing.T) {
	for _, c := range []struct {
		mime, body string
		xml        bool
		want       string
	}{
		{"", "words", false, "words"},
		{"text/html; charset=iso-8859-1", "caf\xe9", false, "café"},
		{"", "\xef\xbb\xbfcaf\xc3\xa9", false, "café"},
		{"", "\xff\xfea\x00", false, "a"},
		{"text/html; charset=utf-8", "a\xffb", false, "a\ufffdb"},
		{"", "<?xml version='1.0' encoding='windows-1251'?>\xc0", true, "<?xml version='1.0' encoding='windows-1251'?>А"},
		{"", "<meta charset=windows-1251>\xc0", false, "<meta charset=windows-1251>А"},
	} {
		if got := string(UTF8([]byte(c.body), c.mime, c.xml)); got != c.want {
			t.Errorf("%q %q: %q, want %q", c.mime, c.body, got, c.want)
		}
	}
}
