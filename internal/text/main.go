package text

import (
	"cmp"
	"slices"

	"github.com/orbweaver/orbweaver/internal/extract"
)

// Main returns the main text of a page with its markup: a decoded body in UTF-8 without the elements that [Extract] leaves out
// of Document.Body. A body of plain text or Markdown is returned whole, with html false. ok is false as in [Extract].
func Main(contentType string, body []byte, url string) (main []byte, html, ok bool) {
	p, read := openPage(contentType, body, url)
	if p == nil {
		return nil, false, false
	}
	if p.mime != typeHTML && !extract.XML(p.mime) {
		return p.src, false, true
	}
	read(p)
	out := p.hidden
	for i := range p.boxes {
		if b := &p.boxes[i]; p.fates[i] != inText && b.to > b.from {
			out = append(out, b.span)
		}
	}
	slices.SortFunc(out, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	at := 0
	for _, s := range out {
		if s.from > at {
			main = append(main, p.src[at:s.from]...)
		}
		at = max(at, s.to)
	}
	return append(main, p.src[min(at, len(p.src)):]...), true, true
}
