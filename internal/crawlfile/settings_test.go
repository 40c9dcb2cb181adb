package crawlfile

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/schedule"
)

// TestSettings sets each setting to valid values and reads them back; other values are refused.
func TestSettings(t *testing.T) {
	for name, values := range map[string]struct {
		good map[string]string // valid values, each with its written form
		bad  []string
	}{
		"max-body": {map[string]string{"1048576": "1MiB", "7b": "7", "16MiB": "16MiB", "16 mib": "16MiB", "1.5MiB": "1536KiB", "3KB": "3000", "5mb": "5000000"},
			[]string{"", "0", "MiB", "-1", "1XB", "2GiB", "9223372036854775807k", "9223372036854775808", "1MiB2"}},
		"elastic": {map[string]string{"off": "off", "1..1": "1..1", "2..16": "2..16", "1..4096": "1..4096"},
			[]string{"", "3", "0..4", "4..2", "1..4097", "1-4", "..", "1..x", "-1..2", "1..2..3", "on"}},
		"user-agent": {map[string]string{"my-bot_x/2 (+http://x.example/)": "my-bot_x/2 (+http://x.example/)", "bot": "bot"},
			[]string{"", "9bot/1", "/1", " bot/1", "bot.x/1", "böt/1", "bot/1\r\nHost: x"}},
		"allow-net":     {nil, []string{"", "localhost", "127.0.0.1/33", "fe80::1%eth0", "1.2.3"}},
		"max-pages":     {map[string]string{"1": "1", "-1": "-1"}, []string{"0", "-2", "", "x"}},
		"max-host-urls": {map[string]string{"0": "-1", "-1": "-1", "7": "7"}, []string{"-2"}},
		"max-repeats":   {map[string]string{"2147483647": "2147483647"}, []string{"2147483648"}},
		"sitemaps":      {map[string]string{"true": "true", "false": "false"}, []string{"on", ""}},
		"compress":      {map[string]string{"gzip": "gzip", "none": "none"}, []string{"zip"}},
		"delay":         {map[string]string{"0s": "0s", "2m": "2m0s"}, []string{"-1s", "1", "soon"}},
	} {
		s := Find(name)
		for text, want := range values.good {
			var c, again blobschema.Crawl
			if err := s.Set(&c, text); err != nil || s.Get(&c) != want {
				t.Errorf("%s %q: %q, %v; want %q", name, text, s.Get(&c), err, want)
			}
			if err := s.Set(&again, s.Get(&c)); err != nil || s.Get(&again) != want {
				t.Errorf("%s %q is written %q and read as %q, %v", name, text, want, s.Get(&again), err)
			}
		}
		for _, text := range values.bad {
			if s.Set(&blobschema.Crawl{}, text) == nil {
				t.Errorf("%s %q was taken", name, text)
			}
		}
	}
}

// TestNetworks checks that networks are added to the existing ones, unless those are removed.
func TestNetworks(t *testing.T) {
	var c blobschema.Crawl
	s := Find("allow-net")
	for _, tt := range []struct {
		texts []string
		want  string
	}{
		{[]string{"::1/128", "192.168.0.0/16"}, "::1/128 192.168.0.0/16"},
		{[]string{"127.0.0.1", "10.1.2.3/8", "::1", "fd00::/8"}, "::1/128 192.168.0.0/16 127.0.0.1/32 10.0.0.0/8 fd00::/8"},
		{[]string{"none", "10.0.0.1"}, "10.0.0.1/32"},
	} {
		if err := s.Replace(&c, tt.texts); err != nil || s.Get(&c) != tt.want {
			t.Errorf("%s: %s, %v", tt.texts, s.Get(&c), err)
		}
	}
}

// TestDefaults checks that the defaults are in the record, and that a list is replaced as a whole.
func TestDefaults(t *testing.T) {
	c := Defaults("x/1")
	for i := range Settings {
		if s := &Settings[i]; s.Default != "" && s.Get(&c) != s.Default {
			t.Errorf("%s is %s, and should be %s", s.Name, s.Get(&c), s.Default)
		}
	}
	s := Find("exclude")
	if err := errors.Join(s.Replace(&c, []string{"a", "b"}), s.Replace(&c, []string{"c"})); err != nil || s.Get(&c) != "c" {
		t.Errorf("%s, %v", s.Get(&c), err)
	}
	if s := Find("delay"); s.Replace(&c, []string{"1s", "2s"}) == nil {
		t.Error("two values of one setting were taken")
	}
	c.Slots, c.Partitions = 4, 5
	if name, err := Check(&c); name != "partitions" || err == nil {
		t.Errorf("%s: %v", name, err)
	}
}

// TestKinds checks that the help lists all policies and qualities.
func TestKinds(t *testing.T) {
	for name, by := range map[string]func(string) error{
		"policy":  func(s string) error { _, err := schedule.PolicyByName(s, ""); return err },
		"quality": func(s string) error { _, err := schedule.QualityByName(s); return err },
	} {
		for n := range strings.SplitSeq(Find(name).Kind(), "|") {
			if err := by(n); err != nil {
				t.Errorf("the help names %s: %v", n, err)
			}
		}
	}
}

// TestReference checks that docs/crawl-file.md contains the table generated from the settings.
func TestReference(t *testing.T) {
	b, err := os.ReadFile("../../docs/crawl-file.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), reference()) {
		t.Errorf("docs/crawl-file.md should have this table:\n%s", reference())
	}
}

// reference returns the Markdown table of the keys of settings, for docs/crawl-file.md.
func reference() string {
	var b strings.Builder
	b.WriteString("| key | value | default | on resume | |\n|---|---|---|---|---|\n")
	for i := range Settings {
		s := &Settings[i]
		if s.NoKey {
			continue
		}
		resume := "changes"
		if s.Fixed {
			resume = "stays"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", s.Name, strings.ReplaceAll(s.Kind(), "|", ", "), s.Default, resume, s.Usage)
	}
	return b.String()
}

// TestPatterns checks that a list of patterns differs from one pattern with a space.
func TestPatterns(t *testing.T) {
	var one, two blobschema.Crawl
	s := Find("include")
	if err := errors.Join(s.Replace(&one, []string{"a b"}), s.Replace(&two, []string{"a", "b"})); err != nil || s.Get(&one) == s.Get(&two) {
		t.Errorf("%v, both are %s", err, s.Get(&one))
	}
}
