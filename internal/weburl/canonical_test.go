package weburl

import "testing"

func checkCanonical(t *testing.T, raw string) {
	t.Helper()
	Canonical(raw) // must not panic
	u, err := Parse(raw)
	if err != nil {
		return
	}
	if got, ok := Canonical(u.String()); !ok || got != u {
		t.Errorf("Canonical(%q) is %+v, %v; Parse says %+v", u.String(), got, ok, u)
	}
}

func TestCanonical(t *testing.T) {
	for _, raw := range []string{
		"http://a.example", "https://a.example/?", "https://a.example?q=/?x", "http://[::1]:8080/a/b//?c?d", "https://a.example:444/x/../y#z", "http://a.example//",
	} {
		checkCanonical(t, raw)
	}
	for _, raw := range []string{"", "http://", "https://", "http:///", "https:///x", "https://a.example", "ftp://a.example/", "//a.example/", "HTTP://a.example/", "httpss://a/"} {
		if u, ok := Canonical(raw); ok {
			t.Errorf("Canonical(%q) is %q", raw, u)
		}
	}
}

func FuzzCanonical(f *testing.F) {
	for _, raw := range []string{"http://a.example/b?c", "https://[::1]:1/", "https://a?b/c", "http:///", "https://x"} {
		f.Add(raw)
	}
	f.Fuzz(checkCanonical)
}
