package main

import (
	"errors"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/keyword"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/simple"
	bq "github.com/blevesearch/bleve/v2/search/query"
)

// bleveEngine is bleve's index of one segment, made by its offline builder. It maps its
// files; they must be whole on this machine, so to a cold query an object store gives
// all of them.
type bleveEngine struct {
	folder  string
	builder bleve.Builder
	err     error
	index   bleve.Index
}

type bleveDocument struct {
	URL   string `json:"url"`
	Title string `json:"title"`
	Body  string `json:"body"`
}

func newBleve(folder string) *bleveEngine {
	text := bleve.NewTextFieldMapping()
	text.Analyzer = simple.Name
	text.Store, text.IncludeTermVectors, text.IncludeInAll, text.DocValues = true, true, false, false
	url := bleve.NewTextFieldMapping()
	url.Analyzer = keyword.Name
	url.Store, url.IncludeTermVectors, url.IncludeInAll, url.DocValues = true, false, false, false
	m := bleve.NewIndexMapping()
	m.ScoringModel = "bm25"
	doc := bleve.NewDocumentStaticMapping()
	doc.AddFieldMappingsAt("title", text)
	doc.AddFieldMappingsAt("body", text)
	doc.AddFieldMappingsAt("url", url)
	m.DefaultMapping = doc
	b, err := bleve.NewBuilder(folder, m, map[string]any{"batchSize": 1000})
	return &bleveEngine{folder: folder, builder: b, err: err}
}

func (e *bleveEngine) name() string { return "bleve" }

func (e *bleveEngine) add(p page) error {
	if e.err != nil {
		return e.err
	}
	return e.builder.Index(p.url, bleveDocument{p.url, p.title, p.text})
}

func (e *bleveEngine) finish() error { return e.builder.Close() }

func (e *bleveEngine) open() (err error) {
	e.index, err = bleve.Open(e.folder)
	return err
}

func (e *bleveEngine) close() error { return e.index.Close() }

func (e *bleveEngine) cold() (int, int, int64) {
	size, err := folderSize(e.folder)
	if err != nil {
		e.err = err
	}
	return 1, 1, size
}

func (e *bleveEngine) search(q query) (int, error) {
	if e.err != nil {
		return 0, e.err
	}
	var all bq.Query
	if q.phrase {
		all = bleve.NewPhraseQuery(q.words[:], "body")
	} else {
		var either []bq.Query
		for _, w := range q.words {
			t := bleve.NewTermQuery(w)
			t.SetField("body")
			either = append(either, t)
		}
		all = bleve.NewDisjunctionQuery(either...)
	}
	req := bleve.NewSearchRequestOptions(all, 10, 0, false)
	req.Fields = []string{"title"}
	res, err := e.index.Search(req)
	if err != nil {
		return 0, err
	}
	for _, h := range res.Hits {
		if h.Fields["title"] == nil {
			return 0, errors.New("document without a title")
		}
	}
	return int(res.Total), nil
}
