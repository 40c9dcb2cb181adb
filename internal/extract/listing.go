package extract

import (
	"bytes"

	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// A listing gathers the links of a document that lists them: a sitemap or a feed.
// Most of what it is given is an absolute URL met once, so, other than in a
// collector, each is resolved as it comes.
type listing struct {
	xmlScanner
	decoder

	self  weburl.URL
	base  weburl.URL // what links are resolved against
	links []actor.Link
	seen  map[string]int32 // canonical URL -> index in links
	limit int              // of links
	size  int              // of all URLs

	// The element whose text is being read.
	field   field
	element []byte // its name, as written
	value   []byte // its text so far; may be of the body, see addText
}

// A field says what the text of an element is.
type field uint8

const (
	noField field = iota
	fieldURL
	fieldTitle
	fieldID // a URL, perhaps
	fieldModified
	fieldPriority
)

// newListing begins to read a body as XML or plain text.
func newListing(body []byte, contentType string, self weburl.URL) listing {
	l := listing{self: self, base: self}
	cs := detectXML(body, contentType)
	body = body[cs.bom:]
	l.enc = cs.enc
	if cs.wide {
		body = l.decode(body)
		l.decoder = decoder{}
	}
	l.open(body, true)
	return l
}

// add takes one reference and returns the index of its link, or none if it leads
// nowhere or a bound is reached.
func (l *listing) add(kind actor.LinkKind, base weburl.URL, href []byte) int {
	href = trim(href)
	if len(href) == 0 || otherScheme(href) {
		return none
	}
	href = withoutFragment(href)
	if len(href) > maxHref {
		return none
	}
	u, err := base.Resolve(string(href))
	if err != nil || u == l.self {
		return none
	}
	if i, ok := l.seen[u.String()]; ok {
		return int(i)
	}
	if len(l.links) == l.limit || l.size+len(u.String()) > maxListed {
		return none
	}
	if l.seen == nil {
		l.seen = make(map[string]int32)
	}
	at := len(l.links)
	l.seen[u.String()] = int32(at)
	l.size += len(u.String())
	l.links = append(l.links, actor.Link{URL: u, Kind: kind})
	return at
}

// begin makes the current start tag the one whose text is read.
func (l *listing) begin(f field) {
	if l.closed {
		return
	}
	l.field, l.element, l.value = f, l.name, nil
}

// ends reports whether the current end tag is that of the element being read.
func (l *listing) ends() bool { return l.field != noField && bytes.Equal(l.name, l.element) }

// take ends the element being read and returns its text.
func (l *listing) take() (field, []byte) {
	f, v := l.field, l.value
	l.field, l.element, l.value = noField, nil, nil
	return f, v
}

// addText adds the current text or section to the element being read. Most values
// are one piece of plain text: it is not copied.
func (l *listing) addText() {
	if l.field == noField || len(l.value) >= maxValue {
		return
	}
	text := l.text
	if len(l.value) == 0 {
		text = trimSpace(text)
	}
	text = text[:min(len(text), maxValue)]
	if l.foreign(text) {
		text = l.decode(text)
	}
	plain := l.section || bytes.IndexByte(text, '&') < 0
	switch {
	case plain && len(l.value) == 0:
		l.value = text[:len(text):len(text)] // what is appended goes to a copy
	case plain:
		l.value = append(l.value, text...)
	default:
		l.value = appendCharacters(l.value, text)
	}
}

// attribute returns the value of an attribute of the current tag in UTF-8, nil if
// there is none.
func (l *listing) attribute(name string) []byte {
	v := tagAttribute(l.src, name)
	if v == nil {
		return nil
	}
	v = v[:min(len(v), maxValue)]
	if l.foreign(v) {
		v = l.decode(v)
	}
	if bytes.IndexByte(v, '&') >= 0 {
		v = appendCharacters([]byte{}, v)
	}
	return v
}
