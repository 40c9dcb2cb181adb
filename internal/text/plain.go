package text

import "bytes"

// readText reads plain text: blocks are parted by empty lines.
func (p *page) readText() {
	p.pre = 1
	for line := range bytes.Lines(p.src) {
		if len(bytes.TrimSpace(line)) == 0 {
			p.flush(0, false)
			continue
		}
		p.add(line)
	}
	p.flush(0, false)
}

// readMarkdown reads Markdown, of which only the headings make a difference: marks
// are no words.
func (p *page) readMarkdown() {
	p.pre = 1
	fenced := false
	var last []byte
	for line := range bytes.Lines(p.src) {
		text := bytes.TrimSpace(line)
		fence := bytes.HasPrefix(text, []byte("```")) || bytes.HasPrefix(text, []byte("~~~"))
		if fence {
			fenced = !fenced
		}
		switch level := len(text) - len(bytes.TrimLeft(text, "#")); {
		case len(text) == 0 || fence:
			p.flush(0, false)
		case !fenced && 0 < level && level <= 6 && len(text) > level && text[level] == ' ':
			p.flush(0, false)
			p.addHeading(bytes.Trim(text, "# "))
		case !fenced && len(last) > 0 && underline(text) && len(p.text) > p.from:
			p.flush(0, true)
			p.heading(len(p.blocks) - 1)
		default:
			p.add(line)
		}
		last = text
	}
	p.flush(0, false)
}

// underline reports whether a line makes a heading of the one before it.
func underline(line []byte) bool {
	return len(line) > 2 && (len(bytes.Trim(line, "=")) == 0 || len(bytes.Trim(line, "-")) == 0)
}

func (p *page) addHeading(text []byte) {
	p.add(text)
	p.flush(0, true)
	p.heading(len(p.blocks) - 1)
}

// heading notes a block that is one: the first may have to be the title.
func (p *page) heading(i int) {
	if i >= 0 && len(p.firstHeading) == 0 && p.blocks[i].heading {
		b := p.blocks[i]
		p.firstHeading = append(p.firstHeading, p.text[b.from:b.to]...)
	}
}
