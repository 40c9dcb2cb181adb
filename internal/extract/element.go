package extract

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"

	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/polite"
)

// attributes are the relevant attributes of one tag, in UTF-8; nil if absent.
type attributes struct {
	content, href, hreflang, httpEquiv, lang, name, rel, shadowRoot, src, typ []byte
	requisiteAttributes
}

// attributes returns the attributes of the current tag. The tokenizer resolves
// character references when it returns a value. If the document is in another
// charset and the tag is not all ASCII, the tag must be converted before that, so a
// second tokenizer reads the converted tag. This is expensive, so maxConverted bounds it.
func (d *document) attributes() *attributes {
	a := &d.tag
	if d.tagRead {
		return a
	}
	*a, d.tagRead = attributes{requisiteAttributes: requisiteAttributes{wanted: d.opt.Requisites}}, true
	z, src := d.z, d.src
	switch {
	case d.foreign(src):
		if d.converted == maxConverted {
			return a
		}
		d.converted++
		src, z = d.decode(src), nil
	case z == nil:
		if a.regular(src) {
			return a
		}
		d.irregular++
		*a = attributes{requisiteAttributes: requisiteAttributes{wanted: d.opt.Requisites}}
	}
	if z == nil {
		z = html.NewTokenizer(bytes.NewReader(src))
		z.Next()
	}
	for more := true; more; {
		var key, val []byte
		key, val, more = z.TagAttr()
		if to := a.named(key); to != nil {
			*to = val
			if val == nil {
				*to = []byte{} // present but empty
			}
		}
	}
	return a
}

// regular reads the attributes of a tag without a tokenizer. It reports false if
// a value needs the tokenizer.
func (a *attributes) regular(tag []byte) bool {
	for n := spaceEnd(tag, nameEnd(tag, 1)); tag[n] != '>'; {
		name, value, end := attribute(tag, n)
		if to := a.named(tag[name.from:name.to]); to != nil && *to == nil { // the first counts
			v, ok := regularValue(tag[value.from:value.to:value.to])
			if !ok {
				return false
			}
			*to = v
		}
		n = spaceEnd(tag, end)
	}
	return true
}

// named returns the field for the value of an attribute, or nil if the attribute is irrelevant.
func (a *attributes) named(key []byte) *[]byte {
	var name string
	var to *[]byte
	switch len(key) {
	case 3:
		if name, to = "rel", &a.rel; key[0]|0x20 == 's' {
			name, to = "src", &a.src
		}
	case 4:
		switch key[0] | 0x20 {
		case 'h':
			name, to = "href", &a.href
		case 'l':
			name, to = "lang", &a.lang
		case 'n':
			name, to = "name", &a.name
		case 't':
			name, to = "type", &a.typ
		}
	case 7:
		name, to = "content", &a.content
	case 8:
		name, to = "hreflang", &a.hreflang
	case 10:
		name, to = "http-equiv", &a.httpEquiv
	case 14:
		name, to = "shadowrootmode", &a.shadowRoot
	}
	switch {
	case to != nil && equalFold(key, name):
		return to
	case a.wanted:
		return a.requisiteAttributes.named(key)
	}
	return nil
}

// reference adds a link as written.
func (d *document) reference(kind actor.LinkKind, href, rel []byte) int {
	if href == nil {
		return none
	}
	href = withoutFragment(trim(href))
	if otherScheme(href) {
		return none
	}
	return d.add(kind, d.query(href), rel)
}

// element handles a relevant start tag.
func (d *document) element(name string) {
	switch name {
	case "a", "area":
		a := d.attributes()
		ref := d.reference(actor.LinkAnchor, a.href, a.rel)
		if name == "a" {
			// An open anchor ends where the next begins: they do not nest.
			d.anchor = none
			if ref != none && d.begin(ref) {
				d.anchor = ref
			}
		}
	case "frame", "iframe":
		d.reference(actor.LinkFrame, d.attributes().src, nil)
	case "link":
		a := d.attributes()
		if kind, ok := relation(a.rel, a.typ); ok {
			d.reference(kind, a.href, a.rel)
		}
		d.link(a)
	case "h1":
		d.inH1 = len(d.h1) == 0
	case "html":
		if d.Lang == "" {
			d.Lang = folded(d.attributes().lang, maxLang)
		}
	case "base":
		if a := d.attributes(); d.base == nil {
			d.base = a.href
		}
	case "meta":
		d.meta(d.attributes())
	}
}

// relation reports whether a link element leads to a page or a feed, by its rel and
// type.
func relation(rel, typ []byte) (actor.LinkKind, bool) {
	var found, alternate bool
	for t := range bytes.FieldsSeq(rel) {
		switch {
		case equalFold(t, "stylesheet"):
			return 0, false
		case equalFold(t, "canonical"), equalFold(t, "next"), equalFold(t, "prev"), equalFold(t, "previous"):
			found = true
		case equalFold(t, "alternate"):
			alternate = true
		}
	}
	if !alternate {
		return actor.LinkRel, found
	}
	typ, _, _ = bytes.Cut(typ, []byte(";"))
	typ = trim(typ)
	switch {
	case equalFold(typ, "application/rss+xml"), equalFold(typ, "application/atom+xml"), equalFold(typ, "application/feed+json"):
		return actor.LinkFeed, true
	case len(typ) == 0, equalFold(typ, typeHTML), equalFold(typ, typeXHTML):
		return actor.LinkRel, true
	}
	return actor.LinkRel, found
}

// meta handles robots directives and the target of a refresh.
func (d *document) meta(a *attributes) {
	if equalFold(trim(a.httpEquiv), "refresh") {
		if target := refresh(a.content); len(target) > 0 {
			d.reference(actor.LinkRefresh, target, nil)
		}
	}
	if name := string(trim(a.name)); name != "" && (strings.EqualFold(name, "robots") || strings.EqualFold(name, d.opt.Token)) {
		d.robots = d.robots.Or(polite.ParseMeta(string(a.content)))
		if d.directives != "" {
			d.directives += ", "
		}
		d.directives = Fold(d.directives+string(a.content[:min(len(a.content), 4*MaxDirectives)]), MaxDirectives)
	} else if d.Description == "" && strings.EqualFold(name, "description") {
		d.Description = folded(a.content, maxDescription)
	}
}

// refresh returns the target in the content of a meta refresh, or nil
// (HTML Living Standard, 4.2.5.3 shared declarative refresh steps).
func refresh(content []byte) []byte {
	s := trimSpace(content)
	rest := bytes.TrimLeft(s, "0123456789.")
	if len(rest) == len(s) {
		return nil // no time, no refresh
	}
	s = trimSpace(rest)
	if len(s) == len(rest) && (len(s) == 0 || s[0] != ';' && s[0] != ',') {
		return nil
	}
	if len(s) > 0 && (s[0] == ';' || s[0] == ',') {
		s = trimSpace(s[1:])
	}
	if len(s) > 3 && equalFold(s[:3], "url") {
		if v := trimSpace(s[3:]); len(v) > 0 && v[0] == '=' {
			s = trimSpace(v[1:])
		}
	}
	if len(s) > 0 && (s[0] == '"' || s[0] == '\'') {
		s, _, _ = bytes.Cut(s[1:], s[:1])
	}
	return s
}
