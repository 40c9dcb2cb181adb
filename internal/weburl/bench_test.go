package weburl

import (
	"strings"
	"testing"

	whatwg "github.com/nlnwa/whatwg-url/url"
)

// BenchmarkResolve resolves common kinds of links; each operation is one link.
func BenchmarkResolve(b *testing.B) {
	base, err := Parse("https://www.example.com/news/2024/article-12345.html?ref=home")
	if err != nil {
		b.Fatal(err)
	}
	for _, bb := range []struct{ name, ref string }{
		{"relative", "../archive/index.html"},
		{"rooted", "/category/technology/page/2?sort=date&view=list"},
		{"absolute-same-host", "https://www.example.com/news/2024/another-article-with-a-long-slug-67890.html"},
		{"absolute-other-host", "https://cdn.other-site.example.org/assets/article/2024/05/17/picture.html?width=640"},
		{"scheme-relative", "//static.example.net/js/app.html"},
		{"query", "?page=3"},
		{"fragment", "#comments"},
		{"escaped", "/wiki/%E3%83%A1%E3%82%A4%E3%83%B3%e3%83%9a%e3%83%bc%e3%82%b8"},
		{"utf8", "/новости/сегодня"},
		{"refused", "javascript:void(0)"},
		{"credentials", "https://user@www.example.com/path"},
		{"idn", "http://bücher.example/path"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				u, _ := base.Resolve(bb.ref)
				_ = u
			}
		})
	}
}

// BenchmarkOracle resolves a link with the parser that tests compare with.
func BenchmarkOracle(b *testing.B) {
	b.Run("rooted", func(b *testing.B) {
		oracle := whatwg.NewParser()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := oracle.ParseRef("https://www.example.com/news/2024/article-12345.html?ref=home", "/category/technology/page/2?sort=date&view=list"); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkKey(b *testing.B) {
	u, err := Parse("https://www.example.com/news/2024/article-12345.html?sort=date&ref=home")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		_ = u.Key()
	}
}

// BenchmarkHostile resolves the longest and most expensive references.
func BenchmarkHostile(b *testing.B) {
	for _, bb := range []struct{ name, ref string }{
		{"credentials", "http://" + strings.Repeat("@", maxRef-10) + "h"},
		{"slashes", "http://h" + strings.Repeat("/", maxRef-10)},
		{"dots", "http://h" + strings.Repeat("/a/..", maxRef/6)},
		{"bytes", "http://h/" + strings.Repeat("\xff", maxRef-10)},
		{"idn", "http://" + strings.Repeat("äöüéèêñçøåæþ", 21) + "/"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = Parse(bb.ref)
			}
		})
	}
}

// BenchmarkResolver resolves a reference that it remembers.
func BenchmarkResolver(b *testing.B) {
	var r Resolver
	base, err := Parse("https://www.example.org/docs/index.html")
	if err != nil {
		b.Fatal(err)
	}
	r.SetBase(base)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Resolve("/docs/reference/commands.html"); err != nil {
			b.Fatal(err)
		}
	}
}
