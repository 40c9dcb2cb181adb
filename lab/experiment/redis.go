package experiment

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/orbweaver/orbweaver/lab/corpus"
)

// The figures of the search engine on Redis queues (Li, Ai, Wang), by number of slaves.
var (
	redisPaperCrawl = map[int]float64{1: 5.385, 2: 10.992, 3: 14.118, 4: 17.079}      // pages a second
	redisPaperIndex = map[int]float64{1: 4.262, 2: 6.661, 3: 7.775, 4: 8.514}         // pages a second
	redisPaperRank  = map[int]float64{1: 963.955, 2: 754.473, 3: 648.617, 4: 584.876} // seconds
	efficientRedis  = 0.9                                                             // speed-up by workers
)

// redisScale is the size of the measurements.
type redisScale struct {
	seed    uint64
	workers []int
	times   int // size of the large web, relative to the paper's
	faster  int // factor by which answers over sockets are faster
	indexed int // pages to index, by several numbers of workers
	sites   int // sites to rank
	small   int // documents in the collection for known-item searches
	docs    int // documents in the collection for timed searches
	items   int // known items to search
	queries int // timed queries
}

func redisScaleOf(o Options) redisScale {
	s := redisScale{
		seed: o.Seed, workers: []int{1, 2, 3, 4}, times: 10, faster: 10, indexed: 8_000, sites: 35_602, small: 10_000, docs: 100_000, items: 2_000, queries: 1_000,
	}
	if o.Quick {
		s.workers, s.times, s.faster, s.indexed, s.sites, s.small, s.docs, s.items, s.queries = []int{1, 2, 4}, 2, 40, 400, 2_000, 500, 2_000, 100, 100
	}
	if o.Pages > 0 {
		s.docs = o.Pages
		s.small = min(s.small, s.docs)
	}
	return s
}

// redisEngine repeats the paper's measurements, and measures index and search. Timed parts run alone.
func redisEngine(o Options) (*Report, error) {
	return redisScaleOf(o).run(o.Quick, o.logger())
}

func (s redisScale) run(quick bool, log func(string, ...any)) (*Report, error) {
	if s.docs > corpus.Most { // checked first, because the rest takes minutes
		return nil, fmt.Errorf("%s documents: there are at most %s", grouped(s.docs), grouped(corpus.Most))
	}
	r := &Report{
		Name: "redis-engine", Title: "A search engine on queues", Seed: s.seed, Pages: s.docs, Quick: quick,
		Intro: fmt.Sprintf(redisIntro, runtime.NumCPU()),
	}
	crawls := newRedisCrawls(s)
	if err := crawls.run(s.seed, log); err != nil {
		return nil, err
	}
	indexing, err := newRedisIndex(s)
	if err != nil {
		return nil, err
	}
	if err := indexing.run(log); err != nil {
		return nil, err
	}
	ranks := newRedisRanks(s)
	if err := ranks.run(s.seed, log); err != nil {
		return nil, err
	}
	r.Sections = []Section{crawls.section(s), indexing.section(), ranks.section()}
	sections, err := shelfSections(s, indexing.docs, log)
	r.Sections = append(r.Sections, sections...)
	return r, err
}

// shelfSections returns the sections on two collections in folders.
func shelfSections(s redisScale, sample *corpus.Corpus, log func(string, ...any)) (out []Section, err error) {
	stored, err := storedText(sample)
	if err != nil {
		return nil, err
	}
	small, err := newShelf(s.seed, s.small, log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, small.remove()) }()
	large, err := newShelf(s.seed, s.docs, log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, large.remove()) }()
	timed, err := large.search(s.seed, s.queries, log)
	if err != nil {
		return nil, err
	}
	without, err := small.findKnown(s.items)
	if err != nil {
		return nil, err
	}
	if err := small.rank(); err != nil {
		return nil, err
	}
	with, err := small.findKnown(s.items)
	if err != nil {
		return nil, err
	}
	log("known items are found")
	return []Section{sizeSection(stored, []indexSize{small.size, large.size}), timed.section(), qualitySection(s.small, without, with)}, nil
}

const redisIntro = `**Question.** Li, Ai and Wang build a search engine on queues in Redis: a master and 1 to 4 slaves crawl, make an inverted index and compute PageRank. How do crawl, index and
ranks by functions and plain queues compare? Do they scale? How long do searches take, and what do they find?

**How.** Scaling is simulated as in the other experiments: the crawler's own core runs on a virtual clock, where a read of the table takes 5 ms, a
message 10 ms and an object 20 ms to read and 40 ms to store, as in a cloud. Work of processors is measured, on a machine with %d of them, and varies a little. The paper
does not state the speed of its machines, so only the growth with the number of workers can be compared. Its figures 4 and 5 stand beside Nutch on Hadoop, as fast at crawling and slower at PageRank. Nutch is
not measured here: its releases in the registry of Java packages lack the plugins that fetch and parse.`
