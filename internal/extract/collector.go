package extract

import (
	"bytes"
	"strings"

	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// none is the index of no reference.
const none = -1

// firstHrefs is the first capacity of collector.hrefs, in bytes.
const firstHrefs = 2 << 10

// A reference is a link as the page writes it, without its fragment.
type reference struct {
	href string
	role
	from, to int32 // the anchor text, in collector.texts
}

// A role is what a URL is for a page.
type role struct {
	kind     actor.LinkKind
	noFollow bool
	needed   bool // the page needs it to be displayed
}

// A collector collects references, each href once, and resolves them after the
// whole page is read. The zero collector is ready.
type collector struct {
	refs  []reference
	needs int             // references that are only requisites
	hrefs strings.Builder // of all references, one after another
	texts []byte
	seen  map[string]int32 // href -> index in refs
	urls  map[string]int32 // canonical URL -> index in the links
}

// reset drops the page. It also drops maps that a page with many links has grown, because
// every later page would have to clear them.
func (c *collector) reset() {
	const keep = 2048
	if len(c.seen) > keep {
		*c = collector{}
		return
	}
	clear(c.refs)
	clear(c.seen)
	clear(c.urls)
	*c = collector{refs: c.refs[:0], texts: c.texts[:0], seen: c.seen, urls: c.urls}
}

// add adds one reference and returns its index, or none if it is too long or a
// bound is reached. A repeated href costs one lookup and allocates nothing.
func (c *collector) add(kind actor.LinkKind, href, rel []byte) int {
	r := role{kind, hasToken(rel, "nofollow"), kind == actor.LinkRequisite}
	if i, ok := c.seen[string(href)]; ok {
		old := &c.refs[i]
		if old.kind == actor.LinkRequisite && kind != old.kind {
			c.needs--
		}
		old.role = old.join(r)
		return int(i)
	}
	full := len(c.refs)-c.needs >= MaxLinks
	if r.needed {
		full = c.needs >= MaxRequisites
	}
	if full || len(href) > maxHref || c.hrefs.Len()+len(href) > maxHrefs {
		return none
	}
	if c.seen == nil {
		c.seen, c.urls = make(map[string]int32), make(map[string]int32)
	}
	i, at := len(c.refs), c.hrefs.Len()
	if at == 0 {
		c.hrefs.Grow(firstHrefs)
	}
	c.hrefs.Write(href) // one allocation for many
	s := c.hrefs.String()[at:]
	c.seen[s] = int32(i)
	c.refs = append(c.refs, reference{href: s, role: r})
	if r.needed {
		c.needs++
	}
	return i
}

// join returns the role of a URL that has two. A requisite says nothing about the role as a link.
func (r role) join(o role) role {
	if r.kind == actor.LinkRequisite {
		r, o = o, r
	}
	if o.kind != actor.LinkRequisite {
		r.noFollow = r.noFollow && o.noFollow
	}
	r.needed = r.needed || o.needed
	return r
}

// begin reports whether a reference has no anchor text yet, and starts one for
// addText.
func (c *collector) begin(ref int) bool {
	r := &c.refs[ref]
	if r.to > r.from {
		return false
	}
	r.from, r.to = int32(len(c.texts)), int32(len(c.texts))
	return true
}

// addText adds to the anchor text of the last begin, and reports whether it is full.
func (c *collector) addText(ref int, text []byte) (full bool) {
	r := &c.refs[ref]
	c.texts, full = fold(c.texts, int(r.from), text, maxAnchor)
	r.to = int32(len(c.texts))
	return full
}

// links resolves the references. Two hrefs may lead to one URL.
func (c *collector) links(self weburl.URL, resolve func(ref string) (weburl.URL, error)) []actor.Link {
	if len(c.refs) == 0 {
		return nil
	}
	texts := string(c.texts)
	links, size := make([]actor.Link, 0, len(c.refs)), 0
	for _, ref := range c.refs {
		u, err := resolve(ref.href)
		if err != nil || u == self {
			continue
		}
		anchor := strings.TrimSuffix(texts[ref.from:ref.to], " ")
		if i, ok := c.urls[u.String()]; ok {
			l := &links[i]
			r := role{l.Kind, l.NoFollow, l.Requisite}.join(ref.role)
			l.Kind, l.NoFollow, l.Requisite = r.kind, r.noFollow, r.needed
			if l.Anchor == "" {
				l.Anchor = anchor
			}
			continue
		}
		if size += len(u.String()); size > maxLinked {
			break
		}
		c.urls[u.String()] = int32(len(links))
		links = append(links, actor.Link{URL: u, Kind: ref.kind, NoFollow: ref.noFollow, Requisite: ref.needed, Anchor: anchor})
	}
	return links
}

// otherScheme reports whether an href has a scheme other than http or https, so
// that javascript:, mailto: and data: cost no more than this check.
func otherScheme(href []byte) bool {
	for i, c := range href {
		switch {
		case letter(c):
		case i > 0 && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'):
		case c == ':' && i > 0:
			return !equalFold(href[:i], "http") && !equalFold(href[:i], "https")
		default:
			return false
		}
	}
	return false
}

// withoutFragment cuts an href at its fragment, which never names another page.
func withoutFragment(href []byte) []byte {
	if i := bytes.IndexByte(href, '#'); i >= 0 {
		return href[:i]
	}
	return href
}
