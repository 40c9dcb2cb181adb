package token

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/internal/ledger"
)

// show returns tokens as "term@position", including overlapping ones.
func show(tokens []Token) string {
	var b strings.Builder
	for _, t := range tokens {
		fmt.Fprintf(&b, "%s@%d ", tilde(t.Term), t.Position)
	}
	return strings.TrimSpace(b.String())
}

// tilde replaces the mark of a stem with a readable sign.
func tilde(term string) string { return strings.Replace(term, segment.FormMark, "~", 1) }

func TestAppend(t *testing.T) {
	for _, c := range []struct{ lang, text, want string }{
		{"", "", ""},
		{"", " -- ... \x00\xff", ""},
		{"", "The Queues, and functions", "the@0 queues@1 and@2 functions@3"},
		{"en", "The Queues, and functions", "the@0 queues@1 queue~@1 and@2 functions@3 function~@3"},
		{"en-GB", "queues", "queues@0 queue~@0"},
		{"en", "pointer points point", "pointer@0 points@1 point~@1 point@2"},
		{"fr", "pointer points point", "pointer@0 point~@0 points@1 point~@1 point@2"},
		{"xx", "queues", "queues@0"},
		{"de", "Die Häuser der Straße", "die@0 hauser@1 haus~@1 der@2 strasse@3 strass~@3"},
		{"fr", "L'école des filles", "l@0 ecole@1 ecol~@1 des@2 de~@2 filles@3 fill~@3"},
		{"es", "canciones niño", "canciones@0 cancion~@0 nino@1 nin~@1"},
		{"ru", "очередями книги", "очередями@0 очеред~@0 книги@1 книг~@1"},
		{"nb", "husene", "husene@0 hus~@0"},
		{"hu", "2011 h100", "2011@0 h100@1"},
		{"en", "the crawler's queues don't stop", "the@0 crawler@1 queues@2 queue~@2 don@3 t@4 stop@5"},
		{"en", "net.ipv4.tcp_rmem wi-fi v1.2.3 1,000.5 a.b", "net@0 ipv4@1 tcp@2 rmem@3 wi@4 fi@5 v1.2.3@6 1,000.5@7 a@8 b@9"},
		{"", "C++ c# F#. issue#12 Heading# x++y a+++", "c++@0 c#@1 f#@2 issue@3 12@4 heading@5 x@6 y@7 a@8"},
		{"", "ﬁle ＦＵＬＬ ½ x² №5", "file@0 full@1 x2@2 5@3"},
		{"", "Ærø żółw naïve ÅNGSTRÖM İstanbul ΣΊΣΥΦΟΣ", "aero@0 zolw@1 naive@2 angstrom@3 istanbul@4 σισυφοσ@5"},
		{"", "й Й ё Ё", "й@0 й@1 е@2 е@3"},
		{"", "مُحَمَّد שָׁלוֹם", "محمد@0 שלום@1"},
		{"", "so\u00adft می\u200cخواهم", "so@0 ft@1 میخواهم@2"},
		{"", "南京市长江大桥", "南京市@0 南京@0 京市@1 长江大桥@3 长江@3 大桥@5"},
		{"zh", "我们去参观。故宫", "我们@0 去@2 参观@3 故宫@5"},
		{"zh", "Go语言", "go@0 语言@1"},
		{"en", "長江大橋 bridge", "長江大橋@0 長江@0 大橋@2 bridge@4 bridg~@4"},
		{"zh", "卡夫卡斯", "卡夫卡@0 卡夫@0 斯@3"},
		{"zh", "後後後", "後@0 後後@0 後@1 後後@1 後@2"},
		{"ja", "東京都の天気", "東@0 東京@0 京@1 京都@1 都@2 の@3 天@4 天気@4 気@5"},
		{"ja", "ﾊﾞﾅﾅ コーヒー", "バナ@0 ナナ@1 コー@3 ーヒ@4 ヒー@5"},
		{"ko", "한국어를 물", "한국어를@0 한국@0 국어@1 어를@2 물@4"},
		{"ko", "LG전자", "lg@0 전자@1"},
		{"th", "ภาษา", "ภา@0 าษ@1 ษา@2"},
		{"th", "ที่นี่", "ที่นี่@0"},
	} {
		tokens := Append(nil, c.text, c.lang)
		if got := show(tokens); got != c.want {
			t.Errorf("%s (%s):\n got %s\nwant %s", c.text, c.lang, got, c.want)
		}
		check(t, c.text, tokens)
	}
	if got := Append([]Token{{Term: "before"}}, "after", ""); len(got) != 2 || got[0].Term != "before" || got[1].Position != 0 {
		t.Errorf("appended %v", got)
	}
}

// TestVersion fails if terms change. Then increase Version and update the sum.
func TestVersion(t *testing.T) {
	h := fnv.New64a()
	for _, lang := range slices.Sorted(maps.Keys(texts)) {
		fmt.Fprintln(h, lang, show(Append(nil, texts[lang], lang)))
	}
	if sum, want := h.Sum64(), uint64(0xdaf20450ffacc31c); Version != 2 || sum != want {
		t.Errorf("the terms of version %d have the sum %#x", Version, sum)
	}
}

// TestOffsets checks the offsets of terms that differ from the text.
func TestOffsets(t *testing.T) {
	text := "Ein Überblick: ﾊﾞﾅﾅ, L’École, 한국어 und 长江大桥."
	var got []string
	for _, tok := range Append(nil, text, "de") {
		got = append(got, text[tok.Start:tok.End])
	}
	want := []string{"Ein", "Überblick", "ﾊﾞﾅ", "ﾅﾅ", "L", "École", "École", "한국어", "한국", "국어", "und", "长江大桥", "长江", "大桥"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestQuery(t *testing.T) {
	show := func(ws []Word) string {
		var b strings.Builder
		for _, w := range ws {
			fmt.Fprintf(&b, "%s@%d", w.Text, w.Position)
			for _, alt := range w.Alternatives {
				b.WriteString(" =")
				if !alt.Exact() {
					b.WriteString("=")
				}
				for _, term := range alt.Terms {
					fmt.Fprintf(&b, " %s+%d", tilde(strings.Join(term.Any, "|")), term.Offset)
				}
			}
			b.WriteString("; ")
		}
		return b.String()
	}
	for _, c := range []struct {
		text  string
		langs []string
		want  string
	}{
		{"", nil, ""},
		{"queues", []string{}, "queues@0 = queues+0; "},
		{"Running queues", []string{"en", "en-US", "ja", "zh"}, "Running@0 = running+0 == run|run~+0; queues@1 = queues+0 == queue|queue~+0; "},
		{"wi-fi net", []string{}, "wi-fi@0 = wi+0 fi+1; net@2 = net+0; "},
		{"l'école's", []string{"fr"}, "l'école@0 = l+0 ecole+1 == l|l~+0 ecol|ecol~+1; "},
		{"file_operations.c", []string{"en"}, "file_operations.c@0 = file+0 operations+1 c+2 == file|file~+0 oper|oper~+1 c|c~+2; "},
		{"长江大桥。天", []string{}, "长江大桥@0 = 长江大桥+0 = 长江+0 江大+1 大桥+2; 天@4 = 天+0; "},
		{"东京天气", []string{}, "东京@0 = 东京+0; 天气@2 = 天气+0; "},
		{"コーヒー", []string{}, "コーヒー@0 = コー+0 ーヒ+1 ヒー+2; "},
		{"한국어 물", []string{}, "한국어@0 = 한국어+0 = 한국+0 국어+1; 물@3 = 물+0; "},
	} {
		if got := show(Query(c.text, c.langs)); got != c.want {
			t.Errorf("%s %q:\n got %s\nwant %s", c.text, c.langs, got, c.want)
		}
	}
	if n := len(Query("organisations", nil)[0].Alternatives); n < 3 {
		t.Errorf("all languages give %d alternatives", n)
	}
	if n := len(Query(strings.Repeat("コ", 999), nil)[0].Alternatives[0].Terms); n != maxAlternative {
		t.Errorf("a long run gives %d terms", n)
	}
}

// texts holds a text for each of many languages.
var texts = map[string]string{
	"en": "The frontier's queues hold what isn't fetched: wi-fi, C++ and net.ipv4.tcp_rmem, 2.5 times.",
	"de": "Die Warteschlangen der Häuser enthalten größere Mengen; ÜBERSICHT.",
	"fr": "L'école des filles aujourd'hui n'est plus fermée, cœur à cœur.",
	"es": "Las canciones de los niños fueron cantadas rápidamente.",
	"it": "Le città più belle dell'Italia sono queste.",
	"ru": "Очереди сообщений хранят ещё не полученные страницы; йод и ёлка.",
	"tr": "İstanbul'da IŞIK kapıları açıldı.",
	"fi": "Jonoissa odottavat viestit käsitellään.",
	"ar": "المُرَاسَلات في قوائم الانتظار",
	"ta": "வரிசைகளில் காத்திருக்கும் செய்திகள்",
	"el": "Οι ΟΥΡΕΣ των μηνυμάτων",
	"hi": "कतारों में प्रतीक्षा करते संदेश",
	"zh": "小明硕士毕业于中国科学院计算所，后在日本京都大学深造。王小波说他後來去了南京市长江大桥",
	"ja": "東京都の天気は晴れです。コーヒーを飲みながら、ﾊﾞﾅﾅを食べる。",
	"ko": "한국어를 공부하는 사람들은 LG전자에서 일합니다",
	"th": "ภาษาไทยเป็นภาษาที่น่าสนใจ",
	"":   "Ein Mix of 语言 と かな with ไทย und 한글, ½ of ﬁles.",
}

// TestQueryFindsWhatAppendMade queries each whole text and checks each word at its position. A query does not
// know the language of the text.
func TestQueryFindsWhatAppendMade(t *testing.T) {
	for lang, text := range texts {
		tokens := Append(nil, text, lang)
		ws := Query(text, nil)
		if len(ws) < 3 && lang != "th" {
			t.Errorf("%s: only %d words", lang, len(ws))
		}
		for _, w := range ws {
			if !found(tokens, w, w.Position, "") || LangOf(lang) != 0 && stemmable(w) && !found(tokens, w, w.Position, lang) {
				t.Errorf("%s: %s at %d is not found: %v", lang, w.Text, w.Position, w.Alternatives)
			}
			// A single word is found as well, if it is cut as in its sentence.
			for _, alone := range Query(w.Text, nil) {
				if p := w.Position + alone.Position; !found(tokens, alone, p, "") {
					t.Errorf("%s: %s alone is not found at %d: %v", lang, alone.Text, p, alone.Alternatives)
				}
			}
		}
	}
}

// TestOpenEnd checks that a query finds a text that continues its last run, and that a character alone is not ignored.
func TestOpenEnd(t *testing.T) {
	tokens := Append(nil, "経済と踊りの絵画", "ja")
	for query, want := range map[string]int{"経済と踊り": 3, "踊り": 1, "踊りの": 2, "と": 1} {
		ws := Query(query, nil)
		if len(ws) != want {
			t.Errorf("%s has %d words, not %d", query, len(ws), want)
		}
		for _, w := range ws {
			if !slices.ContainsFunc(tokens, func(at Token) bool { return found(tokens, w, at.Position, "") }) {
				t.Errorf("%s: %s is not found", query, w.Text)
			}
		}
	}
}

// stemmable reports whether a word has other forms.
func stemmable(w Word) bool {
	return slices.ContainsFunc(w.Alternatives, func(alt Alternative) bool { return !alt.Exact() })
}

// found reports whether tokens have a word at a position, as written or in a form of a language.
func found(tokens []Token, w Word, pos int32, lang string) bool {
	return slices.ContainsFunc(w.Alternatives, func(alt Alternative) bool {
		if alt.Langs&LangOf(lang) == 0 && (lang != "" || !alt.Exact()) {
			return false
		}
		for _, term := range alt.Terms {
			if !slices.ContainsFunc(tokens, func(t Token) bool { return slices.Contains(term.Any, t.Term) && t.Position == pos+term.Offset }) {
				return false
			}
		}
		return true
	})
}

// check checks the promises of Token.
func check(t *testing.T, text string, tokens []Token) {
	t.Helper()
	last := int32(0)
	for _, tok := range tokens {
		if tok.Position < last || tok.Start < 0 || tok.Start >= tok.End || int(tok.End) > len(text) ||
			tok.Term == "" || len(strings.TrimSuffix(tok.Term, segment.FormMark)) > maxTerm || !utf8.ValidString(tok.Term) {
			t.Fatalf("token %+v of %.200q, after position %d", tok, text, last)
		}
		last = tok.Position
	}
}

// TestBoundaries compares with the word boundaries of Unicode (UAX #29): no term crosses one, except in scripts
// without spaces and in names of programming languages.
func TestBoundaries(t *testing.T) {
	for lang, text := range texts {
		boundaries(t, text, lang)
	}
}

func boundaries(t *testing.T, text, lang string) {
	t.Helper()
	if strings.ContainsFunc(text, func(r rune) bool {
		return unicode.Is(unicode.No, r) || r == zeroWidthJoiner || r == zeroWidthNonJoiner
	}) || !utf8.ValidString(text) {
		return // joiners, and digits that UAX #29 does not treat as digits
	}
	ends := map[int]bool{}
	for it := words.FromString(text); it.Next(); {
		ends[it.End()] = true
	}
	for _, tok := range Append(nil, text, lang) {
		raw := text[tok.Start:tok.End]
		if strings.ContainsFunc(raw, func(r rune) bool { s := scriptOf(r); return s != spaced && s != mark }) {
			continue
		}
		for i := range raw {
			if i > 0 && ends[int(tok.Start)+i] {
				t.Errorf("%q: %q (%s) reaches over a boundary at %d", text, raw, tok.Term, i)
			}
		}
	}
}

func TestHostile(t *testing.T) {
	const size = 1 << 19
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	for name, text := range map[string]string{
		"one word": fill("a"), "one word of marks": fill("e\u0301"), "marks": "e" + fill("\u0301"), "words": fill("ab "),
		"one han": fill("语"), "han": fill("中国科学院"), "rare han": fill("𠀀"), "kana": fill("コ"), "half kana": fill("ﾊﾞ"),
		"hangul": fill("한"), "jamo": fill("\u1112\u1161\u11ab"), "thai": fill("ที่"), "thai marks": "ท" + fill("\u0e35"),
		"ligatures": fill("\ufdfa"), "numbers": fill("1."), "pluses": fill("+"), "apostrophes": fill("s'"), "compound": fill("a-"),
		"not UTF-8": fill("\xff\xfe"), "changing": fill("aжa語アa한a"),
	} {
		for _, lang := range []string{"en", "ja"} {
			start := ledger.Processor()
			tokens := Append(nil, text, lang)
			if took := ledger.Processor() - start; took > time.Second {
				t.Errorf("%s (%s) took %v", name, lang, took)
			}
			check(t, text, tokens)
		}
		if len(text) > 20_000 {
			text = text[:20_000]
		}
		Query(text, nil)
	}
}

// TestKnown analyses more words than are remembered. The results must not change.
func TestKnown(t *testing.T) {
	var b strings.Builder
	for i := range 2*maxKnown + 10 {
		fmt.Fprintf(&b, "queues%d 语%c ", i, rune(0x4E00+i%20_000))
	}
	first := Append(nil, "Running queues 语言", "en")
	check(t, b.String(), Append(nil, b.String(), "en"))
	if diff := cmp.Diff(first, Append(nil, "Running queues 语言", "en")); diff != "" {
		t.Errorf("-first +second:\n%s", diff)
	}
}

func FuzzAppend(f *testing.F) {
	for lang, text := range texts {
		f.Add(text, lang)
	}
	f.Fuzz(func(t *testing.T, text, lang string) {
		tokens := Append(nil, text, lang)
		check(t, text, tokens)
		boundaries(t, text, lang)
		for _, w := range Query(text, []string{lang}) {
			if w.Text != text[w.Start:w.End] || len(w.Alternatives) == 0 {
				t.Fatalf("word %+v", w)
			}
			if !found(tokens, w, w.Position, "") || LangOf(lang) != 0 && stemmable(w) && !found(tokens, w, w.Position, lang) {
				t.Errorf("%q (%s): %q at %d is not found: %v in %v", text, lang, w.Text, w.Position, w.Alternatives, tokens)
			}
			for _, alt := range w.Alternatives {
				if alt.Terms[0].Offset != 0 {
					t.Errorf("an alternative begins at %d", alt.Terms[0].Offset)
				}
			}
		}
	})
}
