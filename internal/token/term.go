package token

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// term returns the term of a word in a language, "" if nothing is left of it.
func (a *analyzer) term(word string, lang language) string {
	if len(word) > maxRemembered {
		return a.makeTerm(cutRunes(word, maxWord), lang)
	}
	known := a.known[lang]
	if term, ok := known[word]; ok {
		return term
	}
	if known == nil {
		known = map[string]string{}
		a.known[lang] = known
	}
	if len(known) >= maxKnown {
		clear(known)
	}
	term := strings.Clone(a.makeTerm(word, lang))
	known[strings.Clone(word)] = term
	return term
}

func (a *analyzer) makeTerm(word string, lang language) string {
	s := word
	if ascii(s) {
		s = strings.ToLower(s)
	} else {
		s = a.folder.String(norm.NFKC.String(s))
		s = norm.NFC.String(s)
	}
	s = plain(lang.stem(s))
	s = strings.Trim(cutRunes(s, maxTerm), " ")
	return s
}

// plain leaves out the marks that many leave out when they write, and joiners.
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
		if to := alike(r); to != "" {
			b = append(b, to...)
		} else {
			b = utf8.AppendRune(b, r)
		}
	}
	return norm.NFC.String(string(b))
}

const (
	softHyphen = '\u00ad'
	tatweel    = '\u0640'
	breve      = '\u0306'
)

// vowelPoint reports whether r is one of the points of Arabic or Hebrew, which are
// written for learners.
func vowelPoint(r rune) bool {
	return r >= 0x064B && r <= 0x0652 || r == 0x0670 || r >= 0x0591 && r <= 0x05BD || r == 0x05BF ||
		r == 0x05C1 || r == 0x05C2 || r == 0x05C4 || r == 0x05C5 || r == 0x05C7
}

// alike returns what is written for a letter where a keyboard lacks it, "" for most.
func alike(r rune) string {
	switch r {
	case 'ø':
		return "o"
	case 'ł':
		return "l"
	case 'đ':
		return "d"
	case 'ı':
		return "i"
	case 'æ':
		return "ae"
	case 'œ':
		return "oe"
	}
	return ""
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
