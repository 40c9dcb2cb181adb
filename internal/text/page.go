package text

import (
	"bytes"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html/atom"
)

// A page is one body being read: its text as blocks in boxes.
type page struct {
	src   []byte // the body, UTF-8
	mime  string
	token string // of the crawler

	text   []byte  // of all blocks, white space folded
	blocks []block // in the order of the page
	boxes  []box   // parents before children; 0 is the page
	open   []open  // the elements that the reading stands in

	// The block that is being written.
	from   int // of text
	linked int // bytes of it within links
	link   int // 1 + how many elements were open where the link began, 0 outside of links
	pre    int // depth in preformatted text
	deep   int // elements that were not opened because too many were

	// What was found besides.
	title, ogTitle, firstHeading []byte
	description, ogDescription   []byte
	lang                         string // what the page says of its language
	noIndex                      bool
	published                    time.Time

	hints map[string]hint // of values of class and id met before
}

// A block is a piece of text that stands for itself: a paragraph, an item, a cell.
type block struct {
	from, to int32 // of page.text
	linked   int32 // bytes of it within links
	box      int32
	heading  bool
	fate     fate // if it is worse than that of its box
}

func (b block) size() int32 { return b.to - b.from }

// A box is an element that holds blocks or boxes.
type box struct {
	parent  int32
	own     int32 // links that are in no box in it
	element atom.Atom
	hint    hint
	inner   bool // in article or main
	within  bool // in the box that has most of the text, or around it
	fate    fate
	content
}

// content counts what a box holds, with the boxes in it.
type content struct {
	size, linked, prose int32 // bytes: all, within links, of running text
	links               int32
}

func (c *content) add(o content) {
	c.size += o.size
	c.linked += o.linked
	c.prose += o.prose
	c.links += o.links
}

// An open element.
type open struct {
	element atom.Atom
	box     int32
	skip    bool // nothing in it is shown
}

// Bounds on one page.
const (
	maxBoxes = 200_000
	maxOpen  = 256
	maxHints = 1 << 12
	maxAttrs = 64 // of a tag
)

func newPage(body []byte, mime, token string) *page {
	return &page{src: body, mime: mime, token: token, boxes: []box{{parent: -1}}, hints: map[string]hint{}}
}

// add adds text to the block that is being written.
func (p *page) add(src []byte) {
	before := len(p.text)
	p.text = fold(p.text, p.from, src, p.pre > 0)
	if p.link > 0 {
		p.linked += len(p.text) - before
	}
}

// flush ends the block, which is of the box.
func (p *page) flush(box int32, heading bool) {
	p.text = bytes.TrimRight(p.text, " \n")
	if len(p.text) > p.from {
		p.blocks = append(p.blocks, block{
			from: int32(p.from), to: int32(len(p.text)), linked: int32(min(p.linked, len(p.text)-p.from)), box: box, heading: heading,
		})
		p.text = append(p.text, '\n')
	}
	p.from, p.linked = len(p.text), 0
}

// flushBox ends the block that is being written in the innermost box.
func (p *page) flushBox() {
	i := p.box()
	b := p.boxes[i]
	head := isHeading(b.element) || b.parent >= 0 && isHeading(p.boxes[b.parent].element)
	if head {
		p.text = trimPermalink(p.text, p.from)
	}
	p.flush(i, head)
	if head {
		p.heading(len(p.blocks) - 1)
	}
}

// trimPermalink cuts off the sign that stands behind a heading for a link to it.
func trimPermalink(text []byte, from int) []byte {
	line := bytes.TrimRight(text[from:], " \n")
	for _, sign := range [...]string{"¶", "§", "#", "🔗", "[edit]"} {
		if rest, ok := bytes.CutSuffix(line, []byte(sign)); ok && (sign != "#" || bytes.HasSuffix(rest, []byte(" "))) {
			return text[:from+len(rest)]
		}
	}
	return text
}

// document puts together what was read.
func (p *page) document() Document {
	var body, headings, aside strings.Builder
	p.keepTopHeading(&headings)
	for _, b := range p.blocks {
		line := p.text[b.from:b.to]
		if p.fate(b) == beside {
			appendLine(&aside, line, maxAside)
		}
		if !p.kept(b) {
			continue
		}
		appendLine(&body, line, MaxText)
		if b.heading {
			appendLine(&headings, line, maxHeadings)
		}
	}
	return Document{
		Title:       first(maxTitle, p.title, p.ogTitle, p.firstHeading),
		Headings:    headings.String(),
		Body:        body.String(),
		Aside:       aside.String(),
		Description: first(maxDescription, p.description, p.ogDescription),
		NoIndex:     p.noIndex,
		Published:   p.published,
	}
}

// keepTopHeading writes the first h1 if it is left out with what it stands in, often a
// header: it is of the page all the same.
func (p *page) keepTopHeading(dst *strings.Builder) {
	for _, b := range p.blocks {
		if b.heading && p.boxes[b.box].element == atom.H1 {
			if !p.kept(b) {
				appendLine(dst, p.text[b.from:b.to], maxHeadings)
			}
			return
		}
	}
}

// appendLine appends a line, or what of it fits within the limit.
func appendLine(dst *strings.Builder, line []byte, limit int) {
	room := limit - dst.Len()
	if dst.Len() > 0 {
		room--
	}
	if line = cut(line, room); len(line) == 0 {
		return
	}
	if dst.Len() > 0 {
		dst.WriteByte('\n')
	}
	dst.Write(line)
}

// first returns the first of some texts that is not empty, cut to a limit.
func first(limit int, texts ...[]byte) string {
	for _, t := range texts {
		if t = bytes.TrimSpace(t); len(t) > 0 {
			return string(cut(t, limit))
		}
	}
	return ""
}

// cut returns b, if it is longer than n bytes cut at a character, and without white
// space at that end.
func cut(b []byte, n int) []byte {
	if n < 0 {
		n = 0
	}
	if len(b) <= n {
		return b
	}
	for n > 0 && !utf8.RuneStart(b[n]) {
		n--
	}
	return bytes.TrimRight(b[:n], " \n")
}

// fold appends src to dst with runs of white space and control characters made one
// space, or, of lines that count, one line end. dst[start:] is the text before, which
// does not begin with a space.
func fold(dst []byte, start int, src []byte, lines bool) []byte {
	for i := 0; i < len(src); {
		c := src[i]
		if ' ' < c && c < 0x7f { // most of all: copied at once
			j := i + 1
			for j < len(src) && ' ' < src[j] && src[j] < 0x7f {
				j++
			}
			dst = append(dst, src[i:j]...)
			i = j
			continue
		}
		r, n := rune(c), 1
		if c >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(src[i:])
		}
		i += n
		switch {
		case r == '\n' && lines:
			for len(dst) > start && dst[len(dst)-1] == ' ' {
				dst = dst[:len(dst)-1]
			}
			if len(dst) > start && dst[len(dst)-1] != '\n' {
				dst = append(dst, '\n')
			}
		case blank(r):
			if len(dst) > start && dst[len(dst)-1] != ' ' && dst[len(dst)-1] != '\n' {
				dst = append(dst, ' ')
			}
		case r != '\ufeff' && r != '\u00ad' && r != '\u200b':
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}

// blank reports whether r is white space or shows nothing.
func blank(r rune) bool {
	return r <= ' ' || r == 0x7f || r >= utf8.RuneSelf && (unicode.IsSpace(r) || unicode.IsControl(r))
}
