package main

import (
	"cmp"
	"errors"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/partition"
)

// own is a segment in a file that is read by ranges. In memory are its index and the
// lengths of bodies; nothing is cached.
type own struct {
	folder  string
	builder *segment.Builder
	file    *os.File
	reader  *segment.Reader
	columns *segment.Columns
	reads   int
	bytes   int64
}

func newOwn(folder string) *own { return &own{folder: folder, builder: segment.NewBuilder()} }

func (o *own) name() string { return "own" }

func (o *own) add(p page) error {
	h := fnv.New64a()
	h.Write([]byte(p.url))
	slot := fnv.New32a()
	slot.Write([]byte(p.host))
	doc := segment.Document{URL: p.url, Host: p.host, Fingerprint: h.Sum64(), Slot: partition.Slot(slot.Sum32() % 1024), Title: p.title, Text: p.text,
		Time: time.Unix(1_700_000_000, 0), SimHash: h.Sum64() * 31, Lang: "en"}
	return o.builder.Add(doc, p.fields)
}

func (o *own) finish() error {
	data, _ := o.builder.Finish()
	if err := os.Mkdir(o.folder, 0o777); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.folder, "segment"), data, 0o666)
}

func (o *own) read(off, length int64) ([]byte, error) {
	o.reads++
	o.bytes += length
	b := make([]byte, length)
	_, err := o.file.ReadAt(b, off)
	return b, err
}

func (o *own) open() (err error) {
	if o.file, err = os.Open(filepath.Join(o.folder, "segment")); err != nil {
		return err
	}
	info, err := o.file.Stat()
	if err != nil {
		return err
	}
	if o.reader, err = segment.Open(o.read, info.Size()); err != nil {
		return err
	}
	o.columns, err = o.reader.Columns(segment.Lengths)
	return err
}

func (o *own) close() error { return o.file.Close() }

// cold: tail, lengths, words, lists, documents are five rounds.
func (o *own) cold() (int, int, int64) { return o.reads, 5, o.bytes }

// list is a word of a query, on its way through the documents.
type list struct {
	*segment.Postings
	idf  float64
	more bool
}

func (o *own) lists(q query) (lists [2]list, err error) {
	for i, w := range q.words {
		info, _, err := o.reader.Term(segment.Body, w)
		if err != nil {
			return lists, err
		}
		l := &lists[i]
		if l.Postings, err = o.reader.Postings(info, q.phrase); err != nil {
			return lists, err
		}
		n, df := float64(o.reader.Documents()), float64(info.Documents)
		l.idf = math.Log(1 + (n-df+0.5)/(df+0.5))
		l.more = l.Next()
	}
	return lists, nil
}

type hit struct {
	doc   uint32
	score float64
}

// search ranks by BM25.
func (o *own) search(q query) (int, error) {
	lists, err := o.lists(q)
	if err != nil {
		return 0, err
	}
	sum := o.reader.Summary()
	mean := float64(sum.Lengths[segment.Body]) / float64(sum.Documents)
	best := make([]hit, 0, 11)
	found := 0
	a, b := &lists[0], &lists[1]
	var positions [2][]int32
	for a.more || b.more {
		doc := min(a.Doc(), b.Doc())
		if q.phrase {
			if a.Doc() != b.Doc() {
				if doc = max(a.Doc(), b.Doc()); !a.Advance(doc) || !b.Advance(doc) {
					break
				}
				continue
			}
			positions = [2][]int32{a.Positions(positions[0][:0]), b.Positions(positions[1][:0])}
		}
		if !q.phrase || follows(positions) {
			found++
			norm := 1.2 * (0.25 + 0.75*float64(o.columns.Length(segment.Body, doc))/mean)
			score := 0.0
			for i := range lists {
				if lists[i].Doc() == doc {
					freq := float64(lists[i].Freq())
					score += lists[i].idf * 2.2 * freq / (freq + norm)
				}
			}
			if len(best) < 10 || score > best[len(best)-1].score {
				at, _ := slices.BinarySearchFunc(best, score, func(h hit, s float64) int { return cmp.Compare(s, h.score) })
				best = slices.Insert(best, at, hit{doc, score})
				best = best[:min(len(best), 10)]
			}
		}
		for i := range lists {
			if lists[i].Doc() == doc {
				lists[i].more = lists[i].Next()
			}
		}
		if q.phrase && !(a.more && b.more) {
			break
		}
	}
	for _, h := range best {
		if d, err := o.reader.Document(h.doc); err != nil || d.Title == "" {
			return 0, errors.Join(err, errors.New("document without a title"))
		}
	}
	return found, errors.Join(a.Err(), b.Err())
}

// follows reports whether a position of the second word comes right after one of the
// first.
func follows(positions [2][]int32) bool {
	b := positions[1]
	for _, p := range positions[0] {
		for len(b) > 0 && b[0] <= p {
			b = b[1:]
		}
		if len(b) > 0 && b[0] == p+1 {
			return true
		}
	}
	return false
}
