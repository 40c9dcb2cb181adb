package crawlfile

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// lists opens the files that crawl files name.
func lists(name string) (io.ReadCloser, error) {
	text, ok := map[string]string{
		"list.txt":  "# of a.example\nhttps://a.example/1\n\nhttps://a.example/2 # the second\n",
		"empty.txt": "# none\n", "bad.txt": "https://a.example/\nhttps:// x/\nb.example\n",
		"long.txt": strings.Repeat("x", maxListLine+1),
	}[name]
	if !ok {
		return nil, os.ErrNotExist
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

func parseText(text string) (*File, *blobschema.Settings, error) {
	c := Defaults("x/1")
	f, err := Parse("c.yaml", []byte(text), &c, func(string) bool { return false }, lists)
	return f, &c.Settings, err
}

const whole = `# everything
policy: capability
delay: 1s
exclude: ['\.png$', /private/]
max-pages: 10000
hosts:
  - host: PORTAL.example
    connections: 8
    delay: 100ms
  - {host: 'b.example:8080', delay: 0s}
seeds: https://home.example/
topics:
  - name: news
    priority: 10
    slice: 20s
    minimum: 1000/h
    granularity: url
    scope: domain
    include: [/live, /story]
    exclude: []
    max-depth: 5
    requisites: false
    words: [Election, vote]
    seeds:
      - https://news.example/
      - {url: https://news.example/live, priority: 50}
      - url: https://other.example/live
        priority: -3
  - seeds-file: list.txt
    name: Ελλάδα 2
    minimum: 5/10m
    seeds: &more [https://c.example/]
`

func TestWhole(t *testing.T) {
	f, set, err := parseText(whole)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"policy": {"capability"}, "delay": {"1s"}, "exclude": {`\.png$`, "/private/"}, "max-pages": {"10000"}}
	if d := cmp.Diff(want, f.Values); d != "" {
		t.Error(d)
	}
	fast, none := 100*time.Millisecond, time.Duration(0)
	if d := cmp.Diff([]blobschema.HostRule{{Host: "portal.example", Connections: 8, Delay: &fast}, {Host: "b.example:8080", Delay: &none}}, f.Hosts); d != "" {
		t.Error(d)
	}
	topics, seeds, problems := f.Join(set)
	if problems != nil {
		t.Fatal(problems)
	}
	news := blobschema.Topic{
		Name: "news", Priority: 50, Slice: 20 * time.Second, Minimum: 1000, Period: time.Hour, Scope: blobschema.ScopeDomain,
		Include: []string{"/live", "/story"}, MaxDepth: 5, Words: []string{"election", "vote"},
	}
	middle, low := news, news
	middle.Priority, low.Priority = 10, -3
	if d := cmp.Diff([]blobschema.Topic{news, middle, low, {
		Name: "Ελλάδα 2", Minimum: 5, Period: 10 * time.Minute, Scope: blobschema.ScopeHost, Exclude: []string{`\.png$`, "/private/"}, MaxDepth: -1, Requisites: true,
	}}, topics); d != "" {
		t.Error(d)
	}
	var got []string
	for _, s := range seeds {
		got = append(got, fmt.Sprintf("%s %d", s.URL, s.Topic))
	}
	if d := cmp.Diff([]string{
		"https://home.example/ 0", "https://news.example/ 2", "https://news.example/live 1", "https://other.example/live 3",
		"https://c.example/ 4", "https://a.example/1 4", "https://a.example/2 4",
	}, got); d != "" {
		t.Error(d)
	}
}

// TestMergeKeys checks that a topic's own key overrides a merged one, and an earlier merged mapping a later one.
func TestMergeKeys(t *testing.T) {
	f, set, err := parseText("topics:\n  - &a {name: a, priority: 3, slice: 7s, seeds: [https://a.example/]}\n" +
		"  - &b {<<: *a, name: b, slice: 9s, seeds: [https://b.example/]}\n  - {name: c, seeds: [https://c.example/], <<: [*b, *a]}\n")
	if err != nil {
		t.Fatal(err)
	}
	topics, _, _ := f.Join(set)
	for i, want := range []string{"a 3 7s", "b 3 9s", "c 3 9s"} {
		if got := fmt.Sprint(topics[i].Name, " ", topics[i].Priority, " ", topics[i].Slice); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	self := "topics:\n  - &x {<<: [*x, *x, *x], name: a, seeds: [https://a.example/]}\n"
	if _, _, err := parseText(self); err == nil || !strings.Contains(err.Error(), "20 levels, with aliases expanded") {
		t.Errorf("a topic that merges itself: %v", err)
	}
}

// TestProblems checks that all errors are reported together, each with its line.
func TestProblems(t *testing.T) {
	topic := "topics:\n  - name: a\n    seeds: [https://a.example/]\n"
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", "c.yaml: the file is empty"},
		{"comments only", "# no\n", "c.yaml: the file is empty"},
		{"null", "~\n", `c.yaml:1: a crawl file must have keys, such as "seeds:"`},
		{"a list", "- a\n", `c.yaml:1: a crawl file must have keys, such as "seeds:"`},
		{"a word", "crawl\n", `c.yaml:1: a crawl file must have keys, such as "seeds:"`},
		{"no YAML", "delay: 1s\npolicy: [a\n", "c.yaml:3: this is not YAML: did not find expected ',' or ']' while parsing a flow sequence"},
		{"a tab", "topics:\n\t- name: a\n", "c.yaml:2: lines are indented by spaces, not by tabs"},
		{"no UTF-8", "delay: \xff\n", "c.yaml: this is not YAML: invalid leading UTF-8 octet (value: 255)"},
		{"documents", "delay: 1s\n---\ndelay: 2s\n", `c.yaml: there is more than one document: leave out the line "---"`},
		{"too long", strings.Repeat("#", MaxBytes+1), "c.yaml: the file is longer than 1048576 bytes; long lists of seeds have a file of their own: seeds-file"},
		{"unknown", "dealy: 1s\n", "c.yaml:1: " + unknown("a crawl file", "dealy", topKeys())},
		{"underscore", "max_pages: 1\n", "c.yaml:1: " + unknown("a crawl file", "max_pages", topKeys())},
		{"unknown and unlike", "colour: red\n", "c.yaml:1: " + unknown("a crawl file", "colour", topKeys())},
		{"twice", "delay: 1s\nslots: 7\ndelay: 2s\n", "c.yaml:3: delay is given twice: see line 1"},
		{"a key of keys", "? [a]\n: b\n", "c.yaml:1: " + unknown("a crawl file", "", topKeys())},
		{"an alias of nothing", "delay: *x\n", "c.yaml:1: this is not YAML: unknown anchor 'x' referenced"},
		{"no value", "delay:\n", "c.yaml:1: delay has no value"},
		{"keys for a value", "delay: {a: b}\n", "c.yaml:1: there must be a value or a list here, not keys\nc.yaml:1: delay has no value"},
		{"an empty list", "exclude: []\n", "c.yaml:1: exclude has no value"},
		{"a wrong value", "\ndelay: soon\n", `c.yaml:2: delay "soon": it must be a time such as 500ms, 1s or 2m`},
		{"a value wrong with all known", "\ndelay: -1s\n", `c.yaml:2: delay "-1s": it must be 0s or longer`},

		{"no host", "hosts:\n  - connections: 2\n", `c.yaml:2: a host rule must have the key "host"`},
		{"a host twice", "hosts:\n  - {host: a.example, connections: 2}\n  - {host: A.example, delay: 2s}\n", "c.yaml:3: host a.example has two rules: see line 2"},
		{"a rule that says nothing", "hosts:\n  - host: a.example\n", "c.yaml:2: the rule for host a.example is empty: give connections, delay or both"},
		{"no connections", "hosts:\n  - {host: a.example, connections: 0}\n", `c.yaml:2: connections "0": it must be 1 to 64`},
		{"connections", "hosts:\n  - {host: a.example, connections: 65}\n", `c.yaml:2: connections "65": it must be 1 to 64`},
		{"a host's delay", "hosts:\n  - {host: a.example, delay: -1s}\n", `c.yaml:2: delay "-1s": it must be a time such as 100ms or 2s, or 0s`},
		{"a key of a host", "hosts:\n  - {host: a.example, connection: 3}\n", `c.yaml:2: a host has no key "connection"; its keys are host, connections, delay`},
		{"a host that is a word", "hosts: [a.example]\n", `c.yaml:1: there must be keys here, such as "host:"`},
		{"hosts by name", "hosts:\n  a.example: 3\n", `c.yaml:2: there must be a value or a list here, not keys`},

		{"no name", "topics:\n  - seeds: [https://a.example/]\n", "c.yaml:2: a topic must have a name"},
		{"a name", "topics:\n  - name: -a\n    seeds: [https://a.example/]\n", `c.yaml:2: name "-a": it must begin with a letter or a digit, and have only these, "-", "_", "." and spaces; at most 64 bytes`},
		{"a name twice", topic + "  - name: a\n    seeds: [https://b.example/]\n", `c.yaml:4: topic "a" is given twice: see line 2`},
		{"no seeds", "topics:\n  - name: a\n", `c.yaml:2: topic "a" has no seeds`},
		{"an empty list of seeds", "topics:\n  - name: a\n    seeds: []\n", `c.yaml:2: topic "a" has no seeds`},
		{"priority", topic + "    priority: 101\n", `c.yaml:4: priority "101": it must be a whole number from -100 to 100`},
		{"priority in words", topic + "    priority: high\n", `c.yaml:4: priority "high": it must be a whole number from -100 to 100`},
		{"slice of nothing", topic + "    slice: 0s\n", `c.yaml:4: slice "0s": it must be a time longer than 0s and at most 1h, such as 20s`},
		{"slice", topic + "    slice: 61m\n", `c.yaml:4: slice "61m": it must be a time longer than 0s and at most 1h, such as 20s`},
		{"no minimum", topic + "    minimum: 0/h\n", `c.yaml:4: minimum "0/h": it must be pages in a time, 1 or more, such as 1000/h, 20000/d or 100/10m`},
		{"minimum without a time", topic + "    minimum: 1000\n", `c.yaml:4: minimum "1000": it must be pages in a time, 1 or more, such as 1000/h, 20000/d or 100/10m`},
		{"granularity", topic + "    granularity: page\n", `c.yaml:4: granularity "page": it must be topic or url`},
		{"scope", topic + "    scope: hosts\n", `c.yaml:4: scope "hosts": it must be host, domain or any`},
		{"depth", topic + "    max-depth: 65536\n", `c.yaml:4: max-depth "65536": it must be 0 to 65535, or -1 for no bound`},
		{"a pattern", topic + "    include: ['a(']\n", "c.yaml:4: include \"a(\": it must be a regular expression (RE2): error parsing regexp: missing closing ): `a(`"},
		{"words", topic + "    words: [two words]\n", `c.yaml:4: words "two words": it must be one word, of at most 100 bytes`},
		{"a list for a value", topic + "    priority: [1]\n", `c.yaml:4: there must be one value here, not a list or keys`},
		{"a key of a topic", topic + "    prio: 4\n", "c.yaml:4: " + unknown("a topic", "prio", topicKeys)},

		{"a seed", "seeds: ['https:// x/']\n", `c.yaml:1: seed "https:// x/": ` + parseError("https:// x/")},
		{"a seed without a scheme", "seeds:\n  - a.example\n", `c.yaml:2: seed "a.example": ` + parseError("a.example") + " (did you mean https://a.example/?)"},
		{"a seed without a URL", "topics:\n  - name: a\n    granularity: url\n    seeds:\n      - priority: 3\n", `c.yaml:5: seed "": ` + parseError("")},
		{"a seed of its own priority", "topics:\n  - name: a\n    seeds:\n      - {url: https://a.example/, priority: 3}\n", "c.yaml:4: seeds have priorities of their own only in a topic with granularity: url"},
		{"a seed of no topic with a priority", "seeds:\n  - {url: https://a.example/, priority: 3}\n", "c.yaml:2: seeds have priorities of their own only in a topic with granularity: url"},
		{"a seed of two topics", topic + "  - name: b\n    seeds:\n      - https://a.example/\n      - https://b.example/\n", `c.yaml:6: seed https://a.example/ is also in topic "a": see line 3`},
		{"a seed of a topic and of none", "seeds: https://a.example/\n" + topic, `c.yaml:4: seed https://a.example/ is also listed without a topic: see line 1`},
		{"a seed of two priorities", "topics:\n  - name: a\n    granularity: url\n    seeds:\n      - https://a.example/\n      - {url: https://a.example/, priority: 3}\n", "c.yaml:6: seed https://a.example/ also has priority 0: see line 5"},
		{"a seed that is excluded", topic + "    exclude: [a.ex]\n", `c.yaml:3: seed https://a.example/ is excluded by "a.ex": leave out one of them`},
		{"a seed that the crawl excludes", "exclude: a.ex\n" + topic, `c.yaml:4: seed https://a.example/ is excluded by "a.ex": leave out one of them`},
		{"a list of seeds that is not there", "seeds-file: no.txt\n", `c.yaml:1: seeds-file "no.txt": file does not exist`},
		{"an empty list of seeds", "\nseeds-file: empty.txt\n", `c.yaml:2: seeds-file "empty.txt": it has no URL; write one per line`},
		{"a list with a long line", "\nseeds-file: long.txt\n", `long.txt:1: seed "` + strings.Repeat("x", 200) + `": ` + parseError(strings.Repeat("x", maxListLine))},
		{"a list that is wrong", "topics:\n  - name: a\n    seeds-file: bad.txt\n", "bad.txt:2: seed \"https:// x/\": " + parseError("https:// x/") +
			"\nbad.txt:3: seed \"b.example\": " + parseError("b.example") + " (did you mean https://b.example/?)"},

		{"all at once", "topics:\n  - name: a\n    slice: -1s\n    scope: none\n    seeds: [x]\n  - nam: b\nscope: deepest\ndelay: -1s\n", strings.Join([]string{
			`c.yaml:3: slice "-1s": it must be a time longer than 0s and at most 1h, such as 20s`,
			`c.yaml:4: scope "none": it must be host, domain or any`,
			`c.yaml:5: seed "x": ` + parseError("x"),
			"c.yaml:6: " + unknown("a topic", "nam", topicKeys),
			`c.yaml:7: scope "deepest": it must be host, domain or any`,
			`c.yaml:8: delay "-1s": it must be 0s or longer`,
		}, "\n")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := parseText(tt.text)
			if err == nil {
				t.Fatalf("nothing is wrong, want\n%s", tt.want)
			}
			if d := cmp.Diff(tt.want, err.Error()); d != "" {
				t.Error(d)
			}
		})
	}
}

// parseError returns the error of a URL.
func parseError(raw string) string {
	_, err := weburl.Parse(raw)
	return err.Error()
}

// TestBombs checks that aliases cannot expand a file beyond its bounds, and that the number of reported problems is
// limited.
func TestBombs(t *testing.T) {
	bomb := "a: &a [https://a.example/, https://a.example/]\n"
	for c := 'b'; c <= 'z'; c++ {
		bomb += fmt.Sprintf("%c: &%[1]c [%s]\n", c, strings.Repeat("*"+string(c-1)+", ", 9))
	}
	many := "exclude: &x [" + strings.Repeat("x,\n", 20_000) + "]\ntopics:\n"
	for i := range 80 {
		many += fmt.Sprintf("  - {name: t%d, include: *x}\n", i)
	}
	topics := "topics:\n"
	for i := range 300 {
		topics += fmt.Sprintf("  - {name: t%d, seeds: ['https://h%[1]d.example/']}\n", i)
	}
	priorities := "topics:\n"
	for i := range 2 {
		priorities += fmt.Sprintf("  - name: t%d\n    granularity: url\n    seeds:\n", i)
		for p := -100; p <= 100; p++ {
			priorities += fmt.Sprintf("      - {url: 'https://h%d.example/%d', priority: %[2]d}\n", i, p)
		}
	}
	large := "exclude: &x [" + strings.Repeat(strings.Repeat("x", 100)+",\n", 300) + "]\ntopics:\n"
	for i := range 10 {
		large += fmt.Sprintf("  - {name: t%d, include: *x, exclude: [], seeds: ['https://h%[1]d.example/']}\n", i)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"large", large, "c.yaml:302: topics and hosts take 309"},
		{"aliases", bomb + "seeds: *z\n", ""},
		{"deep", strings.Repeat("[", 100_000), "exceeded max depth"},
		{"itself", "seeds: &x [*x]\n", "or 20 levels, with aliases expanded"},
		{"one list many times", many, "more than 1048576 values"},
		{"topics", topics, "c.yaml:257: more than 255 topics"},
		{"priorities", priorities, "c.yaml:1: 402 topics and priorities are more than 255"},
		{"problems", strings.Repeat("- a\n", 100_000), ""},
		{"wrong seeds", "seeds: [" + strings.Repeat("x,", 100_000) + "]", "and perhaps more"},
		{"wrong keys", strings.Repeat("x: y\n", 100_000), "and perhaps more"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			began := time.Now()
			_, _, err := parseText(tt.text)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%.2000v", err)
			}
			if err != nil && len(err.Error()) > 1<<17 {
				t.Errorf("%d bytes of problems", len(err.Error()))
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestJoin checks how a changed file changes the topics of a crawl.
func TestJoin(t *testing.T) {
	const a, b = "topics:\n  - name: a\n    seeds: [https://a.example/]\n", "  - name: b\n    seeds: [https://b.example/]\n"
	const own = "  - name: u\n    granularity: url\n    priority: 5\n    seeds:\n      - https://u.example/\n      - {url: 'https://u.example/1', priority: 7}\n"
	plain := func(name string, priority int) blobschema.Topic {
		return blobschema.Topic{Name: name, Priority: priority, Scope: blobschema.ScopeHost, MaxDepth: -1, Requisites: true}
	}
	for _, tt := range []struct {
		name   string
		have   []blobschema.Topic
		text   string
		want   []blobschema.Topic
		seeds  string // numbers of their topics
		refuse string
	}{
		{"a new crawl", nil, a + b, []blobschema.Topic{plain("a", 0), plain("b", 0)}, "1 2", ""},
		{"as it is", []blobschema.Topic{plain("a", 0), plain("b", 0)}, a + b, []blobschema.Topic{plain("a", 0), plain("b", 0)}, "1 2", ""},
		{"a topic more", []blobschema.Topic{plain("a", 3)}, a + b, []blobschema.Topic{plain("a", 0), plain("b", 0)}, "1 2", ""},
		{"another share", []blobschema.Topic{plain("a", 3)}, a + "    priority: 9\n    slice: 3s\n    minimum: 2/d\n    words: [x]\n", []blobschema.Topic{{
			Name: "a", Priority: 9, Slice: 3 * time.Second, Minimum: 2, Period: 24 * time.Hour, Words: []string{"x"}, Scope: blobschema.ScopeHost, MaxDepth: -1, Requisites: true}}, "1", ""},
		{"nothing of topics", []blobschema.Topic{plain("a", 3)}, "seeds: https://x.example/\n", []blobschema.Topic{plain("a", 3)}, "0", ""},
		{"no topics", nil, "seeds: https://x.example/\n", nil, "0", ""},
		{"a topic less", []blobschema.Topic{plain("a", 0), plain("b", 0)}, a, nil, "", `c.yaml:1: topic "b" of the crawl is missing: topics stay as long as their crawl`},
		{"another order", []blobschema.Topic{plain("b", 0), plain("a", 0)}, a + b, nil, "", `c.yaml:4: topic "b" is number 2 here and 1 in the crawl: topics keep their order, and new ones come after them
c.yaml:2: topic "a" is number 1 here and 2 in the crawl: topics keep their order, and new ones come after them`},
		{"another scope", []blobschema.Topic{plain("a", 0)}, a + "    scope: any\n    max-depth: 3\n", nil, "", `c.yaml:4: scope of topic "a" contradicts the crawl, which was created with host and keeps it
c.yaml:5: max-depth of topic "a" contradicts the crawl, which was created with -1 and keeps it`},
		{"another pattern", []blobschema.Topic{plain("a", 0)}, a + "    exclude: x$\n", nil, "", `c.yaml:4: exclude of topic "a" contradicts the crawl, which was created with (none) and keeps it`},
		{"own priorities", nil, a + own, []blobschema.Topic{plain("a", 0), plain("u", 7), plain("u", 5)}, "1 3 2", ""},
		{"own priorities as they were", []blobschema.Topic{plain("a", 0), plain("u", 5), plain("u", 7), plain("u", 9), plain("b", 0)}, a + own + b,
			[]blobschema.Topic{plain("a", 0), plain("u", 5), plain("u", 7), plain("u", 9), plain("b", 0)}, "1 2 3 5", ""},
		{"another priority at the end", []blobschema.Topic{plain("a", 0), plain("u", 5)}, a + own, []blobschema.Topic{plain("a", 0), plain("u", 5), plain("u", 7)}, "1 2 3", ""},
		{"another priority before a new topic", []blobschema.Topic{plain("a", 0), plain("u", 5)}, a + own + b,
			[]blobschema.Topic{plain("a", 0), plain("u", 5), plain("u", 7), plain("b", 0)}, "1 2 3 4", ""},
		{"another priority before a topic of the crawl", []blobschema.Topic{plain("a", 0), plain("u", 5), plain("b", 0)}, a + own + b, nil, "",
			`c.yaml:9: priority 7 is new in topic "u": a topic that others follow in the crawl keeps the priorities it has: 5`},
		{"no own priorities any more", []blobschema.Topic{plain("a", 0), plain("a", 1)}, a, nil, "", `c.yaml:2: topic "a" was created with granularity: url, and keeps it`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, set, err := parseText(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			set.Topics = slices.Clone(tt.have)
			topics, seeds, problems := f.Join(set)
			if tt.refuse != "" || problems != nil {
				if d := cmp.Diff(tt.refuse, problems.Error()); d != "" {
					t.Error(d)
				}
				return
			}
			if d := cmp.Diff(tt.want, topics); d != "" {
				t.Error(d)
			}
			var numbers []string
			for _, s := range seeds {
				numbers = append(numbers, fmt.Sprint(s.Topic))
			}
			if got := strings.Join(numbers, " "); got != tt.seeds {
				t.Errorf("seeds are of topics %s, want %s", got, tt.seeds)
			}
		})
	}
}

func TestValues(t *testing.T) {
	fast := 100 * time.Millisecond
	for text, want := range map[string]blobschema.HostRule{
		"a.example=8": {Host: "a.example", Connections: 8}, "A.example:8080=100ms": {Host: "a.example:8080", Delay: &fast},
		"[::1]=64,100ms": {Host: "[::1]", Connections: 64, Delay: &fast}, "[::1]=100ms,64": {Host: "[::1]", Connections: 64, Delay: &fast},
	} {
		got, err := ParseHostRule(text)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %v %s", text, err, d)
		}
		if again, err := ParseHostRule(FormatHostRule(got)); err != nil || !cmp.Equal(again, got) {
			t.Errorf("%s: %s does not read the same: %v", text, FormatHostRule(got), err)
		}
	}
	for _, text := range []string{"", "a.example", "a.example=", "=8", "a.example=0", "a.example=65", "a.example=-1s", "a.example=8,9", "a.example=1s,2s", "a b=1", "a.example=8,1s,"} {
		if r, err := ParseHostRule(text); err == nil {
			t.Errorf("rule %q: %+v", text, r)
		}
	}
	for text, want := range map[string]string{"auto": "auto", "host": "host", "bkdr 8": "bkdr:8", "surt:1": "surt:1", "elf 64": "elf:64", "sdbm  3": "sdbm:3"} {
		by, n, err := ParseQueues(text)
		if got := FormatQueues(by, n); got != want || err != nil {
			t.Errorf("queues %q: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "host 3", "auto 3", "bkdr", "bkdr 0", "bkdr 65", "md5 3", "bkdr x"} {
		if by, n, err := ParseQueues(text); err == nil {
			t.Errorf("queues %q: %s %d", text, by, n)
		}
	}
	for text, want := range map[string]string{"500/h": "500/h", "24/d": "1/h", "10000/d": "10000/d", "off": "off", "0.5/h": "12/d", "7/d": "7/d"} {
		rate, err := ParseRate(text)
		if got := FormatRate(rate); got != want || err != nil {
			t.Errorf("rate %q: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "5", "5/m", "0/h", "-1/h", "NaN/h", "Inf/d", "/h"} {
		if rate, err := ParseRate(text); err == nil {
			t.Errorf("rate %q: %v", text, rate)
		}
	}
	for text, want := range map[string]string{"1/h": "1/h", "9/d": "9/d", "5/10m": "5/10m", "5/24h": "5/d", "5/90m": "5/1h30m", "5/90s": "5/1m30s", "5/10h": "5/10h"} {
		n, period, err := ParseMinimum(text)
		if got := FormatMinimum(n, period); got != want || err != nil {
			t.Errorf("minimum %q: %s, %v", text, got, err)
		}
	}
}

// FuzzParse checks that any file is refused or gives settings within their bounds, and that joining it to its own result
// changes nothing.
// TestReadList checks that a list may begin with a byte order mark, and that a line of any length is one line.
func TestReadList(t *testing.T) {
	long := strings.Repeat("x", 3*maxListLine)
	for _, list := range []string{
		"\ufeffa\n# c\r\n" + long + "\nb # c", "\ufeff# c\n\na\n" + long + "\nb\n", "\xff\xfea\x00\n\x00#\x00\n\x00b\x00", "\xfe\xff\x00a\x00\n\x00\r\x00\n\x00b",
	} {
		var got []string
		last := 0
		err := ReadList(strings.NewReader(list), func(line int, url string) bool {
			if url[0] != 'x' {
				got, last = append(got, url), line
			}
			return true
		})
		if want := strings.Count(strings.Trim(strings.ReplaceAll(list, "\x00", ""), "\n"), "\n") + 1; err != nil || !slices.Equal(got, []string{"a", "b"}) || last != want {
			t.Errorf("%.20q: %q, the last in line %d, want %d (%v)", list, got, last, want, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(whole)
	f.Add("seeds: &x [*x]\ntopics: *x\n")
	f.Add("topics:\n  - {name: a, seeds: &s [{url: 'https://a.example/', priority: 3}], granularity: url}\n  - &t {name: b, seeds-file: list.txt, seeds: ['https://b.example']}\n")
	f.Add("hosts:\n- host: a\n  connections: 1\nhosts: []\n<<: {}\n? {}\n: []\n")
	f.Add("delay: !!null x\npolicy: !!binary aGk=\nexclude: |\n  a\n  b\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, set, err := parseText(text)
		if err != nil {
			p := Problems{}
			if !errors.As(err, &p) || len(p) == 0 || err.Error() == "" {
				t.Fatalf("refused without a reason: %v", err)
			}
			return
		}
		topics, seeds, problems := file.Join(set)
		if problems != nil {
			t.Fatalf("accepted, then refused: %v", problems)
		}
		if len(topics) > blobschema.MaxTopics || len(seeds) > maxSeeds {
			t.Fatalf("%d topics, %d seeds", len(topics), len(seeds))
		}
		for i := range topics {
			if err := crawl.CheckTopic(&topics[i]); err != nil || topics[i].Name == "" {
				t.Errorf("topic %q: %v", topics[i].Name, err)
			}
		}
		for _, s := range seeds {
			if int(s.Topic) > len(topics) {
				t.Errorf("seed %s is of topic %d of %d", s.URL, s.Topic, len(topics))
			}
		}
		set.Topics = topics
		again, same, problems := file.Join(set)
		if problems != nil || !cmp.Equal(topics, again) || len(same) != len(seeds) {
			t.Errorf("joined again: %v\n%s", problems, cmp.Diff(topics, again))
		}
	})
}

// FuzzValues checks that an accepted value of a flag is written so that it is read the same.
func FuzzValues(f *testing.F) {
	for _, s := range []string{"a.example=8,100ms", "[::1]:80=2s", "500/h", "7/d", "1e9/h", "bkdr 8", "surt:1", "100/10m", "9/1h1ns", "off", "host"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if r, err := ParseHostRule(s); err == nil {
			if again, err := ParseHostRule(FormatHostRule(r)); err != nil || !cmp.Equal(r, again) {
				t.Errorf("rule %q is written %q: %v", s, FormatHostRule(r), err)
			}
		}
		if by, n, err := ParseQueues(s); err == nil {
			if b, m, err := ParseQueues(FormatQueues(by, n)); err != nil || b != by || m != n {
				t.Errorf("queues %q are written %q: %v", s, FormatQueues(by, n), err)
			}
		}
		if rate, err := ParseRate(s); err == nil {
			if again, err := ParseRate(FormatRate(rate)); err != nil || math.Abs(again-rate) > 1e-9*rate {
				t.Errorf("rate %q is written %q: %v", s, FormatRate(rate), err)
			}
		}
		if n, d, err := ParseMinimum(s); err == nil {
			if m, e, err := ParseMinimum(FormatMinimum(n, d)); err != nil || m != n || e != d {
				t.Errorf("minimum %q is written %q: %v", s, FormatMinimum(n, d), err)
			}
		}
	})
}
