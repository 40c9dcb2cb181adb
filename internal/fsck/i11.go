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
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// IndexReport is what a check found of a crawl's index.
type IndexReport struct {
	Partitions int   `json:"partitions"` // that have one
	Segments   int   `json:"segments"`   // with those of texts of links
	Read       int   `json:"segments_read"`
	Documents  int64 `json:"documents"` // current ones
	Anchors    int64 `json:"anchors"`   // pages with texts of links
	Bytes      int64 `json:"bytes"`
	Behind     int64 `json:"behind"` // commits that are not in it yet
	// Unindexed are pages of type text/html, of commits that are in it, that may be shown and are not
	// there: without text, or with a robots meta tag, which no page record tells of.
	Unindexed int64 `json:"unindexed"`
	// Hidden are documents that searches leave out because another partition, to which their slots have
	// moved, has found them gone. Stale ones are still found: that is in commits not in its index yet.
	Hidden int64 `json:"hidden"`
	Stale  int64 `json:"stale"`
}

// effect is what an answer does to the document that the index has of its page.
type effect uint8

const (
	leaves  effect = iota // as it is, or as it is not
	writes                // a new version
	removes               // it is gone, or may not be shown
)

// answer is what the index is held against: a page record.
type answer struct {
	fp             uint64
	slot           partition.Slot // of the host, whatever its address
	gen, seq, unix uint32
	does           effect
	again          bool // its payload is one that the page had before, at the time unix
	text           bool // it is a text/html page that may be shown
}

func (a answer) compare(b answer) int {
	return cmp.Or(cmp.Compare(a.fp, b.fp), cmp.Compare(a.slot, b.slot), cmp.Compare(a.gen, b.gen), cmp.Compare(a.seq, b.seq))
}

// answerOf says what a page record means to the index: a page is shown as its last answer
// has it. Redirects and 4xx say that it is gone, robots.txt and the network that it must not be
// shown; what could not be had says nothing.
func (c *checker) answerOf(pg *blobschema.Page, u weburl.URL, fp uint64, seq uint64) answer {
	unit, _ := c.unit(u.Host())
	a := answer{fp: fp, slot: c.hash.Slot(unit), gen: pg.Generation, seq: uint32(seq), unix: unixOf(pg.Time)}
	switch o := pg.Outcome; o {
	case blobschema.OutcomeRedirect, blobschema.OutcomeClientError, blobschema.OutcomeRobots, blobschema.OutcomeForbidden:
		a.does = removes
	case blobschema.OutcomeOK:
		a.does, a.text = writes, pg.MIME == "text/html" && !pg.NoIndex
		if pg.NoIndex {
			a.does = removes
		} else if pg.Original != nil && pg.Original.URL == pg.URL {
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
	fp        uint64
	slot      partition.Slot
	gen, unix uint32
	in        uint32 // segment of the manifest
}

func (d document) compare(e document) int {
	return cmp.Or(cmp.Compare(d.fp, e.fp), cmp.Compare(d.slot, e.slot), cmp.Compare(d.in, e.in))
}

// of compares a document with an answer's page.
func (d document) of(a answer) int {
	return cmp.Or(cmp.Compare(a.fp, d.fp), cmp.Compare(a.slot, d.slot))
}

// checkIndexes checks the indexes of partitions whose commits were all read; broken says that some
// could not be.
func (c *checker) checkIndexes(group []*history, broken bool) error {
	if !c.indexed {
		return nil
	}
	for _, h := range group {
		slices.SortFunc(h.answers, answer.compare)
	}
	all := make([]*indexChecker, len(group))
	for i, h := range group {
		x := &indexChecker{c: c, h: h, broken: broken}
		if err := c.steadily([]string{naming.IndexKey(c.id, h.id)}, x.check); err != nil {
			return err
		}
		if !c.atlas.anyMoved || x.broken {
			x.docs, x.answers = nil, nil
		}
		all[i], h.answers = x, nil
	}
	for _, x := range all {
		for _, d := range x.docs {
			x.checkElsewhere(d, all)
		}
	}
	return nil
}

// indexChecker checks the index of one partition.
type indexChecker struct {
	c      *checker
	h      *history
	broken bool // not all answers are known

	head    blobschema.IndexHead
	man     blobschema.IndexManifest
	docs    []document // sorted
	answers []answer   // sorted
}

func (x *indexChecker) check() error {
	c, key := x.c, naming.IndexKey(x.c.id, x.h.id)
	x.docs, x.answers, x.man = nil, x.h.answers, blobschema.IndexManifest{}
	var found bool
	var err error
	x.head, found, err = record[blobschema.IndexHead](c, key)
	switch {
	case errors.Is(err, errUnusable):
		return nil
	case err != nil:
		return err
	case !found || x.head.Manifest == "": // a step has claimed the partition, and stored nothing yet
		c.index.Behind += int64(x.h.head.Seq)
		return nil
	}
	ok, err := x.readManifest(key)
	if !ok || err != nil {
		return err
	}
	x.h.index = x.man.Number
	c.index.Partitions++
	c.index.Bytes += x.head.Bytes
	c.index.Behind += max(0, int64(x.h.head.Seq)-int64(x.man.Seq))
	if err := x.readSegments(); err != nil {
		return err
	}
	if err := x.checkAnchorJob(); err != nil {
		return err
	}
	if x.last() > x.h.head.Seq { // the crawl went on since its head was read
		later, err := x.readLater(key)
		if err != nil {
			return err
		}
		x.answers = append(slices.Clone(x.answers), later...)
		slices.SortFunc(x.answers, answer.compare)
	}
	if !x.broken { // comparisons would only repeat it
		x.compare(x.answers)
		x.checkRemoved()
	}
	return nil
}

// readManifest reads the manifest that the head names, and compares the two; not ok if there is none to
// go on with.
func (x *indexChecker) readManifest(key string) (ok bool, err error) {
	c, h := x.c, &x.head
	data, err := c.object(h.Manifest, key)
	if data == nil {
		return false, err
	}
	if x.man, err = blobschema.DecodeIndexManifest(data); err != nil {
		c.violate("I6", h.Manifest, "%v", err)
		return false, nil
	}
	m := &x.man
	c.name(h.Manifest, key)
	if name := naming.IndexManifest(c.id, x.h.id, m.Number, data); name != h.Manifest {
		c.violate("I6", h.Manifest, "its name should be %s", name)
	}
	if h.Partition != x.h.id || m.Partition != x.h.id || m.Crawl != c.id {
		c.violate("I11", key, "it is the index of partition %d, and its manifest that of crawl %s, partition %d", h.Partition, m.Crawl, m.Partition)
	}
	if h.Number != m.Number || h.Seq != m.Seq || h.Anchors != m.AnchorJob || h.Documents != m.Totals.Documents || h.Totals != m.Totals {
		c.violate("I11", key, "number %d, commits up to %d, anchors of job %d and totals %+v are not the manifest's %d, %d, %d and %+v",
			h.Number, h.Seq, h.Anchors, h.Totals, m.Number, m.Seq, m.AnchorJob, m.Totals)
	}
	bytes, documents := int64(0), int64(0)
	named := map[string]bool{}
	for _, list := range [][]blobschema.SegmentRef{m.Segments, m.Anchors} {
		for _, r := range list {
			bytes += r.Bytes
			if named[r.Object] {
				c.violate("I11", h.Manifest, "it names %s twice", r.Object)
			}
			named[r.Object] = true
		}
	}
	for _, r := range m.Segments {
		documents += int64(r.Documents) - int64(r.Gone)
	}
	if bytes != h.Bytes || documents != m.Totals.Documents {
		c.violate("I11", key, "its segments have %d bytes and %d documents, and it says %d and %d", bytes, documents, h.Bytes, m.Totals.Documents)
	}
	for _, d := range m.Dropped { // they may be there, or not
		c.name(d.Object, h.Manifest)
		if named[d.Object] || d.Object == h.Manifest {
			c.violate("I11", h.Manifest, "%s is to be deleted, and is named", d.Object)
		}
	}
	return true, nil
}

// readSegments reads all segments, and gathers the current documents.
func (x *indexChecker) readSegments() error {
	for i := range x.man.Segments {
		s := segmentChecker{indexChecker: x, ref: &x.man.Segments[i]}
		if err := s.check(func(d document) {
			d.in = uint32(i)
			x.docs = append(x.docs, d)
		}); err != nil {
			return err
		}
	}
	slices.SortFunc(x.docs, document.compare)
	x.c.index.Documents += int64(len(x.docs))
	x.c.checked["I11"] += int64(len(x.docs))
	for i := 1; i < len(x.docs); i++ {
		if d, e := x.docs[i-1], x.docs[i]; d.fp == e.fp && d.slot == e.slot {
			x.c.violate("I11", x.object(e), "the document %016x of slot %d is current in %s too", e.fp, e.slot, x.object(d))
		}
	}
	var anchors []document
	for i := range x.man.Anchors {
		s := segmentChecker{indexChecker: x, ref: &x.man.Anchors[i], anchors: true}
		if err := s.check(func(d document) { anchors = append(anchors, d) }); err != nil {
			return err
		}
	}
	slices.SortFunc(anchors, document.compare)
	for i := 1; i < len(anchors); i++ {
		if d, e := anchors[i-1], anchors[i]; d.fp == e.fp && d.slot == e.slot {
			x.c.violate("I11", x.head.Manifest, "the texts of links to %016x of slot %d are there twice", e.fp, e.slot)
		}
	}
	x.c.index.Anchors += int64(len(anchors))
	return nil
}

func (x *indexChecker) object(d document) string { return x.man.Segments[d.in].Object }

// checkAnchorJob checks that the texts of links are of a job that there was.
func (x *indexChecker) checkAnchorJob() error {
	if x.man.AnchorJob <= x.c.lastJob {
		return nil
	}
	key := naming.RankKey(x.c.id)
	job, _, err := record[ranks.Job](x.c, key)
	if errors.Is(err, errUnusable) {
		return nil
	}
	if x.c.lastJob = job.Number; err == nil && x.man.AnchorJob > job.Number {
		x.c.violate("I11", x.head.Manifest, "its texts of links are of rank job %d, and the last one is %d", x.man.AnchorJob, job.Number)
	}
	return err
}

// readLater reads the answers of commits that are in the index, and were made after the head
// was read that the check is about.
func (x *indexChecker) readLater(key string) (later []answer, err error) {
	c := x.c
	now, _, err := record[blobschema.Head](c, naming.HeadKey(c.id, x.h.id))
	if errors.Is(err, errUnusable) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if now.Seq < x.last() {
		c.violate("I11", key, "the commits up to %d are in it, and the last one is %d", x.last(), now.Seq)
		return nil, nil
	}
	o, err := c.manifest(now.Commit)
	if err != nil || o.man == nil {
		x.broken = true
		return nil, err
	}
	for seq, name := range blobschema.CommitsAfter(o.man, x.h.head.Seq) {
		if seq > x.last() {
			break
		}
		r, err := c.commit(name, now.Commit)
		if err != nil {
			return nil, err
		}
		var pages []blobschema.Page
		if r != nil {
			pages, err = r.Pages()
		}
		if r == nil || err != nil {
			x.broken = true // the next check says why
			continue
		}
		for i := range pages {
			if u, err := weburl.Parse(pages[i].URL); err == nil && !pages[i].Robots {
				later = append(later, c.answerOf(&pages[i], u, c.hash.Fingerprint(pages[i].URL), seq))
			}
		}
	}
	return later, nil
}

// last is the last commit of which the index has any page.
func (x *indexChecker) last() uint64 {
	if x.man.Part > 0 {
		return x.man.Seq + 1
	}
	return x.man.Seq
}

// partly reports whether an answer is of a commit that the index has in part: nobody knows whether it has the answer.
func (x *indexChecker) partly(a answer) bool { return uint64(a.seq) == x.man.Seq+1 && x.man.Part > 0 }

// compare holds the documents against the answers, both sorted by page.
func (x *indexChecker) compare(answers []answer) {
	docs := x.docs
	for len(answers) > 0 {
		n := 1
		for n < len(answers) && answers[n].fp == answers[0].fp && answers[n].slot == answers[0].slot {
			n++
		}
		for len(docs) > 0 && docs[0].of(answers[0]) > 0 {
			x.unknown(docs[0])
			docs = docs[1:]
		}
		m := 0
		for m < len(docs) && docs[m].of(answers[0]) == 0 {
			m++
		}
		x.comparePage(docs[:m], answers[:n])
		docs, answers = docs[m:], answers[n:]
	}
	for _, d := range docs {
		x.unknown(d)
	}
}

func (x *indexChecker) unknown(d document) {
	x.c.violate("I11", x.object(d), "the document %016x of slot %d, generation %d, is of no page that was asked for", d.fp, d.slot, d.gen)
}

// comparePage compares what the index shows of a page, once if all is well, with the answers it had.
func (x *indexChecker) comparePage(docs []document, answers []answer) {
	if slices.ContainsFunc(answers, x.partly) {
		return
	}
	var last *answer // that says anything
	shown := false
	known := answers[:0:0]
	for i := range answers {
		a := &answers[i]
		if uint64(a.seq) > x.man.Seq {
			continue
		}
		known = append(known, *a)
		if a.does == leaves {
			continue
		}
		if !a.again || last == nil || last.does != writes || last.unix != a.unix { // else it is as it was
			last = a
		}
		shown = a.text
	}
	if shown && len(docs) == 0 {
		x.c.index.Unindexed++
	}
	for _, d := range docs {
		of := func(a answer) bool { return a.gen == d.gen && a.gen >= last.gen && a.does != removes }
		wrong := func(a answer, format string, args ...any) {
			x.c.violate("I11", x.object(d), "%s: %s", x.url(a), fmt.Sprintf(format, args...))
		}
		switch {
		case len(known) == 0:
			wrong(answers[0], "it is shown, and was first asked for in commit %d; those up to %d are in the index", answers[0].seq, x.man.Seq)
		case last == nil:
			wrong(known[0], "it is shown, and no answer brought a page")
		case last.does == removes:
			wrong(*last, "it is shown as of generation %d, and by its answer of generation %d it is gone, or must not be shown", d.gen, last.gen)
		case d.gen < last.gen:
			wrong(*last, "it is shown as of generation %d, and there is an answer of generation %d", d.gen, last.gen)
		case !slices.ContainsFunc(known, of):
			wrong(*last, "it is shown as of generation %d, of which there is no answer", d.gen)
		case d.unix != last.unix:
			wrong(*last, "it is shown as of %s, and was fetched at %s", time.Unix(int64(d.unix), 0).UTC(), time.Unix(int64(last.unix), 0).UTC())
		}
	}
}

// url finds the URL of an answer again, for a message.
func (x *indexChecker) url(a answer) string {
	url := fmt.Sprintf("%016x", a.fp)
	if x.c.kept["I11"] > x.c.opt.MaxViolations || x.h.man == nil {
		return url // it would not be kept
	}
	x.c.findPage(x.h.part, uint64(a.seq), func(pg *blobschema.Page) bool {
		if x.c.hash.Fingerprint(pg.URL) != a.fp {
			return false
		}
		url = pg.URL
		return true
	})
	return url
}

// of yields the answers that a page had here.
func (x *indexChecker) of(fp uint64, slot partition.Slot) []answer {
	page := document{fp: fp, slot: slot}
	first, _ := slices.BinarySearchFunc(x.answers, page, func(a answer, d document) int { return d.of(a) })
	end := first
	for end < len(x.answers) && page.of(x.answers[end]) == 0 {
		end++
	}
	return x.answers[first:end]
}

// maxRemoved is how many removed documents a manifest notes.
const maxRemoved = 1 << 20

// checkRemoved checks what the manifest says is gone, of slots that have moved.
func (x *indexChecker) checkRemoved() {
	list := x.man.Removed
	if !slices.IsSortedFunc(list, blobschema.RemovedDocument.Compare) || len(list) > maxRemoved {
		x.c.violate("I11", x.head.Manifest, "the %d documents that it says are gone are out of order, or too many", len(list))
		return
	}
	for i, d := range list {
		x.c.checked["I11"]++
		page := document{fp: d.Fingerprint, slot: d.Slot}
		if _, shown := slices.BinarySearchFunc(x.docs, page, func(e, d document) int { return cmp.Or(cmp.Compare(e.fp, d.fp), cmp.Compare(e.slot, d.slot)) }); shown {
			x.c.violate("I11", x.head.Manifest, "it says that the document %016x of slot %d is gone, and shows it", d.Fingerprint, d.Slot)
		}
		if i > 0 && d.Compare(list[i-1]) == 0 {
			x.c.violate("I11", x.head.Manifest, "it says twice that the document %016x of slot %d is gone", d.Fingerprint, d.Slot)
		}
		known, later := false, false
		for _, a := range x.of(d.Fingerprint, d.Slot) {
			known = known || x.partly(a)
			if uint64(a.seq) <= x.man.Seq {
				known = known || a.gen == d.Generation
				later = later || a.gen > d.Generation && a.does != leaves
			}
		}
		if !known || later {
			x.c.violate("I11", x.head.Manifest, "it says that the document %016x of slot %d is gone as of generation %d, which is not that of its last answer", d.Fingerprint, d.Slot, d.Generation)
		}
	}
}

// checkElsewhere checks that a document that another partition has found gone, since it has its slot,
// is noted there to be left out.
func (x *indexChecker) checkElsewhere(d document, all []*indexChecker) {
	var by *indexChecker
	last := answer{gen: d.gen}
	for _, q := range all {
		if q == x {
			continue
		}
		for _, a := range q.of(d.fp, d.slot) {
			if a.does != leaves && a.gen > last.gen {
				by, last = q, a
			}
		}
	}
	switch {
	case last.does != removes:
	case uint64(last.seq) > by.man.Seq:
		x.c.index.Stale++
	case slices.ContainsFunc(all, func(q *indexChecker) bool { return q != x && q.hides(d) }):
		x.c.index.Hidden++
	case len(by.man.Removed) < maxRemoved:
		x.c.violate("I11", x.object(d), "%s: it is shown as of generation %d, and partition %d, which found it gone in generation %d, does not say so", by.url(last), d.gen, by.h.id, last.gen)
	}
}

// hides reports whether the manifest says that another's document is gone.
func (x *indexChecker) hides(d document) bool {
	of := blobschema.RemovedDocument{Fingerprint: d.fp, Slot: d.slot}
	i, ok := slices.BinarySearchFunc(x.man.Removed, of, blobschema.RemovedDocument.Compare)
	return ok && x.man.Removed[i].Generation >= d.gen
}
