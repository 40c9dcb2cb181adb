package polite

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// naive decides as RFC 9309 describes, rule by rule, with one regular expression each.
type naive struct {
	rules    []rule
	patterns []*regexp.Regexp
}

func newNaive(rules []rule) naive {
	n := naive{rules: rules}
	for _, r := range rules {
		pattern, anchored := strings.CutSuffix(r.pattern, "$")
		re := "(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*")
		if anchored {
			re += `\z`
		}
		n.patterns = append(n.patterns, regexp.MustCompile(re))
	}
	return n
}

func (n naive) find(uri string) int32 {
	best := int32(-1)
	for i, b := range n.rules {
		if !n.patterns[i].MatchString(uri) {
			continue
		}
		if best >= 0 {
			a := n.rules[best]
			longer := len(b.pattern) > len(a.pattern)
			allows := len(b.pattern) == len(a.pattern) && b.verdict == allow && a.verdict == disallow
			if !longer && !allows {
				continue
			}
		}
		best = int32(i)
	}
	return best
}

func randomText(rng *rand.Rand, alphabet string, most int) string {
	b := make([]byte, rng.IntN(most+1))
	for i := range b {
		b[i] = alphabet[rng.IntN(len(alphabet))]
	}
	return string(b)
}

// TestDecideAgainstNaive compares with naive. It uses few letters, so that nearly all rules nest and overlap.
func TestDecideAgainstNaive(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	decided := map[verdict]int{}
	for range 400 {
		var rules []rule
		for line := range rng.IntN(25) {
			pattern := normalPattern([]byte("/" + randomText(rng, "aab/*$", 7) + randomText(rng, "$", 1)))
			rules = append(rules, newRule(line+1, verdict(rng.IntN(2) == 0), pattern))
		}
		r, n := newRobots(&Robots{rules: rules}), newNaive(rules)
		for range 40 {
			uri := normalURI("/" + randomText(rng, "aaab/$", 9))
			got, want := r.decide(uri), int(n.find(uri))
			if got != want {
				t.Fatalf("%q of %v\ngot  rule %d, want %d", uri, rules, got, want)
			}
			if got >= 0 {
				decided[rules[got].verdict]++
			}
		}
	}
	if decided[allow] < 1000 || decided[disallow] < 1000 {
		t.Errorf("the test tests little: %v", decided)
	}
}

func TestNormalForm(t *testing.T) {
	for _, c := range []struct{ in, pattern, uri string }{
		{"/", "/", "/"},
		{"a", "/a", "/a"},
		{"/a*b$", "/a*b$", "/a%2Ab%24"},
		{"/a$b$", "/a%24b$", "/a%24b%24"},
		{"/$*", "/%24*", "/%24%2A"},
		{"/%24", "/%24", "/%24"},
		{"*x", "*x", "/%2Ax"},
		{"/%7e%2d%5f%2e%41", "/~-_.A", "/~-_.A"},
		{"/%2f%3a%3f%23", "/%2F%3A%3F%23", "/%2F%3A%3F%23"},
		{"/:/?[]@!&'()+,;=", "/:/?[]@!&'()+,;=", "/:/?[]@!&'()+,;="},
		{"/é \x00\x7f\"<>\\^`{|}", "/%C3%A9%20%00%7F%22%3C%3E%5C%5E%60%7B%7C%7D", "/%C3%A9%20%00%7F%22%3C%3E%5C%5E%60%7B%7C%7D"},
		{"/%", "/%25", "/%25"},
		{"/%4", "/%254", "/%254"},
		{"/%%362", "/%2562", "/%2562"},
		{"/%*41", "/%25*41", "/%25%2A41"},
		{"/%@1%1@%1g", "/%25@1%251@%251g", "/%25@1%251@%251g"},
		{"/AZaz09", "/AZaz09", "/AZaz09"},
	} {
		if got := normalPattern([]byte(c.in)); got != c.pattern {
			t.Errorf("pattern %q: got %q, want %q", c.in, got, c.pattern)
		}
		if got := normalURI(c.in); got != c.uri {
			t.Errorf("URI %q: got %q, want %q", c.in, got, c.uri)
		}
	}
}

func FuzzNormalForm(f *testing.F) {
	for _, s := range []string{"/", "/%%362", "/é*%2a$", "x?%zz#"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		uri := normalURI(s)
		if again := normalURI(uri); again != uri {
			t.Errorf("URI %q: %q, then %q", s, uri, again)
		}
		if s == "" {
			return
		}
		pattern := normalPattern([]byte(s))
		if again := normalPattern([]byte(pattern)); again != pattern {
			t.Errorf("pattern %q: %q, then %q", s, pattern, again)
		}
		// A URI is a pattern that matches itself, if its special characters are escaped.
		r := newRule(1, disallow, normalPattern([]byte(uri)))
		if newRobots(&Robots{rules: []rule{r}}).decide(uri) != 0 {
			t.Errorf("%q does not match itself", uri)
		}
	})
}

// TestDeepPrefixes uses rules that are prefixes of each other; a lookup visits all of them.
func TestDeepPrefixes(t *testing.T) {
	r := ParseRobots([]byte(deepRules()), "bot")
	deep := "/" + strings.Repeat("a", 500)
	if got := verdicts(r, []string{deep, deep + "b", "/"}); got != "-++" {
		t.Error(got)
	}
}

// TestTooCostly checks that the time for a file full of wildcards is bounded, and that all its rules apply to URIs of
// common lengths.
func TestTooCostly(t *testing.T) {
	r := ParseRobots(manyRules("Disallow:*a%d\n"), "bot")
	if len(r.rules) < 20_000 {
		t.Fatalf("only %d rules", len(r.rules))
	}
	for _, c := range []struct {
		length int
		want   string
	}{{200, ""}, {2000, "robots.txt: too many wildcards"}} {
		uri := "/" + strings.Repeat("b", c.length-1)
		if ok, rule := r.Allowed(uri); ok != (c.want == "") || rule.Text != c.want || rule.Line != 0 {
			t.Errorf("%d octets: %v %+v", c.length, ok, rule)
		}
	}
	if ok, rule := r.Allowed("/" + strings.Repeat("b", 100) + "a20000"); ok || rule.Text != "Disallow: *a20000" {
		t.Errorf("%v %+v", ok, rule)
	}
}
