package experiment

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/search"
)

// Targets of searching, and times of an object store.
const (
	redisWarm     = 20 * time.Millisecond // median, with a cache warmed by similar queries
	redisGET      = 15 * time.Millisecond
	redisSideGETs = 8 // at once
)

// shelfStore is the store of a search, with the delay of an object store if wanted.
type shelfStore struct {
	blobschema.Store
	latency time.Duration
	gate    chan struct{} // its capacity bounds concurrent reads; nil: no bound
}

func (s *shelfStore) wait() func() {
	if s.gate == nil {
		return func() {}
	}
	s.gate <- struct{}{}
	time.Sleep(s.latency)
	return func() { <-s.gate }
}

func (s *shelfStore) Object(ctx context.Context, name string, offset, length int64) ([]byte, error) {
	defer s.wait()()
	return s.Store.Object(ctx, name, offset, length)
}

// queryKind is a kind of queries with its measurements.
type queryKind struct {
	name string
	make func(rng *rand.Rand) string

	took  []time.Duration
	reads []int64
	bytes []int64
	found int           // number of queries with a result
	busy  time.Duration // processor time of all workers
}

// queryKinds returns the measured kinds.
func (s *shelf) queryKinds() []*queryKind {
	c := s.docs
	words := func(n int) func(*rand.Rand) string {
		return func(rng *rand.Rand) string { return strings.Join(c.Words(rng, n), " ") }
	}
	return []*queryKind{
		{name: "one word", make: words(1)},
		{name: "two words", make: words(2)},
		{name: "three words", make: words(3)},
		{name: "phrase", make: func(rng *rand.Rand) string {
			return `"` + c.Title(rng.IntN(c.Len())) + `"`
		}},
		{name: "site", make: func(rng *rand.Rand) string {
			host, _, _ := strings.Cut(strings.TrimPrefix(c.URL(rng.IntN(c.Len())), "http://"), "/")
			return c.Words(rng, 1)[0] + " site:" + host
		}},
	}
}

// one answers and measures a query.
func (k *queryKind) one(ix *search.Index, query string) error {
	began := time.Now()
	a, err := ix.Search(context.Background(), search.Request{Query: query})
	if err != nil {
		return fmt.Errorf("search for %s: %w", query, err)
	}
	k.took, k.reads, k.bytes = append(k.took, time.Since(began)), append(k.reads, a.Reads), append(k.bytes, a.ReadBytes)
	if a.Total > 0 {
		k.found++
	}
	return nil
}

// quantile sorts values and returns a quantile.
func quantile[T int64 | time.Duration](values []T, q float64) T {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(len(values)-1, int(q*float64(len(values))))]
}

// searches holds the queries of a section by kind of index.
type searches struct {
	docs       int
	warm       []*queryKind // one open index for all
	cold, slow []*queryKind // a new index for each query, over files and over a slow store
}

// search measures queries to the shelf's index.
func (s *shelf) search(seed uint64, queries int, log func(string, ...any)) (*searches, error) {
	ctx := context.Background()
	r := &searches{docs: s.docs.Len(), warm: s.queryKinds(), cold: s.queryKinds(), slow: s.queryKinds()}
	files := &shelfStore{Store: engine.Store{Platform: s.Platform}}
	ix, err := search.Open(ctx, files, s.crawl.ID, search.Options{CacheBytes: 1 << 30})
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(seed, 77))
	for _, k := range r.warm {
		warmup := *k
		for range queries / 20 {
			if err := warmup.one(ix, k.make(rng)); err != nil {
				return nil, err
			}
		}
		before := processorTime()
		for range queries / len(r.warm) {
			if err := k.one(ix, k.make(rng)); err != nil {
				return nil, err
			}
		}
		k.busy = processorTime() - before
		log("%s documents, warm, %s: %v", grouped(r.docs), k.name, quantile(k.took, 0.5))
	}
	objects := &shelfStore{Store: engine.Store{Platform: s.Platform}, latency: redisGET, gate: make(chan struct{}, redisSideGETs)}
	for i, store := range []*shelfStore{files, objects} {
		for _, k := range [][]*queryKind{r.cold, r.slow}[i] {
			for range max(2, queries/100) {
				began := time.Now()
				ix, err := search.Open(ctx, store, s.crawl.ID, search.Options{})
				if err != nil {
					return nil, err
				}
				opened := time.Since(began)
				if err := k.one(ix, k.make(rng)); err != nil {
					return nil, err
				}
				k.took[len(k.took)-1] += opened
			}
		}
	}
	return r, nil
}

func (r *searches) section() Section {
	sec := Section{Title: "Time of a search", Breaks: "the cache keeps nothing (`fill` in `internal/search/cache.go`).", Text: fmt.Sprintf(searchText, grouped(r.docs), redisGET.Milliseconds(), redisSideGETs, redisWarm.Milliseconds())}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	warm := Table{Name: "search-warm", Caption: "Milliseconds of a search in an index that is open", Columns: []string{"query", "queries", "that found something", "median", "95%", "most", "ms of a processor, mean"}}
	cold := Table{
		Name: "search-cold", Caption: "Milliseconds of the first search of a process, with the opening of the index",
		Columns: []string{"query", "queries", "reads, median", "most", "KB read, median", "most", "ms, files, median", "most", "ms, object store, median", "most"},
	}
	var all []time.Duration
	for i, k := range r.warm {
		all = append(all, k.took...)
		warm.Rows = append(warm.Rows, []any{k.name, len(k.took), k.found, ms(quantile(k.took, 0.5)), ms(quantile(k.took, 0.95)), ms(quantile(k.took, 1)), ms(k.busy) / float64(len(k.took))})
		c, s := r.cold[i], r.slow[i]
		cold.Rows = append(cold.Rows, []any{
			k.name, len(c.took), int(quantile(c.reads, 0.5)), int(quantile(c.reads, 1)), float64(quantile(c.bytes, 0.5)) / 1000, float64(quantile(c.bytes, 1)) / 1000,
			ms(quantile(c.took, 0.5)), ms(quantile(c.took, 1)), ms(quantile(s.took, 0.5)), ms(quantile(s.took, 1)),
		})
	}
	found, busy := 0, time.Duration(0)
	for _, k := range r.warm {
		found, busy = found+k.found, busy+k.busy
	}
	warm.Rows = append(warm.Rows, []any{"all", len(all), found, ms(quantile(all, 0.5)), ms(quantile(all, 0.95)), ms(quantile(all, 1)), ms(busy) / float64(len(all))})
	sec.Tables = []Table{warm, cold}
	sec.Checks = []Check{{fmt.Sprintf("median of all searches in an open index at most %v", redisWarm), quantile(all, 0.5) <= redisWarm}}
	return sec
}

const searchText = `Queries over %s documents are drawn at random: words as often as documents contain them, except the most common ones; phrases that are the title of a document; and a word within one site.
All words must match. A search returns the ten best of all matching documents, with snippets, and no near-duplicates.

A warm index is open in a process that has answered queries before; its cache has 1 GB. A cold search is the first of a new process: it reads the records, opens the segments and
reads ranges of them, from files, and from a store in which each read takes %d ms and %d reads may run at once. The median of all warm searches must be at most %d ms.`

// known measures how well known items are found.
type known struct {
	name  string
	want  int // place at which every document must be found, or before
	asked int
	first int     // number found in first place
	ten   int     // number found among the first ten
	mrr   float64 // mean of the reciprocal ranks, within ten
}

// holds reports whether every document was found at the place that is wanted, or before.
func (k *known) holds() bool { return k.asked == k.first || k.want > 1 && k.asked == k.ten }

// rate returns the share found in first place.
func (k *known) rate() float64 { return float64(k.first) / float64(max(1, k.asked)) }

// findKnown searches documents by their unique titles and words, and returns the results by language.
func (s *shelf) findKnown(items int) (out []*known, err error) {
	ix, err := search.Open(context.Background(), &shelfStore{Store: engine.Store{Platform: s.Platform}}, s.crawl.ID, search.Options{CacheBytes: 1 << 30})
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	by := map[string]*known{}
	var jobs []func() error
	for _, ask := range []struct {
		name  string
		want  int
		query func(i int) string
	}{
		{"title", 1, s.docs.Title},
		{"title as a phrase", 1, func(i int) string { return `"` + s.docs.Title(i) + `"` }},
		{"words of a title that others share", 10, s.docs.SharedTitle},
		{"unique word", 1, s.docs.Unique},
	} {
		for _, lang := range corpusLangs {
			k := &known{name: ask.name + ", " + lang, want: ask.want}
			by[k.name], out = k, append(out, k)
		}
		step := max(1, s.docs.Len()/items)
		for i := 0; i < s.docs.Len(); i += step {
			jobs = append(jobs, func() error {
				a, err := ix.Search(context.Background(), search.Request{Query: ask.query(i)})
				if err != nil {
					return fmt.Errorf("search for %s: %w", ask.query(i), err)
				}
				at := slices.IndexFunc(a.Results, func(r search.Result) bool { return r.URL == s.docs.URL(i) })
				mu.Lock()
				defer mu.Unlock()
				k := by[ask.name+", "+s.docs.Lang(i)]
				k.asked++
				if at >= 0 {
					k.ten++
					k.mrr += 1 / float64(at+1)
				}
				if at == 0 {
					k.first++
				}
				return nil
			})
		}
	}
	err = parallel(jobs)
	for _, k := range out {
		k.mrr /= float64(max(1, k.asked))
	}
	return out, err
}

// qualitySection reports on the quality of search; with is nil if there are no ranks.
func qualitySection(docs int, without, with []*known) Section {
	sec := Section{Title: "What is found", Text: fmt.Sprintf(qualityText, grouped(docs))}
	tab := Table{
		Name: "quality", Caption: "Known items",
		Columns: []string{"asked for by", "asked", "first, by text alone", "among ten", "mean reciprocal rank", "first, with PageRank", "among ten", "mean reciprocal rank"},
	}
	for i, k := range without {
		row := []any{k.name, k.asked, k.rate(), float64(k.ten) / float64(max(1, k.asked)), k.mrr, nil, nil, nil}
		all := k.holds()
		if with != nil {
			w := with[i]
			row[5], row[6], row[7] = w.rate(), float64(w.ten)/float64(max(1, w.asked)), w.mrr
			all = all && w.holds()
		}
		tab.Rows = append(tab.Rows, row)
		sec.Checks = append(sec.Checks, Check{fmt.Sprintf("by %s: all stand %s", k.name, map[int]string{1: "first", 10: "among the first ten"}[k.want]), all})
	}
	sec.Tables = []Table{tab}
	sec.Breaks = "a rank weighs a hundred times as much (`search.rankPart`); titles with the words of the query lose points (`titledWeight` in `internal/search/score.go`)."
	return sec
}

const qualityText = `Does a search find the right document? Each of %s documents has a unique title of frequent words, which other documents use to link to it and show in their menus, and one word in its text
that no other document has. A query for either should find that document first: by the text alone, and with PageRank too, which must not put popular pages
before it. The first two words of a title are those of other titles too, and stand in the text of many documents. A query for them should have each document
with them in its title among its first ten results.`
