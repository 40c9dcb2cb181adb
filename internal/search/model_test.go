package search

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/internal/token"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// The model is a second, simple implementation of the package: it looks at each word of each
// document in maps.

// modelDoc is a document of the model, with the positions of its terms.
type modelDoc struct {
	*page
	id      segment.ID
	segment int // index among all segments
	at      [segment.NumFields]map[string][]int32
	lengths [segment.NumFields]int
	counts  bool // it is the current version
}

type model struct {
	segments int
	docs     []*modelDoc
	anchors  []*modelDoc // only their anchor field
	n        float64
	average  [segment.NumFields]float64
}

func newModelDoc(c *corpus, p *page, in int) *modelDoc {
	d := c.document(p)
	m := &modelDoc{page: p, id: segment.ID{Slot: d.Slot, Fingerprint: d.Fingerprint}, segment: in}
	texts := p.fields()
	texts[segment.Anchor] = p.anchor
	for f, text := range texts {
		lang := p.lang
		if segment.Field(f) == segment.URL || segment.Field(f) == segment.Anchor {
			lang = ""
		}
		m.at[f] = map[string][]int32{}
		for _, t := range token.Append(nil, text, lang) {
			m.at[f][t.Term] = append(m.at[f][t.Term], t.Position)
			if !strings.HasSuffix(t.Term, segment.FormMark) {
				m.lengths[f]++
			}
		}
	}
	return m
}

// rounded returns a length as the document table stores it.
func rounded(n int) int {
	if n < 32 {
		return n
	}
	step := 1
	for n/step >= 32 {
		step *= 2
	}
	return n / step * step
}

// sum computes the statistics of the model.
func (m *model) sum() {
	var lengths, of [segment.NumFields]float64
	for _, d := range m.docs {
		if !d.deleted {
			m.n++
		}
		for f := range d.lengths {
			if segment.Field(f) != segment.Anchor {
				lengths[f] += float64(d.lengths[f])
				of[f]++
			}
		}
	}
	for _, d := range m.anchors {
		lengths[segment.Anchor] += float64(d.lengths[segment.Anchor])
		of[segment.Anchor]++
	}
	for f := range m.average {
		m.average[f] = 1
		if lengths[f] > 0 {
			m.average[f] = lengths[f] / of[f]
		}
	}
}

// meant reports whether an alternative applies to a field of the document.
func (d *modelDoc) meant(alt *token.Alternative, f segment.Field) bool {
	return alt.Exact() || f != segment.Anchor && alt.Langs&token.LangOf(d.lang) != 0
}

// starts returns the positions at which words in a row begin in a field, and whether they are as written.
func (d *modelDoc) starts(f segment.Field, list []token.Word) map[int32]bool {
	at := d.at[f]
	sets := make([]map[int32]bool, len(list))
	for i, w := range list {
		sets[i] = map[int32]bool{}
		for j := range w.Alternatives {
			alt := &w.Alternatives[j]
			if !d.meant(alt, f) {
				continue
			}
			for _, first := range alt.Terms[0].Any {
				for _, p := range at[first] {
					all := true
					for _, t := range alt.Terms {
						all = all && slices.ContainsFunc(t.Any, func(term string) bool { return slices.Contains(at[term], p+t.Offset) })
					}
					if all {
						sets[i][p] = sets[i][p] || alt.Exact()
					}
				}
			}
		}
	}
	out := map[int32]bool{}
	for p := range sets[0] {
		all, exact := true, true
		for i, w := range list {
			e, ok := sets[i][p+w.Position-list[0].Position]
			all, exact = all && ok, exact && e
		}
		if all {
			out[p] = exact
		}
	}
	return out
}

// freq returns the number of occurrences of a leaf in a field, in any form and as written.
func (d *modelDoc) freq(l *leaf, f segment.Field) (n, exact int) {
	if !l.fields.has(f) {
		return 0, 0
	}
	if l.prefix != "" {
		for term, at := range d.at[f] {
			if strings.HasPrefix(term, l.prefix) && !strings.HasSuffix(term, segment.FormMark) {
				n += len(at)
			}
		}
		return n, n
	}
	if len(l.words) > 1 {
		starts := d.starts(f, l.words)
		for _, e := range starts {
			if e {
				exact++
			}
		}
		return len(starts), exact
	}
	for _, alt := range l.words[0].Alternatives { // the most frequent spelling counts
		m := len(d.starts(f, []token.Word{{Alternatives: []token.Alternative{alt}}}))
		if n = max(n, m); alt.Exact() {
			exact = max(exact, m)
		}
	}
	return n, exact
}

// documents returns the number of stored documents of a segment with a term in a field.
func (m *model) documents(f segment.Field, in int, has func(map[string][]int32) bool) (n float64) {
	docs := m.docs
	if f == segment.Anchor {
		docs = m.anchors
	}
	for _, d := range docs {
		if d.segment == in && has(d.at[f]) {
			n++
		}
	}
	return n
}

func (m *model) idf(l *leaf) (sum float64) {
	if l.prefix != "" {
		most := 0.0
		for f := range segment.NumFields {
			if !l.fields.has(f) {
				continue
			}
			seen := map[string]bool{}
			n := 0.0
			for _, d := range append(slices.Clone(m.docs), m.anchors...) {
				for term := range d.at[f] {
					if strings.HasPrefix(term, l.prefix) && !strings.HasSuffix(term, segment.FormMark) && !seen[term] {
						seen[term] = true
						for i := range m.segments {
							n += m.documents(f, i, func(at map[string][]int32) bool { return at[term] != nil })
						}
					}
				}
			}
			most = max(most, n)
		}
		return math.Log(1 + (m.n-min(most, m.n)+0.5)/(min(most, m.n)+0.5))
	}
	for _, w := range l.words {
		most := 0.0
		for f := range segment.NumFields {
			for j := range w.Alternatives {
				alt := &w.Alternatives[j]
				n := 0.0
				for i := range m.segments {
					rarest := 0.0 // starts as the number of documents in its languages
					for _, d := range slices.Concat(m.docs, m.anchors) {
						if d.segment == i && (alt.Exact() || alt.Langs&token.LangOf(d.lang) != 0) && (slices.Contains(m.docs, d) || alt.Exact()) {
							rarest++
						}
					}
					for _, t := range alt.Terms {
						most := 0.0
						for _, term := range t.Any {
							most = max(most, m.documents(f, i, func(at map[string][]int32) bool { return at[term] != nil }))
						}
						rarest = min(rarest, most)
					}
					n += rarest
				}
				if l.fields.has(f) {
					most = max(most, n)
				}
			}
		}
		most = min(most, m.n)
		sum += math.Log(1 + (m.n-most+0.5)/(most+0.5))
	}
	return sum
}

type scored struct {
	url   string
	score float64
	id    segment.ID
}

// search returns the matching documents, best first.
func (m *model) search(q *Query, nodes float64) (out []scored) {
	idfs := map[*leaf]float64{}
	for _, l := range q.leaves() {
		idfs[l] = m.idf(l)
	}
	for _, d := range m.docs {
		if !d.counts {
			continue
		}
		of := *d
		of.at[segment.Anchor] = nil
		of.lengths[segment.Anchor] = 0
		for _, a := range m.anchors {
			if a.id == d.id {
				of.at[segment.Anchor], of.lengths[segment.Anchor] = a.at[segment.Anchor], a.lengths[segment.Anchor]
			}
		}
		if s, ok := m.score(&of, q, idfs, nodes); ok {
			out = append(out, scored{d.url, s, d.id})
		}
	}
	slices.SortFunc(out, func(a, b scored) int {
		return before(found{score: a.score, ID: a.id}, found{score: b.score, ID: b.id})
	})
	return out
}

func (m *model) score(d *modelDoc, q *Query, idfs map[*leaf]float64, nodes float64) (total float64, ok bool) {
	u, _ := weburl.Parse(d.url)
	in := func(site string) bool {
		return string(u.Host()) == site || strings.HasSuffix(string(u.Host()), "."+site)
	}
	if len(q.sites) > 0 && !slices.ContainsFunc(q.sites, in) || slices.ContainsFunc(q.notSites, in) {
		return 0, false
	}
	if len(q.langs) > 0 && !slices.Contains(q.langs, d.lang) || slices.Contains(q.notLangs, d.lang) {
		return 0, false
	}
	exactly := func(l *leaf) bool {
		for f := range segment.NumFields {
			if _, exact := d.freq(l, f); exact > 0 {
				return true
			}
		}
		return false
	}
	has := func(l *leaf) (score float64, any bool) {
		sum := 0.0
		for f := range segment.NumFields {
			if n, _ := d.freq(l, f); n > 0 {
				any = true
				b := fieldWeights[f].b
				sum += fieldWeights[f].weight * float64(n) / (1 - b + b*float64(rounded(d.lengths[f]))/m.average[f])
			}
		}
		sum /= k1 + sum
		if exactly(l) {
			sum++
		}
		return idfs[l] * sum, any
	}
	for i := range q.not {
		if _, any := has(&q.not[i]); any {
			return 0, false
		}
	}
	for i := range q.clauses {
		matched := false
		for j := range q.clauses[i] {
			s, any := has(&q.clauses[i][j])
			if any {
				total += s
			}
			matched = matched || any
		}
		if !matched {
			return 0, false
		}
	}
	for i := range q.rows {
		s, _ := has(&q.rows[i])
		total += s
	}
	words := 0.0
	for _, clause := range q.clauses {
		if slices.ContainsFunc(clause, func(l leaf) bool { return exactly(&l) }) {
			words++
		}
	}
	if words > 0 {
		total += exactWeight * words / float64(len(q.clauses))
	}
	titled := 0
	for _, clause := range q.clauses {
		if slices.ContainsFunc(clause, func(l leaf) bool { n, _ := d.freq(&l, segment.Title); return n > 0 }) {
			titled++
		}
	}
	if titled > 0 && titled == len(q.clauses) {
		total += titledWeight * float64(titled) / math.Max(float64(titled), float64(rounded(d.lengths[segment.Title])))
	}
	if r := float64(float32(float64(float32(d.rank)) * nodes)); r > 0 {
		total += rankWeight * math.Pow(r, rankA) / (math.Pow(rankK, rankA) + math.Pow(r, rankA))
	}
	return total, true
}

// vocabulary of random corpora. It has few words, so that queries match documents.
var vocabulary = strings.Fields("coffee coffees roast roasted roasting tea green leaf leaves kernel TCP tcp_rmem house Haus Häuser schön schöne 搜索引擎 天气预报 天气 搜索引擎天气预报 東京 Москва run running wi-fi a b c")

var langs = []string{"", "en", "de", "zh"}

func sentence(rng *rand.Rand, n int) string {
	var words []string
	for range n {
		words = append(words, vocabulary[int(float64(len(vocabulary))*math.Pow(rng.Float64(), 2))])
	}
	return strings.Join(words, " ")
}

func randomPage(rng *rand.Rand, i int) *page {
	p := &page{
		url:   fmt.Sprintf("https://%s.example/%d-%s", []string{"one", "two", "www.two", "three"}[rng.IntN(4)], i, strings.Fields(sentence(rng, 1))[0]),
		title: sentence(rng, rng.IntN(5)), headings: sentence(rng, rng.IntN(8)), body: sentence(rng, rng.IntN(120)),
		lang: langs[rng.IntN(len(langs))], rank: rng.Float64() / 100, time: time.Unix(1e9+rng.Int64N(5), 0),
	}
	u, err := weburl.Parse(p.url)
	if err != nil {
		panic(err)
	}
	p.url = u.String()
	if rng.IntN(2) == 0 {
		p.anchor = sentence(rng, 1+rng.IntN(40))
	}
	if rng.IntN(4) == 0 {
		p.rank = 0
	}
	return p
}

func randomQuery(rng *rand.Rand) string {
	var parts []string
	for range 1 + rng.IntN(4) {
		s := sentence(rng, 1)
		switch rng.IntN(9) {
		case 0:
			s = `"` + sentence(rng, 2+rng.IntN(2)) + `"`
		case 1:
			s = "-" + s
		case 2:
			s = []string{"title:", "headings:", "body:", "url:", "anchor:"}[rng.IntN(5)] + s
		case 3:
			s += " OR " + sentence(rng, 1)
		case 4:
			s = []string{"ro", "c", "t", "天", "hä", "run"}[rng.IntN(6)] + "*"
		case 5:
			s = []string{"site:two.example", "site:one.example", "-site:three.example", "lang:en", "-lang:de", "lang:zh"}[rng.IntN(6)]
		case 6:
			s = []string{"搜索引擎天气预报", "天气搜索", "天气天气预报引擎"}[rng.IntN(3)] // several words without spaces
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, " ")
}

// randomCorpus returns the index, model and number of ranked pages of a corpus of several partitions
// and segments, with deleted documents. If moved, some documents are in two partitions.
func randomCorpus(t testing.TB, rng *rand.Rand, moved bool) (*Index, *model, float64) {
	parts := 1 + rng.IntN(3)
	c := newCorpus(t, parts)
	m := &model{}
	const nodes = 1000
	var before []*modelDoc // of other partitions
	var removed []blobschema.RemovedDocument
	for id := range partition.ID(parts) {
		var segs, anchors []blobschema.SegmentRef
		var all []*page
		for s := range 1 + rng.IntN(3) {
			var pages []*page
			for i := range rng.IntN(25) {
				p := randomPage(rng, int(id)*10000+s*100+i)
				p.deleted = rng.IntN(8) == 0
				pages = append(pages, p)
			}
			if moved && len(before) > 0 { // add versions of pages of other partitions
				for range 5 {
					p := *before[rng.IntN(len(before))].page
					if slices.ContainsFunc(all, func(o *page) bool { return o.url == p.url }) || slices.ContainsFunc(pages, func(o *page) bool { return o.url == p.url }) {
						continue
					}
					p.generation, p.time, p.deleted = uint32(rng.IntN(3)), time.Unix(1e9+rng.Int64N(3), 0), false
					p.body, p.anchor = sentence(rng, 30), ""
					pages = append(pages, &p)
				}
			}
			all = append(all, pages...)
			segs = append(segs, c.segment(id, pages, false))
			for _, p := range pages {
				m.docs = append(m.docs, newModelDoc(c, p, m.segments))
			}
			m.segments++
		}
		var linked []*page
		for _, p := range all {
			if p.anchor != "" {
				linked = append(linked, p)
				m.anchors = append(m.anchors, newModelDoc(c, p, m.segments))
			}
		}
		m.segments++
		if len(linked) > 0 {
			anchors = append(anchors, c.segment(id, linked, true))
		}
		if moved {
			for _, d := range before { // remove pages of other partitions
				if here := slices.ContainsFunc(all, func(p *page) bool { return p.url == d.url }); !here && rng.IntN(10) == 0 {
					r := blobschema.RemovedDocument{Fingerprint: d.id.Fingerprint, Slot: d.id.Slot, Generation: uint32(rng.IntN(2))}
					c.removed[id] = append(c.removed[id], r)
					removed = append(removed, r)
				}
			}
		}
		c.commit(id, segs, anchors)
		c.rank(id, nodes, all)
		before = append(before, m.docs...)
	}
	m.choose(removed)
	if moved {
		c.put(naming.MapKey(testCrawl), blobschema.MapRecord{Version: 2, Epoch: 2, Partitions: parts})
	}
	m.sum()
	return c.open(), m, nodes
}

// choose marks the documents that count: the newest of each URL, unless it is removed.
func (m *model) choose(removed []blobschema.RemovedDocument) {
	best := map[segment.ID]*modelDoc{}
	for _, d := range m.docs {
		d.counts = !d.deleted && !slices.ContainsFunc(removed, func(r blobschema.RemovedDocument) bool {
			return r.Slot == d.id.Slot && r.Fingerprint == d.id.Fingerprint && r.Generation >= d.generation
		})
		o := best[d.id]
		if !d.counts {
			continue
		}
		if o == nil || d.generation > o.generation || d.generation == o.generation && !d.time.Before(o.time) {
			if o != nil {
				o.counts = false
			}
			best[d.id] = d
		} else {
			d.counts = false
		}
	}
}

// TestModel compares hits, order and scores with those of the model, on random corpora.
func TestModel(t *testing.T) {
	asked, hits := 0, 0
	for seed := range uint64(16) {
		rng := rand.New(rand.NewPCG(seed, 1))
		ix, m, nodes := randomCorpus(t, rng, seed%2 == 1)
		for range 25 {
			text := randomQuery(rng)
			q, err := parse(text, &Request{})
			if err != nil {
				continue // only exclusions
			}
			got := ask(t, ix, Request{Query: text, All: true, Limit: MaxResults, Explain: true})
			want := m.search(q, nodes)
			asked++
			hits += len(want)
			if int(got.Total) != len(want) || len(got.Results) != len(want) {
				t.Fatalf("seed %d, %s: %d and %d results, want %d", seed, text, got.Total, len(got.Results), len(want))
			}
			for i, r := range got.Results {
				if r.URL != want[i].url || math.Abs(r.Score-want[i].score) > 1e-9 {
					t.Fatalf("seed %d, %s: result %d is %s of %g, want %s of %g", seed, text, i, r.URL, r.Score, want[i].url, want[i].score)
				}
				sum := r.Explain.Rank.Score + r.Explain.Titled + r.Explain.Exact
				for _, w := range r.Explain.Words {
					sum += w.Score
				}
				if r.Explain.Score != r.Score || math.Abs(sum-r.Score) > 1e-9 {
					t.Fatalf("seed %d, %s: explanation of %s has parts of %g and a score of %g, want %g", seed, text, r.URL, sum, r.Explain.Score, r.Score)
				}
			}
		}
	}
	if asked < 250 || hits < 1500 {
		t.Errorf("only %d queries with %d hits", asked, hits)
	}
}
