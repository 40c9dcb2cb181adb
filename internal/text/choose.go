package text

import (
	"bytes"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// A hint is what the attributes of an element say about its content.
type hint uint8

const (
	around   hint = 1 << iota // navigation, advertisement, data about the text
	notes                     // footnotes, references, see also
	landmark                  // navigation and the like, by its role
	mainRole                  // the text, by its role
	hidden                    // invisible
)

// A fate is what becomes of a block or a box. The higher of two fates wins.
type fate uint8

const (
	inText  fate = iota
	beside       // searchable, but not main text: mostly links, or notes
	dropped      // navigation and other boilerplate
)

// Words in class, id and role that hint at the content. A word counts anywhere in the value.
var (
	aroundWords = strings.Fields(`nav menu sidebar side-bar footer breadcrumb banner cookie consent gdpr popup modal overlay
		share sharing social related recommend widget advert sponsor promo newsletter subscribe signup login
		comment disqus respond reply pagination pager paging skip-link skiplink toolbar masthead byline author-bio
		metadata post-meta entry-meta tag-list taglist tags copyright disclaimer legal feedback
		rating teaser topbar top-bar site-header page-header site-title outbrain taboola
		contentinfo complementary search-form searchform searchbox`)
	noteWords = strings.Fields(`seealso see-also see_also footnote endnote reflist references citation bibliography
		further-reading external-links`)
	landmarks = strings.Fields(`navigation banner contentinfo complementary search menu menubar toolbar`)
	// boilerplate lists links of the page's frame, in lower case.
	boilerplate = strings.Split(strings.ReplaceAll(`view page source,view source,show source,page source,edit this page,
		edit on github,edit on gitlab,improve this page,suggest edits,report a bug,report an issue,report issue,print this page,
		back to top,back to the top,scroll to top,skip to content,skip to main content,skip to navigation,toggle navigation,
		previous,next,previous page,next page,home,permalink,copy link,share`, "\n\t\t", ""), ",")
)

// hint reads the attributes of a box.
func (p *page) hint(z *html.Tokenizer, a atom.Atom, more bool) (h hint) {
	for n := 0; more && n < maxAttrs; n++ {
		var key, value []byte
		key, value, more = z.TagAttr()
		switch v := string(value); string(key) {
		case "id":
			// The id of a section is most often made of its heading, such as "exceptions-for-shared-memory".
			if a != atom.Section || !strings.Contains(v, "-") {
				h |= p.hintOf(v)
			}
		case "class":
			h |= p.hintOf(v)
		case "role":
			h |= p.hintOf(v)
			if v == "main" || v == "article" {
				h |= mainRole
			} else if slices.Contains(landmarks, v) {
				h |= landmark
			}
		case "hidden":
			h |= hidden
		case "aria-hidden":
			if v == "true" {
				h |= hidden
			}
		case "style":
			if bytes.Contains(bytes.ReplaceAll(value, []byte(" "), nil), []byte("display:none")) {
				h |= hidden
			}
		}
	}
	return h
}

// hintOf returns what one value of an attribute hints at.
func (p *page) hintOf(value string) hint {
	value = value[:min(len(value), 256)]
	h, ok := p.hints[value]
	if ok {
		return h
	}
	contains := func(w string) bool { return strings.Contains(strings.ToLower(value), w) }
	if slices.ContainsFunc(aroundWords, contains) {
		h |= around
	}
	if slices.ContainsFunc(noteWords, contains) {
		h |= notes
	}
	if len(p.hints) < maxHints {
		p.hints[value] = h
	}
	return h
}

const (
	minProse = 80 // bytes of a paragraph of running text
	minLinks = 3  // in a box that is left out for its links
)

// prose reports whether a block is running text: long, and less than two fifths of it links.
func (b block) prose() bool { return b.size() >= minProse && b.linked*5 < b.size()*2 }

// choose decides the fate of boxes and blocks: first by elements, then by words and links in boxes, then by their place.
// If too little would be left, only elements decide.
func (p *page) choose() {
	p.sum()
	p.dropBoxes((*page).unwantedElement)
	visible := p.left()
	p.dropBoxes((*page).unwantedContent)
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
	p.dropBoxes((*page).unwantedElement)
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
	return slices.Contains(boilerplate, strings.Trim(strings.ToLower(string(p.text[b.from:b.to])), " «»‹›<>←→↑|."))
}

// left returns the size of the main text.
func (p *page) left() (n int32) {
	for _, b := range p.blocks {
		if p.kept(b) {
			n += b.size()
		}
	}
	return n
}

// sum counts the main text of each box.
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

// dropBoxes passes the fate of each box on to its children, and raises it if the content is unwanted.
func (p *page) dropBoxes(unwanted func(*page, *box) fate) {
	for i := 1; i < len(p.boxes); i++ { // parents come before their children
		b := &p.boxes[i]
		b.fate = max(b.fate, p.boxes[b.parent].fate, unwanted(p, b))
	}
}

// unwantedElement judges a box by its element and role, unless it has most of the running text.
func (p *page) unwantedElement(b *box) fate {
	up := &p.boxes[b.parent]
	b.inner = up.inner || b.element == atom.Article || b.element == atom.Main || b.hint&mainRole != 0
	b.hint |= up.hint & notes
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
	if drop && b.prose <= p.boxes[0].prose/2 {
		return b.outside()
	}
	return inText
}

// unwantedContent judges a box by its classes and links, unless it has a third of the running text: the main text of a
// forum is made of comments.
func (p *page) unwantedContent(b *box) fate {
	switch {
	case b.prose > p.boxes[0].prose/3:
	case b.hint&around != 0:
		return b.outside()
	case b.element == atom.Tr || b.element == atom.Li: // one of many entries, with its links
	case b.links >= minLinks && b.linked > b.size/2:
		return beside
	}
	return inText
}

// outside returns the fate of a box that is not main text. Notes stay searchable, and so does the content of an article
// or main element, unless it is hidden, navigation, or boilerplate without running text.
func (b *box) outside() fate {
	switch {
	case b.hint&hidden != 0:
	case b.hint&notes != 0:
		return beside
	case b.hint&landmark == 0 && b.inner && (b.hint&around == 0 || b.prose > 0):
		return beside
	}
	return dropped
}

// dropOutside finds the smallest box with three quarters of the running text, and drops boxes outside of it that have little.
func (p *page) dropOutside() {
	region := 0
	for i := 1; i < len(p.boxes); i++ {
		b := &p.boxes[i]
		if int(b.parent) == region && b.fate == inText && b.element != atom.P && b.prose*4 >= p.boxes[region].prose*3 {
			region = i
		}
	}
	if region == 0 {
		return
	}
	for i := region; i > 0; i = int(p.boxes[i].parent) {
		p.boxes[i].within = true
	}
	for i := 1; i < len(p.boxes); i++ {
		b := &p.boxes[i]
		switch {
		case int(b.parent) >= region && p.boxes[b.parent].within:
			b.within = true
		case b.within || isHeading(b.element):
		case b.fate == beside && !b.inner && b.hint&notes == 0: // links outside of the text
			b.fate = dropped
		case b.fate == inText && b.prose < b.size/2:
			b.fate = b.outside()
		}
	}
}

// dropBlocks drops single links, headings of nothing, and headings and links behind the last paragraph.
func (p *page) dropBlocks() {
	last := len(p.blocks) - 1
	for last >= 0 && !(p.kept(p.blocks[last]) && p.blocks[last].prose()) {
		last--
	}
	next := -1 // the next block that is kept
	for i := len(p.blocks) - 1; i >= 0; i-- {
		b := &p.blocks[i]
		if !p.kept(*b) {
			continue
		}
		lone := !b.heading && b.size() < minProse && b.linked*5 >= b.size()*4 && p.boxes[b.box].element != atom.Td
		// The content of the heading was dropped, and only another heading follows.
		empty := b.heading && i+1 < len(p.blocks) && next != i+1 && (next < 0 || p.blocks[next].heading)
		behind := last >= 0 && i > last && (b.heading || b.linked > b.size()/2)
		switch {
		case p.frame(*b):
			b.fate = dropped
		case lone || empty || behind:
			b.fate = beside
		default:
			next = i
		}
	}
}
