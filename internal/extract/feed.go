package extract

import (
	"bytes"

	"golang.org/x/net/html"

	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// A feed reads RSS 0.9x, 1.0 and 2.0 and Atom (RFC 4287). One reader suffices, because the formats differ
// mainly in names: an item is an entry, and a link has its URL in an attribute or as its text. The feed knows
// elements by their local names. It reads the text of an element only if that has the prefix of the element
// around it: media:title is not title.
type feed struct {
	listing

	scope []byte // prefix of the current item, or else of the feed
	skip  []byte // name of the element whose content is skipped

	// The current item.
	item     bool
	itemBase weburl.URL
	outer    []byte // scope outside the item
	at       int    // index of its first link, or none
	id       []byte // URL of the item if it has no link
	caption  []byte
}

// readFeed reads RSS or Atom.
func readFeed(l listing) Result {
	f := feed{listing: l}
	f.limit = MaxLinks
	for tt := f.next(); tt != html.ErrorToken; tt = f.next() {
		switch {
		case tt == html.EndTagToken:
			f.endTag()
		case tt != html.TextToken:
			f.startTag()
		case f.skip == nil:
			f.addText()
		}
	}
	f.finishItem()
	return Result{Links: f.links}
}

func (f *feed) startTag() {
	switch {
	case f.is("item"), f.is("entry"):
		f.beginItem()
		return
	case f.skip != nil:
		return
	case f.is("link"):
		f.link()
		return
	case !f.item && (f.is("rss") || f.is("feed") || f.is("channel")):
		f.scope, f.base = f.prefix, f.xmlBase(f.base)
		return
	}
	if !bytes.Equal(f.prefix, f.scope) {
		return
	}
	switch {
	case f.is("title"):
		f.begin(fieldTitle)
	case f.is("guid"):
		if f.item && !equalFold(trim(f.attribute("ispermalink")), "false") {
			f.begin(fieldID)
		}
	// Markup, and elements with links and titles of their own.
	case f.is("content"), f.is("description"), f.is("summary"), f.is("image"), f.is("source"), f.is("textinput"):
		if !f.closed {
			f.take()
			f.skip = f.name
		}
	}
}

func (f *feed) endTag() {
	switch {
	case f.is("item"), f.is("entry"):
		f.finishItem()
	case f.skip != nil:
		if bytes.Equal(f.name, f.skip) {
			f.skip = nil
		}
	case f.ends():
		f.finishField()
	}
}

// link handles the start tag of a link. A link with an href is one of Atom, in any document and with any prefix.
func (f *feed) link() {
	base := f.base
	if f.item {
		base = f.itemBase
	}
	href := f.attribute("href")
	if href == nil {
		if bytes.Equal(f.prefix, f.scope) {
			f.begin(fieldURL)
		}
		return
	}
	rel := f.attribute("rel")
	if len(trim(rel)) == 0 {
		rel = []byte("alternate")
	}
	kind, ok := relation(rel, f.attribute("type"))
	if !ok {
		return
	}
	f.found(kind, f.xmlBase(base), href)
}

// found adds a link of the current item, or else of the feed.
func (f *feed) found(kind actor.LinkKind, base weburl.URL, href []byte) {
	if f.item && kind == actor.LinkRel {
		kind = actor.LinkEntry
	}
	at := f.add(kind, base, href)
	if at == none || kind != actor.LinkEntry || f.at != none {
		return
	}
	f.at = at
	if l := &f.links[at]; l.Kind == actor.LinkRel {
		l.Kind = kind // the feed links to one of its own items
	}
}

// xmlBase resolves the xml:base of the current tag against a base (https://www.w3.org/TR/xmlbase/). It returns
// the base itself if the tag has no usable xml:base.
func (f *feed) xmlBase(base weburl.URL) weburl.URL {
	ref := f.attribute("xml:base")
	if ref == nil || len(ref) > maxHref {
		return base
	}
	u, err := base.Resolve(string(ref))
	if err != nil {
		return base
	}
	return u
}

func (f *feed) beginItem() {
	f.finishItem()
	f.item, f.outer, f.scope = true, f.scope, f.prefix
	f.itemBase, f.at = f.xmlBase(f.base), none
	f.id = f.attribute("rdf:about")
	if f.closed {
		f.finishItem()
	}
}

// finishItem sets the title of the item's link.
func (f *feed) finishItem() {
	f.take()
	f.skip = nil
	if !f.item {
		return
	}
	if f.at == none && absolute(f.id) {
		f.found(actor.LinkEntry, f.itemBase, f.id)
	}
	if f.at != none && f.links[f.at].Anchor == "" {
		f.links[f.at].Anchor = string(trim(f.caption))
	}
	f.item, f.scope, f.caption, f.id = false, f.outer, f.caption[:0], nil
}

// finishField uses the text of an element after its end tag.
func (f *feed) finishField() {
	kind, value := f.take()
	switch {
	case kind == fieldURL && f.item:
		f.found(actor.LinkEntry, f.itemBase, value)
	case kind == fieldURL:
		f.found(actor.LinkRel, f.base, value)
	case kind == fieldID:
		f.id = trim(value)
	case kind == fieldTitle && f.item && len(f.caption) == 0:
		f.caption, _ = fold(f.caption, 0, unescapeTitle(value), maxAnchor)
	}
}

// unescapeTitle resolves the character references of HTML in a title. Most titles that still have references
// are HTML, even if the feed declares them as text.
func unescapeTitle(title []byte) []byte {
	if bytes.IndexByte(title, '&') < 0 {
		return title
	}
	return []byte(html.UnescapeString(string(title)))
}
