package polite

import (
	"strings"
	"testing"
	"time"
)

func (d Directives) String() string {
	s := ""
	if d.NoIndex {
		s += "i"
	}
	if d.NoFollow {
		s += "f"
	}
	return s
}

func TestParseMeta(t *testing.T) {
	for content, want := range map[string]string{
		"":                                 "",
		"index, follow":                    "",
		"all":                              "",
		"noindex":                          "i",
		"NoFollow":                         "f",
		"none":                             "if",
		"noindex,nofollow":                 "if",
		" \t noindex ;\u00a0nofollow\n":    "if",
		"noindex nofollow":                 "if",
		"index, noindex":                   "i",
		"max-snippet:-1, noindex":          "i",
		"noindexed, donofollow":            "",
		"noarchive, nosnippet":             "",
		"\xff,noindex":                     "i",
		strings.Repeat(",", 5000) + "none": "",
	} {
		if got := ParseMeta(content).String(); got != want {
			t.Errorf("%.40q: got %q, want %q", content, got, want)
		}
	}
}

func TestParseXRobotsTag(t *testing.T) {
	now := time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct{ values, want string }{ // values, separated by "|"
		{"", ""},
		{"noindex", "i"},
		{"NOINDEX, nofollow", "if"},
		{"none", "if"},
		{"all", ""},
		{"noindex|nofollow", "if"},
		{"bot: noindex", "i"},
		{"Bot : noindex , nofollow", "if"},
		{"bot/1.0: noindex", "i"},
		{"*: nofollow", "f"},
		{"robots: nofollow", "f"},
		{"otherbot: noindex", ""},
		{"bots: noindex", ""},
		{"otherbot: noindex, nofollow", ""},
		{"otherbot: noindex|nofollow", "f"},
		{"nofollow, otherbot: noindex", "f"},
		{"otherbot: noindex, bot: nofollow", "f"},
		{"bot: nofollow, otherbot: noindex", "f"},
		{"max-snippet: 20, noindex", "i"},
		{"max-image-preview:large, max-video-preview: 3, nofollow", "f"},
		{"noindex: x, nofollow", "if"},
		{"unavailable_after: 25 Jun 2010 15:00:00 PST", "i"},
		{"unavailable_after: 25 Jun 2050 15:00:00 PST", ""},
		{"unavailable_after: 25-Jun-2050 15:00:00, nofollow", "f"},
		{"unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT, nofollow", "if"},
		{"unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT , nofollow", "if"},
		{"unavailable_after: Friday, 25-Jun-10 15:00:00 UTC", "i"},
		{"max-snippet: 2010-01-01", ""},
		{"unavailable_after: Saturday, 25-Jun-50 15:00:00 UTC, nofollow", "f"},
		{"unavailable_after: 2025-06-01T12:00:00Z", "i"},
		{"unavailable_after: 2025-06-01T12:00:01Z", ""},
		{"unavailable_after: 2025-06-01T14:00:00+02:00", "i"},
		{"unavailable_after: 2025-06-01", "i"},
		{"unavailable_after: 2025-06-02", ""},
		{"bot: unavailable_after: 2010-01-01", "i"},
		{"otherbot: unavailable_after: 2010-01-01", ""},
		{"otherbot: unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT, noindex", ""},
		{"unavailable_after:, noindex", "i"},
		{"unavailable_after", ""},
		{"unavailable_after: never, ever, noindex", "i"},
		{"unavailable_after: " + strings.Repeat("2010-01-01 ", 1000), ""},
		{",,:,::, :noindex", ""},
		{strings.Repeat(",", 5000) + "none", ""},
		{strings.Repeat("|", 40) + "none", ""},
	} {
		if got := ParseXRobotsTag(strings.Split(c.values, "|"), "Bot/2.0", now).String(); got != c.want {
			t.Errorf("%.60q: got %q, want %q", c.values, got, c.want)
		}
	}
	if got := ParseXRobotsTag([]string{"noindex", "bot: nofollow"}, "", now).String(); got != "i" {
		t.Errorf("without token: got %q", got)
	}
}

func FuzzDirectives(f *testing.F) {
	f.Add("bot: unavailable_after: Friday, 25-Jun-10 15:00:00 PST, noindex")
	f.Add("none,max-snippet: 20, otherbot: x")
	f.Fuzz(func(t *testing.T, s string) {
		ParseMeta(s)
		now := time.Unix(1e9, 0)
		d := ParseXRobotsTag([]string{s}, "bot", now)
		// Later, permissions are only withdrawn.
		if later := ParseXRobotsTag([]string{s}, "bot", now.AddDate(50, 0, 0)); later.Or(d) != later {
			t.Errorf("%q: %v, later %v", s, d, later)
		}
		if len(s)+len(",none") <= maxMetaBytes && ParseMeta(s+",none") != (Directives{true, true}) {
			t.Errorf("%q spoils what follows", s)
		}
	})
}
