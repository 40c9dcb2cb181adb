package text

import (
	"bytes"
	"strings"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// metadata reads an element with information about the page.
func (p *page) metadata(z *html.Tokenizer, a atom.Atom, more bool) {
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
	case "description":
		p.description = firstText(p.description, content)
	case "og:description", "twitter:description", "dc.description":
		p.ogDescription = firstText(p.ogDescription, content)
	case "og:title", "twitter:title", "dc.title":
		p.ogTitle = firstText(p.ogTitle, content)
	case "content-language", "og:locale", "dc.language":
		if p.lang == "" {
			p.lang = string(cut(content, 32))
		}
	case "article:published_time", "datepublished", "dc.date", "dc.date.issued", "dcterms.created", "date", "pubdate", "publishdate":
		if at := parseTime(content); !at.IsZero() {
			p.published = at
		}
	}
}

func firstText(dst, content []byte) []byte {
	if len(dst) > 0 {
		return dst
	}
	return fold(dst, 0, cut(content, 4*maxDescription), false)
}

// publishedJSON returns the date of publication in a script of JSON-LD (https://schema.org/datePublished), or the zero time.
func publishedJSON(script []byte) time.Time {
	const looked = 64 << 10
	_, rest, _ := bytes.Cut(script[:min(len(script), looked)], []byte(`"datePublished"`))
	rest, ok := bytes.CutPrefix(bytes.TrimLeft(rest, " \t\r\n:"), []byte(`"`))
	value, _, closed := bytes.Cut(rest[:min(len(rest), 64)], []byte(`"`))
	if !ok || !closed {
		return time.Time{}
	}
	return parseTime(value)
}

// parseTime parses ISO 8601 and HTTP dates. If it does not recognise the time of day, it returns the day.
func parseTime(value []byte) time.Time {
	s := string(cut(bytes.TrimSpace(value), 40))
	day := s[:min(len(s), len(time.DateOnly))]
	for _, try := range [...]struct{ layout, value string }{
		{time.RFC3339, s}, {"2006-01-02T15:04:05Z0700", s}, {"2006-01-02T15:04:05", s}, {"2006-01-02 15:04:05", s},
		{time.RFC1123, s}, {time.RFC1123Z, s}, {time.DateOnly, day},
	} {
		// Years before the web are part of the content, not the date of the page.
		if t, err := time.Parse(try.layout, try.value); err == nil && t.Year() >= 1990 && t.Year() < 2200 {
			return t.UTC()
		}
	}
	return time.Time{}
}
