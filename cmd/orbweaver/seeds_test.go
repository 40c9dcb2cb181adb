package main

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/orbweaver/orbweaver/internal/weburl"
)

func TestSeedHints(t *testing.T) {
	allow := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	s := &urlOutcome{URL: "http://127.0.0.1/", Outcome: 11}
	if h := s.hint(nil); !strings.Contains(h, "--allow-net 127.0.0.1") {
		t.Error(h)
	}
	if h := s.hint(allow); strings.Contains(h, "allow-net") {
		t.Error(h)
	}
}

func FuzzReadURLs(f *testing.F) {
	f.Add("http://x.example/\n# c\n\n  https://y.example/a b # c\r\nnonsense")
	f.Add("#\n::")
	f.Fuzz(func(t *testing.T, list string) {
		urls, err := readURLs(nil, "seeds", "-", strings.NewReader(list), nil)
		if (err == nil) != (len(urls) > 0) {
			t.Fatalf("%d URLs, %v", len(urls), err)
		}
		known := map[weburl.URL]bool{}
		for _, u := range urls {
			if again, err := weburl.Parse(u.String()); err != nil || again != u || known[u] {
				t.Errorf("%s: %v, known %v", u, err, known[u])
			}
			known[u] = true
		}
	})
}

func TestURLErrorsAreBounded(t *testing.T) {
	_, err := readURLs(nil, "seeds", "-", strings.NewReader(strings.Repeat("nonsense\n", 1000)), nil)
	if err == nil || strings.Count(err.Error(), "\n") != maxURLErrors-1 {
		t.Errorf("%v", err)
	}
}

// TestBadSeedsAreSkipped checks that bad lines of a file are counted and listed, up to a bound, and that a bad argument is an
// error.
func TestBadSeedsAreSkipped(t *testing.T) {
	list := "http://a.example/\n" + strings.Repeat("nonsense\n", maxURLsSkipped+20) + strings.Repeat("x", 1<<20) + "\nhttp://b.example/\n"
	var told strings.Builder
	urls, err := readURLs([]string{"http://c.example/"}, "seeds", "-", strings.NewReader(list), &told)
	if err != nil || len(urls) != 3 {
		t.Errorf("%v, %v", urls, err)
	}
	want := fmt.Sprintf("-:%d: cannot use URL \"nonsense\": ", maxURLsSkipped+1)
	if text := told.String(); strings.Count(text, "cannot use URL") != maxURLsSkipped || !strings.Contains(text, want) ||
		!strings.HasSuffix(text, "\n… and 21 more\nskipped 121 bad lines of --seeds on standard input\n") {
		t.Error(text)
	}
	if _, err := readURLs([]string{"nonsense"}, "seeds", "-", strings.NewReader(list), &told); statusOf(err) != exitUsage {
		t.Errorf("a bad argument: %v", err)
	}
	if _, err := readURLs(nil, "seeds", "-", strings.NewReader("nonsense\n"), &told); statusOf(err) != exitUsage {
		t.Errorf("nothing but bad lines: %v", err)
	}
}
