package text

import "bytes"

// readText reads plain text, in which empty lines separate blocks.
func (p *page) readText() {
	for line := range bytes.Lines(p.src) {
		if len(bytes.TrimSpace(line)) == 0 {
			p.flush(0, false)
		}
		p.text = fold(p.text, p.from, line, true)
	}
	p.flush(0, false)
}

// readMarkdown reads Markdown. Only headings and code fences differ from plain text, because other marks are not words.
func (p *page) readMarkdown() {
	fenced := false
	for line := range bytes.Lines(p.src) {
		text := bytes.TrimSpace(line)
		level := len(text) - len(bytes.TrimLeft(text, "#"))
		switch {
		case bytes.HasPrefix(text, []byte("```")) || bytes.HasPrefix(text, []byte("~~~")):
			fenced = !fenced
			p.flush(0, false)
		case len(text) == 0:
			p.flush(0, false)
		case !fenced && 0 < level && level <= 6 && len(text) > level && text[level] == ' ':
			p.flush(0, false)
			p.text = fold(p.text, p.from, bytes.Trim(text, "# "), true)
			p.flush(0, true)
		case !fenced && len(p.text) > p.from && underline(text):
			p.flush(0, true)
		default:
			p.text = fold(p.text, p.from, line, true)
		}
	}
	p.flush(0, false)
}

// underline reports whether a line makes the one before it a heading.
func underline(line []byte) bool {
	return len(line) > 2 && (len(bytes.Trim(line, "=")) == 0 || len(bytes.Trim(line, "-")) == 0)
}
