package extract

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"golang.org/x/net/html"
)

// A scanner reads the tokens of a body in memory. It reads most tokens of HTML itself, see regular, and
// starts a tokenizer for the others, at any offset of the body. A new tokenizer has two further uses. A
// token over maxToken is the last one of its tokenizer, and the next tokenizer continues after it. And a
// tokenizer keeps a table of attribute names that it clears at each tag and never shrinks: after one tag
// with many attributes, each small tag would take three times as long. The scanner passes over raw text
// (mostly scripts) with a search.
type scanner struct {
	body      []byte
	src       []byte // the current token
	at        int    // offset of the next token, if there is no tokenizer
	irregular int    // number of tokenizers started
	xml       bool

	z    *html.Tokenizer // nil if none is needed
	next int             // offset of the bytes that the tokenizer has not read
	from int             // offset where the tokenizer began
	cut  bool            // the current token is longer than maxToken
}

// errCut ends a tokenizer whose token is too long.
var errCut = errors.New("token too long")

func (s *scanner) open(body []byte, xml bool) {
	s.body, s.xml = body, xml
	s.seek(0)
}

// token reads the next token. raw is the name of the raw text element whose start tag was the previous
// token, or "".
func (s *scanner) token(raw string) html.TokenType {
	if s.z != nil && !s.xml && s.irregular <= maxIrregular {
		s.seek(s.pos())
	}
	if s.z == nil {
		n, nested := s.rawText(raw)
		if n > 0 {
			s.src = s.body[s.at : s.at+n]
			s.at += n
			return html.TextToken
		}
		if !nested {
			if tt, ok := s.regular(); ok {
				return tt
			}
		}
		s.tokenizer(nested)
	}
	tt := s.z.Next()
	s.src = s.z.Raw()
	return tt
}

// rawText returns the length of the text of a raw text element, or 0 if name is empty. A script that may
// hold another script inside a comment is nested: only the tokenizer knows its end.
func (s *scanner) rawText(name string) (n int, nested bool) {
	b := s.body[s.at:]
	switch name {
	case "":
		return 0, false
	case "plaintext":
		return len(b), false
	}
	n = indexEndTag(b, name)
	if name == "script" && bytes.Contains(b[:n], []byte("<!--")) {
		return 0, true
	}
	return n, false
}

// tokenizer starts a tokenizer at the current offset, inside a script or outside any raw text.
// NewTokenizerFragment does not help: its scripts have no end.
func (s *scanner) tokenizer(script bool) {
	s.irregular++
	s.next, s.from = s.at, s.at
	if script {
		s.z = html.NewTokenizer(io.MultiReader(strings.NewReader("<script>"), s))
		s.z.Next()
	} else {
		s.z = html.NewTokenizer(s)
	}
	s.z.AllowCDATA(s.xml)
}

// Read implements io.Reader for the tokenizer, which reads more when its buffer ends within a token. Read
// checks the length of the token only then: Tokenizer.SetMaxBuf checks it at each byte and takes 7 %
// longer. The buffer doubles, so a token of up to twice maxToken may pass.
func (s *scanner) Read(p []byte) (int, error) {
	if len(s.z.Raw()) >= maxToken {
		s.cut = true
		return 0, errCut
	}
	n := copy(p, s.body[s.next:])
	s.next += n
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// pos returns the offset after the current token.
func (s *scanner) pos() int {
	if s.z == nil {
		return s.at
	}
	return s.next - len(s.z.Buffered())
}

// notRaw makes the tokenizer read the content of the current element as markup.
func (s *scanner) notRaw() {
	if s.z != nil {
		s.z.NextIsNotRawText()
	}
}

// seek continues at an offset, without a tokenizer.
func (s *scanner) seek(at int) {
	s.z, s.at, s.cut = nil, max(0, min(at, len(s.body))), false
}

// resume continues after a tag that was too long, and reads the rest of it as text. It reports false at the
// end of the body.
func (s *scanner) resume() bool {
	at := s.pos()
	if !s.cut || at <= s.from {
		return false
	}
	s.seek(at)
	return true
}

// resumeText skips the rest of a text that was too long. The last two bytes of the token may begin a tag.
func (s *scanner) resumeText() {
	at := max(s.pos()-len("</"), 0)
	n := bytes.IndexByte(s.body[at:], '<')
	if n < 0 {
		n = len(s.body)
	}
	s.seek(at + n)
}

// resumeMarkup continues after a comment, declaration, processing instruction or CDATA section if
// that was too long.
func (s *scanner) resumeMarkup() {
	if !s.cut {
		return
	}
	end := ">"
	switch {
	case bytes.HasPrefix(s.src, []byte("<!--")):
		end = "-->"
	case bytes.HasPrefix(s.src, []byte(sectionBegin)):
		end = sectionEnd
	}
	at := s.pos() - len(end)
	n := len(s.body)
	if i := bytes.Index(s.body[at:], []byte(end)); i >= 0 {
		n = at + i + len(end)
	}
	s.seek(n)
}

// resumeRaw continues at the end tag of a raw text element whose text was too long.
func (s *scanner) resumeRaw(name string) {
	at := s.pos() - len("</") - len(name) - len(">")
	s.seek(at + indexEndTag(s.body[at:], name))
}

// indexEndTag returns the index of the first end tag of an element, or the length of b if it has no end tag.
func indexEndTag(b []byte, name string) int {
	for at := 0; ; {
		i := bytes.Index(b[at:], []byte("</"))
		if i < 0 {
			return len(b)
		}
		at += i
		if n := at + len("</") + len(name); n < len(b) && nameEnds(b[n]) && equalFold(b[at+len("</"):n], name) {
			return at
		}
		at += len("</")
	}
}
