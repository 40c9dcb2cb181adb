package token

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/orbweaver/orbweaver/blobschema/segment"
)

// terms are the terms of one word.
type terms struct {
	exact string // the word, normalized; "" if that is empty
	form  string // its stem with segment.FormMark, "" if the stem is the word itself
}

func (t terms) stem() string {
	if t.form == "" {
		return t.exact
	}
	return strings.TrimSuffix(t.form, segment.FormMark)
}

// terms returns the terms of a word in a language.
func (a *analyzer) terms(word string, lang language) terms {
	if len(word) > maxRemembered {
		return a.makeTerms(cutRunes(word, maxWord), lang)
	}
	known := a.known[lang]
	if t, ok := known[word]; ok {
		return t
	}
	if known == nil {
		known = map[string]terms{}
		a.known[lang] = known
	}
	if len(known) >= maxKnown {
		clear(known)
	}
	t := a.makeTerms(word, lang)
	t.exact = strings.Clone(t.exact)
	known[strings.Clone(word)] = t
	return t
}

func (a *analyzer) makeTerms(word string, lang language) terms {
	s := word
	if ascii(s) {
		s = strings.ToLower(s)
	} else {
		s = a.folder.String(norm.NFKC.String(s))
		s = norm.NFC.String(s)
	}
	t := terms{exact: makeTerm(s)}
	if stem := makeTerm(lang.stem(s)); stem != "" && stem != t.exact {
		t.form = stem + segment.FormMark
	}
	return t
}

func makeTerm(s string) string { return strings.Trim(cutRunes(plain(s), maxTerm), " ") }

// plain removes joiners and the marks that many people omit when they write.
func plain(s string) string {
	if ascii(s) {
		return s
	}
	b := make([]byte, 0, len(s))
	var base rune
	for _, r := range norm.NFD.String(s) {
		switch {
		case r == zeroWidthJoiner || r == zeroWidthNonJoiner || r == softHyphen || r == tatweel || vowelPoint(r):
			continue
		case r >= 0x0300 && r <= 0x036F && !(r == breve && (base == 'и' || base == 'у')):
			continue // й and ў are letters of their own
		}
		if !unicode.IsMark(r) {
			base = r
		}
		b = utf8.AppendRune(b, r)
	}
	return alike.Replace(norm.NFC.String(string(b)))
}

// alike holds the usual replacements for letters that a keyboard lacks.
var alike = strings.NewReplacer("ø", "o", "ł", "l", "đ", "d", "ı", "i", "æ", "ae", "œ", "oe")

const (
	softHyphen = '\u00ad'
	tatweel    = '\u0640'
	breve      = '\u0306'
)

// vowelPoint reports whether r is a vowel point of Arabic or Hebrew. They occur mainly in texts for learners.
func vowelPoint(r rune) bool {
	return r >= 0x064B && r <= 0x0652 || r == 0x0670 || r >= 0x0591 && r <= 0x05BD || r == 0x05BF ||
		r == 0x05C1 || r == 0x05C2 || r == 0x05C4 || r == 0x05C5 || r == 0x05C7
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
