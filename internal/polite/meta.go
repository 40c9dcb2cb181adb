package polite

import (
	"strings"
	"time"
)

// Bounds of a page's directives. The rest is ignored.
const (
	maxMetaBytes = 4096
	maxTagValues = 32 // X-Robots-Tag headers of one answer
)

// Directives are the requests of a page to indexers. Only robots.txt decides whether a page may
// be fetched.
type Directives struct {
	NoIndex  bool // do not show the page in results
	NoFollow bool // do not follow its links
}

// Or returns the restrictions of d and of o.
func (d Directives) Or(o Directives) Directives {
	return Directives{d.NoIndex || o.NoIndex, d.NoFollow || o.NoFollow}
}

// ParseMeta parses the content of a <meta name="robots"> or <meta name="TOKEN">: words
// separated by commas or blanks, in any case. If words contradict each other, the
// restriction holds. It ignores unknown words, and everything after 4 KiB.
func ParseMeta(content string) Directives {
	var d Directives
	words := strings.FieldsFuncSeq(content[:min(len(content), maxMetaBytes)], func(r rune) bool {
		return r == ',' || r == ';' || r <= ' ' || r == '\u00a0'
	})
	for w := range words {
		d = d.Or(directiveWord(w))
	}
	return d
}

func directiveWord(w string) Directives {
	switch {
	case strings.EqualFold(w, "noindex"):
		return Directives{NoIndex: true}
	case strings.EqualFold(w, "nofollow"):
		return Directives{NoFollow: true}
	case strings.EqualFold(w, "none"):
		return Directives{NoIndex: true, NoFollow: true}
	}
	return Directives{}
}

// ParseXRobotsTag parses the values of all X-Robots-Tag headers of one answer. A value is
// a list of directives separated by commas. "name:" before a directive restricts it and the following ones,
// up to the next name in the same value, to the user agent of that name.
// "unavailable_after: DATE" is noindex from that time on; an unreadable date is
// ignored, and a zone of unknown name is UTC. It reads at most 32 values of 4 KiB each.
func ParseXRobotsTag(values []string, token string, now time.Time) Directives {
	var d Directives
	for _, v := range values[:min(len(values), maxTagValues)] {
		d = d.Or(parseTag(v[:min(len(v), maxMetaBytes)], productToken([]byte(token)), now))
	}
	return d
}

func parseTag(rest, token string, now time.Time) Directives {
	var d Directives
	ours := true
	for more := true; more; {
		var item string
		item, rest, more = strings.Cut(rest, ",")
		key, value, colon := cutKey(item)
		if colon && isAgentName(key) {
			ours = key == "*" || strings.EqualFold(key, "robots") ||
				token != "" && productToken([]byte(key)) == token
			key, value, _ = cutKey(value)
		}
		if !ours {
			continue
		}
		d = d.Or(directiveWord(key))
		if strings.EqualFold(key, "unavailable_after") {
			at, ok := parseDate(value)
			if !ok { // the comma may belong to the date, as in "Friday, 25-Jun-10 …"
				next, _, _ := strings.Cut(rest, ",")
				at, ok = parseDate(value + "," + next) // the next round skips its rest as an unknown word
			}
			d.NoIndex = d.NoIndex || ok && !now.Before(at)
		}
	}
	return d
}

func cutKey(item string) (key, value string, colon bool) {
	key, value, colon = strings.Cut(item, ":")
	return strings.TrimSpace(key), strings.TrimSpace(value), colon
}

// isAgentName distinguishes "bot: noindex" from "max-snippet: 20".
func isAgentName(key string) bool {
	switch strings.ToLower(key) {
	case "", "unavailable_after", "max-snippet", "max-image-preview", "max-video-preview",
		"all", "none", "index", "follow", "noindex", "nofollow":
		return false
	}
	return !strings.ContainsAny(key, blanks) // a time of day, cut at its colon, has blanks
}

// parseDate parses the usual date formats: those of RFC 822, 850 and 1123 with
// and without names of days, and ISO 8601.
func parseDate(s string) (time.Time, bool) {
	s = strings.TrimSpace(s)
	for _, layout := range []string{
		time.RFC1123, time.RFC1123Z, time.RFC850, time.RFC822, time.RFC822Z, time.ANSIC,
		"2 Jan 2006 15:04:05 MST", "2 Jan 2006 15:04:05 -0700", "2 Jan 2006",
		time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04:05-0700",
		"2006-01-02 15:04:05 MST", "2006-01-02 15:04:05", time.DateOnly,
	} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
