package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/text"
	"github.com/orbweaver/orbweaver/lab/corpus"
	"github.com/orbweaver/orbweaver/partition"
)

// indexSize is the size of an index.
type indexSize struct {
	docs      int
	html      int64 // bytes of pages
	text      int64 // bytes of indexed text
	bytes     int64 // bytes of segments
	segments  int
	merges    int64
	documents int64 // number of current documents
	took      time.Duration
}

// sizeOf reads the size of an archive's index.
func (a *archive) sizeOf() (z indexSize, err error) {
	ctx := context.Background()
	z.docs, z.html = a.docs.Len(), a.pages
	for p := range a.of {
		man, err := a.manifest(ctx, partition.ID(p))
		if err != nil {
			return z, err
		}
		for _, s := range man.Segments {
			z.bytes += s.Bytes
			z.segments++
		}
		z.text += man.Totals.Text
		z.merges += man.Totals.Merges
		z.documents += man.Totals.Documents
	}
	return z, nil
}

// manifest returns the manifest of a partition's index.
func (a *archive) manifest(ctx context.Context, p partition.ID) (m blobschema.IndexManifest, err error) {
	recs, err := engine.ReadRecords(ctx, a.Platform, []string{naming.IndexKey(a.crawl.ID, p)})
	if err != nil {
		return m, err
	}
	head, err := actor.Decode[blobschema.IndexHead](recs[0], "index head")
	if err != nil {
		return m, err
	}
	data, err := engine.GetObject(ctx, a.Platform, actor.GetObject{Name: head.Manifest, Length: -1})
	if err != nil {
		return m, err
	}
	return blobschema.DecodeIndexManifest(data)
}

// storedText returns the bytes that a segment takes per byte of stored text. It builds two segments, one of them without
// texts.
func storedText(docs *corpus.Corpus) (float64, error) {
	with, without := segment.NewBuilder(), segment.NewBuilder()
	total := 0
	var html []byte
	for i := range min(docs.Len(), 5_000) {
		d := docs.Document(i, html)
		html = d.HTML
		found, _ := text.Extract("text/html; charset=utf-8", d.HTML, d.URL)
		fields := fieldsOf(&found, d.URL)
		doc := segment.Document{URL: d.URL, Host: d.Host, Fingerprint: uint64(i), Lang: found.Lang, Title: found.Title, Text: found.Body}
		if err := with.Add(doc, fields); err != nil {
			return 0, err
		}
		doc.Text = ""
		if err := without.Add(doc, fields); err != nil {
			return 0, err
		}
		total += len(found.Title) + len(found.Headings) + len(found.Body)
	}
	a := with.Finish().Data
	b := without.Finish().Data
	return float64(len(a)-len(b)) / float64(total), nil
}

// shelf is an archive in a temporary folder, with its index.
type shelf struct {
	*archive
	dir  string
	size indexSize
}

// newShelf stores and indexes a corpus with one partition per processor. The caller removes the shelf.
func newShelf(seed uint64, docs int, log func(string, ...any)) (*shelf, error) {
	c, err := corpus.New(seed, docs)
	if err != nil {
		return nil, err
	}
	s := &shelf{}
	if s.dir, err = os.MkdirTemp("", "orbweaver-experiment-"); err != nil {
		return nil, err
	}
	if err := s.fill(c); err != nil {
		return nil, errors.Join(err, s.remove())
	}
	log("archive and index of %s pages: %s bytes of segments, indexed in %v", grouped(docs), grouped(int(s.size.bytes)), s.size.took.Round(time.Millisecond))
	return s, nil
}

func (s *shelf) fill(c *corpus.Corpus) error {
	p, err := drivers.Local(s.dir, nil)
	if err != nil {
		return err
	}
	if s.archive, err = newArchive(p, c, min(redisIndexMost, runtime.NumCPU())); err != nil {
		return err
	}
	began := time.Now()
	if err := s.index(); err != nil {
		return err
	}
	took := time.Since(began)
	s.size, err = s.sizeOf()
	s.size.took = took
	return err
}

// rank computes the ranks of the pages, and adds the texts of links to the index.
func (s *shelf) rank() error {
	if _, err := rankAll(s.Platform, s.crawl); err != nil {
		return err
	}
	return s.index()
}

func (s *shelf) remove() (err error) {
	if s.archive != nil {
		err = s.Close()
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// sizeSection reports on the sizes of indexes.
func sizeSection(stored float64, sizes []indexSize) Section {
	sec := Section{Title: "Size of the index", Breaks: "the index step leaves out one document in 5,000 (`add` in `internal/index/batch.go`).", Text: fmt.Sprintf(sizeText, stored, min(redisIndexMost, runtime.NumCPU()), grouped(redisIndexRate))}
	tab := Table{
		Name: "size", Caption: "Bytes of indexes",
		Columns: []string{"documents", "HTML, MB", "text, MB", "segments, MB", "by text", "without stored text", "bytes a document", "segments", "merges", "indexed, pages/s"},
	}
	const mb = 1e6
	for _, z := range sizes {
		by := float64(z.bytes) / float64(z.text)
		tab.Rows = append(tab.Rows, []any{
			z.docs, float64(z.html) / mb, float64(z.text) / mb, float64(z.bytes) / mb, by, by - stored, int(z.bytes / max(1, z.documents)), z.segments, int(z.merges),
			float64(z.docs) / z.took.Seconds(),
		})
		sec.Checks = append(sec.Checks, Check{fmt.Sprintf("all %s documents are in the index", grouped(z.docs)), z.documents == int64(z.docs)})
	}
	last := sizes[len(sizes)-1]
	sec.Checks = append(sec.Checks, Check{
		fmt.Sprintf("%s documents: indexed at %s pages a second or more", grouped(last.docs), grouped(redisIndexRate)), float64(last.docs) >= redisIndexRate*last.took.Seconds(),
	})
	sec.Tables = []Table{tab}
	return sec
}

const sizeText = `The bytes of all segments, after the index step's merges, divided by the bytes of the indexed text: titles, headings and main text. A segment holds terms with their
positions in each field, a table of the documents, and the compressed text for snippets, which takes %.2f bytes per byte. Here the store is a folder, and every
object is synced to the disk. %d processors index it, merges included, and must reach at least %s pages per second.`
