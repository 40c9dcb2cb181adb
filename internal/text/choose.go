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
	landmark                  // navigation or footer, by its element
	mainRole                  // the text, by its role
	hidden                    // invisible
)

// A fate is the decision on a block or a box. The higher of two fates wins.
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

// hintOf returns the hints in one attribute value.
func (p *page) hintOf(value string) hint {
	value = value[:min(len(value), 256)]
	h, ok := p.hints[value]
	if ok {
		return h
	}
	lower := strings.ToLower(value)
	contains := func(w string) bool { return strings.Contains(lower, w) }
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

// prose reports whether a block is running text: long, and less than two fifths of it links.
func (b block) prose() bool {
	const least = 80 // bytes
	return b.size() >= least && b.linked*5 < b.size()*2
}

// choose decides the fate of each box, one rule after another. A rule that would leave less than a third of the text
// is not applied to the page.
func (p *page) choose() {
	p.fates = make([]fate, len(p.boxes))
	for i, rule := range []func(*page, *box) fate{(*page).byElement, (*page).byWords, (*page).byLinks, (*page).byPlace} {
		p.sum()
		before, previous := p.boxes[0].content, slices.Clone(p.fates)
		for j := 1; j < len(p.boxes); j++ { // parents come before their children
			b := &p.boxes[j]
			p.fates[j] = max(previous[j], p.fates[b.parent], rule(p, b))
		}
		p.sum()
		after := p.boxes[0].content
		lost := after.size < before.size/3
		if i == 0 { // navigation may be large
			lost = after.prose < before.prose/3
		}
		if lost {
			p.fates = previous
		}
	}
}

// sum counts the main text in each box, and finds the smallest box with three quarters of the running text.
func (p *page) sum() {
	for i := range p.boxes {
		p.boxes[i].content = content{}
	}
	for _, b := range p.blocks {
		if p.fates[b.box] != inText {
			continue
		}
		c := content{size: b.size(), linked: b.linked}
		if b.prose() {
			c.prose = c.size
		}
		p.boxes[b.box].add(c)
	}
	for i := len(p.boxes) - 1; i > 0; i-- {
		p.boxes[p.boxes[i].parent].add(p.boxes[i].content)
	}
	p.region = 0
	for i := 1; i < len(p.boxes); i++ {
		b := &p.boxes[i]
		b.within = false
		if b.parent == p.region && b.prose > 0 && b.element != atom.P && b.prose*4 >= p.boxes[p.region].prose*3 {
			p.region = int32(i)
		}
	}
	for i := p.region; i > 0; i = p.boxes[i].parent {
		p.boxes[i].within = true
	}
}

// byElement judges a box by its element and role.
func (p *page) byElement(b *box) fate {
	up := &p.boxes[b.parent]
	b.inner = up.inner || b.element == atom.Article || b.element == atom.Main || b.hint&mainRole != 0
	b.hint |= up.hint & notes
	switch {
	case b.hint&hidden != 0:
		return dropped
	case b.element == atom.Nav || b.element == atom.Footer || b.element == atom.Menu:
		b.hint |= landmark
	}
	if b.hint&landmark != 0 || b.element == atom.Aside || b.element == atom.Header && !up.inner {
		return b.outside()
	}
	return inText
}

// byWords judges a box by words in its attributes.
func (p *page) byWords(b *box) fate {
	if b.hint&around != 0 {
		return b.outside()
	}
	return inText
}

// byLinks judges a box by its share of links. Items and rows are entries of a list, with their links.
func (p *page) byLinks(b *box) fate {
	if b.linked > b.size/2 && b.element != atom.Tr && b.element != atom.Li && b.element != atom.P && !isHeading(b.element) {
		return beside
	}
	return inText
}

// byPlace judges a box by its place: outside of the region, running text stays and everything else goes.
func (p *page) byPlace(b *box) fate {
	switch up := &p.boxes[b.parent]; {
	case p.region == 0:
	case b.parent >= p.region && up.within:
		b.within = true
	case b.within || isHeading(b.element):
	case b.size == 0 && !b.inner && b.hint&notes == 0: // links outside of the text
		return dropped
	case b.prose < b.size/2:
		return b.outside()
	}
	return inText
}

// outside returns the fate of a box that is not main text. Notes stay searchable, and so does the content of an article
// or main element, unless it is navigation, or boilerplate without running text.
func (b *box) outside() fate {
	if b.hint&notes != 0 || b.inner && b.hint&landmark == 0 && (b.hint&around == 0 || b.prose > 0) {
		return beside
	}
	return dropped
}
