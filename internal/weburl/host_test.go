package weburl

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseHost(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want Host
	}{
		{"example.com", "example.com"},
		{"Example.COM.", "example.com"},
		{"example.com:8080", "example.com:8080"},
		{"example.com:0443", "example.com:443"}, // no scheme, no default
		{"example.com:", "example.com"},
		{"Bücher.example", "xn--bcher-kva.example"},
		{"0x7f.1:81", "127.0.0.1:81"},
		{"[::0001]", "[::1]"},
		{"[::1]:81", "[::1]:81"},
		{"", ""},
		{":80", ""},
		{"::1", ""},
		{"example.com:x", ""},
		{"example.com:65536", ""},
		{"http://example.com", ""},
		{"example.com/", ""},
		{"u@example.com", ""},
		{" example.com", ""},
		{"a b", ""},
		{"a..b", ""},
		{"1.2.3.4.5", ""},
		{"[::1", ""},
		{"[::1]x", ""},
		{strings.Repeat("a", 64), ""},
	} {
		got, err := ParseHost(tt.in)
		if got != tt.want || (err != nil) != (tt.want == "") || err != nil && !errors.Is(err, ErrHost) {
			t.Errorf("ParseHost(%q) = %q, %v, want %q", tt.in, got, err, tt.want)
		}
	}
}

func TestHost(t *testing.T) {
	type parts struct {
		Host, Name, Port, Domain string
		IsIP                     bool
	}
	for _, tt := range []struct {
		url  string
		want parts
	}{
		{"http://example.com/", parts{"example.com", "example.com", "", "example.com", false}},
		{"https://a.b.example.com:80/", parts{"a.b.example.com:80", "a.b.example.com", "80", "example.com", false}},
		{"https://a.b.example.com:443/", parts{"a.b.example.com", "a.b.example.com", "", "example.com", false}},
		{"http://www.example.co.uk/", parts{"www.example.co.uk", "www.example.co.uk", "", "example.co.uk", false}},
		{"http://co.uk/", parts{"co.uk", "co.uk", "", "co.uk", false}},
		{"http://x.y.github.io:81/", parts{"x.y.github.io:81", "x.y.github.io", "81", "y.github.io", false}},
		{"http://github.io/", parts{"github.io", "github.io", "", "github.io", false}},
		{"http://a.b.ck/", parts{"a.b.ck", "a.b.ck", "", "a.b.ck", false}},       // *.ck
		{"http://a.www.ck/", parts{"a.www.ck", "a.www.ck", "", "www.ck", false}}, // !www.ck
		{"http://食狮.公司.cn/", parts{"xn--85x722f.xn--55qx5d.cn", "xn--85x722f.xn--55qx5d.cn", "", "xn--85x722f.xn--55qx5d.cn", false}},
		{"http://localhost:8080/", parts{"localhost:8080", "localhost", "8080", "localhost", false}},
		{"http://a.b.nosuchtld/", parts{"a.b.nosuchtld", "a.b.nosuchtld", "", "b.nosuchtld", false}},
		{"http://foo.3com/", parts{"foo.3com", "foo.3com", "", "foo.3com", false}},
		{"http://0x7f.1:81/", parts{"127.0.0.1:81", "127.0.0.1", "81", "127.0.0.1", true}},
		{"http://[2001:DB8::1]/", parts{"[2001:db8::1]", "2001:db8::1", "", "2001:db8::1", true}},
		{"http://[::1]:81/", parts{"[::1]:81", "::1", "81", "::1", true}},
	} {
		h := mustParse(t, tt.url).Host()
		got := parts{string(h), h.Name(), h.Port(), h.RegistrableDomain(), h.IsIP()}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.url, diff)
		}
	}
}
