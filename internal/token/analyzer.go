package token

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// An analyzer cuts one text into stretches of one script each, and these into terms.
type analyzer struct {
	text string
	lang language
	out  []Token

	// The current stretch.
	script     script
	start, end int
	pos        int32 // its position; after emit, that of the next one

	units units // the characters of a run
	cuts  []int // ends of its words

	folder cases.Caser
	known  [languages]map[string]terms // terms by word as written
	grams  map[string]string           // terms of runs, so that equal terms share one string
}

func newAnalyzer() *analyzer {
	return &analyzer{folder: cases.Fold(), grams: map[string]string{}}
}

func (a *analyzer) open(text, lang string, dst []Token) {
	a.text, a.lang, a.out = text, parseLanguage(lang), dst
	a.start, a.end, a.pos = 0, 0, 0
}

func (a *analyzer) release() {
	a.text, a.out = "", nil
	a.units.reset()
	analyzers.Put(a)
}

// next advances to the next stretch and reports whether there is one.
func (a *analyzer) next() bool {
	for at := a.end; at < len(a.text); {
		s, n := a.class(at)
		if s == none || s == mark {
			at += n
			continue
		}
		a.script, a.start, a.end = s, at, at+n
		if s == spaced {
			a.extendWord()
		} else {
			a.extendRun()
		}
		if !a.possessive() {
			return true
		}
		at = a.end
	}
	a.end = len(a.text)
	return false
}

// class returns the script of the character at an offset, and its length.
func (a *analyzer) class(at int) (script, int) {
	if c := a.text[at]; c < utf8.RuneSelf {
		if letterOrDigit(c) {
			return spaced, 1
		}
		return none, 1
	}
	r, n := utf8.DecodeRuneInString(a.text[at:])
	return scriptOf(r), n
}

// extendWord advances to the end of a word of letters, digits and marks.
func (a *analyzer) extendWord() {
	t := a.text
	for a.end < len(t) {
		if letterOrDigit(t[a.end]) {
			a.end++
			continue
		}
		if s, n := a.class(a.end); s == spaced || s == mark {
			a.end += n
			continue
		}
		if c := t[a.end]; (c == '.' || c == ',') && digit(t[a.end-1]) && a.end+1 < len(t) && digit(t[a.end+1]) {
			a.end += 2
			continue
		}
		break
	}
	a.end += signs(t[a.start:a.end], t[a.end:])
}

// signs returns the length of the signs that belong to the name of a programming language:
// the ++ of C++ and the # of C#. A # after a longer word is a link to a heading.
func signs(word, rest string) int {
	n := 0
	switch {
	case strings.HasPrefix(rest, "++"):
		n = len("++")
	case strings.HasPrefix(rest, "#") && len(word) == 1:
		n = len("#")
	default:
		return 0
	}
	if len(rest) > n && (letterOrDigit(rest[n]) || rest[n] >= utf8.RuneSelf || rest[n] == '+' || rest[n] == '#') {
		return 0
	}
	return n
}

// extendRun advances to the end of a run of one script, or by at most maxRun characters.
func (a *analyzer) extendRun() {
	for count := 1; a.end < len(a.text) && count < maxRun; count++ {
		s, n := a.class(a.end)
		if s != a.script && s != mark {
			return
		}
		a.end += n
	}
}

// possessive reports whether the stretch is the s of "the crawler's".
func (a *analyzer) possessive() bool {
	if a.end != a.start+1 || a.text[a.start]|0x20 != 's' {
		return false
	}
	before, ok := strings.CutSuffix(a.text[:a.start], "'")
	if !ok {
		before, ok = strings.CutSuffix(a.text[:a.start], "’")
	}
	if !ok || before == "" {
		return false
	}
	r, _ := utf8.DecodeLastRuneInString(before)
	s := scriptOf(r)
	return s == spaced || s == mark
}

// emit appends the tokens of the stretch.
func (a *analyzer) emit() {
	switch a.script {
	case spaced:
		a.emitWord()
	case hangul:
		a.emitHangul()
	case han:
		a.split()
		if a.lang == japanese {
			a.emitCharacters(0, a.units.count())
			break
		}
		a.emitChinese()
	default:
		a.split()
		a.emitPairs(0, a.units.count())
	}
	if a.script != spaced {
		a.pos += int32(a.units.count())
	}
}

// emitWord appends a word of a script with spaces, and its stem.
func (a *analyzer) emitWord() {
	t := a.terms(a.text[a.start:a.end], a.lang)
	if t.exact == "" {
		return
	}
	a.add(t.exact, a.pos, a.start, a.end)
	if t.form != "" {
		a.add(t.form, a.pos, a.start, a.end)
	}
	a.pos++
}

// emitHangul appends a word and the pairs of its syllables.
func (a *analyzer) emitHangul() {
	a.split()
	if t := a.terms(a.text[a.start:a.end], unknown); t.exact != "" {
		a.add(t.exact, a.pos, a.start, a.end)
	}
	if n := a.units.count(); n > 2 {
		a.emitPairs(0, n)
	}
}

// emitPairs appends the pairs of the characters [from, to) of a run, or a single character.
func (a *analyzer) emitPairs(from, to int) {
	if to == from+1 {
		a.addUnits(from, to)
	}
	for i := from; i+2 <= to; i++ {
		a.addUnits(i, i+2)
	}
}

// emitCharacters appends the characters [from, to) of a run, and their pairs.
func (a *analyzer) emitCharacters(from, to int) {
	for i := from; i < to; i++ {
		a.addUnits(i, i+1)
		if i+2 <= to {
			a.addUnits(i, i+2)
		}
	}
}

// emitChinese appends the words of a run of Han, the words inside them, and the
// characters between them.
func (a *analyzer) emitChinese() {
	d := chinese()
	a.cuts = d.cut(a.cuts[:0], a.units.han)
	from := 0
	for i, to := range a.cuts {
		switch {
		case to-from > 1:
			a.addUnits(from, to)
			a.emitInner(d, from, to)
		case i+1 < len(a.cuts) && a.cuts[i+1]-to == 1:
			a.addUnits(from, to)
			a.addUnits(from, to+1)
		default:
			a.addUnits(from, to)
		}
		from = to
	}
}

// emitInner appends the words of more than one character inside a longer word.
func (a *analyzer) emitInner(d *dictionary, from, to int) {
	for i := from; i+2 <= to && to-from > 2; i++ {
		d.each(a.units.han[i:to], func(n int, _ uint8) {
			if n > 1 && n < to-from {
				a.addUnits(i, i+n)
			}
		})
	}
}

func (a *analyzer) add(term string, pos int32, start, end int) {
	a.out = append(a.out, Token{Term: term, Position: pos, Start: int32(start), End: int32(end)})
}

// addUnits appends the characters [from, to) of the run as one term.
func (a *analyzer) addUnits(from, to int) {
	u := &a.units
	a.add(a.unit(from, to), a.pos+int32(from), a.start+int(u.starts[from]), a.start+int(u.stops[to-1]))
}

// unit returns the characters [from, to) of the run as one term.
func (a *analyzer) unit(from, to int) string {
	u := &a.units
	b := u.norm[u.ends[from]:u.ends[to]]
	term, ok := a.grams[string(b)]
	if !ok {
		if len(a.grams) >= maxKnown {
			clear(a.grams)
		}
		term = cutRunes(string(b), maxTerm)
		a.grams[term] = term
	}
	return term
}

// split splits the run into characters as a reader sees them.
func (a *analyzer) split() {
	u := &a.units
	u.reset()
	raw := a.text[a.start:a.end]
	for at := 0; at < len(raw); {
		if r, n := utf8.DecodeRuneInString(raw[at:]); normal(r) {
			if next, _ := utf8.DecodeRuneInString(raw[at+n:]); at+n == len(raw) || normal(next) {
				u.norm = utf8.AppendRune(u.norm, r)
				u.end(r, len(u.norm), at, at+n)
				at += n
				continue
			}
		}
		n := norm.NFKC.NextBoundaryInString(raw[at:], true)
		u.add(raw[at:at+n], at)
		at += n
	}
}

// units are the characters of a run, each with the marks on it. Unit i is
// norm[ends[i]:ends[i+1]], and was made of [starts[i], stops[i]) of the run.
type units struct {
	norm          []byte
	ends          []int32
	starts, stops []int32
	han           []uint16 // their code points; 0 for a character in no word of the dictionary
}

func (u *units) reset() {
	u.norm, u.ends = u.norm[:0], append(u.ends[:0], 0)
	u.starts, u.stops, u.han = u.starts[:0], u.stops[:0], u.han[:0]
}

func (u *units) count() int { return len(u.han) }

// normal reports whether normalization leaves a character unchanged unless a
// mark follows. Most characters in runs are like this.
func normal(r rune) bool {
	return r >= 0x4E00 && r <= 0x9FFF || r >= 0xAC00 && r <= 0xD7A3 || r >= 0x3041 && r <= 0x3096 || r >= 0x30A1 && r <= 0x30FC
}

// end ends a character at norm[end], whose source is [start, stop).
func (u *units) end(r rune, end, start, stop int) {
	if r > 0xFFFF {
		r = 0
	}
	u.ends, u.starts, u.stops = append(u.ends, int32(end)), append(u.starts, int32(start)), append(u.stops, int32(stop))
	u.han = append(u.han, uint16(r))
}

// add adds the normalized form of the source [start, stop), which ends at a boundary of normalization.
// If one source becomes several characters, they share its place in the text.
func (u *units) add(raw string, start int) {
	stop := start + len(raw)
	i := len(u.norm)
	u.norm = norm.NFKC.AppendString(u.norm, raw)
	for i < len(u.norm) {
		r, n := utf8.DecodeRune(u.norm[i:])
		i += n
		if last := len(u.han) - 1; last >= 0 && scriptOf(r) == mark {
			u.ends[last+1], u.stops[last], u.han[last] = int32(i), int32(stop), 0
			continue
		}
		u.end(r, i, start, stop)
	}
}
