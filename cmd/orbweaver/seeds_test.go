package main

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		text string
		want int64 // -1: refused
	}{
		{"0", 0}, {"1048576", 1 << 20}, {"7b", 7}, {"16MiB", 16 << 20}, {"16 mib", 16 << 20}, {"1GB", 1e9}, {"3k", 3 << 10},
		{"3KB", 3000}, {"2g", 2 << 30}, {"2GiB", 2 << 30}, {"5mb", 5e6}, {"1M", 1 << 20},
		{"", -1}, {"MiB", -1}, {"-1", -1}, {"1.5MiB", -1}, {"1XB", -1}, {"9223372036854775807", 9223372036854775807},
		{"9223372036854775807k", -1}, {"9223372036854775808", -1}, {"1MiB2", -1},
	} {
		var v sizeValue = -1
		if err := v.Set(c.text); (err != nil) != (c.want < 0) || int64(v) != c.want {
			t.Errorf("%q: %d, %v; want %d", c.text, v, err, c.want)
		}
		var again sizeValue
		if c.want < 0 {
			continue
		}
		if err := again.Set(v.String()); err != nil || again != v {
			t.Errorf("%q is written %q and read as %d, %v", c.text, v.String(), again, err)
		}
	}
}

func TestProductTokens(t *testing.T) {
	for agent, want := range map[string]string{
		defaultAgent: "orbweaver", "my-bot_x/2 (+http://x.example/)": "my-bot_x", "bot": "bot", "bot (x)": "bot",
		"": "", "9bot/1": "", "/1": "", " bot/1": "", "bot.x/1": "", "böt/1": "",
	} {
		if got := fetch.ProductToken(agent); got != want {
			t.Errorf("%q: %q, want %q", agent, got, want)
		}
	}
	var v agentValue
	if v.Set("bot/1\r\nHost: x") == nil {
		t.Error("a line end is accepted")
	}
}

func TestNets(t *testing.T) {
	var v netsValue
	for _, s := range []string{"127.0.0.1", "10.1.2.3/8", "::1", "fd00::/8"} {
		if err := v.Set(s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	want := []string{"127.0.0.1/32", "10.0.0.0/8", "::1/128", "fd00::/8"}
	var got []string
	for _, p := range v.nets {
		got = append(got, p.String())
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, s := range []string{"", "localhost", "127.0.0.1/33", "fe80::1%eth0", "1.2.3"} {
		if v.Set(s) == nil {
			t.Errorf("%q is accepted", s)
		}
	}
	kept := []netip.Prefix{netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("192.168.0.0/16")}
	if got := netList(v.with(kept)); got != "::1/128, 192.168.0.0/16, 127.0.0.1/32, 10.0.0.0/8, fd00::/8" {
		t.Errorf("added to those kept: %s", got)
	}
	if err := v.Set("none"); err != nil || len(v.with(kept)) != 4 {
		t.Errorf("without those kept: %v, %v", v.with(kept), err)
	}
}

func TestShellQuote(t *testing.T) {
	for word, want := range map[string]string{
		"a/b-c_d.e:f": "a/b-c_d.e:f", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$x": "'$x'", "*": "'*'",
	} {
		if got := shellQuote(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}

func TestSeedHints(t *testing.T) {
	allow := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	s := &seedOutcome{URL: "http://127.0.0.1/", Outcome: 11}
	if h := hint(s, nil); !strings.Contains(h, "--allow-net 127.0.0.1") {
		t.Error(h)
	}
	if h := hint(s, allow); strings.Contains(h, "allow-net") {
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

// TestBadSeedsAreSkipped: bad lines of a file are listed, up to a bound, and counted; a bad argument is an error.
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

func TestElastic(t *testing.T) {
	for text, want := range map[string]elasticValue{"off": {}, "1..1": {1, 1}, "2..16": {2, 16}, "1..4096": {1, 4096}} {
		v := elasticValue{7, 7}
		if err := v.Set(text); err != nil || v != want || v.String() != text {
			t.Errorf("%q: %v, %v", text, v, err)
		}
	}
	for _, text := range []string{"", "3", "0..4", "4..2", "1..4097", "1-4", "..", "1..x", "-1..2", "1..2..3", "on"} {
		if v := (elasticValue{}); v.Set(text) == nil {
			t.Errorf("%q was taken for %v", text, v)
		}
	}
}
