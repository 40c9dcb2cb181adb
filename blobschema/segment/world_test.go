package segment

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/partition"
)

// bytesSource is a segment in memory. It counts and checks reads.
type bytesSource struct {
	t     testing.TB
	data  []byte
	reads int
	bytes int64
}

func (s *bytesSource) read(off, length int64) ([]byte, error) {
	if off < 0 || length <= 0 || off+length > int64(len(s.data)) {
		s.t.Errorf("read of %d bytes at %d of %d", length, off, len(s.data))
		return nil, errors.New("out of range")
	}
	s.reads++
	s.bytes += length
	return s.data[off : off+length : off+length], nil
}

func open(t testing.TB, data []byte) (*Reader, *bytesSource) {
	t.Helper()
	s := &bytesSource{t: t, data: data}
	r, err := Open(s.read, int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return r, s
}

// web generates documents: words have natural frequencies, and hosts have few or many pages.
type web struct {
	rng   *rand.Rand
	zipf  *rand.Zipf
	hosts int
	words int // approximate number of words in a body
}

func newWeb(seed uint64, hosts, words int) *web {
	rng := rand.New(rand.NewPCG(seed, 1))
	return &web{rng, rand.NewZipf(rng, 1.1, 4, 1<<17), hosts, words}
}

func word(n uint64) string {
	const syllables = "bacidofugehajikolumanepiqorusetivowuxayezi"
	var b []byte
	for n += 3; ; n /= 21 {
		b = append(b, syllables[n%21*2:n%21*2+2]...)
		if n < 21 {
			return string(b)
		}
	}
}

type document struct {
	Document
	fields [NumFields][]TermPosition
}

func (w *web) tokens(n int) (out []TermPosition) {
	position := int32(0)
	for range n {
		term := word(w.zipf.Uint64())
		out = append(out, TermPosition{term, position})
		if term[0] == 'c' { // has a stem
			out = append(out, TermPosition{term[:len(term)-1] + FormMark, position})
		}
		if position++; w.rng.IntN(40) == 0 {
			position += 10 // as between paragraphs
		}
	}
	return out
}

func isForm(t TermPosition) bool { return strings.HasSuffix(t.Term, FormMark) }

// countWords returns the length of a field in words.
func countWords(tokens []TermPosition) int {
	return len(slices.DeleteFunc(slices.Clone(tokens), isForm))
}

func text(tokens []TermPosition) string {
	var b strings.Builder
	for _, t := range slices.DeleteFunc(slices.Clone(tokens), isForm) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(t.Term)
	}
	return b.String()
}

// page returns the document with number n: its host, URL and fingerprint are always the same.
func (w *web) page(n uint64, generation uint32) document {
	mix := n * 0x9e3779b97f4a7c15
	mix = (mix ^ mix>>31) * 0xbf58476d1ce4e5b9
	host := mix >> 7 % uint64(w.hosts)
	host = host * host / uint64(w.hosts)
	var d document
	d.Host = fmt.Sprintf("%s.example%d.org", []string{"www", "docs", "a"}[host%3], host/3)
	d.URL = fmt.Sprintf("https://%s/%s/%s-%d.html", d.Host, word(n%50), word(mix>>50), n)
	d.Slot = partition.Slot(host / 3 * 2654435761 % 1024)
	d.Fingerprint, d.SimHash = mix, w.rng.Uint64()
	d.Generation = generation
	d.Time = time.Unix(1_700_000_000+int64(n)+int64(generation)*86400, 0).UTC()
	if n%3 == 0 {
		d.Published = time.Unix(1_600_000_000+int64(mix>>40), 0).UTC()
	}
	d.Lang = []string{"", "en", "de", "zh"}[n%4]
	d.fields[Title] = w.tokens(2 + w.rng.IntN(10))
	d.fields[Headings] = w.tokens(w.rng.IntN(20))
	d.fields[Body] = w.tokens(w.words/2 + w.rng.IntN(w.words+1))
	if n%5 == 0 {
		d.fields[Anchor] = w.tokens(w.rng.IntN(30))
	}
	d.fields[Aside] = w.tokens(int(n % 7))
	d.fields[URL] = []TermPosition{{word(n % 50), 0}, {word(mix >> 50), 1}}
	d.Title = text(d.fields[Title])
	d.Text = text(d.fields[Body])
	d.BodyBytes = int64(4 * len(d.Text))
	return d
}

func build(t testing.TB, docs []document) ([]byte, Summary) {
	t.Helper()
	b := NewBuilder()
	for _, d := range docs {
		if err := b.Add(d.Document, d.fields); err != nil {
			t.Fatal(err)
		}
	}
	out := b.Finish()
	return out.Data, out.Summary
}

// inOrder returns the expected documents of a segment, each once.
func inOrder(docs []document) []document {
	newest := map[ID]document{}
	for _, d := range docs {
		id := ID{d.Slot, d.Fingerprint}
		if old, ok := newest[id]; !ok || d.Generation > old.Generation {
			newest[id] = d
		}
	}
	out := slices.Collect(maps.Values(newest))
	slices.SortFunc(out, func(a, b document) int {
		return cmp.Or(cmp.Compare(a.Slot, b.Slot), cmp.Compare(hostKey(a.Host), hostKey(b.Host)), cmp.Compare(a.URL, b.URL))
	})
	return out
}

type posting struct {
	Doc       uint32
	Positions []int32
}

func (p posting) equal(q posting) bool {
	return p.Doc == q.Doc && slices.Equal(p.Positions, q.Positions)
}

// invert returns the index of documents as a map.
func invert(docs []document) map[string]*[NumFields][]posting {
	out := map[string]*[NumFields][]posting{}
	for i, d := range docs {
		for f, tokens := range d.fields {
			for _, t := range tokens {
				if out[t.Term] == nil {
					out[t.Term] = new([NumFields][]posting)
				}
				l := &out[t.Term][f]
				if n := len(*l); n == 0 || (*l)[n-1].Doc != uint32(i) {
					*l = append(*l, posting{Doc: uint32(i)})
				}
				p := &(*l)[len(*l)-1]
				p.Positions = append(p.Positions, t.Position)
			}
		}
	}
	for _, fields := range out {
		for f := range fields {
			for _, p := range fields[f] {
				slices.Sort(p.Positions)
			}
		}
	}
	return out
}

// mustEqual compares a segment with the documents it should have.
func mustEqual(t *testing.T, data []byte, docs []document) {
	t.Helper()
	r, _ := open(t, data)
	if r.Documents() != len(docs) {
		t.Fatalf("%d documents, want %d", r.Documents(), len(docs))
	}
	c, err := r.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var sum Summary
	for i, want := range docs {
		got, err := r.Document(uint32(i))
		if err != nil {
			t.Fatal(err)
		}
		if got.Text, err = r.Text(uint32(i)); err != nil {
			t.Fatal(err)
		}
		if got != want.Document {
			diff := gocmp.Diff(want.Document, got)
			t.Fatalf("document %d (-want +got):\n%s", i, diff)
		}
		checkColumns(t, c, uint32(i), &want)
		sum.TextBytes += int64(len(want.Text))
		sum.BodyBytes += want.BodyBytes
		for f, tokens := range want.fields {
			sum.Lengths[f] += int64(countWords(tokens))
		}
		sum.Langs = countLang(sum.Langs, want.Lang)
	}
	index := invert(docs)
	sum.Documents, sum.Terms, sum.Bytes = len(docs), len(index), int64(len(data))
	if len(docs) > 0 {
		sum.First, sum.Last = docs[0].Slot, docs[len(docs)-1].Slot
	}
	if diff := gocmp.Diff(sum, r.Summary()); diff != "" {
		t.Fatalf("summary (-want +got):\n%s", diff)
	}
	for f := range NumFields {
		infos, err := termsOf(r, f, "")
		if err != nil {
			t.Fatal(err)
		}
		for i, info := range infos {
			fields := index[info.Term]
			if fields == nil {
				t.Fatalf("term %q is in no document", info.Term)
			}
			if got := postings(t, r, info.TermInfo); !slices.EqualFunc(got, fields[f], posting.equal) {
				t.Fatalf("postings of %s in %s (-want +got):\n%s", info.Term, f, gocmp.Diff(fields[f], got))
			}
			fields[f] = nil
			if i%50 == 0 {
				if got, ok, err := termIn(r, f, info.Term); !ok || err != nil || !gocmp.Equal(got, info.TermInfo, gocmp.AllowUnexported(TermInfo{}, list{})) {
					t.Fatalf("term %+v is found as %+v, %v", info, got, err)
				}
			}
		}
	}
	for term, fields := range index {
		for f, list := range fields {
			if isForm(TermPosition{Term: term}) { // found only by its name
				info, _, err := termIn(r, Field(f), term)
				if err != nil || !slices.EqualFunc(postings(t, r, info), list, posting.equal) {
					t.Fatalf("postings of the form %q in %s: %v", term, Field(f), err)
				}
			} else if len(list) > 0 {
				t.Fatalf("%s is not found in %s", term, Field(f))
			}
		}
	}
}

// countLang adds a document to the count of its language.
func countLang(counts []LangCount, lang string) []LangCount {
	if lang == "" {
		return counts
	}
	i, found := slices.BinarySearchFunc(counts, lang, func(c LangCount, lang string) int { return cmp.Compare(c.Lang, lang) })
	if !found {
		counts = slices.Insert(counts, i, LangCount{Lang: lang})
	}
	counts[i].Documents++
	return counts
}

func checkColumns(t *testing.T, c *Columns, i uint32, want *document) {
	t.Helper()
	seconds := func(t time.Time) int64 {
		if t.IsZero() {
			return 0
		}
		return min(max(t.Unix(), 1), 1<<32-1)
	}
	if c.Slot(i) != want.Slot || c.Time(i) != seconds(want.Time) || c.Published(i) != seconds(want.Published) || c.Lang(i) != want.Lang ||
		c.Fingerprint(i) != want.Fingerprint || c.SimHash(i) != want.SimHash || c.Generation(i) != want.Generation {
		t.Fatalf("columns of document %d", i)
	}
	for f, tokens := range want.fields {
		if got, n := c.Length(Field(f), i), countWords(tokens); got > n || n < 32 && got != n || 16*got < 15*n {
			t.Fatalf("length of document %d is %d, want about %d", i, got, n)
		}
	}
}

func postings(t testing.TB, r *Reader, info TermInfo) (out []posting) {
	t.Helper()
	p, err := r.Postings(info, true)
	if err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for p.Next() {
		x := posting{p.Doc(), p.Positions(nil)}
		if len(x.Positions) != p.Freq() {
			t.Fatalf("%d positions, frequency %d", len(x.Positions), p.Freq())
		}
		total += int64(p.Freq())
		out = append(out, x)
	}
	if p.Err() != nil {
		t.Fatal(p.Err())
	}
	if p.Next() || p.Advance(0) || p.Doc() != noDocument {
		t.Fatal("goes on after the end")
	}
	if len(out) != info.Documents || total != info.Occurrences {
		t.Fatalf("%d documents and %d occurrences, want %d and %d", len(out), total, info.Documents, info.Occurrences)
	}
	return out
}

// termIn looks a term up in one field.
func termIn(r *Reader, f Field, name string) (TermInfo, bool, error) {
	infos, err := r.Lookup(name)
	return infos[f], infos[f].Documents > 0, err
}
