package text

import (
	"bytes"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// A hint is what the attributes of an element say of what is in it.
type hint uint8

const (
	around   hint = 1 << iota // navigation, advertisement, what is said about the text
	main                      // the text
	notes                     // footnotes, references, see also
	landmark                  // navigation and the like, by its role
	mainRole                  // the text, by its role
	hidden                    // nothing to see
)

// A fate is what becomes of a block or a box. Later ones overrule earlier ones.
type fate uint8

const (
	inText  fate = iota
	beside       // not main text, and searchable all the same: it is mostly links, or notes
	dropped      // navigation and other boilerplate
)

// What words in class, id and role hint at. A word is found anywhere in the value.
var (
	aroundWords = strings.Fields(`nav menu sidebar side-bar footer breadcrumb banner cookie consent gdpr popup modal overlay
		share sharing social related recommend widget advert sponsor promo newsletter subscribe signup login
		comment disqus respond reply pagination pager paging skip-link skiplink toolbar masthead byline author-bio
		metadata post-meta entry-meta tag-list taglist tags copyright disclaimer legal feedback
		rating teaser topbar top-bar site-header page-header site-title outbrain taboola
		contentinfo complementary navigation search-form searchform searchbox`)
	mainWords = strings.Fields(`article content main post-body entry body-text story text markdown documentation prose mw-parser`)
	noteWords = strings.Fields(`seealso see-also see_also footnote endnote reflist references citation bibliography further-reading external-links`)
	landmarks = strings.Fields(`navigation banner contentinfo complementary search menu menubar toolbar`)
	// What a block of nothing but links says if it is of the page's frame, in lower case.
	boilerplate = strings.Split(`view page source,view source,show source,page source,edit this page,edit on github,edit on gitlab,improve this page,
		suggest edits,report a bug,report an issue,report issue,print this page,back to top,back to the top,scroll to top,skip to content,
		skip to main content,skip to navigation,toggle navigation,previous,next,previous page,next page,home,permalink,copy link,share`, ",")
)

// hint reads the attributes of a box.
func (p *page) hint(z *html.Tokenizer, a atom.Atom, more bool) (h hint) {
	for n := 0; more && n < maxAttrs; n++ {
		var key, value []byte
		key, value, more = z.TagAttr()
		switch string(key) {
		case "class", "id", "role":
			if string(key) == "role" {
				h |= roleHint(string(value))
			}
			// The id of a section is most often made of its heading: "exceptions-for-shared-memory".
			if a != atom.Section || string(key) != "id" || aroundWhole(value) {
				h |= p.hintOf(value)
			}
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

// roleHint returns what a role of ARIA hints at.
func roleHint(role string) hint {
	switch {
	case role == "main" || role == "article":
		return mainRole
	case slices.Contains(landmarks, role):
		return landmark
	}
	return 0
}

// aroundWhole reports whether a value is a word that hints at what is beside the text, or more
// than one of what the word is for, as "comments".
func aroundWhole(value []byte) bool {
	s := strings.TrimSuffix(strings.ToLower(string(cut(value, 32))), "s")
	return slices.ContainsFunc(aroundWords, func(w string) bool { return strings.TrimSuffix(w, "s") == s })
}

// hintOf returns what one value of an attribute hints at.
func (p *page) hintOf(value []byte) hint {
	value = cut(value, 256)
	if h, ok := p.hints[string(value)]; ok {
		return h
	}
	var h hint
	s := strings.ToLower(string(value))
	for _, w := range aroundWords {
		if strings.Contains(s, w) {
			h |= around
			break
		}
	}
	for _, w := range noteWords {
		if strings.Contains(s, w) {
			h |= notes
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

// Thresholds. They were set on 983 pages of which it is known what belongs to the text
// and what does not, see docs/adr/0030-text-and-tokens.md.
const (
	minProse = 80 // bytes of a paragraph of running text
	minLinks = 3  // in a box that is left out for its links
)

// prose reports whether a block is running text: long, and less than two fifths of it
// links.
func (b block) prose() bool { return b.size() >= minProse && b.linked*5 < b.size()*2 }

// choose decides on the fate of boxes and blocks. It starts with what elements say. What
// classes, links and places say is taken back if too little is left.
func (p *page) choose() {
	p.sum()
	p.dropByElement()
	visible := p.left()
	p.dropByHint()
	p.sum()
	p.dropOutside()
	p.dropBlocks()
	if p.left() >= visible/4 {
		return
	}
	for i := range p.boxes {
		p.boxes[i].fate = inText
	}
	for i := range p.blocks {
		p.blocks[i].fate = inText
	}
	p.sum()
	p.dropByElement()
	for i := range p.blocks {
		if p.frame(p.blocks[i]) {
			p.blocks[i].fate = dropped
		}
	}
}

func (p *page) fate(b block) fate { return max(b.fate, p.boxes[b.box].fate) }

func (p *page) kept(b block) bool { return p.fate(b) == inText }

// frame reports whether a block is a link of the page's frame, such as "View page source".
func (p *page) frame(b block) bool {
	const longest = 32
	if b.size() > longest || b.linked*5 < b.size()*4 {
		return false
	}
	line := strings.Trim(strings.ToLower(string(p.text[b.from:b.to])), " «»‹›<>←→↑|.")
	return slices.ContainsFunc(boilerplate, func(s string) bool { return strings.TrimSpace(s) == line })
}

// left is the size of what is kept.
func (p *page) left() (n int32) {
	for _, b := range p.blocks {
		if p.kept(b) {
			n += b.size()
		}
	}
	return n
}

// sum counts what is kept in each box.
func (p *page) sum() {
	for i := range p.boxes {
		p.boxes[i].content = content{links: p.boxes[i].own}
	}
	for _, b := range p.blocks {
		if !p.kept(b) {
			continue
		}
		c := content{size: b.size(), linked: b.linked}
		if b.prose() {
			c.prose = c.size
		}
		p.boxes[b.box].add(c)
	}
	for i := len(p.boxes) - 1; i > 0; i-- {
		b := &p.boxes[i]
		p.boxes[b.parent].add(b.content)
	}
}

// holds reports whether a box has more than one part in so many of the running text.
func (p *page) holds(b *box, parts int32) bool { return b.prose > p.boxes[0].prose/parts }

// dropByElement drops what elements and roles say is not of the text, unless it
// is most of it.
func (p *page) dropByElement() {
	for i := 1; i < len(p.boxes); i++ {
		b := &p.boxes[i]
		up := p.boxes[b.parent]
		b.inner = up.inner || b.element == atom.Article || b.element == atom.Main || b.hint&mainRole != 0
		b.hint |= up.hint & notes
		b.fate = up.fate
		drop := b.hint&(hidden|landmark) != 0
		switch b.element {
		case atom.Nav, atom.Footer, atom.Menu:
			b.hint |= landmark
			drop = true
		case atom.Aside:
			drop = true
		case atom.Header:
			drop = drop || !up.inner
		}
		if drop && !p.holds(b, 2) {
			b.fate = max(b.fate, b.left())
		}
	}
}

// left returns the fate of a box that is not of the text. Notes can still be searched, and what stands within
// the article or main element, unless it is hidden, navigation, or around the text and not prose.
func (b *box) left() fate {
	switch {
	case b.hint&hidden != 0:
	case b.hint&notes != 0:
		return beside
	case b.hint&landmark == 0 && b.inner && (b.hint&around == 0 || b.prose > 0):
		return beside
	}
	return dropped
}

// dropByHint takes boxes out of the text that by their classes or by their links are not of it,
// unless they have a third of it: a forum is made of comments.
func (p *page) dropByHint() {
	for i := 1; i < len(p.boxes); i++ {
		b := &p.boxes[i]
		farm := b.element != atom.Tr && b.element != atom.Li && // an entry of many, with its references
			b.links >= minLinks && b.linked > b.size/2
		b.fate = max(b.fate, p.boxes[b.parent].fate)
		switch {
		case p.holds(b, 3):
		case b.hint&around != 0:
			b.fate = max(b.fate, b.left())
		case farm:
			b.fate = max(b.fate, beside)
		}
	}
}

// dropOutside finds the box that has most of the running text, and drops boxes outside
// of it that have little.
func (p *page) dropOutside() {
	region := 0
	for i := 1; i < len(p.boxes); i++ { // parents come before their children
		b := &p.boxes[i]
		if int(b.parent) == region && b.fate == inText && holder(b.element) && b.prose*4 >= p.boxes[region].prose*3 {
			region = i
		}
	}
	if region == 0 {
		return
	}
	for i := region; i > 0; i = int(p.boxes[i].parent) {
		p.boxes[i].within = true // and what is around it stays
	}
	for i := 1; i < len(p.boxes); i++ {
		b := &p.boxes[i]
		up := p.boxes[b.parent]
		switch {
		case up.within && int(b.parent) >= region:
			b.within = true
		case b.within || isHeading(b.element):
		case b.fate == beside && !b.inner && b.hint&notes == 0: // links outside of the text
			b.fate = dropped
		case b.fate == inText && b.prose < b.size/2:
			b.fate = b.left()
		}
	}
}

// holder reports whether an element may hold a whole text.
func holder(a atom.Atom) bool {
	switch a {
	case atom.Body, atom.Div, atom.Section, atom.Article, atom.Main, atom.Table, atom.Tbody, atom.Tr, atom.Td,
		atom.Center, atom.Form, atom.Ul, atom.Ol, atom.Li:
		return true
	}
	return false
}

// dropBlocks takes lines that are but a link out of the text, headings of nothing, and behind the
// last paragraph headings and links.
func (p *page) dropBlocks() {
	last := len(p.blocks) - 1
	for ; last >= 0; last-- {
		if b := p.blocks[last]; p.kept(b) && b.prose() {
			break
		}
	}
	next := -1 // the next block that is kept
	for i := len(p.blocks) - 1; i >= 0; i-- {
		b := &p.blocks[i]
		if !p.kept(*b) {
			continue
		}
		lone := !b.heading && b.size() < minProse && b.linked*5 >= b.size()*4 && p.boxes[b.box].element != atom.Td
		// What followed the heading was dropped, and nothing but another one comes behind.
		empty := b.heading && i+1 < len(p.blocks) && next != i+1 && (next < 0 || p.blocks[next].heading)
		behind := last >= 0 && i > last && (b.heading || b.linked > b.size()/2)
		if lone || empty || behind {
			if b.fate = beside; p.frame(*b) {
				b.fate = dropped
			}
			continue
		}
		next = i
	}
}
