package extract

import (
	"bytes"

	"golang.org/x/net/html"
)

// An xmlScanner reads the tokens of an XML document that need not be well-formed: real sitemaps and
// feeds have stray ampersands, undeclared entities and tags without end, and their links still
// count. The tokenizer of HTML finds the tokens. There is no stack, so nesting costs nothing.
// Names, attributes and text are slices of the body as written.
type xmlScanner struct {
	scanner
	prefix  []byte // namespace prefix of the tag
	name    []byte // local name of the tag
	closed  bool   // the start tag is its own end tag
	text    []byte // content of the text token
	section bool   // the text is a CDATA section, which has no character references
}

// next reads the next tag or text. It skips comments, declarations and processing instructions, and
// returns html.ErrorToken at the end. It drops a tag that the end of the body cuts off.
func (s *xmlScanner) next() html.TokenType {
	for {
		tt := s.token("")
		end := s.pos()
		s.src = s.body[end-len(s.src) : end]
		switch tt {
		case html.TextToken:
			s.text, s.section = bytes.CutPrefix(s.src, []byte(sectionBegin))
			switch {
			case s.section:
				s.text = bytes.TrimSuffix(s.text, []byte(sectionEnd))
				s.resumeMarkup()
			case s.cut:
				s.resumeText()
			}
			return tt
		case html.CommentToken, html.DoctypeToken:
			s.resumeMarkup()
			if at := afterSubset(s.body, end-len(s.src), end); at > s.pos() {
				s.seek(at)
			}
		case html.ErrorToken:
			if !s.reopen(end) {
				if !s.resume() {
					return tt
				}
				continue
			}
			if tt = html.StartTagToken; s.src[1] == '/' {
				tt = html.EndTagToken
			}
			return s.tag(tt)
		default:
			s.reopen(end)
			return s.tag(tt)
		}
	}
}

// reopen ends the current tag at the first bracket inside it and continues there. XML allows no bracket inside a tag, so
// a quotation mark is missing; this way it costs one tag instead of the document. reopen reports false if there is no
// bracket, or after maxIrregular repairs.
func (s *xmlScanner) reopen(end int) bool {
	if len(s.src) == 0 || s.irregular > maxIrregular {
		return false
	}
	i := 1 + bytes.IndexByte(s.src[1:], '<')
	if i == 0 {
		return false
	}
	s.seek(end - len(s.src) + i)
	s.src = s.src[:i]
	return true
}

// tag takes the name of the current tag apart and returns its type.
func (s *xmlScanner) tag(tt html.TokenType) html.TokenType {
	from := len("<")
	if tt == html.EndTagToken {
		from = len("</")
	} else {
		s.notRaw()
		s.closed = bytes.HasSuffix(s.src, []byte("/>"))
	}
	s.prefix, s.name = qualifiedName(s.src[from:])
	if len(s.src) > longTag {
		s.seek(s.pos())
	}
	return tt
}

// is reports whether the current tag has a local name, given in lower case.
func (s *xmlScanner) is(name string) bool { return equalFold(s.name, name) }

// The delimiters of a CDATA section.
const (
	sectionBegin = "<![CDATA["
	sectionEnd   = "]]>"
)

// qualifiedName returns the prefix and the local name that b begins with.
func qualifiedName(b []byte) (prefix, name []byte) {
	name = b[:nameEnd(b, 0)]
	if i := bytes.IndexByte(name, ':'); i >= 0 {
		return name[:i], name[i+1:]
	}
	return nil, name
}

// tagAttribute returns the value of an attribute of a tag as written, or nil if the tag lacks it. The
// name is in lower case and includes the prefix.
func tagAttribute(tag []byte, name string) []byte {
	for n := spaceEnd(tag, nameEnd(tag, 1)); n < len(tag) && tag[n] != '>'; {
		key, value, end := attribute(tag, n)
		if equalFold(tag[key.from:key.to], name) {
			return tag[value.from:value.to]
		}
		n = spaceEnd(tag, end)
	}
	return nil
}

// afterSubset returns the end of the document type declaration that begins at from. The tokenizer takes
// its first bracket, at to, for its end; further declarations may follow: <!DOCTYPE x [<!ENTITY y "z">]>.
func afterSubset(body []byte, from, to int) int {
	if declaration := body[from:to]; !bytes.HasPrefix(declaration, []byte("<!D")) || bytes.IndexByte(declaration, '[') < 0 {
		return to
	}
	i := bytes.Index(body[from:], []byte("]>"))
	if i < 0 {
		return len(body)
	}
	return from + i + len("]>")
}

// xmlRoot returns the local name of the first element, whose tag may be cut off. It returns nil if there
// is no element, or if the body begins with text.
func xmlRoot(body []byte) []byte {
	s := scanner{body: trimSpace(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))}
	if !bytes.HasPrefix(s.body, []byte("<")) {
		return nil
	}
	for {
		b := s.body[s.at:]
		if len(b) > 1 && b[0] == '<' && letter(b[1]) {
			_, name := qualifiedName(b[1:])
			return name
		}
		if tt, ok := s.regular(); !ok || tt == html.ErrorToken {
			return nil
		}
		s.at = afterSubset(s.body, s.at-len(s.src), s.at)
	}
}
