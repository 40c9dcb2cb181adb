package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/crawlfile"
)

// readText reads a crawl file together with flags.
func readText(t *testing.T, text string, args ...string) (*crawlFlags, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &crawlFlags{}
	cmd := &cobra.Command{}
	f.register(cmd)
	if err := cmd.ParseFlags(append(args, "--file", name)); err != nil {
		t.Fatal(err)
	}
	return f, f.readFile()
}

// TestExampleFile checks that the example in the help is a valid crawl file.
func TestExampleFile(t *testing.T) {
	f, err := readText(t, exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	fresh, seeds := f.describe(nil)
	set := fresh.Settings
	if len(set.Topics) != 3 || len(set.Hosts) != 1 || set.Policy != "capability" || set.Quality != "opic" || set.QueueBy != blobschema.QueueByBKDR || set.Queues != 8 {
		t.Errorf("%+v", set)
	}
	var topics []uint8
	for _, s := range seeds {
		topics = append(topics, s.Topic)
	}
	if !slices.Equal(topics, []uint8{0, 1, 3, 2}) {
		t.Errorf("seeds are of topics %v", topics)
	}
}

// TestFileAndFlags checks that a key means the flag of the same name, and that the flag overrides it.
func TestFileAndFlags(t *testing.T) {
	const file = "delay: 3s\nscope: any\nexclude: [a, b]\nrecrawl: 24/d\nrequisites: false\nhosts: [{host: a.example, connections: 2}]\n" +
		"topics: [{name: x, seeds: ['https://x.example/']}]\n"
	f, err := readText(t, file, "--exclude", "c", "--host-rule", "b.example=7s", "--scope=domain")
	if err != nil {
		t.Fatal(err)
	}
	fresh, _ := f.describe(nil)
	got := fresh.Settings
	beside := &crawlFlags{}
	cmd := &cobra.Command{}
	beside.register(cmd)
	if err := cmd.ParseFlags([]string{"--delay=3s", "--scope=domain", "--exclude=c", "--recrawl=1/h", "--requisites=false", "--host-rule=b.example=7s"}); err != nil {
		t.Fatal(err)
	}
	other, _ := beside.describe(nil)
	want := other.Settings
	want.Topics = []blobschema.Topic{{Name: "x", Scope: blobschema.ScopeDomain, Exclude: []string{"c"}, MaxDepth: -1}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestFileProblems checks the errors that only the flags detect.
func TestFileProblems(t *testing.T) {
	_, err := readText(t, strings.Join([]string{
		"policy: best", "quality: worst", "delay: 1", "timeout: 0s", "sitemaps: on", "slots: many", "partitions: 0", "elastic: 3", "max-body: 1XB",
		"max-depth: 70000", "max-pages: 0", "compress: zip", "user-agent: '/'", "recrawl: 3", "queues: host 3", "partition-by: url", "delays: 3s",
		"host-ranks: none.tsv", "max-time: 3s", "allow-net: 127.0.0.1", "data: d", "new: true", "delay: [1s, 2s]", "scope: [host, any]", "host-rule: a.example=3",
		"skip-bad-seeds: true", "costs: true",
	}, "\n"))
	problems := crawlfile.Problems{}
	if !errors.As(err, &problems) {
		t.Fatal(err)
	}
	var got []string
	for _, p := range problems {
		dir := filepath.Dir(p.File)
		p.File = "c.yaml"
		line, _, _ := strings.Cut(p.String(), "; its keys are ")
		got = append(got, strings.ReplaceAll(line, dir, "DIR"))
	}
	if d := cmp.Diff([]string{
		`c.yaml:1: policy "best": it must be breadth-first, performance, quality or capability`,
		`c.yaml:2: quality "worst": it must be depth, in-links, opic, host-rank or zipf`,
		`c.yaml:3: delay "1": it must be a time such as 500ms, 1s or 2m`,
		`c.yaml:4: timeout "0s": it must be longer than 0s`,
		`c.yaml:5: sitemaps "on": it must be true or false`,
		`c.yaml:6: slots "many": it must be 1 to 65536`,
		`c.yaml:7: partitions "0": it must be 1 to 4096`,
		`c.yaml:8: elastic "3": it must be LEAST..MOST, such as 2..16, with 1 to 4096 partitions, or off`,
		`c.yaml:9: max-body "1XB": it must be a number of bytes such as 1048576, 16MiB or 1MB, at most 63MiB`,
		`c.yaml:10: max-depth "70000": it must be 0 to 65535, or -1 for no bound`,
		`c.yaml:11: max-pages "0": it must be 1 or more, or -1 for no bound`,
		`c.yaml:12: compress "zip": it must be gzip or none`,
		`c.yaml:13: user-agent "/": it must begin with a product of letters, "-" and "_", as in "mybot/1.0 (+https://example.org/bot)"`,
		`c.yaml:14: recrawl "3": it must be URLs in an hour or in a day, such as 500/h or 10000/d, or off`,
		`c.yaml:15: queues "host 3": it must be auto, host, or surt, bkdr, elf or sdbm with a number of queues from 1 to 64, such as bkdr:8`,
		`c.yaml:16: partition-by "url": it must be host, domain or ip`,
		`c.yaml:17: a crawl file has no key "delays"`,
		`c.yaml:18: --host-ranks: open DIR/none.tsv: no such file or directory`,
		`c.yaml:19: a crawl file has no key "max-time"`,
		`c.yaml:20: a crawl file has no key "allow-net"`,
		`c.yaml:21: a crawl file has no key "data"`,
		`c.yaml:22: a crawl file has no key "new"`,
		`c.yaml:23: delay is given twice: see line 3`,
		`c.yaml:24: scope "host any": it takes one value`,
		`c.yaml:25: a crawl file has no key "host-rule"`,
		`c.yaml:26: a crawl file has no key "skip-bad-seeds"`,
		`c.yaml:27: a crawl file has no key "costs"`,
	}, got); d != "" {
		t.Error(d)
	}
}

// TestResumeFile checks how a changed file changes the settings and seeds of a crawl.
func TestResumeFile(t *testing.T) {
	const file = "delay: 3s\npolicy: capability\nmax-depth: 4\nhosts: [{host: a.example, connections: 2}]\ntopics:\n  - name: x\n    seeds: ['https://x.example/']\n"
	begun, err := readText(t, file)
	if err != nil {
		t.Fatal(err)
	}
	begin := func() blobschema.Crawl {
		c, _ := begun.describe(nil)
		return c
	}
	resume := func(text string, args ...string) (blobschema.Crawl, []crawl.Seed, error) {
		f, err := readText(t, text, args...)
		if err != nil {
			t.Fatal(err)
		}
		f.data, f.location = "d", folder("d")
		_, seeds := f.describe(nil)
		c, err := f.resume(begin())
		return c, seeds, err
	}
	if c, _, err := resume(file); err != nil || !cmp.Equal(c, begin()) {
		t.Errorf("as it was: %v\n%s", err, cmp.Diff(begin(), c))
	}
	want := begin()
	want.Settings.Delay, want.Settings.Hosts, want.Settings.Topics[0].Priority = 5e9, []blobschema.HostRule{}, 9
	want.Settings.Topics = append(want.Settings.Topics, blobschema.Topic{Name: "y", Scope: blobschema.ScopeHost, MaxDepth: 4, Requisites: true})
	// The file lacks max-depth, so topics keep the crawl's value instead of the default.
	c, seeds, err := resume("delay: 5s\nhosts: []\ntopics:\n  - {name: x, priority: 9, seeds: ['https://x.example/']}\n  - {name: y, seeds: ['https://y.example/']}\n")
	if d := cmp.Diff(want, c); d != "" || err != nil {
		t.Errorf("%v %s", err, d)
	}
	if len(seeds) != 2 || seeds[0].Topic != 1 || seeds[1].Topic != 2 {
		t.Errorf("seeds are %v", seeds)
	}
	_, _, err = resume("policy: breadth-first\ndelay: 1s\nmax-depth: 3\ntopics:\n  - name: y\n    seeds: ['https://y.example/']\n", "--scope=host")
	if err == nil {
		t.Fatal("what contradicts was taken")
	}
	var got []string
	for line := range strings.Lines(err.Error()) {
		_, text, _ := strings.Cut(strings.TrimSpace(line), "c.yaml:")
		got = append(got, text)
	}
	if d := cmp.Diff([]string{
		"1: policy breadth-first contradicts the crawl in d, which was created with capability and keeps it",
		"3: max-depth 3 contradicts the crawl in d, which was created with 4 and keeps it",
		`4: topic "x" of the crawl is missing: topics stay as long as their crawl`,
	}, got); d != "" {
		t.Error(d)
	}
}
