package extract

import (
	"bytes"
	"errors"
	"io"

	"golang.org/x/net/html"
)

// A scanner runs a tokenizer over a body in memory and can put it down at another
// place of it. That serves three ends. A token over maxToken is the tokenizer's
// last: the next tokenizer goes on behind it. Long raw text (scripts, mostly) is
// stepped over by a search, which is many times faster. And a tokenizer keeps a
// table of attribute names that is wiped at each tag and never shrinks: were it
// not replaced after a long tag, one tag of many attributes would make the small
// tags behind it take three times as long.
type scanner struct {
	z    *html.Tokenizer
	body []byte
	next int  // body[next:] was not handed to the tokenizer
	from int  // where this tokenizer began
	cut  bool // the current token was longer than maxToken
	xml  bool
}

// errCut ends a tokenizer whose token is too long.
var errCut = errors.New("token too long")

func (s *scanner) open(body []byte, xml bool) {
	s.body, s.xml = body, xml
	s.seek(0, "")
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
func (s *scanner) pos() int { return s.next - len(s.z.Buffered()) }

// seek goes on at an offset, inside the named raw text element or, if raw is
// empty, outside any.
func (s *scanner) seek(at int, raw string) {
	at = max(0, min(at, len(s.body)))
	s.next, s.from, s.cut = at, at, false
	s.z = html.NewTokenizerFragment(s, raw)
	s.z.AllowCDATA(s.xml)
}

// resume goes on behind a tag that was too long, as if the rest of it were text.
// It reports false at the end of the body.
func (s *scanner) resume() bool {
	at := s.pos()
	if !s.cut || at <= s.from {
		return false
	}
	s.seek(at, "")
	return true
}

// resumeText goes on behind text that was too long. What it ends with may be the
// beginning of a tag.
func (s *scanner) resumeText() {
	at := s.pos()
	if i := bytes.LastIndexByte(s.body[max(at-2, 0):at], '<'); i >= 0 {
		at = max(at-2, 0) + i
	}
	s.seek(at, "")
}

// resumeComment goes on behind a comment, declaration or processing instruction
// that was too long.
func (s *scanner) resumeComment() {
	end := ">"
	if bytes.HasPrefix(s.z.Raw(), []byte("<!--")) {
		end = "-->"
	}
	at := s.pos() - len(end)
	i := bytes.Index(s.body[at:], []byte(end))
	if i < 0 {
		s.seek(len(s.body), "")
		return
	}
	s.seek(at+i+len(end), "")
}

// resumeRaw goes on at the end tag of a raw text element whose text was too long.
func (s *scanner) resumeRaw(name string) {
	at := s.pos() - len("</") - len(name) - len(">")
	s.seek(at+indexEndTag(s.body[at:], name), "")
}

// skipRaw steps over the text of the raw text element whose start tag is the
// current token, if that pays. It reports whether it did.
func (s *scanner) skipRaw(name string) bool {
	rest := s.body[s.pos():]
	n := indexEndTag(rest, name)
	// Inside <!-- a script may hold further <script>...</script>: the tokenizer knows.
	if n < worthSkip || name == "script" && bytes.Contains(rest[:n], []byte("<!--")) {
		return false
	}
	s.seek(len(s.body)-len(rest)+n, "")
	return true
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
