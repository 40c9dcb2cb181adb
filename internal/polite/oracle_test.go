package polite

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/temoto/robotstxt"
)

// The oracle is another parser, used only for files that it reads right: no agent is a prefix of another, patterns are plain
// prefixes without escapes, no pattern is both allowed and disallowed for one agent, no Crawl-delay is between User-agent
// lines, and no rule comes before the first of them.

var oracleAgents = []string{"foobot", "barbot", "quxbot", "*"}

// oracleFile returns a random robots.txt of that kind; pick(n) returns a number in [0, n).
func oracleFile(pick func(int) int) string {
	var b strings.Builder
	eol := []string{"\n", "\r\n", "\r"}[pick(3)]
	line := func(key, value string) {
		switch pick(8) {
		case 0:
			key = strings.ToUpper(key)
		case 1:
			value = "  " + value
		case 2:
			value += "\t"
		case 3:
			value += " # " + key
		}
		b.WriteString(key + ":" + value + eol)
		if pick(8) == 0 {
			b.WriteString([]string{eol, "# Disallow: /" + eol, "Foo: bar" + eol}[pick(3)])
		}
	}
	said := map[string]verdict{}
	for range 1 + pick(5) {
		for range 1 + pick(2) {
			line("User-agent", oracleAgents[pick(len(oracleAgents))])
		}
		rules := 1 + pick(5)
		for range rules {
			path := oraclePath(pick)
			v := verdict(pick(2) == 0)
			if before, ok := said[path]; ok {
				v = before
			}
			said[path] = v
			line(map[verdict]string{allow: "Allow", disallow: "Disallow"}[v], path)
		}
		if pick(4) == 0 {
			line("Crawl-delay", fmt.Sprint(pick(100)))
		}
		if pick(4) == 0 {
			line("Sitemap", "https://example.org"+oraclePath(pick))
		}
	}
	return b.String()
}

func oraclePath(pick func(int) int) string {
	path := "/"
	for range pick(4) {
		path += []string{"a", "b", "ab", "/", ".html", "?x=", "-"}[pick(7)]
	}
	return path
}

func againstOracle(t *testing.T, pick func(int) int) (refused int) {
	t.Helper()
	body := oracleFile(pick)
	theirs, err := robotstxt.FromString(body)
	if err != nil {
		t.Fatalf("the oracle refuses %q: %v", body, err)
	}
	for _, agent := range append(oracleAgents[:3:3], "other") {
		ours := ParseRobots([]byte(body), agent)
		for range 8 {
			path := oraclePath(pick)
			got, rule := ours.Allowed(path)
			if want := theirs.TestAgent(path, agent); got != want {
				t.Fatalf("%s for %s: got %v (%v), the oracle says %v\n%q", path, agent, got, rule, want, body)
			}
			if !got {
				refused++
			}
		}
	}
	if got, want := strings.Join(ParseRobots([]byte(body), "x").Sitemaps(), " "), strings.Join(theirs.Sitemaps, " "); got != want {
		t.Fatalf("sitemaps %q, the oracle says %q\n%q", got, want, body)
	}
	return refused
}

func TestOracle(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	refused := 0
	for range 5000 {
		refused += againstOracle(t, rng.IntN)
	}
	if refused < 10_000 {
		t.Errorf("only %d refusals: the test tests little", refused)
	}
}

// FuzzOracle generates the file from the fuzzer's bytes.
func FuzzOracle(f *testing.F) {
	f.Add([]byte("0123456789 the quick brown fox jumps over the lazy dog"))
	f.Fuzz(func(t *testing.T, choices []byte) {
		againstOracle(t, func(n int) int {
			if len(choices) == 0 {
				return 0
			}
			c := int(choices[0]) % n
			choices = choices[1:]
			return c
		})
	})
}

// BenchmarkOracle parses the largest file that this package reads, and makes one decision.
func BenchmarkOracle(b *testing.B) {
	body := manyRules("Disallow: /*a%d*b\n")
	b.Run("parse", func(b *testing.B) {
		for b.Loop() {
			if _, err := robotstxt.FromBytes(body); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("ask", func(b *testing.B) {
		r, err := robotstxt.FromBytes(body)
		if err != nil {
			b.Fatal(err)
		}
		group := r.FindGroup("bot")
		for b.Loop() {
			group.Test("/section/17000/some-article")
		}
	})
}
