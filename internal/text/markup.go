package text

import (
	"bytes"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/orbweaver/orbweaver/internal/extract"
)

// readMarkup reads HTML and XML. In XML that is not XHTML each element is a block.
func (p *page) readMarkup() {
	z := html.NewTokenizer(bytes.NewReader(p.src))
	xml := extract.XML(p.mime)
	known := !xml || p.mime == typeXHTML
	z.AllowCDATA(xml)
	for {
		tt := z.Next()
		p.token = span{p.token.to, p.token.to + len(z.Raw())}
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
			if a == atom.Title && tt == html.EndTagToken && len(p.title) == 0 && len(p.blocks) > 0 {
				p.title = p.line(len(p.blocks) - 1)
			}
		case tt == html.EndTagToken:
			p.endTag(a)
		default:
			p.startTag(z, a, more, xml && tt == html.SelfClosingTagToken)
		}
	}
}

// textToken handles characters, including those of elements that are not shown.
func (p *page) textToken(z *html.Tokenizer) {
	switch top := p.top(); {
	case top.element == atom.Script && top.skip:
		if p.published.IsZero() {
			p.published = publishedJSON(z.Raw())
		}
	case !top.skip:
		before := len(p.text)
		p.text = fold(p.text, p.from, z.Text(), p.pre > 0)
		if p.link > 0 {
			p.linked += len(p.text) - before
		}
	case top.element == atom.Title && len(p.title) == 0 && p.open[max(0, len(p.open)-2)].element != atom.Svg:
		p.title = fold(p.title, 0, cut(z.Text(), 4*maxTitle), false)
	}
}

// A kind is the effect of an element on its text.
type kind uint8

const (
	inline     kind = iota // nothing
	standalone             // it is a block or contains blocks
	skipped                // it is not shown, or is not text
)

func kindOf(a atom.Atom) kind {
	switch a {
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
	return a == atom.H1 || a == atom.H2 || a == atom.H3 || a == atom.H4 || a == atom.H5 || a == atom.H6
}

// startTag handles a start tag. closed reports whether it is also the end tag.
func (p *page) startTag(z *html.Tokenizer, a atom.Atom, more, closed bool) {
	switch a {
	case atom.Meta, atom.Html, atom.Time:
		p.metadata(z, a, more)
	case atom.A:
		if !closed && hasHref(z, more) {
			p.link = len(p.open) + 1
		}
	case atom.Br:
		if !p.top().skip {
			p.text = fold(p.text, p.from, []byte{'\n'}, true)
		}
	}
	switch kindOf(a) {
	case skipped:
		switch {
		case closed:
			z.NextIsNotRawText()
		case a != atom.Button || !isHeading(p.top().element): // the buttons of an accordion are its headings
			p.push(open{a, p.top().box, true, p.token.from})
		}
	case standalone:
		p.imply(a)
		p.flushBox()
		switch {
		case closed || a == atom.Hr:
		case p.top().skip:
			p.push(open{a, p.top().box, true, p.token.from})
		default:
			p.pushBox(z, a, more)
		}
	}
}

func hasHref(z *html.Tokenizer, more bool) bool {
	for n := 0; more && n < maxAttrs; n++ {
		var key []byte
		if key, _, more = z.TagAttr(); string(key) == "href" {
			return true
		}
	}
	return false
}

// endTag closes the nearest open element a and all elements in it. Only the end tag of a part of a table may close a
// cell or table.
func (p *page) endTag(a atom.Atom) {
	if a == atom.A {
		p.link = 0
	}
	if kindOf(a) == inline {
		return
	}
	for i := len(p.open) - 1; i >= 0; i-- {
		e := p.open[i].element
		if e == a {
			p.token.from = p.token.to // the end tag is a part of the element
			p.closeTo(i)
			return
		}
		if (rank(e) == cell || e == atom.Table) && rank(a) < cell || e == atom.Template {
			return
		}
	}
}

// Ranks of elements. A start tag ends the previous element of its rank, unless an element of a higher rank is in
// between.
const (
	item   = iota + 1 // of a list
	term              // and description
	cell              // of a table
	row               // of a table
	rows              // of a table
	holder            // of all the above
)

func rank(a atom.Atom) int {
	switch a {
	case atom.Li:
		return item
	case atom.Dd, atom.Dt:
		return term
	case atom.Td, atom.Th, atom.Caption:
		return cell
	case atom.Tr:
		return row
	case atom.Tbody, atom.Thead, atom.Tfoot:
		return rows
	case atom.Ul, atom.Ol, atom.Menu, atom.Dl, atom.Table:
		return holder
	}
	return 0
}

// imply closes the elements that a start tag ends (HTML Living Standard, 13.1.2.4 optional tags).
func (p *page) imply(a atom.Atom) {
	if p.top().element == atom.P {
		p.closeTo(len(p.open) - 1)
	}
	r := rank(a)
	if r == 0 || r == holder {
		return
	}
	for i := len(p.open) - 1; i >= 0; i-- {
		switch e := rank(p.open[i].element); {
		case e == r:
			p.closeTo(i)
			return
		case e > r:
			return
		}
	}
}

// pushBox opens an element that is shown.
func (p *page) pushBox(z *html.Tokenizer, a atom.Atom, more bool) {
	b := box{parent: p.top().box, element: a, hint: p.hint(z, a, more)}
	i := b.parent
	if len(p.boxes) < maxBoxes {
		i = int32(len(p.boxes))
		b.from = p.token.from
		p.boxes = append(p.boxes, b)
	}
	if p.push(open{a, i, false, p.token.from}) && preformatted(a) {
		p.pre++
	}
}

// push opens an element, unless too many are open. An element that is not shown may always be opened in one that is.
func (p *page) push(o open) bool {
	if len(p.open) >= maxOpen && (!o.skip || p.top().skip) {
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
		if o.skip {
			p.hidden = append(p.hidden, span{o.from, p.token.from})
		} else {
			p.boxes[o.box].to = p.token.from
		}
	}
	p.open = p.open[:i]
	if p.link > i {
		p.link = 0
	}
}

// top returns the innermost open element; its zero value is the page.
func (p *page) top() open {
	if len(p.open) == 0 {
		return open{}
	}
	return p.open[len(p.open)-1]
}
