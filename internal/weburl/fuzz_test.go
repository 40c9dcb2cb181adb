package weburl

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	whatwgerrors "github.com/nlnwa/whatwg-url/errors"
	whatwg "github.com/nlnwa/whatwg-url/url"
)

// rfc3986 is the part of RFC 3986's grammar that canonical URLs use.
var rfc3986 = regexp.MustCompile(`^https?://([a-z0-9_.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?` +
	`(/([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-F]{2})*)+` +
	`(\?([A-Za-z0-9._~!$&()*+,;=:@/?-]|%[0-9A-F]{2})+)?$`)

// viaReference resolves by the documented algorithm: that of the standard, state by state, then the
// normalisation. Hosts are parsed by this package (FuzzHost compares them separately). The general parser sees
// a placeholder, and the last host parsed is that of the result.
func viaReference(base URL, ref string) (string, error) {
	host := ""
	general := whatwg.NewParser(whatwg.WithPreParseHostFunc(func(_ *whatwg.Url, raw string) (standIn string) {
		var err error
		if host, err = canonicalHost(raw); err != nil {
			return "%" // which is refused
		}
		return "host"
	}))
	w, err := general.ParseRef(base.String(), escapeInvalid(ref))
	switch {
	case err == nil && w.Scheme() != "http" && w.Scheme() != "https":
		return "", ErrScheme
	case err != nil && whatwgerrors.Type(err) == whatwgerrors.MissingSchemeNonRelativeURL:
		return "", ErrSyntax
	case err != nil:
		return "", ErrHost
	}
	s := w.Scheme() + "://" + host
	if w.Port() != "" {
		s += ":" + w.Port()
	}
	s += normalise(w.Pathname(), "/'")
	if query := strings.TrimPrefix(w.Search(), "?"); query != "" {
		s += "?" + normalise(query, "/?")
	}
	if len(s) > MaxLen {
		return "", ErrTooLong
	}
	return s, nil
}

// escapeInvalid percent-encodes the bytes that are not part of UTF-8, where the
// general parser would read U+FFFD.
func escapeInvalid(s string) string {
	var b strings.Builder
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && size == 1 {
			b.WriteString("%" + string("0123456789ABCDEF"[s[0]>>4]) + string("0123456789ABCDEF"[s[0]&15]))
		} else {
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String()
}

var (
	stray   = regexp.MustCompile(`%([0-9A-Fa-f]{2})?`)
	escapes = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
	odd     = regexp.MustCompile(`[^A-Za-z0-9._~!$&()*+,;=:@%-]`)
)

// normalise does the same as appendEscaped, in three slow passes.
func normalise(s, also string) string {
	s = stray.ReplaceAllStringFunc(s, func(m string) string {
		if m == "%" {
			return "%25"
		}
		return m
	})
	s = escapes.ReplaceAllStringFunc(s, func(m string) string {
		c := string(unhex(m[1])<<4 | unhex(m[2]))
		if regexp.MustCompile(`^[A-Za-z0-9._~-]$`).MatchString(c) {
			return c
		}
		return strings.ToUpper(m)
	})
	return odd.ReplaceAllStringFunc(s, func(m string) string {
		if strings.Contains(also, m) {
			return m
		}
		return strings.ToUpper(escapeAll(m))
	})
}

func escapeAll(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteString("%" + string("0123456789abcdef"[s[i]>>4]) + string("0123456789abcdef"[s[i]&15]))
	}
	return b.String()
}

// FuzzResolve compares with the general parser, and checks I1 and the keys.
func FuzzResolve(f *testing.F) {
	for _, base := range []string{"", "http://example.org/foo/bar?q", "https://www.example.com:8080/a//b/"} {
		for _, ref := range []string{
			"", "a/../b?c#d", "//u:p@host:80/x", `\\h\..\%2e`, "http:foo", "https:/a@b:0443//", "///h", "?a b'", "#x",
			"ht\ttp://EXAMPLE.com./%7e%zz", "http://[::1]:80/|", "http://0x7f.1/é\xff", "mailto:x", "/a%%34%31",
			"http://bücher.example/", "http:\\/\\x@@y", "http://h:99999/", "//", "..//..", "a:b", "./a:b",
		} {
			f.Add(base, ref)
		}
	}
	f.Fuzz(func(t *testing.T, base, ref string) {
		if len(ref) > 1000 || strings.Count(ref, "@") > 10 {
			return // the general parser is slow there
		}
		b, _ := Parse(base)
		u, err := b.Resolve(ref)
		want, wantErr := viaReference(b, ref)
		if errors.Is(err, ErrScheme) && errors.Is(wantErr, ErrHost) {
			return // such as "ftp://[": this package does not parse hosts of other schemes
		}
		if u.String() != want || !errors.Is(err, wantErr) {
			t.Fatalf("(%q).Resolve(%q) = %q, %v; the general parser has %q, %v", b, ref, u, err, want, wantErr)
		}
		if err != nil {
			return
		}
		checkURL(t, u)
		if surt := u.SURTPrefix(); !strings.HasPrefix(surt, u.Scheme()+"://(") || !strings.Contains(surt, ")/") {
			t.Errorf("SURT of %q: %q", u, surt)
		}
		if key := u.Key(); !strings.Contains(key, ")/") || len(key) != utf8.RuneCountInString(key) || strings.ContainsAny(key, " \n\t") {
			t.Errorf("Key of %q: %q", u, key)
		}
		if d := u.Host().RegistrableDomain(); !strings.HasSuffix(u.Host().Name(), d) || d == "" {
			t.Errorf("registrable domain of %q: %q", u, d)
		}
	})
}

// FuzzResolver resolves references with one Resolver, in documents at two bases in turn. The results equal those of
// [URL.Resolve], whatever the Resolver remembers.
func FuzzResolver(f *testing.F) {
	const one, two = "http://example.org/foo/bar?q", "https://example.org/foo/"
	for _, refs := range [][2]string{
		{"/a", "a"}, {"x", "/foo/x"}, {"./a:b", "a:b"}, {"a:b", "./a:b"}, {"//foo/x", "/foo/x"}, {"http://example.org/foo/x", "x"},
		{"?q", "?q"}, {"", "bar"}, {"..", "/"}, {" x", "x"}, {"httpx", "https:x"}, {"x#f", "x"}, {"/%41", "/A"}, {"\\x", "/x"},
	} {
		f.Add(one, two, refs[0], refs[1])
	}
	f.Fuzz(func(t *testing.T, one, two, a, b string) {
		var r Resolver
		for range 2 {
			for _, text := range []string{one, two} {
				base, _ := Parse(text)
				r.SetBase(base)
				for _, ref := range []string{a, b, a} {
					got, err := r.Resolve(ref)
					if want, wantErr := base.Resolve(ref); got != want || fmt.Sprint(err) != fmt.Sprint(wantErr) {
						t.Fatalf("%q in a document at %q: %q, %v; want %q, %v", ref, base, got, err, want, wantErr)
					}
				}
			}
		}
	})
}

// FuzzHost compares with the hosts of the general parser, where that parser is right and allows no more than
// Host.
func FuzzHost(f *testing.F) {
	for _, s := range []string{
		"example.com", "EXAMPLE.com.", "bücher.example", "xn--bcher-kva.de", "0x7f.1", "1.2.3.4.5", "[::ffff:1.2.3.4]",
		"[1::2::3]", "ex%41mple", "a..b", "a_b", "-1", "foo.0x", "faß.de", "日本。ｊｐ", "٠.example", "a\u200db", "\u00ad",
		"xn--a", "[::1", "256.1.1.1", "08", "≠", "1.2.3.4%2e", "[1:2:3:4:5:6:7::]", "xn--ls8h.la", "XN--", "a.xn--zca",
	} {
		f.Add(s)
	}
	general := whatwg.NewParser()
	f.Fuzz(func(t *testing.T, raw string) {
		if len(raw) > 600 || raw != clean(raw) || strings.ContainsAny(raw, `/\?@`) {
			return
		}
		got, err := canonicalHost(raw)
		if err == nil {
			if again, err := canonicalHost(got); again != got || err != nil {
				t.Fatalf("I1: %q canonicalises to %q, that to %q, %v", raw, got, again, err)
			}
		}
		if name, _ := splitPort(raw); name != raw {
			return // not a host alone
		}
		w, wantErr := general.Parse("http://" + raw + "/")
		want := ""
		if wantErr == nil {
			want = strings.TrimSuffix(w.Hostname(), ".")
		}
		switch {
		case err == nil && !number.MatchString(got) && (dotted.MatchString(want) || isIPv4(wantErr)):
			// The general parser takes signs and overflowing digits before letters for numbers.
		case err == nil && wantErr == nil:
			if want != got {
				t.Errorf("%q is %q, the general parser has %q", raw, got, want)
			}
		case err == nil:
			if !std3.MatchString(wantErr.Error()) {
				t.Errorf("%q is %q, the general parser has error %v", raw, got, wantErr)
			}
		case wantErr == nil:
			isWide := !narrow.MatchString(want) && !strings.HasPrefix(want, "[") || len(want) > maxName
			isLong := utf8.RuneCountInString(raw) > maxRawName
			isBrackets := strings.Count(raw, "[")+strings.Count(raw, "]") > 2 // the general parser trims all of them
			isSigned := dotted.MatchString(want) && (strings.ContainsAny(raw, "+-%") || len(raw) != utf8.RuneCountInString(raw))
			if !isWide && !isLong && !isBrackets && !isSigned {
				t.Errorf("%q is %v, the general parser has %q", raw, err, want)
			}
		}
	})
}

var (
	narrow = regexp.MustCompile(`^([a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}$`)
	dotted = regexp.MustCompile(`^[0-9]+(\.[0-9]+){3}$`)
	number = regexp.MustCompile(`(^|\.)([0-9]+|0x[0-9a-f]*)$`) // the end of a name that is an IPv4 address
)

func isIPv4(err error) bool {
	return err != nil && strings.HasPrefix(string(whatwgerrors.Type(err)), "An IPv4")
}

// std3 matches the general parser's error for a code point that STD3 forbids in names, a rule that the standard
// does not apply: ASCII, and the three signs that decompose to it.
var std3 = regexp.MustCompile(`disallowed rune U\+(00[0-7][0-9A-F]|2260|226E|226F)`)
