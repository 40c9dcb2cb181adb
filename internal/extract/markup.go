package extract

import (
	"bytes"

	"golang.org/x/net/html"
)

// maxIrregular bounds the tokenizers that a document may start. After that, one tokenizer reads the whole
// rest: starting one costs more than it saves.
const maxIrregular = 100

// regular reads the next token without the tokenizer, which allocates for each attribute and copies the
// body. It reports false unless the token is written as nearly all are. The result equals that of the
// tokenizer (FuzzHTML).
func (s *scanner) regular() (html.TokenType, bool) {
	if s.xml || s.irregular > maxIrregular {
		return 0, false
	}
	b := s.body[s.at:]
	if len(b) == 0 {
		s.src = nil
		return html.ErrorToken, true
	}
	b = b[:min(len(b), maxToken)] // a longer token is left to the tokenizer
	if n := textLength(b); n > 0 {
		return s.take(html.TextToken, n)
	}
	switch {
	case len(b) < len("<a>"):
		return 0, false
	case letter(b[1]):
		n, closed, ok := tagLength(b, 1)
		if !ok {
			return 0, false
		}
		if closed {
			return s.take(html.SelfClosingTagToken, n)
		}
		return s.take(html.StartTagToken, n)
	case b[1] == '/' && letter(b[2]):
		n, _, ok := tagLength(b, 2)
		if !ok {
			return 0, false
		}
		return s.take(html.EndTagToken, n)
	case bytes.HasPrefix(b, []byte("<!--")):
		return s.take(html.CommentToken, commentLength(b))
	case b[1] == '?' || b[1] == '!' && letter(b[2]):
		return s.take(html.CommentToken, bytes.IndexByte(b, '>')+1)
	}
	return 0, false
}

// take makes the next n bytes the current token. It reports false if n is 0, or so large that the tokenizer
// might cut the token.
func (s *scanner) take(tt html.TokenType, n int) (html.TokenType, bool) {
	if n == 0 || n >= maxToken {
		return 0, false
	}
	s.src = s.body[s.at : s.at+n]
	s.at += n
	return tt, true
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// textLength returns the length of the text at the beginning of b.
func textLength(b []byte) int {
	for n := 0; ; n++ {
		i := bytes.IndexByte(b[n:], '<')
		if i < 0 || n+i+1 == len(b) {
			return len(b)
		}
		n += i
		if c := b[n+1]; letter(c) || c == '/' || c == '!' || c == '?' {
			return n
		}
	}
}

// commentLength returns the length of the comment at the beginning of b. It returns 0 if the comment has no
// end, or an end that is an error of syntax.
func commentLength(b []byte) int {
	n := len("<!--")
	if rest := b[n:]; len(rest) == 0 || rest[0] == '>' || bytes.HasPrefix(rest, []byte("->")) {
		return 0
	}
	for {
		i := bytes.Index(b[n:], []byte("--"))
		if i < 0 || n+i+2 == len(b) {
			return 0
		}
		n += i
		switch b[n+2] {
		case '>':
			return n + len("-->")
		case '!':
			return 0
		}
		n++
	}
}

// tagLength returns the length of the tag at the beginning of b, whose name is at an offset, and whether the
// tag closes itself. ok is false if the tag has no end, or ends with a slash that may belong to an attribute.
func tagLength(b []byte, name int) (n int, closed, ok bool) {
	n = nameEnd(b, name)
	last := 0 // end of the last value
	for {
		n = spaceEnd(b, n)
		if n == len(b) {
			return 0, false, false
		}
		if b[n] == '>' {
			closed = b[n-1] == '/'
			return n + 1, closed, !closed || last != n
		}
		_, value, end := attribute(b, n)
		last, n = value.to, end
	}
}

// nameEnd returns the end of the name of a tag that begins at n.
func nameEnd(b []byte, n int) int {
	for n < len(b) && !nameEnds(b[n]) {
		n++
	}
	return n
}

func spaceEnd(b []byte, n int) int {
	for n < len(b) && space(b[n]) {
		n++
	}
	return n
}

// A span is a part of a tag.
type span struct{ from, to int }

// attribute returns the name and the value of the attribute at n, and its end (HTML Living Standard, 13.2.5.32
// and following). A slash that separates attributes is an attribute without a name. An attribute without an
// end extends to the end of b.
func attribute(b []byte, n int) (name, value span, end int) {
	name.from = n
	if n < len(b) && b[n] == '=' {
		n++ // of the name
	}
	for n < len(b) && b[n] != '=' && !nameEnds(b[n]) {
		n++
	}
	name.to = n
	value = span{n, n}
	n = spaceEnd(b, n)
	switch {
	case n == len(b):
		return name, value, n
	case b[n] == '/':
		return name, value, n + 1
	case b[n] != '=':
		return name, value, n
	}
	n = spaceEnd(b, n+1)
	switch {
	case n == len(b) || b[n] == '>':
	case b[n] == '"' || b[n] == '\'':
		value.from, value.to = n+1, len(b)
		i := bytes.IndexByte(b[n+1:], b[n])
		if i < 0 {
			return name, value, len(b)
		}
		value.to = n + 1 + i
		n = value.to + 1
	default:
		value.from = n
		for n < len(b) && b[n] != '>' && !space(b[n]) {
			n++
		}
		value.to = n
	}
	return name, value, n
}

// regularValue returns the value of an attribute with its character references resolved. It reports false if
// the value needs the tokenizer: in attributes, references without a semicolon have special rules.
func regularValue(v []byte) ([]byte, bool) {
	if bytes.IndexByte(v, '\r') >= 0 || bytes.IndexByte(v, 0) >= 0 {
		return nil, false
	}
	if bytes.IndexByte(v, '&') < 0 {
		return v, true
	}
	for rest := v; ; {
		i := bytes.IndexByte(rest, '&')
		if i < 0 {
			return appendCharacters(make([]byte, 0, len(v)+8), v), true
		}
		rest = rest[i+1:]
		n := 0
		for n < len(rest) && (letter(rest[n]) || '0' <= rest[n] && rest[n] <= '9') {
			n++
		}
		if n == len(rest) && n > 0 || n < len(rest) && (rest[n] == '#' || n+len("&;") > maxReference) {
			return nil, false
		}
		if n > 0 && rest[n] != ';' && rest[n] != '=' {
			return nil, false
		}
	}
}

// maxReference bounds a character reference, in bytes. The longest one, &CounterClockwiseContourIntegral;,
// has 33.
const maxReference = 40

// appendCharacters appends text with its character references resolved: those of XML, and those of HTML,
// which feeds use without declaring them. References need a semicolon here, or ?a=1&copy=2 would lose its
// argument.
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
