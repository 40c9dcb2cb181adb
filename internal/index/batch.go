package index

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// Bounds on reading WARC objects: neighbours are read in one call, and several reads fit into memory.
const (
	maxRange   = 8 << 20   // bytes of one read, unless a record is larger
	maxGap     = 256 << 10 // bytes between two records that are read rather than skipped
	rangesAt   = 3         // reads in parallel, before their pages are processed
	piecePages = 64        // most pages of one piece of work
	pieceBytes = 16 << 20  // bytes of memory after which a piece of work ends early
)

// batch collects the changes of some commits until a manifest has them.
type batch struct {
	s        *Step
	seq      uint64 // the last commit that is in the batch as a whole
	part     uint64 // number of page records of the next commit that are in it
	commits  []start
	pages    map[segment.ID]*change
	previous []map[uint32]segment.ID // by segment of the manifest: documents that the batch changes
	moved    map[partition.Slot]bool // slots that the partition took or gave
	totals   blobschema.IndexTotals
}

// start is the position in the batch at which the page records of a commit begin. It is negative if some of them
// are in the index.
type start struct {
	seq uint64
	at  int64
}

// change is the last answer of a URL that counts, and its effect.
type change struct {
	*blobschema.Page
	does   effect
	stored bool  // a segment has the new version
	at     int64 // position in the batch: number of page records before it, without those of robots.txt
}

func (s *Step) newBatch(moved map[partition.Slot]bool) *batch {
	return &batch{s: s, moved: moved, pages: map[segment.ID]*change{}}
}

// read adds the pages of a commit. If a URL was fetched more than once, the last answer that counts stays.
func (b *batch) read(t *actor.Task, name string, seq uint64) error {
	c, err := blobschema.ReadCommit(t.Object, name)
	if err != nil {
		return err
	}
	pages, err := c.Pages()
	if err != nil {
		return fmt.Errorf("pages of %s: %w", name, err)
	}
	skip := uint64(0)
	if seq == b.s.man.Seq+1 {
		skip = b.s.man.Part
	}
	b.seq, b.commits = seq, append(b.commits, start{seq, b.totals.Pages - int64(skip)})
	for i := range pages {
		p := &pages[i]
		u, err := weburl.Parse(p.URL)
		if p.Robots || err != nil {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		id := segment.ID{Slot: b.s.slotOf(string(u.Host())), Fingerprint: b.s.hash.Fingerprint(p.URL)}
		b.take(id, p)
		b.totals.Pages++
	}
	return nil
}

// end leaves the page records from a position on to the next batch. An earlier answer that one of them replaced
// then has no effect, as if the URL had been fetched once less.
func (b *batch) end(at int64) {
	maps.DeleteFunc(b.pages, func(_ segment.ID, c *change) bool { return c.at >= at })
	last := b.commits[0]
	for _, c := range b.commits {
		if c.at <= at {
			last = c
		}
	}
	b.seq, b.part, b.totals.Pages = last.seq-1, uint64(at-last.at), at
}

// hasMoved reports whether the index of another partition may have documents of a slot. If slots depend on
// addresses, any move counts, because the slot of a document is that of its host name.
func (b *batch) hasMoved(slot partition.Slot) bool {
	return b.moved[slot] || len(b.moved) > 0 && b.s.cfg.Crawl.Settings.PartitionBy == blobschema.ByIP
}

// take adds an answer of a URL. Answers come in order of time.
func (b *batch) take(id segment.ID, p *blobschema.Page) {
	was, does := b.pages[id], effectOf(p)
	if was != nil && was.Generation > p.Generation {
		return
	}
	if does == same && (was != nil || b.hasMoved(id.Slot)) {
		if does = written; was != nil && was.does != removed && samePayload(was.Page, p) {
			does = kept
		}
	}
	switch {
	case does != kept:
		b.pages[id] = &change{Page: p, does: does, at: b.totals.Pages}
	case was != nil:
		was.Generation = p.Generation
	}
}

// samePayload reports whether the payloads of two answers are one record.
func samePayload(p, q *blobschema.Page) bool {
	x, y := p.Payload(), q.Payload()
	return x.WARC == y.WARC && x.Offset == y.Offset
}

// effect is the effect of an answer on the document of its URL.
type effect uint8

const (
	kept    effect = iota // the document stays
	same                  // the payload is an earlier one of the URL, not necessarily the previous one
	written               // a new version replaces it
	removed               // it leaves the index
)

func effectOf(p *blobschema.Page) effect {
	switch p.Outcome {
	case blobschema.OutcomeOK:
		switch {
		case p.Requisite:
			return kept // it is no page, and was none before
		case p.NoIndex:
			return removed
		case ofItself(p):
			return same
		}
		return written
	case blobschema.OutcomeRedirect, blobschema.OutcomeClientError, blobschema.OutcomeRobots, blobschema.OutcomeForbidden:
		return removed
	}
	return kept // unchanged, or a failed request
}

// ofItself reports whether an answer's payload was stored for the same URL before.
func ofItself(p *blobschema.Page) bool { return p.Original != nil && p.Original.URL == p.URL }

// findPrevious finds which documents of the batch are in the index. Those whose payload is the one in the index stay as
// they are.
func (b *batch) findPrevious(t *actor.Task, m *blobschema.IndexManifest) error {
	b.previous = make([]map[uint32]segment.ID, len(m.Segments))
	// Only pages that were fetched before can be in the index, and only in segments with their slots.
	wanted := map[partition.Slot]bool{}
	for id, c := range b.pages {
		if c.Generation > 0 {
			wanted[id.Slot] = true
		}
	}
	for i := range m.Segments {
		ref := &m.Segments[i]
		if !between(wanted, ref.First, ref.Last) {
			continue
		}
		// Compare the segment's columns with the batch.
		r, err := reader(t, ref)
		if err != nil {
			return err
		}
		cols, err := r.Columns()
		if err != nil {
			return fmt.Errorf("%s: %w", ref.Object, err)
		}
		set, err := deleted(ref)
		if err != nil {
			return err
		}
		b.previous[i] = map[uint32]segment.ID{}
		for doc := range ref.Documents {
			id := cols.ID(doc)
			if c := b.pages[id]; c == nil || c.Generation == 0 || set.Has(doc) {
				continue
			} else if c.does == same {
				if cols.Time(doc) == c.Original.Time.Unix() {
					delete(b.pages, id)
					continue
				}
				c.does = written
			}
			b.previous[i][doc] = id
		}
	}
	// A payload that is an earlier one of the URL, but not the one in the index, is indexed again.
	for id, c := range b.pages {
		switch {
		case c.does == same && textless(c.MIME):
			delete(b.pages, id)
		case c.does == same:
			c.does = written
		}
	}
	return nil
}

// between reports whether any of some slots is from first to last.
func between(slots map[partition.Slot]bool, first, last partition.Slot) bool {
	for s := range slots {
		if first <= s && s <= last {
			return true
		}
	}
	return false
}

// textless reports whether payloads of a media type have no text, so that they need not be read.
func textless(mime string) bool {
	kind, _, _ := strings.Cut(mime, "/")
	return slices.Contains([]string{"image", "video", "audio", "font"}, kind) || mime == "application/pdf" || mime == "application/zip"
}

// member is a page to read, and the place of its payload.
type member struct {
	id       segment.ID
	page     *blobschema.Page
	at       blobschema.Original
	position int64 // position in the batch
}

// members returns the pages that have new versions, in order of position.
func (b *batch) members() (all []member) {
	for id, c := range b.pages {
		if c.does == written {
			all = append(all, member{id, c.Page, c.Payload(), c.at})
		}
	}
	slices.SortFunc(all, func(x, y member) int { return cmp.Compare(x.position, y.position) })
	return all
}

// span is a range of a WARC object with its members, in order.
type span struct {
	object   string
	from, to int64
	members  []member
}

// spansOf sorts members and returns the ranges to read for them. Their order depends on the members only.
func spansOf(all []member) (out []span) {
	slices.SortFunc(all, func(x, y member) int {
		return cmp.Or(cmp.Compare(x.at.WARC, y.at.WARC), cmp.Compare(x.at.Offset, y.at.Offset), cmp.Compare(x.id.Fingerprint, y.id.Fingerprint))
	})
	for _, m := range all {
		end := m.at.Offset + m.at.Length
		if n := len(out); n > 0 && out[n-1].object == m.at.WARC && m.at.Offset-out[n-1].to <= maxGap && end-out[n-1].from <= maxRange {
			s := &out[n-1]
			s.to, s.members = max(s.to, end), append(s.members, m)
			continue
		}
		out = append(out, span{m.at.WARC, m.at.Offset, end, []member{m}})
	}
	return out
}

// segments stores the segments of a batch, and collects the documents that they replace. If time runs out, it
// ends the batch early.
func (b *batch) segments(t *actor.Task, m *blobschema.IndexManifest) (refs []blobschema.SegmentRef, err error) {
	if err := b.findPrevious(t, m); err != nil {
		return nil, err
	}
	builder, begun := segment.NewBuilder(), t.Now().Mono // begin of the segment
	flush := func() error {
		if builder.Documents() == 0 {
			return nil
		}
		full := builder
		builder = segment.NewBuilder()
		v, err := t.Do(actor.Work{Do: func() (any, error) { return full.Finish(), nil }})
		if err != nil {
			return err
		}
		ref, err := b.s.put(t, m, v.(segment.Output))
		refs, begun = append(refs, ref), t.Now().Mono
		return err
	}
	// Read the pages window by window, and store a segment whenever its memory is used up.
	for all := b.members(); len(all) > 0; {
		n, began := min(b.s.window, len(all)), t.Now().Mono
		for spans := range slices.Chunk(spansOf(all[:n]), rangesAt) {
			if err := b.readSpans(t, spans, func(docs []document) error {
				b.add(builder, docs)
				if builder.Size() < b.s.cfg.Memory {
					return nil
				}
				return flush()
			}); err != nil {
				return nil, err
			}
		}
		all = all[n:]
		// Storing a segment takes at most as long as reading its documents did. The factor allows for a processor
		// that gets slower.
		if next, unstored := b.s.resize(n, t.Now().Mono-began), t.Now().Mono-begun; len(all) > 0 && b.s.left(t) < 2*(next+unstored) {
			b.s.report.Behind = true
			b.end(all[0].position)
			break
		}
	}
	if err := flush(); err != nil {
		return nil, err
	}
	for _, p := range b.pages {
		if p.Outcome == blobschema.OutcomeOK && p.NoIndex {
			b.totals.NoIndex++
		}
	}
	m.Totals.Add(&b.totals)
	return refs, nil
}

// maxWindow bounds a window: larger ones do not save reads.
const maxWindow = 1024

// resize makes the window larger or smaller by the time that the last one of n pages took, and returns the
// expected time of the next. A window takes a small part of the step's time, so that a step on a slow processor
// can still store its work.
func (s *Step) resize(n int, took time.Duration) time.Duration {
	switch {
	case s.cfg.Deadline == 0:
		return 0
	case took < s.cfg.Deadline/64:
		s.window = min(2*s.window, maxWindow)
	case took > s.cfg.Deadline/32:
		s.window = max(s.window/2, 1)
	}
	return took / time.Duration(n) * time.Duration(s.window)
}

// add adds documents to a segment.
func (b *batch) add(builder *segment.Builder, docs []document) {
	for i := range docs {
		if err := builder.Add(docs[i].Document, docs[i].fields); err != nil {
			b.totals.Damaged++ // beyond a bound of documents; package text has the same bounds
			continue
		}
		b.totals.Text += docs[i].text
		b.pages[segment.ID{Slot: docs[i].Slot, Fingerprint: docs[i].Fingerprint}].stored = true
	}
}

// readSpans reads spans and calls add with the documents in them, a part at a time. add may perform effects.
func (b *batch) readSpans(t *actor.Task, spans []span, add func([]document) error) error {
	data := make([][]byte, len(spans))
	reads := make([]actor.Effect, len(spans))
	for i, s := range spans {
		reads[i] = actor.GetObject{Name: s.object, Offset: s.from, Length: s.to - s.from}
	}
	err := t.All(len(reads), reads, func(i int, v any, err error) error {
		if err != nil { // read it again below, with retries
			return nil
		}
		data[i] = v.([]byte)
		return nil
	})
	if err != nil {
		return err
	}
	var todo []piece
	for i, s := range spans {
		if data[i] == nil {
			if data[i], err = t.Object(s.object, s.from, s.to-s.from); errors.Is(err, actor.ErrNotFound) {
				b.totals.Damaged += int64(len(s.members)) // fsck reports them
				continue
			} else if err != nil {
				return err
			}
		}
		for members := range slices.Chunk(s.members, piecePages) {
			todo = append(todo, piece{data[i], s.from, members})
		}
	}
	for len(todo) > 0 {
		if todo, err = b.readPieces(t, todo, add); err != nil {
			return err
		}
	}
	return nil
}

// readPieces processes as many pieces as may run in parallel, and returns the rest.
func (b *batch) readPieces(t *actor.Task, todo []piece, add func([]document) error) (left []piece, err error) {
	now := todo[:min(len(todo), b.s.cfg.Processors)]
	works, results := make([]actor.Effect, len(now)), make([]pages, len(now))
	for i, p := range now {
		works[i] = actor.Work{Do: func() (any, error) { return p.read(), nil }}
	}
	err = t.All(len(works), works, func(i int, v any, err error) error {
		if err == nil {
			results[i] = v.(pages)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range results {
		r := &results[i]
		b.totals.NoText += r.noText
		b.totals.Damaged += r.damaged
		b.s.report.Pages += int64(len(r.docs)) + r.noText
		if err := add(r.docs); err != nil {
			return nil, err
		}
		if r.docs = nil; len(r.rest) > 0 {
			left = append(left, piece{now[i].data, now[i].from, r.rest})
		}
	}
	return append(left, todo[len(now):]...), nil
}

// hide marks previous versions of documents as deleted in the segments of a manifest. A removed document of a slot
// that was moved is listed in the manifest too, because the index of a previous owner of the slot may have it.
func (s *Step) hide(m *blobschema.IndexManifest, b *batch) error {
	// Delete the previous versions in their segments.
	for i, docs := range b.previous {
		if len(docs) == 0 {
			continue
		}
		ref := &m.Segments[i]
		set, err := deleted(ref)
		if err != nil {
			return err
		}
		for doc, id := range docs {
			switch c := b.pages[id]; {
			case c == nil: // the next batch has it
				continue
			case c.stored:
				m.Totals.Replaced++
			default:
				m.Totals.Deleted++
			}
			set.Add(doc)
		}
		ref.Deleted, ref.Gone = set.AppendTo(nil), uint32(set.Len())
	}
	// List the removed documents of moved slots. A page that was never fetched before has no other version anywhere.
	m.Removed = slices.DeleteFunc(slices.Clone(m.Removed), func(d blobschema.RemovedDocument) bool {
		c := b.pages[segment.ID{Slot: d.Slot, Fingerprint: d.Fingerprint}]
		return c != nil && c.Generation > 0
	})
	for _, id := range slices.SortedFunc(maps.Keys(b.pages), segment.ID.Compare) {
		if c := b.pages[id]; c.Generation > 0 && !c.stored && b.hasMoved(id.Slot) && len(m.Removed) < maxRemoved {
			m.Removed = append(m.Removed, blobschema.RemovedDocument{Fingerprint: id.Fingerprint, Slot: id.Slot, Generation: c.Generation})
		}
	}
	slices.SortFunc(m.Removed, blobschema.RemovedDocument.Compare)
	return nil
}

// deleted returns the set of deleted documents of a segment.
func deleted(ref *blobschema.SegmentRef) (*segment.Set, error) {
	set, err := segment.DecodeSet(ref.Deleted, int(ref.Documents))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ref.Object, err)
	}
	return set, nil
}

// maxRemoved bounds the removed documents in a manifest.
const maxRemoved = 1 << 20

// sizeOf returns the class of a segment's size. Each class is eight times as large as the one below.
func sizeOf(bytes int64) (class int) {
	for bytes >= 1<<20 {
		class, bytes = class+1, bytes/8
	}
	return class
}

// due returns the places of segments to merge, in order, or nil if no merge is due. It takes the smallest segments
// of a class, so that large ones do not block them.
func (s *Step) due() []int {
	classes := map[int][]int{}
	for i, r := range s.man.Segments {
		if r.Gone*4 > r.Documents {
			return []int{i}
		}
		c := sizeOf(r.Bytes)
		classes[c] = append(classes[c], i)
	}
	for _, c := range slices.Sorted(maps.Keys(classes)) {
		list, total := classes[c], int64(0)
		slices.SortStableFunc(list, func(i, k int) int { return cmp.Compare(s.man.Segments[i].Bytes, s.man.Segments[k].Bytes) })
		for n, i := range list {
			if total += s.man.Segments[i].Bytes; total > s.cfg.MaxMerged {
				list = list[:n]
				break
			}
		}
		if len(list) >= s.cfg.FanIn {
			list = list[:min(len(list), 4*s.cfg.FanIn)]
			slices.Sort(list)
			return list
		}
	}
	return nil
}

// smallMerge is the number of bytes above which a merge is worth a claim.
const smallMerge = 1 << 20

// merge replaces some segments by one, or by several without a slot in common.
func (s *Step) merge(t *actor.Task, places []int) error {
	bytes := int64(0)
	for _, i := range places {
		bytes += s.man.Segments[i].Bytes
	}
	if bytes > smallMerge {
		if err := s.claim(t); err != nil || s.report.Lost {
			return err
		}
	}
	m := s.next(t)
	var inputs []segment.Input
	for _, i := range places {
		ref := &m.Segments[i]
		data, err := t.Object(ref.Object, 0, -1)
		if err != nil {
			return err
		}
		r, err := segment.Open(segment.InMemory(data), ref.Bytes)
		if err != nil {
			return fmt.Errorf("%s: %w", ref.Object, err)
		}
		set, err := deleted(ref)
		if err != nil {
			return err
		}
		inputs = append(inputs, segment.Input{Reader: r, Deleted: set})
		m.Dropped = append(m.Dropped, blobschema.DroppedSegment{Object: ref.Object, Time: m.Time})
	}
	v, err := t.Do(actor.Work{Do: func() (any, error) { return segment.Merge(inputs, s.cfg.MaxMerged) }})
	if err != nil {
		return fmt.Errorf("merge %s: %w", s.man.Segments[places[0]].Object, err)
	}
	for k := len(places) - 1; k >= 0; k-- {
		m.Segments = slices.Delete(m.Segments, places[k], places[k]+1)
	}
	for _, out := range v.([]segment.Output) {
		ref, err := s.put(t, m, out)
		if err != nil {
			return err
		}
		m.Segments = append(m.Segments, ref)
	}
	m.Totals.Merges++
	return s.commit(t, m)
}
