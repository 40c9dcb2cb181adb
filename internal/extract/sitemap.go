package extract

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/html"

	"github.com/orbweaver/orbweaver/internal/actor"
)

// A sitemap reads a list of URLs or of other sitemaps (https://www.sitemaps.org/protocol.html). It knows
// elements by their local names, in any namespace. Elements inside an entry must have the prefix of the entry:
// the loc of an image is not that of its page.
type sitemap struct {
	listing

	// The current entry.
	entry    bool
	kind     actor.LinkKind
	scope    []byte // the prefix of its tag
	at       int    // index of its link, or none
	priority int8
	modified int64
}

// readSitemap reads a urlset or a sitemapindex.
func readSitemap(l listing) Result {
	s := sitemap{listing: l}
	s.limit = MaxListed
	for tt := s.next(); tt != html.ErrorToken; tt = s.next() {
		switch tt {
		case html.TextToken:
			s.addText()
		case html.EndTagToken:
			if s.ends() {
				s.finishField()
			} else if s.is("url") || s.is("sitemap") {
				s.finishEntry()
			}
		default:
			s.startTag()
		}
	}
	s.finishEntry()
	return Result{Links: s.links}
}

func (s *sitemap) startTag() {
	switch {
	case s.is("url"):
		s.beginEntry(actor.LinkListed)
	case s.is("sitemap"):
		s.beginEntry(actor.LinkSitemap)
	case !s.entry:
	case s.is("link"):
		// The same page in another language: xhtml:link, whatever the prefix.
		if kind, ok := relation(s.attribute("rel"), s.attribute("type")); ok {
			s.add(kind, s.base, s.attribute("href"))
		}
	case !bytes.Equal(s.prefix, s.scope):
	case s.is("loc"):
		s.begin(fieldURL)
	case s.is("lastmod"):
		s.begin(fieldModified)
	case s.is("priority"):
		s.begin(fieldPriority)
	}
}

func (s *sitemap) beginEntry(kind actor.LinkKind) {
	s.finishEntry()
	s.entry, s.kind, s.scope, s.at = true, kind, s.prefix, none
	s.priority, s.modified = 0, 0
}

// finishField uses the text of an element of an entry. The first loc counts.
func (s *sitemap) finishField() {
	switch f, value := s.take(); {
	case f == fieldURL && s.at == none:
		s.at = s.add(s.kind, s.base, value)
	case f == fieldModified:
		s.modified = parseDatetime(string(trim(value)))
	case f == fieldPriority:
		s.priority = parsePriority(string(trim(value)))
	}
}

// finishEntry sets the priority and the time of the entry's link. A page that an earlier entry named as a
// translation is listed too.
func (s *sitemap) finishEntry() {
	s.take()
	if !s.entry {
		return
	}
	s.entry = false
	if s.at == none {
		return
	}
	l := &s.links[s.at]
	if l.Kind == actor.LinkRel {
		l.Kind = s.kind
	}
	if l.Priority == 0 {
		l.Priority = s.priority
	}
	if l.Modified == 0 {
		l.Modified = s.modified
	}
}

// readLines reads a plain-text sitemap: one absolute URL per line.
func readLines(l listing) Result {
	l.limit = MaxListed
	for body := l.body; len(body) > 0; {
		n := bytes.IndexAny(body[:min(len(body), maxValue)], "\r\n")
		if n < 0 { // a line longer than maxValue
			if n = bytes.IndexByte(body, '\n'); n < 0 {
				n = len(body)
			}
		}
		line := trim(body[:n])
		body = body[min(n+1, len(body)):]
		if absolute(line) {
			if line = line[:min(len(line), maxValue)]; l.foreign(line) {
				line = l.decode(line)
			}
			l.add(actor.LinkListed, l.base, line)
		}
	}
	return Result{Links: l.links}
}

// parsePriority returns a priority between 0 and 1 in tenths from the default of 0.5. It clamps a number out of
// bounds, and returns 0 for anything else.
func parsePriority(s string) int8 {
	if len(s) > maxNumber {
		return 0
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) {
		return 0
	}
	return int8(math.Round(10*min(max(f, 0), 1))) - 5
}

// maxNumber bounds a priority or a date, in bytes.
const maxNumber = 64

// datetimes are the layouts of the W3C profile of ISO 8601 (https://www.w3.org/TR/NOTE-datetime), the most
// frequent ones first. time.Parse accepts a fraction after the seconds of each.
var datetimes = [...]string{
	time.DateOnly, time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01", "2006",
	"2006-01-02T15:04:05Z0700", "2006-01-02T15:04Z0700", "2006-01-02Z07:00", "2006-01-02Z0700",
}

// parseDatetime reads a date as Unix seconds, rounded down. Parts that are missing are the first, and a missing zone
// is UTC. A malformed date, or one before 1970, is 0.
func parseDatetime(s string) int64 {
	if len(s) > maxNumber {
		return 0
	}
	s = strings.ToUpper(s)
	if len(s) > len(time.DateOnly) && s[len(time.DateOnly)] == ' ' {
		s = s[:len(time.DateOnly)] + "T" + s[len(time.DateOnly)+1:]
	}
	for _, layout := range datetimes {
		if t, err := time.Parse(layout, s); err == nil {
			return max(0, t.Unix())
		}
	}
	return 0
}
