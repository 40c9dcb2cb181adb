package fsck

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/blobschema/wire"
)

// i11 checks that the index shows each page once, as of its last answer that says anything:
// a page of a visible commit that is in the index, and nothing that is gone or must not be
// shown. Segments are complete and match manifest and head. fsck does not
// extract text: the index may omit a page that has none.
func i11(v *judge, fact any) {
	if _, ends := fact.(end); ends && v.indexed {
		v.indexes()
	}
}

// IndexReport is the result of checking the index.
type IndexReport struct {
	Partitions int   `json:"partitions"` // partitions with an index
	Segments   int   `json:"segments"`   // with those of texts of links
	Documents  int64 `json:"documents"`  // current ones
	Anchors    int64 `json:"anchors"`    // pages with texts of links
	Bytes      int64 `json:"bytes"`
	Behind     int64 `json:"behind"` // commits that are not in it yet
	// Unindexed counts the pages of HTML and plain text, of commits in the index, that may be shown and
	// are not there, such as those without text.
	Unindexed int64 `json:"unindexed"`
	// Hidden counts the documents that searches leave out because another partition, to which their
	// slots have moved, has found them gone. Stale ones are still found: the commit that says so is
	// not in its index yet.
	Hidden int64 `json:"hidden"`
	Stale  int64 `json:"stale"`
}

// effect is the change of the index by an answer.
type effect uint8

const (
	leaves  effect = iota // nothing
	writes                // a new version of the document
	removes               // the document
)

// of returns the entries of a page in a sorted list of answers or documents. The slot of a page in
// an index is that of its host, also where the address of the host decides which partition crawls it.
func of[T interface{ Compare(segment.ID) int }](list []T, page segment.ID) []T {
	return equal(list, func(e *T) int { return (*e).Compare(page) })
}

// answer is a page record with which the index is compared.
type answer struct {
	segment.ID
	gen, seq, unix uint32
	does           effect
	again          bool // its payload is one that the page had before, at the time unix
	text           bool // it is a page of HTML or plain text that may be shown
}

func (a answer) compare(b answer) int {
	return cmp.Or(a.Compare(b.ID), cmp.Compare(a.gen, b.gen), cmp.Compare(a.seq, b.seq))
}

// answerOf returns the effect of a page record on the index. A redirect or 4xx means that the
// page is gone; robots.txt or the network can forbid to show it. A record without an answer
// changes nothing.
func (c *checker) answerOf(pg *page, seq uint64) answer {
	host, _ := c.keyOf(string(pg.url.Host()))
	a := answer{ID: segment.ID{Slot: c.hash.Slot(host), Fingerprint: pg.fp}, gen: pg.Generation, seq: uint32(seq), unix: unixOf(pg.Time)}
	switch o := pg.Outcome; {
	case o == blobschema.OutcomeRedirect, o == blobschema.OutcomeClientError, o == blobschema.OutcomeRobots, o == blobschema.OutcomeForbidden,
		o == blobschema.OutcomeOK && pg.NoIndex:
		a.does = removes
	case o == blobschema.OutcomeOK && !pg.Requisite:
		a.does, a.text = writes, pg.MIME == "text/html" || pg.MIME == "text/plain"
		if pg.Original != nil && pg.Original.URL == pg.URL {
			a.again, a.unix = true, unixOf(pg.Original.Time)
		}
	}
	return a
}

// unixOf is a time as segments keep it.
func unixOf(t time.Time) uint32 {
	if t.IsZero() {
		return 0
	}
	return uint32(max(1, min(t.Unix(), 1<<32-1)))
}

// document is a current document of a partition's index.
type document struct {
	segment.ID
	gen, unix uint32
	in        uint32 // segment of the manifest
}

func (d document) compare(e document) int {
	return cmp.Or(d.Compare(e.ID), cmp.Compare(d.in, e.in))
}

// indexes checks the indexes of all partitions.
func (v *judge) indexes() {
	all := make([]*index, len(v.parts))
	for i, p := range v.parts {
		slices.SortFunc(p.answers, answer.compare)
		key, was := naming.IndexKey(v.id, p.id), v.index
		v.steadily([]string{key}, func() {
			v.index = was
			all[i] = &index{judge: v, p: p, key: key, answers: p.answers, broken: p.broken}
			all[i].check()
		})
	}
	for _, x := range all {
		for _, d := range x.docs {
			if !x.broken {
				x.checkElsewhere(d, all)
			}
		}
	}
}

// index is the index of one partition.
type index struct {
	*judge
	p      *part
	key    string
	broken bool // not all its answers are known

	head    blobschema.IndexHead
	man     blobschema.IndexManifest
	docs    []document // sorted
	answers []answer   // sorted
}

func (x *index) check() {
	report := &x.index
	var found bool
	if x.head, found = record[blobschema.IndexHead](x.checker, x.key); !found || x.head.Manifest == "" {
		report.Behind += int64(x.p.head.Seq) // a step has claimed the partition at most, and stored nothing yet
		return
	}
	if !x.readManifest() {
		return
	}
	x.p.indexAt = x.man.Number
	report.Partitions++
	report.Bytes += x.head.Bytes
	report.Behind += max(0, int64(x.p.head.Seq)-int64(x.man.Seq))
	x.docs = x.readSegments(x.man.Segments, false)
	report.Documents += int64(len(x.docs))
	x.Checked += int64(len(x.docs))
	report.Anchors += int64(len(x.readSegments(x.man.Anchors, true)))
	if x.man.AnchorJob > 0 {
		bad := x.bad
		job, _ := record[ranks.Job](x.checker, naming.RankKey(x.id))
		x.must(x.man.AnchorJob <= job.Number || x.bad > bad, x.head.Manifest,
			"its texts of links are of rank job %d, and the last one is %d", x.man.AnchorJob, job.Number)
	}
	if x.broken = x.isAhead() || x.broken; !x.broken {
		x.compare()
		x.checkRemoved()
	}
}

// readManifest reads the manifest that the head names and compares the two. It returns false
// if the manifest cannot be read.
func (x *index) readManifest() bool {
	h, m := &x.head, &x.man
	var data []byte
	var ok bool
	if x.man, data, ok = decoded(x.checker, h.Manifest, x.key, blobschema.DecodeIndexManifest); !ok {
		return false
	}
	x.name(h.Manifest, x.key)
	if name := naming.IndexManifest(x.id, x.p.id, m.Number, data); name != h.Manifest {
		x.damaged(h.Manifest, "its name should be %s", name)
	}
	bytes, documents, named := int64(0), int64(0), map[string]bool{h.Manifest: true}
	for _, r := range slices.Concat(m.Segments, m.Anchors) {
		bytes += r.Bytes
		x.must(!named[r.Object], h.Manifest, "it names %s twice", r.Object)
		named[r.Object] = true
	}
	for _, r := range m.Segments {
		documents += int64(r.Documents) - int64(r.Gone)
	}
	x.same(x.key, "partition, and the crawl and partition of its manifest", []any{h.Partition, m.Crawl, m.Partition}, []any{x.p.id, x.id, x.p.id})
	x.same(x.key, "number, commits, rank job, documents, bytes and totals",
		[]any{h.Number, h.Seq, h.Anchors, h.Documents, h.Bytes, h.Totals}, []any{m.Number, m.Seq, m.AnchorJob, documents, bytes, m.Totals})
	x.same(h.Manifest, "total of documents", m.Totals.Documents, documents)
	for _, d := range m.Dropped { // they may be there, or not
		x.name(d.Object, h.Manifest)
		x.must(!named[d.Object], h.Manifest, "%s is to be deleted, and is named", d.Object)
	}
	return true
}

func (x *index) segmentOf(d document) string { return x.man.Segments[d.in].Object }

// isAhead reports whether the index has commits that were made after the head of this check
// was read. Then the expected content of the index is not known.
func (x *index) isAhead() bool {
	if x.last() <= x.p.head.Seq {
		return false
	}
	now, _ := record[blobschema.Head](x.checker, naming.HeadKey(x.id, x.p.id))
	x.must(now.Seq >= x.last(), x.key, "the commits up to %d are in it, and the last one is %d", x.last(), now.Seq)
	return true
}

// last is the last commit of which the index has any page.
func (x *index) last() uint64 {
	if x.man.Part > 0 {
		return x.man.Seq + 1
	}
	return x.man.Seq
}

// partly reports whether the index has a part of the commit of an answer: it may have the
// answer or not.
func (x *index) partly(a answer) bool { return uint64(a.seq) == x.man.Seq+1 && x.man.Part > 0 }

// compare compares the documents with the answers.
func (x *index) compare() {
	for _, d := range x.docs {
		if len(of(x.answers, d.ID)) == 0 {
			x.violate(x.segmentOf(d), "the document %016x of slot %d, generation %d, is of no page that was requested", d.Fingerprint, d.Slot, d.gen)
		}
	}
	for answers := x.answers; len(answers) > 0; {
		page := answers[0].ID
		n := len(of(answers, page))
		x.comparePage(of(x.docs, page), answers[:n])
		answers = answers[n:]
	}
}

// comparePage compares the document of a page in the index with the answers of the page.
func (x *index) comparePage(docs []document, answers []answer) {
	if slices.ContainsFunc(answers, x.partly) {
		return
	}
	var last *answer // the last answer that changes the document
	shown := false
	known := slices.DeleteFunc(slices.Clone(answers), func(a answer) bool { return uint64(a.seq) > x.man.Seq })
	for i := range known {
		a := &known[i]
		if a.does == leaves {
			continue
		}
		if !a.again || last == nil || last.does != writes || last.unix != a.unix { // else the payload is the one that is indexed
			last = a
		}
		shown = a.text
	}
	if shown && len(docs) == 0 {
		x.index.Unindexed++
	}
	for _, d := range docs {
		fits := func(a answer) bool { return a.gen == d.gen && a.gen >= last.gen && a.does != removes }
		wrong := func(a answer, format string, args ...any) {
			x.violate(x.segmentOf(d), "%s: %s", x.urlAt(a.Fingerprint, x.p.id, uint64(a.seq)), fmt.Sprintf(format, args...))
		}
		switch {
		case len(known) == 0:
			wrong(answers[0], "it is shown, and was first requested in commit %d; those up to %d are in the index", answers[0].seq, x.man.Seq)
		case last == nil:
			wrong(known[0], "it is shown, and no answer brought a page")
		case last.does == removes:
			wrong(*last, "it is shown as of generation %d, and by its answer of generation %d it is gone, or must not be shown", d.gen, last.gen)
		case d.gen < last.gen:
			wrong(*last, "it is shown as of generation %d, and there is an answer of generation %d", d.gen, last.gen)
		case !slices.ContainsFunc(known, fits):
			wrong(*last, "it is shown as of generation %d, which has no answer", d.gen)
		case d.unix != last.unix:
			wrong(*last, "it is shown as of %s, and was fetched at %s", time.Unix(int64(d.unix), 0).UTC(), time.Unix(int64(last.unix), 0).UTC())
		}
	}
}

// maxRemoved is how many removed documents a manifest notes.
const maxRemoved = 1 << 20

// checkRemoved checks the documents that the manifest lists as removed because their slots have moved.
func (x *index) checkRemoved() {
	list, where := x.man.Removed, x.head.Manifest
	if !slices.IsSortedFunc(list, blobschema.RemovedDocument.Compare) || len(list) > maxRemoved {
		x.violate(where, "the %d documents that it says are gone are out of order, or too many", len(list))
		return
	}
	for i, d := range list {
		page := segment.ID{Slot: d.Slot, Fingerprint: d.Fingerprint}
		x.must(len(of(x.docs, page)) == 0, where, "it says that the document %016x of slot %d is gone, and shows it", d.Fingerprint, d.Slot)
		x.must(i == 0 || d.Compare(list[i-1]) != 0, where, "it says twice that the document %016x of slot %d is gone", d.Fingerprint, d.Slot)
		known, later := false, false
		for _, a := range of(x.answers, page) {
			known = known || x.partly(a)
			if uint64(a.seq) <= x.man.Seq {
				known = known || a.gen == d.Generation
				later = later || a.gen > d.Generation && a.does != leaves
			}
		}
		x.must(known && !later, where,
			"it says that the document %016x of slot %d is gone as of generation %d, which is not that of its last answer",
			d.Fingerprint, d.Slot, d.Generation)
	}
}

// checkElsewhere checks a document whose slot has moved to another partition. If that found the
// page gone, its index must say so, so that searches leave the document out.
func (x *index) checkElsewhere(d document, all []*index) {
	var by *index
	last := answer{gen: d.gen}
	hidden := false
	for _, q := range all {
		if q == x {
			continue
		}
		for _, a := range of(q.answers, d.ID) {
			if a.does != leaves && a.gen > last.gen {
				by, last = q, a
			}
		}
		page := blobschema.RemovedDocument{Fingerprint: d.Fingerprint, Slot: d.Slot}
		for _, gone := range equal(q.man.Removed, func(r *blobschema.RemovedDocument) int { return r.Compare(page) }) {
			hidden = hidden || gone.Generation >= d.gen
		}
	}
	switch {
	case last.does != removes:
	case uint64(last.seq) > by.man.Seq:
		x.index.Stale++
	case hidden:
		x.index.Hidden++
	case len(by.man.Removed) < maxRemoved:
		x.violate(x.segmentOf(d), "%s: it is shown as of generation %d, and partition %d, which found it gone in generation %d, does not say so",
			x.urlAt(d.Fingerprint, by.p.id, uint64(last.seq)), d.gen, by.p.id, last.gen)
	}
}

// readSegments reads segments, and returns their current documents, sorted.
func (x *index) readSegments(refs []blobschema.SegmentRef, anchors bool) (docs []document) {
	for i := range refs {
		current, err := x.readSegment(&refs[i], anchors)
		if errors.Is(err, wire.ErrVersion) {
			err = fmt.Errorf("%w; 'orbweaver index' makes an index again that another version of orbweaver has made", err)
		}
		if err != nil && x.ctx.Err() == nil {
			x.damaged(refs[i].Object, "%v", err)
		}
		for _, d := range current {
			d.in = uint32(i)
			docs = append(docs, d)
		}
	}
	slices.SortFunc(docs, document.compare)
	for i := 1; i < len(docs); i++ {
		if d, e := docs[i-1], docs[i]; d.ID == e.ID {
			x.violate(refs[e.in].Object, "the document %016x of slot %d is current in %s too", e.Fingerprint, e.Slot, refs[d.in].Object)
		}
	}
	return docs
}

// readSegment checks a segment and returns its current documents. If the object cannot be read,
// that is reported, and there is no error.
func (x *index) readSegment(ref *blobschema.SegmentRef, anchors bool) (current []document, err error) {
	x.index.Segments++
	x.name(ref.Object, x.head.Manifest)
	p, number, err := naming.ParseIndex(ref.Object)
	if err != nil || p != x.p.id || number > x.man.Number {
		x.damaged(x.head.Manifest, "it names %s, which is no segment of it", ref.Object)
	}
	data, ok := x.object(ref.Object, x.head.Manifest)
	if !ok {
		return nil, nil
	}
	r, err := segment.Open(segment.InMemory(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	if err := r.Check(func(_ uint32, d *segment.Document) error { return x.visit(ref, d, anchors) }); err != nil {
		return nil, err
	}
	cols, err := r.Columns()
	if err != nil {
		return nil, err
	}
	gone, err := segment.DecodeSet(ref.Deleted, r.Documents())
	if err != nil {
		return nil, fmt.Errorf("deleted documents: %w", err)
	}
	sum := r.Summary()
	x.same(x.head.Manifest, "name, size, documents, deleted ones, slots and tokens of a segment",
		[]any{ref.Object, ref.Bytes, ref.Documents, ref.Gone, ref.First, ref.Last, ref.Lengths},
		[]any{naming.Segment(x.id, p, number, data), len(data), sum.Documents, gone.Len(), sum.First, sum.Last, sum.Lengths})
	for doc := range uint32(r.Documents()) {
		d := document{ID: cols.ID(doc), gen: cols.Generation(doc), unix: uint32(cols.Time(doc))}
		if d.Slot < ref.First || d.Slot > ref.Last || doc > 0 && d.Slot < cols.Slot(doc-1) || int(d.Slot) >= x.pmap.Slots() {
			x.violate(ref.Object, "document %d is of slot %d, in a segment from %d to %d", doc, d.Slot, ref.First, ref.Last)
		}
		if !gone.Has(doc) {
			current = append(current, d)
		}
	}
	return current, nil
}

// visit checks the page of a document, and shows its URL and slot.
func (x *index) visit(ref *blobschema.SegmentRef, d *segment.Document, anchors bool) error {
	f := &located{object: ref.Object, what: "document of", name: d.Host, slot: d.Slot}
	f.key, _ = x.keyOf(d.Host)
	if anchors {
		f.what = "texts of links to"
		x.must(d.URL == "", ref.Object, "a document, of texts of links, is of %s", d.URL)
	} else {
		a := x.address(d.URL)
		x.show(&urls{ref.Object, []address{a}})
		x.must(a.err != nil || a.fp == d.Fingerprint && string(a.url.Host()) == d.Host, ref.Object,
			"%s of host %s has the fingerprint %016x, and should have %016x", d.URL, d.Host, d.Fingerprint, a.fp)
	}
	x.show(f)
	return nil
}
