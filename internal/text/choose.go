package text

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// A hint is what the attributes of an element say of what is in it.
type hint uint8

const (
	beside hint = 1 << iota // navigation, advertisement, what is said about the text
	main                    // the text
	hidden                  // nothing to see
)

// What words in class, id and role hint at. A word is found anywhere in the value.
var (
	besideWords = strings.Fields(`nav menu sidebar side-bar footer breadcrumb banner cookie consent gdpr popup modal overlay
		share sharing social related recommend widget advert sponsor promo newsletter subscribe signup login
		comment disqus respond reply pagination pager paging skip-link skiplink toolbar masthead byline author-bio
		metadata post-meta entry-meta tag-list taglist tags copyright disclaimer legal feedback
		rating teaser topbar top-bar site-header page-header site-title outbrain taboola
		contentinfo complementary navigation search-form searchform searchbox`)
	mainWords = strings.Fields(`article content main post-body entry body-text story text markdown documentation prose mw-parser`)
)

// hint reads the attributes of a box.
func (p *page) hint(z *html.Tokenizer, a atom.Atom, more bool) (h hint) {
	for n := 0; more && n < maxAttrs; n++ {
		var key, value []byte
		key, value, more = z.TagAttr()
		switch string(key) {
		case "class", "id", "role":
			h |= p.hintOf(value)
		case "itemprop":
			if string(value) == "articleBody" {
				h |= main
			}
		case "hidden":
			h |= hidden
		case "aria-hidden":
			if string(value) == "true" {
				h |= hidden
			}
		case "style":
			if bytes.Contains(value, []byte("display:none")) || bytes.Contains(value, []byte("display: none")) {
				h |= hidden
			}
		}
	}
	return h
}

// hintOf returns what one value of an attribute hints at.
func (p *page) hintOf(value []byte) hint {
	value = cut(value, 256)
	if h, ok := p.hints[string(value)]; ok {
		return h
	}
	var h hint
	s := strings.ToLower(string(value))
	for _, w := range besideWords {
		if strings.Contains(s, w) {
			h |= beside
			break
		}
	}
	for _, w := range mainWords {
		if strings.Contains(s, w) {
			h |= main
			break
		}
	}
	if len(p.hints) < maxHints {
		p.hints[string(value)] = h
	}
	return h
}

// choose marks the boxes that are not of the main text.
func (p *page) choose() {
	p.sum()
	p.dropByElement()
	visible := p.left()
	p.dropByHint()
	if p.left()*4 < visible {
		for i := range p.boxes {
			p.boxes[i].drop = false
		}
		p.dropByElement()
	}
}

// minProse is the size of a paragraph of running text, in bytes.
const minProse = 80

// sum counts what is in each box.
func (p *page) sum() {
	for _, b := range p.blocks {
		x := &p.boxes[b.box]
		x.size += b.size()
		x.linked += b.linked
		x.blocks++
		if b.size() >= minProse && b.linked*5 < b.size()*2 {
			x.prose += b.size()
		}
	}
	for i := len(p.boxes) - 1; i > 0; i-- {
		b, up := p.boxes[i], &p.boxes[p.boxes[i].parent]
		up.size += b.size
		up.linked += b.linked
		up.prose += b.prose
		up.blocks += b.blocks
		up.links += b.links
	}
}

// left is the size of the text that is not dropped.
func (p *page) left() (n int32) {
	for _, b := range p.blocks {
		if !p.boxes[b.box].drop {
			n += b.size()
		}
	}
	return n
}

// share reports whether a box has more than a part of the running text.
func (p *page) share(b *box, part int32) bool {
	return b.prose > p.boxes[0].prose/part
}

// dropByElement drops what elements say is not of the text.
func (p *page) dropByElement() {
	for i := 1; i < len(p.boxes); i++ {
		b := &p.boxes[i]
		up := p.boxes[b.parent]
		b.inner = up.inner || b.element == atom.Article || b.element == atom.Main
		drop := false
		switch b.element {
		case atom.Nav, atom.Aside, atom.Footer, atom.Menu:
			drop = true
		case atom.Header:
			drop = !up.inner
		}
		drop = drop || b.hint&hidden != 0
		b.drop = up.drop || drop && !p.share(b, 2)
	}
}

// dropByHint drops what classes and links say is not of the text.
func (p *page) dropByHint() {
	for i := 1; i < len(p.boxes); i++ {
		b := &p.boxes[i]
		switch {
		case b.drop:
		case p.boxes[b.parent].drop:
			b.drop = true
		case b.hint&beside != 0 && !p.share(b, 3):
			b.drop = true
		case b.links >= 3 && b.linked*2 > b.size && !p.share(b, 3):
			b.drop = true
		}
	}
}
