package weburl

import (
	_ "embed"
	"strings"
	"testing"
)

func TestSURTPrefix(t *testing.T) {
	for _, tt := range []struct{ url, want string }{
		{"http://www.baidu.com/", "http://(com,baidu,www,)/"},
		{"http://www.baidu.com/?q=a/b", "http://(com,baidu,www,)/"},
		{"http://www.baidu.com/news", "http://(com,baidu,www,)/news"},
		{"http://www.baidu.com/news/", "http://(com,baidu,www,)/news"},
		{"http://www.baidu.com/news/2026/1.html?x=/y", "http://(com,baidu,www,)/news"},
		{"http://www.baidu.com/news?x=/y", "http://(com,baidu,www,)/news"},
		{"https://www.baidu.com/news", "https://(com,baidu,www,)/news"},
		{"http://www.baidu.com//news", "http://(com,baidu,www,)/"},
		{"http://[::1]/", "http://([::1])/"},
		{"http://[::1]:81/a/b", "http://([::1]:81)/a"},
		{"http://www.archive.org:8080/movies/movies.php?a=B", "http://(org,archive,www,:8080)/movies"},
		{"http://www.example.com/foo@bar", "http://(com,example,www,)/foo@bar"},
		{"http://localhost/", "http://(localhost,)/"},
		{"http://127.2.34.5/foo", "http://(127.2.34.5)/foo"},
		{"http://127.2.34.5:81/foo", "http://(127.2.34.5:81)/foo"},
		{"http://xn--bcher-kva.example/(,)", "http://(example,xn--bcher-kva,)/(,)"},
	} {
		if got := mustParse(t, tt.url).SURTPrefix(); got != tt.want {
			t.Errorf("prefix of %s: %s, want %s", tt.url, got, tt.want)
		}
	}
	if got := (URL{}).SURTPrefix(); got != "" {
		t.Errorf("prefix of nothing: %s", got)
	}
}

//go:embed testdata/surt.tsv
var surtVectors string

func TestKey(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(surtVectors), "\n")[1:]
	if len(lines) < 70 {
		t.Fatalf("%d vectors", len(lines))
	}
	for _, line := range lines {
		url, want, ok := strings.Cut(line, "\t")
		if !ok {
			t.Fatalf("bad vector %q", line)
		}
		if got := mustParse(t, url).Key(); got != want {
			t.Errorf("key of %s: %s, want %s", url, got, want)
		}
	}
}
