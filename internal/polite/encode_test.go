package polite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/orbweaver/orbweaver/blobschema"
)

func TestEncodeGolden(t *testing.T) {
	body := lines("User-agent: *", "Crawl-delay: 0.3", "Disallow: /a*", "", "Allow: /é$", "Sitemap: https://a.example/", "Disallow:")
	for _, c := range []struct {
		name string
		r    *Robots
		want string
	}{
		{"rules", ParseRobots([]byte(body), "bot"), "\x01\x01\x00\xad\x02\x02\x06\x03/a*\x05\x08/%C3%A9$\x01\x12https://a.example/"},
		{"no rules", ParseRobots(nil, "bot"), "\x01\x01\x00\x00\x00\x00"},
		{"zero delay", ParseRobots([]byte("User-agent: *\nCrawl-delay: 0"), "bot"), "\x01\x01\x00\x01\x00\x00"},
		{"allow", allowAll("404"), "\x01\x02\x03404\x00\x00\x00"},
		{"deny", DenyAll(blobschema.OutcomeTimeout, ""), "\x01\x03\x00\x00\x00\x00"},
		{"deny with a cause", DenyAll(blobschema.OutcomeDNS, ""), "\x01\x03\x00\x00\x00\x00\x0c"},
	} {
		b := c.r.Encode()
		if string(b) != c.want {
			t.Errorf("%s: got %q\nwant %q", c.name, b, c.want)
		}
		back, err := DecodeRobots(b)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		sameRobots(t, c.r, back)
	}
}

func sameRobots(t *testing.T, a, b *Robots) {
	t.Helper()
	if diff := cmp.Diff(a, b, cmp.AllowUnexported(Robots{}, rule{}), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("-a +b:\n%s", diff)
	}
}

func TestDecodeHostile(t *testing.T) {
	good := ParseRobots([]byte("User-agent: *\nCrawl-delay: 3\nDisallow: /a\nSitemap: x"), "bot").Encode()
	for n := range good {
		if _, err := DecodeRobots(good[:n]); err == nil {
			t.Errorf("first %d bytes: no error", n)
		}
	}
	for name, b := range map[string]string{
		"more after the end":   string(good) + "\x00",
		"cause of no denial":   "\x01\x02\x00\x00\x00\x00\x0c",
		"cause that is none":   "\x01\x03\x00\x00\x00\x00\x10",
		"two causes":           "\x01\x03\x00\x00\x00\x00\x0c\x0c",
		"version":              "\x02\x01\x00\x00\x00\x00",
		"kind 0":               "\x01\x00\x00\x00\x00\x00",
		"kind 4":               "\x01\x04\x00\x00\x00\x00",
		"long reason":          "\x01\x02\xc9\x01" + strings.Repeat("x", 201) + "\x00\x00\x00",
		"delay":                "\x01\x01\x00\xc2\xa9\x07\x00\x00",
		"more rules than room": "\x01\x01\x00\x00\xff\xff\x3f\x02\x01/\x00",
		"endless number":       "\x01\x01\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00",
		"line 0":               "\x01\x01\x00\x00\x01\x00\x01/\x00",
		"empty pattern":        "\x01\x01\x00\x00\x01\x02\x00\x00",
		"not in normal form":   "\x01\x01\x00\x00\x01\x02\x04/%41\x00",
		"line too far":         "\x01\x01\x00\x00\x02\xfe\xff\x3e\x01/\xfe\xff\x3e\x01/\x00",
		"too many sitemaps":    "\x01\x01\x00\x00\x00\xe9\x07" + strings.Repeat("\x01x", 1001),
		"long sitemap":         "\x01\x01\x00\x00\x00\x01\xc1\x3e" + strings.Repeat("x", maxSitemapBytes+1),
		"too large":            "\x01\x01" + strings.Repeat("\x00", maxEncodedRobots),
	} {
		if r, err := DecodeRobots([]byte(b)); err == nil {
			t.Errorf("%s: no error, but %+v", name, r)
		}
	}
}

// TestEncodeLargest checks that the largest parsed file can be stored.
func TestEncodeLargest(t *testing.T) {
	for name, line := range map[string]string{
		"many rules":   "Allow:x\n",
		"escapes":      "Allow:" + strings.Repeat("\xff", 2000) + "\n",
		"one rule":     "Allow:" + strings.Repeat("\xff", maxRobotsBytes-len("User-agent:*\nAllow:")),
		"sitemaps":     "Sitemap:" + strings.Repeat("x", 500) + "\n",
		"wild":         "Allow:*" + "\n",
		"short colons": "allow x\n",
	} {
		body := "User-agent:*\n" + strings.Repeat(line, maxRobotsBytes/len(line))
		r := ParseRobots([]byte(body), "bot")
		b := r.Encode()
		back, err := DecodeRobots(b)
		if err != nil {
			t.Fatalf("%s: %d bytes: %v", name, len(b), err)
		}
		if len(back.rules) != len(r.rules) || len(r.rules)+len(r.sitemaps) == 0 {
			t.Errorf("%s: %d rules, then %d", name, len(r.rules), len(back.rules))
		}
	}
}

// TestEncodeTypical pins the stored size of a typical file.
func TestEncodeTypical(t *testing.T) {
	b := ParseRobots([]byte(typicalRobots), "bot").Encode()
	if len(b) > 600 {
		t.Errorf("%d bytes", len(b))
	}
}

func FuzzParseRobots(f *testing.F) {
	f.Add([]byte(typicalRobots), "/wp-admin/x")
	f.Add([]byte("User-agent: *\rDisallow: /*a*$\r\nAllow /a%41$\nCrawl-delay: 1e3\nSitemap: x"), "/a*$")
	f.Add([]byte("\xEF\xBBUser-agent bot\nallow:$\ndisallow:**\n"), "?x#y")
	f.Fuzz(func(t *testing.T, body []byte, uri string) {
		r := ParseRobots(body, "bot")
		back, err := DecodeRobots(r.Encode())
		if err != nil {
			t.Fatal(err)
		}
		sameRobots(t, r, back)
		normal := normalURI(uri)
		ok, rule := r.Allowed(uri)
		if len(r.rules) < 50 && len(normal) < 1000 && normal != "/robots.txt" {
			want := Rule{Allow: true}
			if i := newNaive(r.rules).find(normal); i >= 0 {
				want = r.rules[i].public()
			}
			if rule != want || ok != want.Allow {
				t.Fatalf("%q: got %v %v, want %v", uri, ok, rule, want)
			}
		}
		if d, _ := r.CrawlDelay(); d < 0 || d > MaxCrawlDelay {
			t.Fatalf("delay %v", d)
		}
		for i := range len(rule.Text) {
			if c := rule.Text[i]; c < ' ' || c > '~' {
				t.Fatalf("text %q", rule.Text)
			}
		}
	})
}

func FuzzDecodeRobots(f *testing.F) {
	f.Add(ParseRobots([]byte(typicalRobots), "bot").Encode(), "/x")
	f.Add(allowAll("404").Encode(), "/")
	f.Add([]byte("\x01\x01\x00\xad\x02\x02\x06\x03/a*\x05\x08/%C3%A9$\x01\x12https://a.example/"), "/a")
	f.Fuzz(func(t *testing.T, b []byte, uri string) {
		r, err := DecodeRobots(b)
		if err != nil {
			return
		}
		r.Allowed(uri)
		if d, _ := r.CrawlDelay(); d < 0 || d > MaxCrawlDelay {
			t.Fatalf("delay %v", d)
		}
		back, err := DecodeRobots(r.Encode())
		if err != nil {
			t.Fatal(err)
		}
		sameRobots(t, r, back)
	})
}

const typicalRobots = `# robots
User-agent: *
Disallow: /wp-admin/
Allow: /wp-admin/admin-ajax.php
Disallow: /*?replytocom=
Disallow: /cart/
Disallow: /checkout/
Disallow: /my-account/*
Disallow: /search
Disallow: /*?*orderby=
Disallow: /tag/*/feed/$
Disallow: /cgi-bin/
Disallow: /trackback/
Disallow: /xmlrpc.php
Crawl-delay: 2

User-agent: GPTBot
User-agent: AhrefsBot
Disallow: /

Sitemap: https://www.example.org/sitemap_index.xml
Sitemap: https://www.example.org/news-sitemap.xml
`

// manyRules returns the benchmarks' worst file: 500 KiB of rules.
func manyRules(format string) []byte {
	var b strings.Builder
	b.WriteString("User-agent: *\n")
	for n := 0; b.Len() < maxRobotsBytes; n++ {
		fmt.Fprintf(&b, format, n)
	}
	return []byte(b.String())
}

func BenchmarkParse(b *testing.B) {
	for name, body := range map[string][]byte{
		"typical": []byte(typicalRobots),
		"prefix":  manyRules("Disallow: /section/%d/\n"),
		"wild":    manyRules("Disallow: /*a%d*b\n"),
		"short":   manyRules("Allow:%d\n"),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				ParseRobots(body, "bot")
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	enc := ParseRobots([]byte(typicalRobots), "bot").Encode()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeRobots(enc); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(enc)), "bytes")
}

func BenchmarkAllowed(b *testing.B) {
	for _, c := range []struct{ name, body, uri string }{
		{"typical", typicalRobots, "/2024/05/some-article-with-a-long-name/?page=2"},
		{"escaped", typicalRobots, "/2024/05/caf%c3%a9/some-article-with-a-long-name/?page=2"},
		{"prefix", string(manyRules("Disallow: /section/%d/\n")), "/section/17000/some-article"},
		{"deep", deepRules(), "/" + strings.Repeat("a", 2000)},
		{"wild", string(manyRules("Disallow: /*a%d*b\n")), "/section/17000/some-article"},
		{"wild long", string(manyRules("Disallow: /*a%d*b\n")), "/" + strings.Repeat("a", 2000)},
		{"wild worst", string(manyRules("Disallow:*a*a%d\n")), "/" + strings.Repeat("a1", 1000)},
	} {
		r := ParseRobots([]byte(c.body), "bot")
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.Allowed(c.uri)
			}
			b.ReportMetric(float64(len(r.rules)), "rules")
		})
	}
}

func deepRules() string {
	var b strings.Builder
	b.WriteString("User-agent: *\n")
	for n := 1; b.Len() < maxRobotsBytes; n++ {
		b.WriteString("Disallow: /" + strings.Repeat("a", n) + "$\n")
	}
	return b.String()
}
