package extract

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"golang.org/x/net/html"
)

// A scanner goes over a body in memory. It reads most tokens itself, see regular,
// and has a tokenizer read the others, which it can put down at any place of the
// body. That serves two ends besides. A token over maxToken is the tokenizer's last:
// the next tokenizer goes on behind it. And a tokenizer keeps a table of attribute
// names that is wiped at each tag and never shrinks: were it not replaced after a
// long tag, one tag of many attributes would make the small tags behind it take
// three times as long. Long raw text (scripts, mostly) is stepped over by a search.
type scanner struct {
	body      []byte
	src       []byte // the current token
	at        int    // where the next token begins, if there is no tokenizer
	irregular int    // tokens that were left to a tokenizer
	xml       bool

	z    *html.Tokenizer // nil while none is needed
	next int             // body[next:] was not handed to the tokenizer
	from int             // where this tokenizer began
	cut  bool            // the current token was longer than maxToken
}

// errCut ends a tokenizer whose token is too long.
var errCut = errors.New("token too long")

func (s *scanner) open(body []byte, xml bool) {
	s.body, s.xml = body, xml
	s.seek(0)
}

// token goes to the next token. raw names the raw text element that has begun, if
// any: its text is next.
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

// rawText returns the length of the text of a raw text element, none if name is
// empty, unless the text is of a script that may have another in a comment: where
// that ends, the tokenizer knows.
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

// tokenizer has a tokenizer go on, within a script or outside of any raw text.
// NewTokenizerFragment is of no use: to it, scripts have no end.
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

// Read implements io.Reader for the tokenizer. It is asked for more when the
// tokenizer's buffer ends within a token, and there the token's length is
// checked: Tokenizer.SetMaxBuf does that at each byte and takes 7 % longer. The
// buffer doubles, so a token of up to twice maxToken may pass.
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

// pos is the offset behind the current token.
func (s *scanner) pos() int {
	if s.z == nil {
		return s.at
	}
	return s.next - len(s.z.Buffered())
}

// notRaw has the content of the element that has begun read as markup.
func (s *scanner) notRaw() {
	if s.z != nil {
		s.z.NextIsNotRawText()
	}
}

// seek goes on at an offset.
func (s *scanner) seek(at int) {
	s.z, s.at, s.cut = nil, max(0, min(at, len(s.body))), false
}

// resume goes on behind a tag that was too long, as if the rest of it were text.
// It reports false at the end of the body.
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
	i := bytes.Index(s.body[at:], []byte(end))
	if i < 0 {
		s.seek(len(s.body))
		return
	}
	s.seek(at + i + len(end))
}

// resumeRaw goes on at the end tag of a raw text element whose text was too long.
func (s *scanner) resumeRaw(name string) {
	at := s.pos() - len("</") - len(name) - len(">")
	s.seek(at + indexEndTag(s.body[at:], name))
}

// indexEndTag returns the index of the first end tag of that name, or the length
// of b if there is none.
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
