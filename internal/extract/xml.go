package extract

import (
	"bytes"

	"golang.org/x/net/html"
)

// An xmlScanner goes over the markup of an XML document without asking that it be
// well-formed: real feeds have stray ampersands, entities nobody declared and tags
// that are never closed, and their links are wanted all the same. It keeps nothing
// but the current token, so nesting costs nothing, and looks at each byte a fixed
// number of times. Declarations are stepped over: an entity is never expanded.
type xmlScanner struct {
	rest   []byte // behind the current token
	kind   xmlKind
	prefix []byte // of the name of a tag
	name   []byte // the local part of it
	attrs  []byte // the rest of a start tag
	closed bool   // a start tag that is its own end tag
	text   []byte // of text and section
}

type xmlKind uint8

const (
	xmlStart   xmlKind = iota
	xmlEnd             //
	xmlText            // character references stand for characters
	xmlSection         // CDATA: nothing stands for anything else
)

// next goes to the next token that is not a comment, declaration or processing
// instruction. It reports false at the end; what is cut off there is no token,
// unless it is text.
func (s *xmlScanner) next() bool {
	for len(s.rest) > 0 {
		b := s.rest
		if b[0] != '<' {
			n := bytes.IndexByte(b, '<')
			if n < 0 {
				n = len(b)
			}
			s.kind, s.text, s.rest = xmlText, b[:n], b[n:]
			return true
		}
		switch {
		case len(b) == 1:
			s.rest = nil
		case b[1] == '?':
			_, s.rest, _ = bytes.Cut(b, []byte(">")) // <?xml ...> is met, > in one is not
		case bytes.HasPrefix(b, []byte("<!--")):
			_, s.rest, _ = bytes.Cut(b[len("<!--"):], []byte("-->"))
		case bytes.HasPrefix(b, []byte("<![CDATA[")):
			s.kind = xmlSection
			s.text, s.rest, _ = bytes.Cut(b[len("<![CDATA["):], []byte("]]>"))
			return true
		case b[1] == '!':
			s.rest = afterDeclaration(b)
		case b[1] == '/' && len(b) > 2 && nameBegins(b[2]):
			s.kind = xmlEnd
			return s.tag(b[2:])
		case nameBegins(b[1]):
			s.kind = xmlStart
			return s.tag(b[1:])
		default: // a bracket that should have been &lt;
			s.kind, s.text, s.rest = xmlText, b[:1], b[1:]
			return true
		}
	}
	return false
}

// tag takes a tag, given from its name on. A bracket that opens another ends it
// too, even within quotation marks, where XML does not allow one: a mark that was
// forgotten costs one tag and not the document.
func (s *xmlScanner) tag(b []byte) bool {
	n := 0
	for n < len(b) && !nameEnds(b[n]) && b[n] != '<' {
		n++
	}
	name := b[:n]
	s.prefix = nil
	if i := bytes.IndexByte(name, ':'); i >= 0 {
		s.prefix, name = name[:i], name[i+1:]
	}
	s.name = name
	from, quote := n, byte(0)
	for ; n < len(b); n++ {
		switch c := b[n]; {
		case c == '<':
			s.attrs, s.closed, s.rest = b[from:n], false, b[n:]
			return true
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '>':
			s.closed = b[n-1] == '/' && n > from
			s.attrs, s.rest = b[from:n], b[n+1:]
			return true
		}
	}
	s.rest = nil
	return false
}

// attr returns the value of an attribute of the current start tag, as written; nil
// if there is none. The name is lower case, with its prefix.
func (s *xmlScanner) attr(name string) []byte {
	b := s.attrs
	for {
		for len(b) > 0 && (space(b[0]) || b[0] == '/') {
			b = b[1:]
		}
		if len(b) == 0 {
			return nil
		}
		n := 0
		for n < len(b) && !space(b[n]) && b[n] != '=' {
			n++
		}
		key, value := b[:n], b[:0]
		b = trimSpace(b[n:])
		if len(b) > 0 && b[0] == '=' {
			b = trimSpace(b[1:])
			n = 0
			if len(b) > 0 && (b[0] == '"' || b[0] == '\'') {
				value, b, _ = bytes.Cut(b[1:], b[:1])
			} else {
				for n < len(b) && !space(b[n]) {
					n++
				}
				value, b = b[:n], b[n:]
			}
		}
		if equalFold(key, name) {
			return value
		}
	}
}

// is reports whether the current tag has that local name, given in lower case.
func (s *xmlScanner) is(name string) bool { return equalFold(s.name, name) }

// nameBegins reports whether c may begin a name. Bytes above 0x7F all may.
func nameBegins(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' || c == ':' || c >= 0x80
}

// afterDeclaration returns what follows a declaration and the declarations in it:
// <!DOCTYPE x [<!ENTITY y "z">]>.
func afterDeclaration(b []byte) []byte {
	inside := false
	for b = b[len("<!"):]; len(b) > 0; {
		switch c := b[0]; {
		case c == '>' && !inside:
			return b[1:]
		case c == '"' || c == '\'':
			_, b, _ = bytes.Cut(b[1:], b[:1])
			continue
		case inside && bytes.HasPrefix(b, []byte("<!--")):
			_, b, _ = bytes.Cut(b, []byte("-->"))
			continue
		case inside && bytes.HasPrefix(b, []byte("<?")):
			_, b, _ = bytes.Cut(b, []byte(">"))
			continue
		case c == '[':
			inside = true
		case c == ']':
			inside = false
		}
		b = b[1:]
	}
	return nil
}

// xmlRoot returns the local name of the first element, of which the tag may be cut
// off; nil if there is none or text before it.
func xmlRoot(body []byte) []byte {
	s := xmlScanner{rest: bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))}
	for s.next() && s.kind == xmlText && len(trimSpace(s.text)) == 0 {
	}
	if s.kind != xmlStart {
		return nil
	}
	return s.name
}

// maxReference is the length of the longest character reference, in bytes:
// &CounterClockwiseContourIntegral; has 33.
const maxReference = 40

// appendCharacters appends text with its character references resolved: those of
// XML and, since feeds use them undeclared, those of HTML. One without a semicolon
// is no reference here, or ?a=1&copy=2 would lose its argument.
func appendCharacters(dst, text []byte) []byte {
	for {
		i := bytes.IndexByte(text, '&')
		if i < 0 {
			return append(dst, text...)
		}
		dst, text = append(dst, text[:i]...), text[i:]
		n := bytes.IndexByte(text[:min(len(text), maxReference)], ';') + 1
		switch {
		case n == 0:
			n = 1
			dst = append(dst, '&')
		case string(text[:n]) == "&amp;":
			dst = append(dst, '&')
		default:
			s := html.UnescapeString(string(text[:n]))
			if s[len(s)-1] == ';' && s != ";" { // &notit; is not ¬it;
				n = 1
				s = "&"
			}
			dst = append(dst, s...)
		}
		text = text[n:]
	}
}
