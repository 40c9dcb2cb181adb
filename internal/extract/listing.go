package extract

import (
	"bytes"

	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// A listing collects the links of a sitemap or a feed. Most of its references are absolute URLs that occur
// once, so it resolves each one at once; a collector waits for the end of the page.
type listing struct {
	xmlScanner
	transcoder

	self  weburl.URL
	base  weburl.URL // base of relative references
	links []actor.Link
	seen  map[string]int32 // canonical URL -> index in links
	limit int              // most links
	size  int              // bytes of all URLs

	// The element whose text is read now.
	field   field
	element []byte // name as written
	value   []byte // text so far; may be a slice of the body, see addText
}

// A field is the meaning of an element's text.
type field uint8

const (
	noField field = iota
	fieldURL
	fieldTitle
	fieldID // may be a URL
	fieldModified
	fieldPriority
)

// newListing returns a listing that reads a body as XML or plain text.
func newListing(body []byte, contentType string, self weburl.URL) listing {
	l := listing{self: self, base: self}
	body, l.transcoder = decoded(body, contentType, true)
	l.open(body, true)
	return l
}

// add adds a reference and returns the index of its link. It returns none if the reference is not a web URL or
// a bound is reached.
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

// begin starts to read the text of the current element.
func (l *listing) begin(f field) {
	if l.closed {
		return
	}
	l.field, l.element, l.value = f, l.name, nil
}

// ends reports whether the current end tag ends the element whose text is read.
func (l *listing) ends() bool { return l.field != noField && bytes.Equal(l.name, l.element) }

// take stops reading the text of an element, and returns it.
func (l *listing) take() (field, []byte) {
	f, v := l.field, l.value
	l.field, l.element, l.value = noField, nil, nil
	return f, v
}

// addText adds the current text to the element whose text is read. Most values are one piece of plain text,
// which addText does not copy.
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
		l.value = text[:len(text):len(text)] // appending makes a copy
	case plain:
		l.value = append(l.value, text...)
	default:
		l.value = appendCharacters(l.value, text)
	}
}

// attribute returns the value of an attribute of the current tag in UTF-8, or nil if the tag lacks it.
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
