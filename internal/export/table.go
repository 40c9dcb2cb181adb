package export

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/orbweaver/orbweaver/internal/extract"
	"github.com/orbweaver/orbweaver/internal/text"
	"github.com/orbweaver/orbweaver/internal/view"
)

// Record is a page record with what is not in it.
type Record struct {
	view.Record
	Topic    string      `json:"topic_name,omitempty"`
	Headers  [][2]string `json:"response_headers,omitempty"` // if wanted
	Words    *int        `json:"words,omitempty"`            // of the main text, if wanted; nil: the answer has no text
	Language string      `json:"language,omitempty"`         // ISO 639-1, detected with the words
	Media    string      `json:"mime_detected,omitempty"`    // detected with the words

	damage error // of the stored answer
}

// read sets what the body shows.
func (r *Record) read(a *answer) {
	r.Media = extract.Media(a.contentType, a.body)
	if d, ok := text.Extract(a.contentType, a.body, r.URL); ok {
		n := words(d.Body)
		r.Words, r.Language = &n, d.Lang
	}
}

// words counts the words of a text: runs of letters and digits, and in scripts without spaces each character.
func words(text string) (n int) {
	inside := false
	for _, c := range text {
		switch {
		case unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai):
			n++
			inside = false
		case unicode.IsLetter(c) || unicode.IsDigit(c):
			if !inside {
				n++
			}
			inside = true
		case c != '\'' && c != '’' && !unicode.IsMark(c):
			inside = false
		}
	}
	return n
}

// A column of a table in CSV.
type column[R any] struct {
	name string
	cell func(*R) string
}

func header[R any](columns []column[R]) (names []string) {
	for _, c := range columns {
		names = append(names, c.name)
	}
	return names
}

func cells[R any](columns []column[R], r *R) (out []string) {
	for _, c := range columns {
		out = append(out, c.cell(r))
	}
	return out
}

// number writes 0 as an empty cell: the value is not known.
func number[N uint8 | uint16 | uint32 | int64](n N) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(int64(n), 10)
}

func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts always encode
	}
	return string(b)
}

// pageColumns are the columns of pages in CSV, named as in JSON.
var pageColumns = []column[Record]{
	{"url", func(r *Record) string { return r.URL }},
	{"time", func(r *Record) string { return r.Time.Format(time.RFC3339) }},
	{"outcome", func(r *Record) string { return r.Outcome.String() }},
	{"status", func(r *Record) string { return number(r.Status) }},
	{"redirect", func(r *Record) string { return r.Redirect }},
	{"mime", func(r *Record) string { return r.MIME }},
	{"charset", func(r *Record) string { return r.Charset }},
	{"body_bytes", func(r *Record) string { return number(r.BodyBytes) }},
	{"truncated", func(r *Record) string { return r.Truncated }},
	{"ttfb_ms", func(r *Record) string { return number(r.FirstByte) }},
	{"total_ms", func(r *Record) string { return number(r.Total) }},
	{"title", func(r *Record) string { return r.Title }},
	{"h1", func(r *Record) string { return r.H1 }},
	{"description", func(r *Record) string { return r.Description }},
	{"canonical", func(r *Record) string { return r.Canonical }},
	{"lang", func(r *Record) string { return r.Lang }},
	{"hreflang", func(r *Record) string {
		var list []string
		for _, a := range r.Hreflang {
			list = append(list, a.Lang+" "+a.URL)
		}
		return strings.Join(list, "\n")
	}},
	{"robots_directives", func(r *Record) string { return r.Directives }},
	{"noindex", func(r *Record) string { return strconv.FormatBool(r.NoIndex) }},
	{"requisite", func(r *Record) string { return strconv.FormatBool(r.Requisite) }},
	{"links", func(r *Record) string { return strconv.Itoa(int(r.Links)) }},
	{"depth", func(r *Record) string { return strconv.Itoa(int(r.Depth)) }},
	{"generation", func(r *Record) string { return strconv.Itoa(int(r.Generation)) }},
	{"change", func(r *Record) string { return r.Change }},
	{"topic_name", func(r *Record) string { return r.Topic }},
	{"detail", func(r *Record) string { return r.Detail }},
	{"ip", func(r *Record) string { return r.IP }},
	{"protocol", func(r *Record) string { return r.Protocol }},
	{"digest", func(r *Record) string { return r.Digest }},
	{"warc", func(r *Record) string { return r.WARC }},
	{"offset", func(r *Record) string { return number(r.Offset) }},
	{"length", func(r *Record) string { return number(r.Length) }},
	{"first_referrer", func(r *Record) string { return r.Referrer }},
	{"words", func(r *Record) string {
		if r.Words == nil {
			return ""
		}
		return strconv.Itoa(*r.Words)
	}},
	{"language", func(r *Record) string { return r.Language }},
	{"response_headers", func(r *Record) string {
		if r.Headers == nil {
			return ""
		}
		return jsonText(r.Headers)
	}},
}

// linkColumns are the columns of links in CSV, named as in JSON.
var linkColumns = []column[view.Link]{
	{"source", func(l *view.Link) string { return l.Source }},
	{"fetched", func(l *view.Link) string { return l.Fetched.Format(time.RFC3339) }},
	{"target", func(l *view.Link) string { return l.Target }},
	{"target_host", func(l *view.Link) string { return l.Host }},
	{"kind", func(l *view.Link) string { return l.Kind }},
	{"anchor", func(l *view.Link) string { return l.Anchor }},
	{"nofollow", func(l *view.Link) string { return strconv.FormatBool(l.NoFollow) }},
	{"followed", func(l *view.Link) string { return strconv.FormatBool(l.Followed) }},
	{"target_outcome", func(l *view.Link) string { return l.Outcome }},
	{"target_status", func(l *view.Link) string { return number(l.Status) }},
}
