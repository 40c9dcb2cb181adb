package text

import (
	"bytes"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/orbweaver/orbweaver/internal/extract"
)

// readMarkup reads HTML and XML. Of XML that is not XHTML each element is a block.
func (p *page) readMarkup() {
	z := html.NewTokenizer(bytes.NewReader(p.src))
	xml := extract.XML(p.mime)
	known := !xml || p.mime == typeXHTML
	z.AllowCDATA(xml)
	for {
		tt := z.Next()
		switch tt {
		case html.ErrorToken: // the end: a reader of bytes has no other errors
			p.closeTo(0)
			if known {
				p.choose()
			}
			return
		case html.TextToken:
			p.textToken(z)
			continue
		case html.CommentToken, html.DoctypeToken:
			continue
		}
		name, more := z.TagName()
		a := atom.Lookup(name)
		switch {
		case !known:
			p.flush(0, false)
			p.title1(a, tt)
		case tt == html.EndTagToken:
			p.endTag(a)
		default:
			p.startTag(z, a, more, xml && tt == html.SelfClosingTagToken)
		}
	}
}

// title1 makes the first title of XML that of the document.
func (p *page) title1(a atom.Atom, tt html.TokenType) {
	if a == atom.Title && tt == html.EndTagToken && len(p.title) == 0 && len(p.blocks) > 0 {
		b := p.blocks[len(p.blocks)-1]
		p.title = append(p.title, p.text[b.from:b.to]...)
	}
}

// textToken handles characters, also those of elements of raw text.
func (p *page) textToken(z *html.Tokenizer) {
	switch top := p.top(); {
	case !top.skip:
		p.add(characters(z))
	case top.element == atom.Title && len(p.title) == 0 && !p.within(atom.Svg):
		p.title = fold(p.title, 0, cut(characters(z), 4*maxTitle), false)
	case top.element == atom.Script && p.published.IsZero():
		p.published = publishedJSON(z.Raw())
	}
}

// characters returns what a text token stands for. Most have no references, and
// need not be copied.
func characters(z *html.Tokenizer) []byte {
	if raw := z.Raw(); len(raw) > 0 && raw[0] != '<' && bytes.IndexByte(raw, '&') < 0 {
		return raw
	}
	return z.Text()
}

// A kind says what an element does to the text in it.
type kind uint8

const (
	inline     kind = iota // nothing
	standalone             // it is a block, or holds some
	skipped                // it is not shown, or is not text
	link
	lineEnd
	telling // it says something of the page
)

func kindOf(a atom.Atom) kind {
	switch a {
	case atom.A:
		return link
	case atom.Br:
		return lineEnd
	case atom.Meta, atom.Html, atom.Time:
		return telling
	case atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Svg, atom.Math, atom.Select, atom.Datalist, atom.Button,
		atom.Textarea, atom.Iframe, atom.Object, atom.Canvas, atom.Audio, atom.Video, atom.Noembed, atom.Noframes, atom.Title,
		atom.Dialog:
		return skipped
	case atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Body, atom.Caption, atom.Center, atom.Dd, atom.Details,
		atom.Div, atom.Dl, atom.Dt, atom.Fieldset, atom.Figcaption, atom.Figure, atom.Footer, atom.Form, atom.H1, atom.H2,
		atom.H3, atom.H4, atom.H5, atom.H6, atom.Header, atom.Hgroup, atom.Hr, atom.Legend, atom.Li, atom.Listing, atom.Main,
		atom.Menu, atom.Nav, atom.Ol, atom.P, atom.Plaintext, atom.Pre, atom.Section, atom.Summary, atom.Table, atom.Tbody,
		atom.Td, atom.Tfoot, atom.Th, atom.Thead, atom.Tr, atom.Ul, atom.Xmp:
		return standalone
	}
	return inline
}

func preformatted(a atom.Atom) bool {
	return a == atom.Pre || a == atom.Listing || a == atom.Xmp || a == atom.Plaintext
}

func isHeading(a atom.Atom) bool {
	switch a {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		return true
	}
	return false
}

// startTag handles a start tag. closed says that it is its own end tag.
func (p *page) startTag(z *html.Tokenizer, a atom.Atom, more, closed bool) {
	switch kindOf(a) {
	case telling:
		p.tell(z, a, more)
	case link:
		if !closed && more && hasHref(z) {
			p.link = len(p.open) + 1
			p.boxes[p.box()].own++
		}
	case lineEnd:
		p.newline()
	case skipped:
		if closed {
			z.NextIsNotRawText()
			break
		}
		p.push(open{a, p.box(), true})
	case standalone:
		p.imply(a)
		p.flushBox()
		switch {
		case closed || a == atom.Hr:
		case p.top().skip:
			p.push(open{a, p.box(), true})
		default:
			p.pushBox(z, a, more)
		}
	}
}

func hasHref(z *html.Tokenizer) bool {
	for more, n := true, 0; more && n < maxAttrs; n++ {
		var key []byte
		if key, _, more = z.TagAttr(); string(key) == "href" {
			return true
		}
	}
	return false
}

// newline ends a line; two in a row end the block.
func (p *page) newline() {
	switch {
	case p.top().skip || len(p.text) == p.from:
	case p.text[len(p.text)-1] == '\n':
		p.flushBox()
	default:
		p.text = append(bytes.TrimRight(p.text, " "), '\n')
	}
}

// endTag handles an end tag. It closes the nearest such element and what is open in
// it, but not across the borders of a table or cell, unless it is of a table itself.
func (p *page) endTag(a atom.Atom) {
	switch kindOf(a) {
	case link:
		p.link = 0
	case standalone, skipped:
		for i := len(p.open) - 1; i >= 0; i-- {
			o := p.open[i]
			switch {
			case o.element == a:
				if p.deep > 0 && !(o.skip && i == len(p.open)-1) {
					p.deep--
					return
				}
				p.closeTo(i)
				return
			case border(o.element) && !ofTable(a):
				return
			}
		}
	}
}

func border(a atom.Atom) bool {
	return a == atom.Td || a == atom.Th || a == atom.Caption || a == atom.Table || a == atom.Template
}

func ofTable(a atom.Atom) bool {
	switch a {
	case atom.Table, atom.Tbody, atom.Thead, atom.Tfoot, atom.Tr, atom.Td, atom.Th, atom.Caption:
		return true
	}
	return false
}

// imply closes what the start of an element ends (HTML Living Standard, 13.1.2.4
// optional tags). A heading that was not closed ends too: the text is not a heading.
func (p *page) imply(a atom.Atom) {
	if t := p.top().element; t == atom.P || isHeading(t) && !inHeading(a) {
		p.closeTo(len(p.open) - 1)
	}
	switch a {
	case atom.Li:
		p.closeNearest([]atom.Atom{atom.Li}, []atom.Atom{atom.Ul, atom.Ol, atom.Menu})
	case atom.Dd, atom.Dt:
		p.closeNearest([]atom.Atom{atom.Dd, atom.Dt}, []atom.Atom{atom.Dl})
	case atom.Td, atom.Th:
		p.closeNearest([]atom.Atom{atom.Td, atom.Th}, []atom.Atom{atom.Tr, atom.Table})
	case atom.Tr:
		p.closeNearest([]atom.Atom{atom.Tr}, []atom.Atom{atom.Table})
	case atom.Tbody, atom.Thead, atom.Tfoot:
		p.closeNearest([]atom.Atom{atom.Tbody, atom.Thead, atom.Tfoot}, []atom.Atom{atom.Table})
	}
}

// inHeading reports whether a block may stand in a heading.
func inHeading(a atom.Atom) bool { return a == atom.Div || a == atom.Section || a == atom.Header }

// closeNearest closes the nearest of some elements, unless it is outside of one of
// others, or of a cell.
func (p *page) closeNearest(some, within []atom.Atom) {
	for i := len(p.open) - 1; i >= 0; i-- {
		e := p.open[i].element
		for _, a := range some {
			if e == a {
				p.closeTo(i)
				return
			}
		}
		for _, a := range within {
			if e == a {
				return
			}
		}
		if border(e) && e != atom.Template {
			return
		}
	}
}

// pushBox opens an element that is shown.
func (p *page) pushBox(z *html.Tokenizer, a atom.Atom, more bool) {
	b := box{parent: p.box(), element: a, hint: p.hint(z, a, more)}
	i := b.parent
	if len(p.boxes) < maxBoxes {
		i = int32(len(p.boxes))
		p.boxes = append(p.boxes, b)
	}
	if p.push(open{a, i, false}) && preformatted(a) {
		p.pre++
	}
}

// push opens an element, unless too many are. What is not shown may always be opened
// within what is.
func (p *page) push(o open) bool {
	if n := len(p.open); n >= maxOpen && (!o.skip || p.top().skip) {
		p.deep++
		return false
	}
	p.open = append(p.open, o)
	return true
}

// closeTo closes the elements from the i-th on.
func (p *page) closeTo(i int) {
	if i == len(p.open) && i > 0 {
		return
	}
	if !p.top().skip {
		p.flushBox()
	}
	for _, o := range p.open[i:] {
		if !o.skip && preformatted(o.element) {
			p.pre--
		}
	}
	p.open = p.open[:i]
	if p.link > i {
		p.link = 0
	}
	if i == 0 {
		p.deep = 0
	}
}

func (p *page) top() open {
	if len(p.open) == 0 {
		return open{}
	}
	return p.open[len(p.open)-1]
}

func (p *page) box() int32 { return p.top().box }

func (p *page) within(a atom.Atom) bool {
	for _, o := range p.open {
		if o.element == a {
			return true
		}
	}
	return false
}
