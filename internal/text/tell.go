package text

import (
	"bytes"
	"strings"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/orbweaver/orbweaver/internal/polite"
)

// tell reads an element that says something of the page.
func (p *page) tell(z *html.Tokenizer, a atom.Atom, more bool) {
	var name, content, lang, date []byte
	for n := 0; more && n < maxAttrs; n++ {
		var key, value []byte
		key, value, more = z.TagAttr()
		switch string(key) {
		case "name", "property", "http-equiv", "itemprop":
			if len(name) == 0 {
				name = value
			}
		case "content":
			content = value
		case "lang", "xml:lang":
			lang = value
		case "datetime":
			date = value
		}
	}
	switch a {
	case atom.Html:
		if p.lang == "" {
			p.lang = string(cut(lang, 32))
		}
	case atom.Time:
		if p.published.IsZero() && len(date) > 0 && !p.top().skip {
			p.published = parseTime(date)
		}
	default:
		p.meta(strings.ToLower(string(cut(name, 64))), content)
	}
}

// meta reads a meta element.
func (p *page) meta(name string, content []byte) {
	switch name {
	case "":
	case "description":
		p.description = tellOnce(p.description, content)
	case "og:description", "twitter:description", "dc.description":
		p.ogDescription = tellOnce(p.ogDescription, content)
	case "og:title", "twitter:title", "dc.title":
		p.ogTitle = tellOnce(p.ogTitle, content)
	case "content-language", "og:locale", "dc.language":
		if p.lang == "" {
			p.lang = string(cut(content, 32))
		}
	case "article:published_time", "datepublished", "dc.date", "dc.date.issued", "dcterms.created", "date", "pubdate", "publishdate":
		if at := parseTime(content); !at.IsZero() {
			p.published = at
		}
	case "robots", strings.ToLower(p.token):
		p.noIndex = p.noIndex || polite.ParseMeta(string(cut(content, 4<<10))).NoIndex
	}
}

func tellOnce(dst, content []byte) []byte {
	if len(dst) > 0 {
		return dst
	}
	return fold(dst, 0, cut(content, 4*maxDescription), false)
}

// publishedJSON finds when a page was published in a script of JSON-LD
// (https://schema.org/datePublished), or returns the zero time.
func publishedJSON(script []byte) time.Time {
	const key, looked = `"datePublished"`, 64 << 10
	i := bytes.Index(script[:min(len(script), looked)], []byte(key))
	if i < 0 {
		return time.Time{}
	}
	rest := bytes.TrimLeft(script[i+len(key):], " \t\r\n:")
	if len(rest) == 0 || rest[0] != '"' {
		return time.Time{}
	}
	value, _, ok := bytes.Cut(rest[1:min(len(rest), 64)], []byte(`"`))
	if !ok {
		return time.Time{}
	}
	return parseTime(value)
}

// parseTime reads the forms of ISO 8601 that pages use, and that of HTTP.
func parseTime(value []byte) time.Time {
	s := string(cut(bytes.TrimSpace(value), 40))
	if len(s) < len(time.DateOnly) || !strings.ContainsAny(s[:1], "12MTWFS") { // a year or a day
		return time.Time{}
	}
	for _, layout := range [...]string{
		time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04",
		"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly, time.RFC1123, time.RFC1123Z,
	} {
		// Years before the web are of what the page tells, not of the page.
		if t, err := time.Parse(layout, s); err == nil && t.Year() >= 1990 && t.Year() < 2200 {
			return t.UTC()
		}
	}
	return time.Time{}
}
