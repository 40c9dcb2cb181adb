package extract

import (
	"bytes"

	"golang.org/x/net/html"

	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// A feed is an RSS 0.9x, 1.0 or 2.0 or Atom (RFC 4287) document being read. One
// reader does for all, since they differ in what they call things: an item is an
// entry, and a link has its URL in an attribute or as its text. Elements are known
// by their local names; those whose text is read must have the prefix of what they
// are in, or media:title would be taken for title.
type feed struct {
	listing

	scope []byte // the prefix of the feed or, if one is being read, of the item
	skip  []byte // the element within which nothing counts

	// The item being read.
	item     bool
	itemBase weburl.URL
	outer    []byte // scope before it
	at       int    // its first link, or none
	id       []byte // what is the URL of an item that has no link
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

// link handles the start tag of a link: of Atom, in any document and with any
// prefix, if it has an href.
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

// found takes a link of the feed or, if one is being read, of an item.
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
		l.Kind = kind // what the feed points to is an item of it too
	}
}

// xmlBase returns what the xml:base of the current tag makes of a base
// (https://www.w3.org/TR/xmlbase/): the same if it has none that can be used.
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

// finishItem gives the link of an item its title.
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

// finishField takes the text of an element that was read to its end.
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

// unescapeTitle resolves the character references of HTML in a title. Most titles
// that have any left are of HTML, whatever the feed says of them.
func unescapeTitle(title []byte) []byte {
	if bytes.IndexByte(title, '&') < 0 {
		return title
	}
	return []byte(html.UnescapeString(string(title)))
}
