package text

import (
	"bytes"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html/atom"
)

// A page is one body while it is read: its text as blocks in boxes.
type page struct {
	src  []byte // the body, UTF-8
	mime string

	text   []byte  // of all blocks, white space folded
	blocks []block // in the order of the page
	boxes  []box   // parents before children; 0 is the page
	open   []open  // the elements around the current token, outermost first

	// The current block.
	from   int // of text
	linked int // bytes of it within links
	link   int // 1 + number of elements that were open where the current link began, 0 outside of links
	pre    int // depth in preformatted text

	token  span   // the current token, in src
	hidden []span // elements that are not shown

	// What the page says about itself.
	title, ogTitle             []byte
	description, ogDescription []byte
	lang                       string
	published                  time.Time

	hints  map[string]hint // by value of class, id or role
	fates  []fate          // of boxes
	region int32           // the smallest box with three quarters of the running text
}

// A block is a paragraph, an item, a cell, or another piece of text of its own.
type block struct {
	from, to int32 // of page.text
	linked   int32 // bytes of it within links
	box      int32
	heading  bool
}

func (b block) size() int32 { return b.to - b.from }

// A box is an element that contains blocks or boxes.
type box struct {
	parent  int32
	element atom.Atom
	hint    hint
	inner   bool // in article or main
	within  bool // in the box that has most of the text, or around it
	span
	content
}

// A span is a part of page.src.
type span struct{ from, to int }

// content counts the text of a box and of the boxes in it.
type content struct {
	size, linked, prose int32 // bytes: all, within links, of running text
}

func (c *content) add(o content) {
	c.size += o.size
	c.linked += o.linked
	c.prose += o.prose
}

// An open element.
type open struct {
	element atom.Atom
	box     int32
	skip    bool // its content is not shown
	from    int  // of page.src
}

// Bounds on one page.
const (
	maxBoxes = 200_000
	maxOpen  = 256
	maxHints = 1 << 12
	maxAttrs = 64 // of a tag
)

func newPage(body []byte, mime string) *page {
	return &page{
		src: body, mime: mime,
		text: make([]byte, 0, len(body)/2), boxes: []box{{parent: -1}}, fates: []fate{inText}, hints: map[string]hint{},
	}
}

// flush ends the current block, which belongs to a box.
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

// flushBox ends the current block, which belongs to the innermost box.
func (p *page) flushBox() {
	i := p.top().box
	b := p.boxes[i]
	head := isHeading(b.element) || b.parent >= 0 && isHeading(p.boxes[b.parent].element)
	if head {
		p.text = trimPermalink(p.text, p.from)
	}
	p.flush(i, head)
}

// trimPermalink removes the permalink sign at the end of a heading.
func trimPermalink(text []byte, from int) []byte {
	line := bytes.TrimRight(text[from:], " \n")
	for _, sign := range [...]string{"¶", "§", " #", "🔗", "[edit]"} {
		if rest, ok := bytes.CutSuffix(line, []byte(sign)); ok {
			return text[:from+len(rest)]
		}
	}
	return text
}

// line returns the text of a block.
func (p *page) line(i int) []byte { return p.text[p.blocks[i].from:p.blocks[i].to] }

// document returns the result of the reading.
func (p *page) document() Document {
	var body, headings, aside strings.Builder
	var title []byte // the first heading
	top := true      // no h1 yet
	for i, b := range p.blocks {
		line, fate := p.line(i), p.fates[b.box]
		switch fate {
		case inText:
			appendLine(&body, line, MaxText)
		case beside:
			appendLine(&aside, line, maxAside)
		}
		if !b.heading {
			continue
		}
		if title == nil {
			title = line
		}
		// The first h1 is a heading of the page, even if it stands in a header that is left out.
		h1 := top && p.boxes[b.box].element == atom.H1
		top = top && !h1
		if fate == inText || h1 {
			appendLine(&headings, line, maxHeadings)
		}
	}
	return Document{
		Title:       first(maxTitle, p.title, p.ogTitle, title),
		Headings:    headings.String(),
		Body:        body.String(),
		Aside:       aside.String(),
		Description: first(maxDescription, p.description, p.ogDescription),
		Published:   p.published,
	}
}

// appendLine appends the part of a line that fits the limit.
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

// first returns the first text that is not empty, cut to a limit.
func first(limit int, texts ...[]byte) string {
	for _, t := range texts {
		if t = bytes.TrimSpace(t); len(t) > 0 {
			return string(cut(t, limit))
		}
	}
	return ""
}

// cut returns the first n bytes of b without a partial character or white space at their end.
func cut(b []byte, n int) []byte {
	n = max(n, 0)
	if len(b) <= n {
		return b
	}
	for n > 0 && !utf8.RuneStart(b[n]) {
		n--
	}
	return bytes.TrimRight(b[:n], " \n")
}

// fold appends src to dst. Each run of white space and control characters becomes one space or, if lines count, one line
// end. dst[start:] is the text of the same block.
func fold(dst []byte, start int, src []byte, lines bool) []byte {
	for i := 0; i < len(src); {
		j := i
		for j < len(src) && ' ' < src[j] && src[j] < 0x7f { // most characters, copied at once
			j++
		}
		if j > i {
			dst = append(dst, src[i:j]...)
			i = j
			continue
		}
		r, n := utf8.DecodeRune(src[i:])
		i += n
		last := byte('\n') // before the block
		if len(dst) > start {
			last = dst[len(dst)-1]
		}
		switch {
		case r == '\n' && lines:
			if last == ' ' {
				dst = dst[:len(dst)-1]
			}
			if len(dst) > start && dst[len(dst)-1] != '\n' {
				dst = append(dst, '\n')
			}
		case unicode.IsSpace(r) || unicode.IsControl(r):
			if last != ' ' && last != '\n' {
				dst = append(dst, ' ')
			}
		case r != '\ufeff' && r != '\u00ad' && r != '\u200b': // these show nothing
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}
