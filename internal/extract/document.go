package extract

import (
	"bytes"
	"sync"

	"golang.org/x/net/html"

	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// A document reads one page.
type document struct {
	scanner
	transcoder
	collector

	self     weburl.URL
	opt      Options
	resolver *weburl.Resolver // outlives the page

	// The state of reading.
	raw      string     // name of the raw text element whose text may be the next token
	template int        // depth in inert templates
	tag      attributes // of the current tag, if tagRead is set
	tagRead  bool
	anchor   int // index of the reference whose text is read, or none

	// The findings.
	head             // what the page says about itself
	base      []byte // href of the first base element that has one
	robots    polite.Directives
	converted int // tags converted for their attributes
}

// documents keeps the maps, buffers and resolvers of finished documents.
var documents = sync.Pool{New: func() any { return &document{resolver: new(weburl.Resolver)} }}

func newDocument(self weburl.URL, opt Options) *document {
	d := documents.Get().(*document)
	*d = document{collector: d.collector, resolver: d.resolver, head: head{h1: d.h1[:0]}, self: self, opt: opt, anchor: none}
	return d
}

// release returns the document to the pool, without references to the page.
func (d *document) release() {
	d.collector.reset()
	*d = document{collector: d.collector, resolver: d.resolver, head: head{h1: d.h1[:0]}}
	documents.Put(d)
}

// html reads a page.
func (d *document) html(body []byte, contentType string, xml bool) Result {
	body, d.transcoder = decoded(body, contentType, false)
	d.open(body, xml)
	d.read()
	return d.result()
}

// read reads all tokens of the body.
func (d *document) read() {
	for {
		switch tt := d.token(d.raw); tt {
		case html.ErrorToken:
			if !d.resume() {
				return
			}
			d.raw = ""
		case html.TextToken:
			d.text()
		case html.StartTagToken, html.SelfClosingTagToken:
			d.startTag(tt)
		case html.EndTagToken:
			d.endTag()
		default: // comment, doctype
			d.resumeMarkup()
		}
	}
}

// result resolves the collected references.
func (d *document) result() Result {
	base := d.self
	if d.base != nil && len(d.base) <= maxHref {
		if u, err := d.self.Resolve(string(d.base)); err == nil {
			base = u
		}
	}
	d.resolver.SetBase(base)
	links := d.links(d.self, d.resolver.Resolve)
	for i := range links {
		links[i].NoFollow = links[i].NoFollow || d.robots.NoFollow && links[i].Kind != actor.LinkRequisite
	}
	return Result{Links: links, NoIndex: d.robots.NoIndex, NoFollow: d.robots.NoFollow, Meta: d.resolved(d.resolver.Resolve), Directives: d.directives}
}

// text handles a text token.
func (d *document) text() {
	raw := d.raw
	d.raw = ""
	if raw == "" && d.anchor != none {
		if full := d.addText(d.anchor, d.plain(d.src)); full {
			d.anchor = none
		}
	}
	switch {
	case raw == "style" && d.opt.Requisites && d.template == 0:
		css := d.src
		if d.foreign(css) {
			css = d.decode(css)
		}
		d.styles(css)
	case raw == "title" && d.Title == "" && d.template == 0:
		d.Title = folded(d.plain(d.src), maxTitle)
	case raw == "" && d.inH1:
		d.h1, _ = fold(d.h1, 0, d.plain(d.src), maxTitle)
	}
	switch {
	case !d.cut:
	case raw != "":
		d.resumeRaw(raw)
	default:
		d.resumeText()
	}
}

// plain converts a piece of source to UTF-8 and then resolves its character references. Tokenizer.Text would
// resolve the references first and mix two charsets.
func (d *document) plain(src []byte) []byte {
	src = src[:min(len(src), maxText)]
	if d.foreign(src) {
		src = d.decode(src)
	}
	if bytes.IndexByte(src, '&') >= 0 {
		src = []byte(html.UnescapeString(string(src)))
	}
	return src
}

// startTag handles a start tag. The first byte of the name rules out most tags.
func (d *document) startTag(tt html.TokenType) {
	d.raw, d.tagRead = "", false
	src := d.src
	name := elements.find(src[1:])
	if d.opt.Requisites && d.template == 0 {
		d.requisites(src)
	}
	if name != "" {
		if d.template == 0 {
			d.element(name)
		}
		d.enter(name, tt)
	}
	if len(src) > longTag {
		d.seek(d.pos())
	}
}

// enter decides how to read the content of an element: as markup, raw text or an inert template.
func (d *document) enter(name string, tt html.TokenType) {
	closed := tt == html.SelfClosingTagToken
	switch name {
	case "noscript":
		d.notRaw()
	case "template":
		// A template is inert unless it is a shadow root written in place. Inside
		// one, all templates are counted, as their end tags will be.
		switch {
		case d.xml && closed:
		case d.template > 0 || d.attributes().shadowRoot == nil:
			d.template++
		}
	case "iframe", "noembed", "noframes", "plaintext", "script", "style", "textarea", "title", "xmp":
		if d.xml && closed {
			d.notRaw()
		} else {
			d.raw = name
		}
	}
}

// endTag handles an end tag.
func (d *document) endTag() {
	d.raw = ""
	switch elements.find(d.src[2:]) {
	case "a":
		d.anchor = none
	case "h1":
		d.inH1 = false
	case "template":
		d.template = max(0, d.template-1)
	}
}

// elementNames are names of elements by their first letter.
type elementNames ['x' - 'a' + 1][]string

// find returns the name of a tag if it is one of the names, and "" otherwise. tag begins with the name.
func (e *elementNames) find(tag []byte) string {
	letter := int(tag[0]|0x20) - 'a'
	if letter < 0 || letter >= len(e) {
		return ""
	}
	for _, name := range e[letter] {
		if n := len(name); n < len(tag) && nameEnds(tag[n]) && equalFold(tag[:n], name) {
			return name
		}
	}
	return ""
}

// nameEnds reports whether c ends the name of a tag.
func nameEnds(c byte) bool { return c == '>' || space(c) || c == '/' }

// elements are the relevant ones, requisites aside.
var elements = elementNames{
	0:         {"a", "area"},
	'b' - 'a': {"base"},
	'f' - 'a': {"frame"},
	'h' - 'a': {"h1", "html"},
	'i' - 'a': {"iframe"},
	'l' - 'a': {"link"},
	'm' - 'a': {"meta"},
	'n' - 'a': {"noembed", "noframes", "noscript"},
	'p' - 'a': {"plaintext"},
	's' - 'a': {"script", "style"},
	't' - 'a': {"template", "textarea", "title"},
	'x' - 'a': {"xmp"},
}
