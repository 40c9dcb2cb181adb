package experiment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/index"
	"github.com/orbweaver/orbweaver/internal/jobs"
	"github.com/orbweaver/orbweaver/internal/text"
	"github.com/orbweaver/orbweaver/internal/token"
	"github.com/orbweaver/orbweaver/lab/corpus"
	"github.com/orbweaver/orbweaver/partition"
)

// Targets of indexing.
const (
	redisIndexRate = 1000 // pages per second, for a large collection in a folder
	redisIndexMost = 2    // processors of the measurement
)

// indexTrial is the indexing of an archive by a number of workers.
type indexTrial struct {
	workers int
	docs    int
	took    time.Duration
	busy    time.Duration // processor time of all workers
}

func (t *indexTrial) rate() float64   { return float64(t.docs) / t.took.Seconds() }
func (t *indexTrial) perPage() string { return fmt.Sprintf("%.2f", t.millis()) }
func (t *indexTrial) millis() float64 { return float64(t.busy.Microseconds()) / 1000 / float64(t.docs) }

// memoryArchive stores a corpus in memory.
func memoryArchive(docs *corpus.Corpus, partitions int) (*archive, error) {
	p, err := drivers.Memory(nil)
	if err != nil {
		return nil, err
	}
	return newArchive(p, docs, partitions)
}

// index updates the index of all partitions in parallel.
func (a *archive) index() error {
	e, err := a.engine()
	if err != nil {
		return err
	}
	follow := jobs.New(e)
	var all []func() error
	for p := range a.of {
		all = append(all, func() error {
			_, err := follow.Index(context.Background(), partition.ID(p), index.Config{})
			return err
		})
	}
	return parallel(all)
}

// measured indexes with a number of processors.
func (t *indexTrial) measured(docs *corpus.Corpus) (err error) {
	a, err := memoryArchive(docs, t.workers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	runtime.GC()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(t.workers))
	began, before := time.Now(), processorTime()
	if err := a.index(); err != nil {
		return err
	}
	t.took, t.busy = time.Since(began), processorTime()-before
	return nil
}

// simulated indexes on a farm.
func (t *indexTrial) simulated(docs *corpus.Corpus) (err error) {
	a, err := memoryArchive(docs, t.workers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	runtime.GC()
	f := &farm{platform: a.Platform}
	for p := range t.workers {
		s, err := index.NewStep(index.Config{Crawl: a.crawl, Partition: partition.ID(p), Processors: 1})
		if err != nil {
			return err
		}
		f.start(s, nil)
	}
	t.took, err = f.run()
	t.busy = f.busy
	return err
}

// stage is a part of indexing, and the processor time that it takes, by language.
type stage struct {
	name string
	took map[string]time.Duration
}

// stages measures the parts of an index step one by one, for all documents of an archive of one partition.
func stages(a *archive) ([]*stage, error) {
	ctx := context.Background()
	pages, err := storedPages(ctx, a.Platform, a.crawl.ID, 0)
	if err != nil {
		return nil, err
	}
	objects, byLang := map[string][]byte{}, map[string][]blobschema.Page{}
	for i := range pages { // in stored order
		name, lang := pages[i].WARC, a.docs.Lang(a.of[0][i])
		byLang[lang] = append(byLang[lang], pages[i])
		if objects[name] == nil {
			if objects[name], err = engine.GetObject(ctx, a.Platform, actor.GetObject{Name: name, Length: -1}); err != nil {
				return nil, err
			}
		}
	}
	runtime.GC()
	var out []*stage
	for _, name := range []string{"read, inflate, check", "extract", "tokens", "build"} {
		out = append(out, &stage{name, map[string]time.Duration{}})
	}
	for _, lang := range corpusLangs {
		b, added := segment.NewBuilder(), uint64(0)
		for some := range slices.Chunk(byLang[lang], 64) {
			bodies, docs, fields := make([][]byte, len(some)), make([]text.Document, len(some)), make([][segment.NumFields][]segment.TermPosition, len(some))
			for k, do := range []func(i int) error{
				func(i int) (err error) { bodies[i], err = bodyOf(objects[some[i].WARC], &some[i]); return err },
				func(i int) error {
					docs[i], _ = text.Extract("text/html; charset=utf-8", bodies[i], some[i].URL)
					return nil
				},
				func(i int) error { fields[i] = fieldsOf(&docs[i], some[i].URL); return nil },
				func(i int) error {
					p, d := &some[i], &docs[i]
					added++
					return b.Add(segment.Document{
						URL: p.URL, Host: "host.example", Fingerprint: added, Time: p.Time, Lang: d.Lang, SimHash: d.SimHash, Title: d.Title, Text: d.Body,
					}, fields[i])
				},
			} {
				out[k].took[lang] += spent(func() {
					for i := range some {
						err = errors.Join(err, do(i))
					}
				})
			}
		}
		out[len(out)-1].took[lang] += spent(func() { b.Finish() })
	}
	return out, err
}

// corpusLangs lists the languages of a corpus.
var corpusLangs = []string{"en", "zh", "ja", "ko"}

// spent returns the processor time of a function.
func spent(do func()) time.Duration {
	before := processorTime()
	do()
	return processorTime() - before
}

// bodyOf returns the body of a stored answer.
func bodyOf(object []byte, p *blobschema.Page) ([]byte, error) {
	rec, err := warc.ReadAt(bytes.NewReader(object), p.Offset, p.Length)
	if err != nil {
		return nil, err
	}
	if err := rec.Verify(); err != nil {
		return nil, err
	}
	return rec.Body, nil
}

// fieldsOf returns the tokens of a document by field.
func fieldsOf(d *text.Document, url string) (fields [segment.NumFields][]segment.TermPosition) {
	terms := func(s, lang string) (out []segment.TermPosition) {
		for _, t := range token.Append(nil, s, lang) {
			out = append(out, segment.TermPosition{Term: t.Term, Position: t.Position})
		}
		return out
	}
	fields[segment.Title], fields[segment.Headings] = terms(d.Title, d.Lang), terms(d.Headings, d.Lang)
	fields[segment.Body], fields[segment.URL] = terms(d.Body, d.Lang), terms(url, "")
	return fields
}

// redisIndex holds the trials of the section on the index.
type redisIndex struct {
	docs      *corpus.Corpus
	measured  []*indexTrial
	simulated []*indexTrial
	stages    []*stage
}

func newRedisIndex(s redisScale) (*redisIndex, error) {
	docs, err := corpus.New(s.seed, s.indexed)
	if err != nil {
		return nil, err
	}
	r := &redisIndex{docs: docs}
	for _, n := range s.workers {
		if n <= min(redisIndexMost, runtime.NumCPU()) {
			r.measured = append(r.measured, &indexTrial{workers: n, docs: docs.Len()})
		}
		r.simulated = append(r.simulated, &indexTrial{workers: n, docs: docs.Len()})
	}
	return r, nil
}

// run runs the trials one after another, so that each runs alone.
func (r *redisIndex) run(log func(string, ...any)) error {
	token.Append(nil, "字典", "zh") // builds the dictionary, once
	for _, t := range r.measured {
		if err := t.measured(r.docs); err != nil {
			return err
		}
		log("index of %s pages with %d processors: %.0f pages/s, %s ms of a processor a page", grouped(t.docs), t.workers, t.rate(), t.perPage())
	}
	for _, t := range r.simulated {
		again := *t
		if err := errors.Join(t.simulated(r.docs), again.simulated(r.docs)); err != nil {
			return err
		}
		if again.busy < t.busy {
			*t = again
		}
		log("index of %s pages by %d workers: %.0f pages/s, %s ms of a processor a page", grouped(t.docs), t.workers, t.rate(), t.perPage())
	}
	a, err := memoryArchive(r.docs, 1)
	if err != nil {
		return err
	}
	r.stages, err = stages(a)
	return errors.Join(err, a.Close())
}

func (r *redisIndex) section() Section {
	sec := Section{
		Title: "Index", Breaks: "the first map gives the last partition twice as many slots as others (`partition.NewMap`).",
		Text: fmt.Sprintf(redisIndexText, grouped(r.docs.Len()), farmGet.Milliseconds(), farmPut.Milliseconds(), farmNet>>20, farmTable.Milliseconds(), efficientRedis),
	}
	tab := Table{
		Name: "index", Caption: "Pages per second, and relative to one worker",
		Columns: []string{"workers", "paper", "times", "measured", "ms of a processor a page", "simulated", "times", "ms of a processor a page"},
	}
	plot := Plot{Name: "index", Title: "Index: speed-up over one worker", X: "workers", Y: "speed-up"}
	ideal, paper, ours := map[int]float64{}, map[int]float64{}, map[int]float64{}
	for i, t := range r.simulated {
		n := t.workers
		up := t.rate() / r.simulated[0].rate()
		row := []any{n, redisPaperIndex[n], redisPaperIndex[n] / redisPaperIndex[1], nil, nil, t.rate(), up, t.millis()}
		if i < len(r.measured) {
			row[3], row[4] = r.measured[i].rate(), r.measured[i].millis()
		}
		tab.Rows = append(tab.Rows, row)
		ideal[n], paper[n], ours[n] = float64(n), redisPaperIndex[n]/redisPaperIndex[1], up
		if n > 1 {
			sec.Checks = append(sec.Checks, Check{fmt.Sprintf("%d workers: at least %g times as fast", n, efficientRedis*float64(n)), up >= efficientRedis*float64(n)})
		}
	}
	sec.Tables = []Table{tab, r.stageTable()}
	plot.Series = []Series{pairs("one to one", 6, true, ideal), pairs("paper", 1, true, paper), pairs("Orbweaver", 0, false, ours)}
	sec.Plots = []Plot{plot}
	return sec
}

// stageTable returns the table of a page's time by stage and language.
func (r *redisIndex) stageTable() Table {
	tab := Table{Name: "index-stages", Caption: "Processor time of a page in ms, by stage and language", Columns: []string{"stage", "all"}}
	docs := map[string]int{}
	for i := range r.docs.Len() {
		docs[r.docs.Lang(i)]++
	}
	tab.Columns = append(tab.Columns, corpusLangs...)
	last := []any{"all", 0.0}
	for _, s := range r.stages {
		row, sum := []any{s.name, 0.0}, time.Duration(0)
		for k, lang := range corpusLangs {
			if s == r.stages[0] {
				last = append(last, 0.0)
			}
			ms := float64(s.took[lang].Microseconds()) / 1000 / float64(max(1, docs[lang]))
			row, sum = append(row, ms), sum+s.took[lang]
			last[2+k] = last[2+k].(float64) + ms
		}
		row[1] = float64(sum.Microseconds()) / 1000 / float64(r.docs.Len())
		last[1] = last[1].(float64) + row[1].(float64)
		tab.Rows = append(tab.Rows, row)
	}
	tab.Rows = append(tab.Rows, last)
	return tab
}

const redisIndexText = `%s pages of about 15 KB, with 5 KB of text, in four languages, are stored as by a crawl and then indexed by the index step. The step reads commits and WARC objects,
extracts the text of the HTML, makes tokens (stems, Chinese words, pairs of characters), and stores segments and a manifest. Each worker has its own partition.

One process with the same number of processors is measured over a store in memory. The same step is simulated on a virtual clock, where each worker is a machine with one processor. Calls take as long as in
a cloud (%d ms to read an object, %d ms to store one, and %d MB per second; %d ms for a record), and work takes the processor time measured here. Each number of workers is
simulated twice, and the run with less processor time counts, because other work on the machine lengthens it. The paper's slaves send their results to a master, which merges them. Here
each partition has its own index, and only a search merges results of partitions.

N workers must be at least %g N times as fast as one.`
