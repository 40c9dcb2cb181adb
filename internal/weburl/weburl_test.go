package weburl

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"unsafe"
)

func mustParse(t testing.TB, raw string) URL {
	t.Helper()
	u, err := Parse(raw)
	if err != nil {
		t.Fatalf("Parse(%q): %v", raw, err)
	}
	return u
}

// TestParse parses absolute URLs. want is the canonical form, or the error.
func TestParse(t *testing.T) {
	for _, tt := range []struct{ raw, want string }{
		// Fixed points.
		{"http://example.com/", "http://example.com/"},
		{"https://example.com/a/b.html?c=d&e", "https://example.com/a/b.html?c=d&e"},
		{"http://example.com:8080/", "http://example.com:8080/"},
		{"http://[2001:db8::1]:8080/x", "http://[2001:db8::1]:8080/x"},

		// Characters around the URL, and those that are removed within.
		{"  http://example.com/a  ", "http://example.com/a"},
		{"\x00\x1f http://example.com/a\x0c\x00", "http://example.com/a"},
		{"ht\ntp://exa\tmple.com/a\r\nb?c\td", "http://example.com/ab?cd"},
		{"http://example.com/a \t", "http://example.com/a"},
		{"http://example.com/a\u00a0", "http://example.com/a%C2%A0"}, // not a C0 control

		// Schemes.
		{"HTTP://example.com/", "http://example.com/"},
		{"hTtPs://example.com/", "https://example.com/"},
		{"http:example.com/", "http://example.com/"},
		{"http:/example.com/", "http://example.com/"},
		{"https:///example.com/", "https://example.com/"},
		{"http:////example.com//", "http://example.com//"},
		{`http:\\example.com\a\b`, "http://example.com/a/b"},
		{`http:/\/example.com`, "http://example.com/"},
		{"javascript:void(0)", "ErrScheme"},
		{"mailto:a@example.com", "ErrScheme"},
		{"data:text/html,http://example.com/", "ErrScheme"},
		{"ftp://example.com/", "ErrScheme"},
		{"ws://example.com/", "ErrScheme"},
		{"file:///etc/passwd", "ErrScheme"},
		{"blob:https://example.com/x", "ErrScheme"},
		{"about:blank", "ErrScheme"},
		{"view-source:http://example.com/", "ErrScheme"},
		{"example.com:80/", "ErrScheme"},
		{"tel:1", "ErrScheme"},
		{"httpss://example.com/", "ErrScheme"},
		{"http+x://example.com/", "ErrScheme"},
		{"data:," + strings.Repeat("x", 1<<20), "ErrScheme"},
		{"", "ErrSyntax"},
		{"   ", "ErrSyntax"},
		{"example.com/", "ErrSyntax"},
		{"/a", "ErrSyntax"},
		{"//example.com/", "ErrSyntax"},
		{"?a", "ErrSyntax"},
		{"#a", "ErrSyntax"},
		{":http://example.com/", "ErrSyntax"},
		{"1http://example.com/", "ErrSyntax"},
		{"hſtp://example.com/", "ErrSyntax"}, // U+017F folds to s

		// Credentials go.
		{"http://user:pass@example.com/", "http://example.com/"},
		{"http://user@example.com:81/", "http://example.com:81/"},
		{"http://@example.com/", "http://example.com/"},
		{"http://:@example.com/", "http://example.com/"},
		{"http://a@b@example.com/", "http://example.com/"},
		{"http://u:p:q@@example.com/", "http://example.com/"},
		{"http://example.com/@x", "http://example.com/@x"},
		{"http://example.com?u@x", "http://example.com/?u@x"},
		{"http://example.com\\@evil.example/", "http://example.com/@evil.example/"},
		{"http://user@/www.example.com", "ErrHost"},
		{"http://user:pass@", "ErrHost"},

		// Ports.
		{"http://example.com:80/", "http://example.com/"},
		{"https://example.com:443/", "https://example.com/"},
		{"http://example.com:443/", "http://example.com:443/"},
		{"https://example.com:80/", "https://example.com:80/"},
		{"http://example.com:/", "http://example.com/"},
		{"http://example.com:0080/", "http://example.com/"},
		{"http://example.com:00000000000000008080", "http://example.com:8080/"},
		{"http://example.com:0/", "http://example.com:0/"},
		{"http://example.com:65535/", "http://example.com:65535/"},
		{"http://example.com:65536/", "ErrHost"},
		{"http://example.com:-80/", "ErrHost"},
		{"http://example.com:+80/", "ErrHost"},
		{"http://example.com:8a/", "ErrHost"},
		{"http://example.com:80:80/", "ErrHost"},
		{"http://example.com: 80/", "ErrHost"},
		{"http://:80/", "ErrHost"},
		{"http://[::1]:80/", "http://[::1]/"},
		{"http://[::1]x:80/", "ErrHost"},

		// Names.
		{"http://", "ErrHost"},
		{"http:///", "ErrHost"},
		{"http://?a", "ErrHost"},
		{"http://#a", "ErrHost"},
		{"http://EXAMPLE.Com", "http://example.com/"},
		{"http://AZaz.09-_/", "http://azaz.09-_/"},
		{"http://example.com./", "http://example.com/"},
		{"http://./", "ErrHost"},
		{"http://example.com../", "ErrHost"},
		{"http://a..b/", "ErrHost"},
		{"http://.example.com/", "ErrHost"},
		{"http://localhost", "http://localhost/"},
		{"http://a_b.example.com/", "http://a_b.example.com/"},
		{"http://-x-.example.com/", "http://-x-.example.com/"},
		{"http://r3---sn-apo3qvuoxuxbt-j5pe.example/", "http://r3---sn-apo3qvuoxuxbt-j5pe.example/"},
		{"http://ex%41mple.com/", "http://example.com/"},
		{"http://ex%2541mple.com/", "ErrHost"},
		{"http://ex%4mple.com/", "ErrHost"},
		{"http://example%2Ecom/", "http://example.com/"},
		{"http://a%2Fb/", "ErrHost"},
		{"http://a%00b/", "ErrHost"},
		{"http://a b/", "ErrHost"},
		{"http://a%20b/", "ErrHost"},
		{"http://a<b/", "ErrHost"},
		{"http://a|b/", "ErrHost"},
		{"http://a^b/", "ErrHost"},
		{"http://a,b/", "ErrHost"}, // WHATWG allows it; DNS and SURT do not
		{"http://a(b)/", "ErrHost"},
		{"http://a'b\"`{}/", "ErrHost"},
		{"http://a*b/", "ErrHost"},
		{"http://" + strings.Repeat("a", 63) + ".example/", "http://" + strings.Repeat("a", 63) + ".example/"},
		{"http://" + strings.Repeat("a", 64) + ".example/", "ErrHost"},
		{"http://" + strings.Repeat("a.", 126) + "b/", "http://" + strings.Repeat("a.", 126) + "b/"}, // 253 bytes
		{"http://" + strings.Repeat("a.", 126) + "b./", "http://" + strings.Repeat("a.", 126) + "b/"},
		{"http://" + strings.Repeat("a.", 126) + "bc/", "ErrHost"},

		// International names.
		{"http://bücher.example/", "http://xn--bcher-kva.example/"},
		{"http://BÜCHER.example/", "http://xn--bcher-kva.example/"},
		{"http://bu\u0308cher.example/", "http://xn--bcher-kva.example/"},
		{"http://b%C3%BCcher.example/", "http://xn--bcher-kva.example/"},
		{"http://XN--BCHER-KVA.example/", "http://xn--bcher-kva.example/"},
		{"http://faß.example/", "http://xn--fa-hia.example/"}, // not "fass"
		{"http://βόλος.com/", "http://xn--nxasmm1c.com/"},     // final sigma stays
		{"http://نامه\u200cای.com/", "http://xn--mgba3gch31f060k.com/"},
		{"http://a\u200db.example/", "ErrHost"}, // a joiner that joins nothing
		{"http://日本語。ｊｐ/", "http://xn--wgv71a119e.jp/"},
		{"http://ＧＯ．ｃｏｍ/", "http://go.com/"},
		{"http://ex\u00adample.com/", "http://example.com/"}, // soft hyphen
		{"http://\u00ad/", "ErrHost"},
		{"http://☃.net/", "http://xn--n3h.net/"},
		{"http://ä_b.example/", "http://xn--_b-uia.example/"},
		{"http://xn--/", "ErrHost"},
		{"http://xn--a/", "ErrHost"},
		{"http://www.xn--a/", "ErrHost"},
		{"http://ℵk.example/", "ErrHost"},       // becomes a right-to-left letter, which makes no valid name
		{"http://xn--example-.com/", "ErrHost"}, // decodes to plain ASCII
		{"http://\ufffd.com/", "ErrHost"},
		{"http://\xff.com/", "ErrHost"},
		{"http://%ff.com/", "ErrHost"},
		{"http://a\ufdd0b/", "ErrHost"},
		{"http://" + strings.Repeat("é", 300) + "/", "ErrHost"},

		// IPv4.
		{"http://127.0.0.1/", "http://127.0.0.1/"},
		{"http://127.0.0.1./", "http://127.0.0.1/"},
		{"http://0x7f.1/", "http://127.0.0.1/"},
		{"http://0X7F.0x000001/", "http://127.0.0.1/"},
		{"http://0177.0.0.01/", "http://127.0.0.1/"},
		{"http://2130706433/", "http://127.0.0.1/"},
		{"http://1.2.3/", "http://1.2.0.3/"},
		{"http://256/", "http://0.0.1.0/"},
		{"http://0x/", "http://0.0.0.0/"},
		{"http://0/", "http://0.0.0.0/"},
		{"http://192.0x00A80001", "http://192.168.0.1/"},
		{"http://%30%78%63%30%2e%30%32%35%30.01", "http://192.168.0.1/"},
		{"http://０Ｘｃ０．０２５０．０１", "http://192.168.0.1/"},
		{"http://4294967295/", "http://255.255.255.255/"},
		{"http://4294967296/", "ErrHost"},
		{"http://99999999999999999999999/", "ErrHost"},
		{"http://1.2.3.256/", "ErrHost"},
		{"http://256.1.1.1/", "ErrHost"},
		{"http://1.2.65536/", "ErrHost"},
		{"http://1.2.3.4.5/", "ErrHost"},
		{"http://1.2.3.4.0/", "ErrHost"},
		{"http://1.2.3.4.5.6/", "ErrHost"},
		{"http://1.2.3.08/", "ErrHost"},
		{"http://foo.0x4/", "ErrHost"},
		{"http://foo.09/", "ErrHost"},
		{"http://foo.2.3/", "ErrHost"},
		{"http://-1/", "http://-1/"}, // a name: numbers have no sign
		{"http://1.-2.3.4/", "ErrHost"},
		{"http://0x7f.1.example/", "http://0x7f.1.example/"},
		{"http://1.2.3.4a/", "http://1.2.3.4a/"},
		{"http://0xg/", "http://0xg/"},

		// IPv6.
		{"http://[::]/", "http://[::]/"},
		{"http://[0:0:0:0:0:0:0:1]/", "http://[::1]/"},
		{"http://[2001:DB8:0:0:1:0:0:1]/", "http://[2001:db8::1:0:0:1]/"},
		{"http://[1:0:0:2:0:0:0:3]/", "http://[1:0:0:2::3]/"},
		{"http://[1:0:2:3:4:5:6:7]/", "http://[1:0:2:3:4:5:6:7]/"},
		{"http://[1:2:3:4:5:6:7::]/", "http://[1:2:3:4:5:6:7:0]/"},
		{"http://[::ffff:1.2.3.4]/", "http://[::ffff:102:304]/"},
		{"http://[::1.2.3.4]/", "http://[::102:304]/"},
		{"http://[64:ff9b::1.2.3.4]/", "http://[64:ff9b::102:304]/"},
		{"http://[::1%25eth0]/", "ErrHost"},
		{"http://[::1%eth0]/", "ErrHost"},
		{"http://[::1/", "ErrHost"},
		{"http://[1:2:3:4:5:6:7:8:80/", "ErrHost"},
		{"http://::1]/", "ErrHost"},
		{"http://[]/", "ErrHost"},
		{"http://[[::1]]/", "ErrHost"},
		{"http://[1.2.3.4]/", "ErrHost"},
		{"http://[1:2:3]/", "ErrHost"},
		{"http://[1::2::3]/", "ErrHost"},
		{"http://[::12345]/", "ErrHost"},
		{"http://[::1.2.3.04]/", "ErrHost"},
		{"http://[v1.x]/", "ErrHost"},

		// Paths.
		{"http://example.com", "http://example.com/"},
		{"http://example.com?a", "http://example.com/?a"},
		{"http://example.com/.", "http://example.com/"},
		{"http://example.com/./a/.", "http://example.com/a/"},
		{"http://example.com/a/..", "http://example.com/"},
		{"http://example.com/a/../b", "http://example.com/b"},
		{"http://example.com/../../a", "http://example.com/a"},
		{"http://example.com/a/b/../../..//c", "http://example.com//c"},
		{"http://example.com/a//../b", "http://example.com/a/b"},
		{"http://example.com/..//", "http://example.com//"},
		{"http://example.com//a//", "http://example.com//a//"},
		{"http://example.com/a/%2e", "http://example.com/a/"},
		{"http://example.com/a/%2E%2e/b", "http://example.com/b"},
		{"http://example.com/a/.%2e/b", "http://example.com/b"},
		{"http://example.com/a/%2e./b", "http://example.com/b"},
		{"http://example.com/a/.../b", "http://example.com/a/.../b"},
		{"http://example.com/a/%2e%2e%2e", "http://example.com/a/..."},
		{"http://example.com/a/..b", "http://example.com/a/..b"},
		{"http://example.com/a/.. /b", "http://example.com/a/..%20/b"},
		{"http://example.com/%252e%252e/", "http://example.com/%252e%252e/"},
		{`http://example.com/a\..\b`, "http://example.com/b"},
		{`http://example.com/a%5C..%5Cb`, "http://example.com/a%5C..%5Cb"},
		{"http://example.com/a;p=1,2/b:c@d", "http://example.com/a;p=1,2/b:c@d"},
		{"http://example.com/%7Efoo/%41%2d%5f", "http://example.com/~foo/A-_"},
		{"http://example.com/%2f%3a%3F", "http://example.com/%2F%3A%3F"},
		{"http://example.com/a b", "http://example.com/a%20b"},
		{"http://example.com/a+b", "http://example.com/a+b"},
		{"http://example.com/\"<>`{}|^[]'", "http://example.com/%22%3C%3E%60%7B%7D%7C%5E%5B%5D'"},
		{"http://example.com/%", "http://example.com/%25"},
		{"http://example.com/%zz%4", "http://example.com/%25zz%254"},
		{"http://example.com/%@1%1@", "http://example.com/%25@1%251@"},
		{"http://example.com/%%34%31", "http://example.com/%2541"},
		{"http://example.com/%é", "http://example.com/%25%C3%A9"},
		{"http://example.com/é/日本", "http://example.com/%C3%A9/%E6%97%A5%E6%9C%AC"},
		{"http://example.com/%c3%a9", "http://example.com/%C3%A9"},
		{"http://example.com/\xe9\xff", "http://example.com/%E9%FF"},
		{"http://example.com/\ufffd", "http://example.com/%EF%BF%BD"},
		{"http://example.com/\x01\x7f", "http://example.com/%01%7F"},
		{"http://example.com/\x00a", "http://example.com/%00a"},

		// Queries.
		{"http://example.com/?", "http://example.com/"},
		{"http://example.com/?#f", "http://example.com/"},
		{"http://example.com/??", "http://example.com/??"},
		{"http://example.com/?a/../b", "http://example.com/?a/../b"},
		{`http://example.com/?a\b`, "http://example.com/?a%5Cb"},
		{"http://example.com/?a b+c", "http://example.com/?a%20b+c"},
		{"http://example.com/?a[]='\"|^{}`<>", "http://example.com/?a%5B%5D=%27%22%7C%5E%7B%7D%60%3C%3E"},
		{"http://example.com/?q=é", "http://example.com/?q=%C3%A9"},
		{"http://example.com/?q=\xe9", "http://example.com/?q=%E9"},
		{"http://example.com/?q=%c3%a9%41%2f%", "http://example.com/?q=%C3%A9A%2F%25"},
		{"http://example.com/?b&a=1&&=", "http://example.com/?b&a=1&&="},

		// Fragments.
		{"http://example.com/#", "http://example.com/"},
		{"http://example.com/a#b?c/../d", "http://example.com/a"},
		{"http://example.com#a@b", "http://example.com/"},
		{"http://example.com/a #b", "http://example.com/a%20"},
		{"http://example.com/#:~:text=" + strings.Repeat("x", 10000), "http://example.com/"},

		// Lengths.
		{"http://e.de/" + strings.Repeat("a", MaxLen-12), "http://e.de/" + strings.Repeat("a", MaxLen-12)},
		{"http://e.de/" + strings.Repeat("a", MaxLen-11), "ErrTooLong"},
		{"http://e.de/" + strings.Repeat("é", MaxLen/6), "ErrTooLong"},
		{"http://e.de/?" + strings.Repeat("%61", maxRef/3-12), "http://e.de/?" + strings.Repeat("a", maxRef/3-12)},
		{"http://e.de/" + strings.Repeat("a/../", maxRef/5), "ErrTooLong"},
		{"http://e.de/" + strings.Repeat("\t", maxRef) + "a", "ErrTooLong"},
	} {
		checkResolve(t, URL{}, tt.raw, tt.want)
	}
}

func TestResolve(t *testing.T) {
	for _, tt := range []struct{ base, ref, want string }{
		{"", "", "http://example.org/foo/bar?q"},
		{"", "  ", "http://example.org/foo/bar?q"},
		{"", "#f", "http://example.org/foo/bar?q"},
		{"", "?", "http://example.org/foo/bar"},
		{"", "?a", "http://example.org/foo/bar?a"},
		{"", "?a/../b#c", "http://example.org/foo/bar?a/../b"},
		{"", "a", "http://example.org/foo/a"},
		{"", "a?b", "http://example.org/foo/a?b"},
		{"", "./a", "http://example.org/foo/a"},
		{"", ".", "http://example.org/foo/"},
		{"", "./", "http://example.org/foo/"},
		{"", "..", "http://example.org/"},
		{"", "../", "http://example.org/"},
		{"", "../a", "http://example.org/a"},
		{"", "../../../a", "http://example.org/a"},
		{"", "..//a", "http://example.org//a"},
		{"", "%2e%2E/a", "http://example.org/a"},
		{"", "a/./b/../c", "http://example.org/foo/a/c"},
		{"", "/", "http://example.org/"},
		{"", "/a", "http://example.org/a"},
		{"", "/a//b", "http://example.org/a//b"},
		{"", "/.//a", "http://example.org//a"},
		{"", "//other.example/x", "http://other.example/x"},
		{"", "//other.example", "http://other.example/"},
		{"", "///other.example/x", "http://other.example/x"},
		{"", "////other.example/x", "http://other.example/x"},
		{"", "//Other.example:080/x", "http://other.example/x"},
		{"", "//other.example:443/x", "http://other.example:443/x"},
		{"", "//u@other.example/x", "http://other.example/x"},
		{"", "//", "ErrHost"},
		{"", "//?a", "ErrHost"},
		{"", "//a b", "ErrHost"},
		{"", `\a`, "http://example.org/a"},
		{"", `\\other.example\x`, "http://other.example/x"},
		{"", `/\other.example/x`, "http://other.example/x"},
		{"", `..\a`, "http://example.org/a"},
		{"", "http:foo", "http://example.org/foo/foo"},
		{"", "http:/foo", "http://example.org/foo"},
		{"", "http://foo", "http://foo/"},
		{"", `http:\\foo`, "http://foo/"},
		{"", "http:?a", "http://example.org/foo/bar?a"},
		{"", "http:", "http://example.org/foo/bar?q"},
		{"", "http:#f", "http://example.org/foo/bar?q"},
		{"", "https:foo", "https://foo/"},
		{"", "https:/foo", "https://foo/"},
		{"", "https:", "ErrHost"},
		{"", "HTTP:foo", "http://example.org/foo/foo"},
		{"", "javascript:alert(1)", "ErrScheme"},
		{"", " java\nscript:alert(1)", "ErrScheme"},
		{"", "mailto:x@y", "ErrScheme"},
		{"", "c:/windows", "ErrScheme"},
		{"", "a:b", "ErrScheme"},
		{"", "z0+.-9:b", "ErrScheme"},
		{"", "./a:b", "http://example.org/foo/a:b"},
		{"", ":a", "http://example.org/foo/:a"},
		{"", "1:a", "http://example.org/foo/1:a"},
		{"", "a b:c", "http://example.org/foo/a%20b:c"},
		{"", "é:c", "http://example.org/foo/%C3%A9:c"},
		{"", "@a", "http://example.org/foo/@a"},
		{"", "::", "http://example.org/foo/::"},
		{"", "\t?\n", "http://example.org/foo/bar"},
		{"", "a\n\tb", "http://example.org/foo/ab"},
		{"", "http://example.org", "http://example.org/"},
		{"", strings.Repeat("../", 1000) + "a", "http://example.org/a"},
		{"", strings.Repeat("a", MaxLen), "ErrTooLong"},
		{"", "javascript:" + strings.Repeat("a", 5000), "ErrScheme"},
		{"http://h/", "..", "http://h/"},
		{"http://h//a//b", "../c", "http://h//a/c"},
		{"http://h/a/b/", "../..", "http://h/"},
		{"http://h/a/b/", "", "http://h/a/b/"},
		{"http://h:81/a", "/b", "http://h:81/b"},
		{"http://h:443/a", "https://h:443/b", "https://h/b"}, // not the base's authority
		{"https://h:80/a", "http://h:80/b", "http://h/b"},
		{"https://h/a", "//h:443/b", "https://h/b"},
		{"https://h/a", "//i:80/b", "https://i:80/b"},
		{"https://h/a", "http:b", "http://b/"},
		{"http://[::1]:81/a", "//[::1]:81/b", "http://[::1]:81/b"},
		{"http://1.2.3.4/a", "http://1.2.3.4/b", "http://1.2.3.4/b"},
		{"http://xn--bcher-kva.example/", "//bücher.example/x", "http://xn--bcher-kva.example/x"},
		{"http://h/a?b?c", "d", "http://h/d"},
		{"http://h/a?b/c", "d", "http://h/d"},
	} {
		base := mustParse(t, "http://example.org/foo/bar?q")
		if tt.base != "" {
			base = mustParse(t, tt.base)
		}
		checkResolve(t, base, tt.ref, tt.want)
	}
}

func checkResolve(t *testing.T, base URL, ref, want string) {
	t.Helper()
	sentinels := map[string]error{
		"ErrScheme": ErrScheme, "ErrHost": ErrHost, "ErrTooLong": ErrTooLong, "ErrSyntax": ErrSyntax,
	}
	u, err := base.Resolve(ref)
	if wantErr := sentinels[want]; wantErr != nil {
		if !errors.Is(err, wantErr) || !u.IsZero() {
			t.Errorf("(%q).Resolve(%.80q) = %q, %v, want %s", base, ref, u, err, want)
		}
		return
	}
	if err != nil || u.String() != want {
		t.Errorf("(%q).Resolve(%.80q) = %q, %v, want %q", base, ref, u, err, want)
		return
	}
	checkURL(t, u)
}

// checkURL checks the properties of every URL: I1, RFC 3986, and that the parts agree with the text.
func checkURL(t *testing.T, u URL) {
	t.Helper()
	s := u.String()
	if again, err := Parse(s); err != nil || again != u {
		t.Errorf("I1: Parse(%q) = %q, %v", s, again, err)
	}
	if again, err := u.Resolve(""); err != nil || again != u {
		t.Errorf("I1: (%q).Resolve(%q) = %q, %v", s, "", again, err)
	}
	if len(s) > MaxLen {
		t.Errorf("%d bytes: %q", len(s), s)
	}
	if got := u.Scheme() + "://" + string(u.Host()) + u.RequestURI(); got != s {
		t.Errorf("parts of %q make %q", s, got)
	}
	if !rfc3986.MatchString(s) {
		t.Errorf("not RFC 3986: %q", s)
	}
	path, _, _ := strings.Cut(u.RequestURI(), "?")
	if u.Path() != path || !strings.HasPrefix(path, "/") {
		t.Errorf("path %q of %q", u.Path(), s)
	}
	if h, err := ParseHost(string(u.Host())); err != nil || h != u.Host() {
		t.Errorf("ParseHost(%q) = %q, %v", u.Host(), h, err)
	}
}

func TestZero(t *testing.T) {
	var u URL
	for name, got := range map[string]string{
		"String": u.String(), "Scheme": u.Scheme(), "Host": string(u.Host()), "Path": u.Path(),
		"RequestURI": u.RequestURI(), "SURTPrefix": u.SURTPrefix(), "Key": u.Key(),
		"Host.Name": u.Host().Name(), "Host.Port": u.Host().Port(),
		"Host.RegistrableDomain": u.Host().RegistrableDomain(),
	} {
		if got != "" {
			t.Errorf("%s of the zero URL: %q", name, got)
		}
	}
	if !u.IsZero() || u.Host().IsIP() {
		t.Error("the zero URL is something")
	}
	if mustParse(t, "http://h/").IsZero() {
		t.Error("http://h/ is zero")
	}
	if size := unsafe.Sizeof(u); size > 24 {
		t.Errorf("a URL is %d bytes", size)
	}
}

// TestOwnMemory checks that a URL neither changes with the memory of its page nor keeps that memory alive.
func TestOwnMemory(t *testing.T) {
	for _, ref := range []string{"http://example.com/", "http://example.org/foo", "/a", "?b", "xn--bcher-kva"} {
		page := []byte(ref)
		u, err := mustParse(t, "http://example.org/").Resolve(unsafe.String(&page[0], len(page)))
		if err != nil {
			t.Fatal(err)
		}
		before := strings.Clone(u.String())
		for i := range page {
			page[i] = 'X'
		}
		if u.String() != before {
			t.Errorf("%q changed to %q with its source", before, u)
		}
	}
}

// TestNetURL shows why this package exists: the standard library refuses references that browsers follow, or
// distinguishes URLs of one resource.
func TestNetURL(t *testing.T) {
	const base = "http://example.org/foo/bar"
	for _, tt := range []struct{ ref, want, std string }{
		{`\a\b`, "http://example.org/a/b", "http://example.org/foo/%5Ca%5Cb"},
		{" /a ", "http://example.org/a", "http://example.org/foo/%20/a%20"},
		{"/a\nb", "http://example.org/ab", "error"},
		{"/100%", "http://example.org/100%25", "error"},
		{"1:a", "http://example.org/foo/1:a", "error"},
		{"http:foo", "http://example.org/foo/foo", "http:foo"},
		{"HTTP://EXAMPLE.org:80/%7ea/%2e%2e", "http://example.org/", "http://EXAMPLE.org:80/%7ea/%2e%2e"},
		{"http://bücher.example/", "http://xn--bcher-kva.example/", "http://b%C3%BCcher.example/"},
		{"http://0x7f.1/", "http://127.0.0.1/", "http://0x7f.1/"},
		{"///other.example/", "http://other.example/", "http://example.org///other.example/"},
		{"/a//../b", "http://example.org/a/b", "http://example.org/a/b"}, // here they agree
	} {
		checkResolve(t, mustParse(t, base), tt.ref, tt.want)
		std := "error"
		b, err := url.Parse(base)
		if err != nil {
			t.Fatal(err)
		}
		if u, err := b.Parse(tt.ref); err == nil {
			std = u.String()
		}
		if std != tt.std {
			t.Errorf("net/url resolves %q to %q, no longer to %q", tt.ref, std, tt.std)
		}
	}
}

func TestAllocs(t *testing.T) {
	base := mustParse(t, "https://www.example.com/news/article.html?ref=home")
	for _, ref := range []string{
		"../a/b.html", "/a/b?c=d", "?page=2", "#top", "//cdn.example.net:8080/x", "http://Other.example/a%2fb",
		"https://www.example.com/news/", "/новости/", "https://u@www.example.com/", `\a`,
	} {
		limit := 1.0
		if strings.Contains(ref, `\`) {
			limit = 2 // the backslashes are replaced first
		}
		got := testing.AllocsPerRun(100, func() {
			if _, err := base.Resolve(ref); err != nil {
				t.Fatal(err)
			}
		})
		if got > limit {
			t.Errorf("Resolve(%q): %v allocations", ref, got)
		}
	}
	if got := testing.AllocsPerRun(100, func() { _, _ = base.Resolve("javascript:void(0)") }); got > 0 {
		t.Errorf("refusing a scheme: %v allocations", got)
	}
}

// TestResolverRemembers checks that a repeated link costs no allocation, also in a document of the same folder.
func TestResolverRemembers(t *testing.T) {
	var r Resolver
	one, two := mustParse(t, "https://a.example/d/1"), mustParse(t, "https://a.example/d/2")
	for _, ref := range []string{"/x?y=1", "3", "https://b.example/"} {
		r.SetBase(one)
		first, err := r.Resolve(ref)
		r.SetBase(two)
		n := testing.AllocsPerRun(10, func() {
			if u, again := r.Resolve(ref); u != first || again != nil {
				t.Errorf("%s: %q, %v, then %q, %v", ref, first, err, u, again)
			}
		})
		if n > 0 {
			t.Errorf("%s: %g allocations", ref, n)
		}
	}
}
