package fsck_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/fsck"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

func TestCleanIndex(t *testing.T) {
	m := mustCrawl(t, searchable)
	rep := check(t, m, fsck.Options{})
	for _, v := range rep.Violations {
		t.Error(v)
	}
	x := rep.Index
	if x == nil || x.Partitions != partitions || x.Documents < 40 || x.Segments < partitions || x.Bytes == 0 || x.Behind != 0 || x.Unindexed != 0 {
		t.Errorf("index: %+v", x)
	}
	if r := rep.Ranks; r == nil || r.Job == 0 || r.Partitions != partitions || r.Pages < 80 || r.Hosts < 8 || r.Anchors == 0 || r.Anchors != x.Anchors {
		t.Errorf("ranks: %+v, index: %+v", r, x)
	}
	few := check(t, m, fsck.Options{Quick: true})
	if !few.Clean() || few.Index.Documents != x.Documents {
		t.Errorf("with few WARC objects: %+v, %v", few.Index, few.Violations)
	}
}

// index returns the head and the manifest of a partition's index.
func (m *maker) index(p partition.ID) (head blobschema.IndexHead, man blobschema.IndexManifest) {
	m.Helper()
	edit(m.hand, naming.IndexKey(crawlID, p), func(h *blobschema.IndexHead) { head = *h })
	man, err := blobschema.DecodeIndexManifest(m.objects[head.Manifest])
	if err != nil {
		m.Fatal(err)
	}
	return head, man
}

// reindex stores the next manifest of a partition's index, and a head that agrees with it.
func (m *maker) reindex(p partition.ID, change func(*blobschema.IndexManifest)) {
	m.Helper()
	man := blobschema.IndexManifest{Crawl: crawlID, Partition: p}
	if m.records[naming.IndexKey(crawlID, p)] != "" {
		_, man = m.index(p)
	}
	man.Number++
	man.Time = m.now
	change(&man)
	m.putIndex(p, &man)
}

func (m *maker) putIndex(p partition.ID, man *blobschema.IndexManifest) {
	man.Totals.Documents = 0
	h := blobschema.IndexHead{Partition: p, Number: man.Number, Seq: man.Seq, Anchors: man.AnchorJob}
	for _, r := range man.Segments {
		man.Totals.Documents += int64(r.Documents) - int64(r.Gone)
		h.Bytes += r.Bytes
	}
	for _, r := range man.Anchors {
		h.Bytes += r.Bytes
	}
	h.Documents, h.Totals = man.Totals.Documents, man.Totals
	data, err := blobschema.EncodeIndexManifest(man)
	if err != nil {
		m.Fatal(err)
	}
	h.Manifest = naming.IndexManifest(crawlID, p, man.Number, data)
	m.objects[h.Manifest] = data
	m.put(naming.IndexKey(crawlID, p), h)
}

// doc returns the document of a page.
func (m *maker) doc(pg blobschema.Page) segment.Document {
	u, err := weburl.Parse(pg.URL)
	if err != nil {
		m.Fatal(err)
	}
	slot := m.hash.Slot(string(u.Host()))
	return segment.Document{URL: pg.URL, Host: string(u.Host()), Fingerprint: m.hash.Fingerprint(pg.URL), Slot: slot, Generation: pg.Generation, Time: pg.Time, Text: body}
}

// segment stores a segment and marks the documents at some places deleted. Documents of one
// host are in order of their URLs.
func (m *maker) segment(p partition.ID, number uint64, docs []segment.Document, deleted ...uint32) blobschema.SegmentRef {
	b := segment.NewBuilder()
	var fields [segment.NumFields][]segment.TermPosition
	fields[segment.Body] = []segment.TermPosition{{Term: "same"}, {Term: "text", Position: 1}}
	for _, d := range docs {
		if err := b.Add(d, fields); err != nil {
			m.Fatal(err)
		}
	}
	out := b.Finish()
	data, sum := out.Data, out.Summary
	ref := blobschema.SegmentRef{
		Object: naming.Segment(crawlID, p, number, data), Bytes: int64(len(data)), Documents: uint32(sum.Documents), First: sum.First, Last: sum.Last,
	}
	for _, n := range sum.Lengths {
		ref.Lengths = append(ref.Lengths, uint64(n))
	}
	m.objects[ref.Object] = data
	return m.delete(ref, deleted...)
}

func (m *maker) delete(ref blobschema.SegmentRef, deleted ...uint32) blobschema.SegmentRef {
	var set segment.Set
	for _, d := range deleted {
		set.Add(d)
	}
	if ref.Deleted, ref.Gone = nil, uint32(set.Len()); ref.Gone > 0 {
		ref.Deleted = set.AppendTo(nil)
	}
	return ref
}

// indexed is a crawl with an index of all commits except the last. Page "new" has two versions; "gone" was
// deleted and "hidden" asks not to be indexed, so neither is shown.
func indexed(t testing.TB) *maker {
	m := newMaker(t, blobschema.Settings{})
	a := "http://" + m.host(0, 0) + "/"
	m.seeds(a)
	html := func(url string, gen uint32, body string, of *blobschema.Page) blobschema.Page {
		m.answer(0, url, gen, body, of)
		pg := &m.parts[0].pages[len(m.parts[0].pages)-1]
		pg.MIME = "text/html"
		return *pg
	}
	first := html(a, 0, body, nil)
	pages := []blobschema.Page{first, html(a+"copy", 0, body, &first), html(a+"gone", 0, "x", nil), html(a+"hidden", 0, "y", nil), html(a+"new", 0, "z", nil)}
	html(a+"notext", 0, " ", nil)
	m.apply(0, partition.Intake, 1)
	m.commit(0, blobschema.Commit{})

	html(a, 1, body, &first)
	html(a+"gone", 1, "x", nil)
	m.parts[0].pages[1].Outcome = blobschema.OutcomeClientError
	html(a+"hidden", 1, "y", nil)
	m.parts[0].pages[2].NoIndex = true
	again := html(a+"new", 1, "new", nil)
	m.refuse(0, a+"down", blobschema.OutcomeConnect)
	m.commit(0, blobschema.Commit{})
	html(a+"late", 0, "late", nil)
	m.commit(0, blobschema.Commit{})

	var docs []segment.Document
	for _, pg := range pages {
		docs = append(docs, m.doc(pg))
	}
	docs[0].Generation = 1 // the revisit in the same batch found it unchanged
	m.reindex(0, func(man *blobschema.IndexManifest) {
		man.Seq = 2
		man.Segments = []blobschema.SegmentRef{m.segment(0, 1, docs, 2, 3, 4), m.segment(0, 1, []segment.Document{m.doc(again)})}
		texts := docs[:2]
		for i := range texts {
			texts[i].URL, texts[i].Text, texts[i].Time, texts[i].Generation = "", "", time.Time{}, 0
		}
		man.Anchors, man.AnchorJob = []blobschema.SegmentRef{m.segment(0, 1, texts)}, 2
		man.Dropped = []blobschema.DroppedSegment{{Object: m.segment(0, 1, docs[3:4]).Object, Time: m.now}, {Object: naming.Segment(crawlID, 0, 1, []byte("gone")), Time: m.now}}
		man.Totals.Merges = 7
	})
	m.put(naming.RankKey(crawlID), ranks.Job{Version: wire.Version, Number: 2, Failed: "not this time", Done: m.now, Params: ranks.DefaultParams()})
	return m
}

func TestCleanIndexByHand(t *testing.T) {
	m := indexed(t)
	rep := check(t, m.memory, fsck.Options{})
	for _, v := range rep.Violations {
		t.Error(v)
	}
	want := &fsck.IndexReport{Partitions: 1, Segments: 3, Documents: 3, Anchors: 2, Behind: 1, Unindexed: 1, Bytes: rep.Index.Bytes}
	if d := cmp.Diff(want, rep.Index); d != "" || rep.Orphans != 0 {
		t.Errorf("%d orphans; index (-want +got):\n%s", rep.Orphans, d)
	}
	if d := cmp.Diff(&fsck.RanksReport{Abandoned: 2}, rep.Ranks); d != "" {
		t.Errorf("ranks (-want +got):\n%s", d)
	}
	none := recrawled(t)
	if rep := check(t, none.memory, fsck.Options{}); rep.Index != nil || rep.Ranks != nil || len(rep.Invariants) != 10 {
		t.Errorf("crawl without index and ranks: %+v, %+v", rep.Index, rep.Ranks)
	}
}

// TestPayloadComesBack checks that a page that was gone may be shown again with its previous payload.
func TestPayloadComesBack(t *testing.T) {
	m := newMaker(t, blobschema.Settings{})
	a := "http://" + m.host(0, 0) + "/"
	m.seeds(a)
	var first blobschema.Page
	for gen := range uint32(4) {
		of := &first
		if gen == 0 {
			of = nil
		}
		m.answer(0, a, gen, body, of)
		pg := &m.parts[0].pages[len(m.parts[0].pages)-1]
		switch pg.MIME = "text/html"; gen {
		case 0:
			first = *pg
			m.apply(0, partition.Intake, 1)
		case 1:
			pg.Outcome = blobschema.OutcomeClientError
		}
		m.commit(0, blobschema.Commit{})
	}
	show := func(generations ...uint32) {
		m.reindex(0, func(man *blobschema.IndexManifest) {
			man.Seq, man.Segments = 4, nil
			for _, g := range generations {
				d := m.doc(first)
				d.Generation = g
				man.Segments = append(man.Segments, m.segment(0, man.Number, []segment.Document{d}))
			}
		})
	}
	for gen := uint32(2); gen <= 3; gen++ { // the last answer may have been in the same batch
		show(gen)
		if rep := check(t, m.memory, fsck.Options{}); !rep.Clean() || rep.Index.Documents != 1 || rep.Index.Unindexed != 0 {
			t.Errorf("shown as of generation %d: %+v, %v", gen, rep.Index, rep.Violations)
		}
	}
	show(0)
	if rep := check(t, m.memory, fsck.Options{}); rep.Clean() {
		t.Error("a generation before the page was gone is shown, and no violation found")
	}
	show()
	if rep := check(t, m.memory, fsck.Options{}); rep.Index.Unindexed != 1 {
		t.Errorf("not shown: %+v, %v", rep.Index, rep.Violations)
	}
}

// pageOf returns the page record of a URL in a commit of partition 0.
func (m *maker) pageOf(seq uint64, suffix string) blobschema.Page {
	for _, pg := range m.own(seq).Pages {
		if strings.HasSuffix(pg.URL, "/"+suffix) {
			return pg
		}
	}
	m.Fatalf("commit %d has no page %q", seq, suffix)
	return blobschema.Page{}
}

// add adds a segment to the index of partition 0.
func (m *maker) add(change func(*segment.Document), pg blobschema.Page) {
	d := m.doc(pg)
	if change != nil {
		change(&d)
	}
	m.reindex(0, func(man *blobschema.IndexManifest) {
		man.Segments = append(man.Segments, m.segment(0, man.Number, []segment.Document{d}))
	})
}

// show replaces the set of deleted documents of the first segment.
func (m *maker) show(deleted ...uint32) {
	m.reindex(0, func(man *blobschema.IndexManifest) { man.Segments[0] = m.delete(man.Segments[0], deleted...) })
}

func (m *maker) indexHead(change func(*blobschema.IndexHead)) {
	edit(m.hand, naming.IndexKey(crawlID, 0), change)
}

func (m *maker) firstSegment(change func(*blobschema.SegmentRef)) {
	m.reindex(0, func(man *blobschema.IndexManifest) { change(&man.Segments[0]) })
}

var indexCorruptions = []corruption{
	{"deleted page shown", indexed, "I11", "by its answer of generation 1 it is gone", func(m *maker) { m.show(3, 4) }},
	{"noindex page shown", indexed, "I11", "by its answer of generation 1 it is gone, or must not be shown", func(m *maker) { m.show(2, 4) }},
	{"two versions shown", indexed, "I11", "is current in", func(m *maker) { m.show(2, 3) }},
	{"previous version shown", indexed, "I11", "there is an answer of generation 1", func(m *maker) {
		m.reindex(0, func(man *blobschema.IndexManifest) {
			man.Segments[0] = m.delete(man.Segments[0], 2, 3)
			man.Segments = man.Segments[:1]
		})
	}},
	{"refused page shown", indexed, "I11", "no answer brought a page", func(m *maker) { m.add(nil, m.pageOf(2, "down")) }},
	{"unrequested page shown", indexed, "I11", "is of no page that was requested", func(m *maker) {
		m.add(func(d *segment.Document) { d.URL += "?"; d.Fingerprint = m.hash.Fingerprint(d.URL) }, m.pageOf(1, "copy"))
	}},
	{"page of a later commit shown", indexed, "I11", "was first requested in commit 3", func(m *maker) { m.add(nil, m.pageOf(3, "late")) }},
	{"unknown generation", indexed, "I11", "which has no answer", func(m *maker) {
		m.add(func(d *segment.Document) { d.Generation = 1 }, m.pageOf(1, "notext"))
	}},
	{"time of another answer", indexed, "I11", "and was fetched at", func(m *maker) {
		m.add(func(d *segment.Document) { d.Time = d.Time.Add(time.Second) }, m.pageOf(1, "notext"))
	}},
	{"fingerprint of another page", indexed, "I11", "has the fingerprint", func(m *maker) {
		m.add(func(d *segment.Document) { d.Fingerprint++ }, m.pageOf(1, "notext"))
	}},
	{"slot of another host", indexed, "I2", "and belongs to", func(m *maker) {
		m.add(func(d *segment.Document) { d.Slot = m.wrong(0, d.Host) }, m.pageOf(1, "notext"))
	}},
	{"unknown slot", indexed, "I11", "is of slot", func(m *maker) {
		m.add(func(d *segment.Document) { d.Slot = slots }, m.pageOf(1, "notext"))
	}},
	{"document of another host", indexed, "I11", "of host", func(m *maker) {
		m.add(func(d *segment.Document) { d.Host = "x.example" }, m.pageOf(1, "notext"))
	}},
	{"document with a URL that is not canonical", indexed, "I1", "not canonical", func(m *maker) {
		m.add(func(d *segment.Document) { d.URL = strings.Replace(d.URL, "http", "HTTP", 1) }, m.pageOf(1, "notext"))
	}},
	{"texts of links with a URL", indexed, "I11", "of texts of links, is of", func(m *maker) {
		d := m.doc(m.pageOf(1, "notext"))
		m.reindex(0, func(man *blobschema.IndexManifest) {
			man.Anchors = append(man.Anchors, m.segment(0, man.Number, []segment.Document{d}))
		})
	}},
	{"texts of links twice", indexed, "I11", "is current in", func(m *maker) {
		m.reindex(0, func(man *blobschema.IndexManifest) {
			d := segment.Document{Fingerprint: m.hash.Fingerprint(m.pageOf(1, "copy").URL), Host: m.host(0, 0), Slot: m.hash.Slot(m.host(0, 0))}
			man.Anchors = append(man.Anchors, m.segment(0, man.Number, []segment.Document{d}))
		})
	}},
	{"texts of links of an unknown job", indexed, "I11", "are of rank job 3", func(m *maker) {
		m.reindex(0, func(man *blobschema.IndexManifest) { man.AnchorJob = 3 })
	}},
	{"unknown commits", indexed, "I11", "the last one is 3", func(m *maker) {
		m.reindex(0, func(man *blobschema.IndexManifest) { man.Seq = 4 })
	}},
	{"manifest of another partition", indexed, "I11", "partition of its manifest", func(m *maker) {
		m.reindex(0, func(man *blobschema.IndexManifest) { man.Partition = 1 })
	}},
	{"segment named twice", indexed, "I11", "twice", func(m *maker) {
		m.reindex(0, func(man *blobschema.IndexManifest) { man.Segments = append(man.Segments, man.Segments[1]) })
	}},
	{"segment named and dropped", indexed, "I11", "is to be deleted, and is named", func(m *maker) {
		m.reindex(0, func(man *blobschema.IndexManifest) {
			man.Dropped = append(man.Dropped, blobschema.DroppedSegment{Object: man.Segments[1].Object})
		})
	}},
	{"segment of another partition", indexed, "I6", "is no segment of it", func(m *maker) {
		m.reindex(0, func(man *blobschema.IndexManifest) {
			man.Segments[1] = m.segment(1, 1, []segment.Document{m.doc(m.pageOf(2, "new"))})
		})
	}},
	{"segment of a later manifest", indexed, "I6", "is no segment of it", func(m *maker) {
		m.reindex(0, func(man *blobschema.IndexManifest) {
			man.Segments[1] = m.segment(0, 9, []segment.Document{m.doc(m.pageOf(2, "new"))})
		})
	}},
	{"head of another partition", indexed, "I11", "its partition", func(m *maker) {
		m.indexHead(func(h *blobschema.IndexHead) { h.Partition = 1 })
	}},
	{"head of another number", indexed, "I11", "its number, commits", func(m *maker) {
		m.indexHead(func(h *blobschema.IndexHead) { h.Number++ })
	}},
	{"head of other commits", indexed, "I11", "its number, commits", func(m *maker) {
		m.indexHead(func(h *blobschema.IndexHead) { h.Seq-- })
	}},
	{"head's totals", indexed, "I11", "its number, commits", func(m *maker) {
		m.indexHead(func(h *blobschema.IndexHead) { h.Totals.Replaced++ })
	}},
	{"head's documents", indexed, "I11", "its number, commits", func(m *maker) {
		m.indexHead(func(h *blobschema.IndexHead) { h.Documents++ })
	}},
	{"head's bytes", indexed, "I11", "bytes and totals", func(m *maker) {
		m.indexHead(func(h *blobschema.IndexHead) { h.Bytes++ })
	}},
	{"total of documents", indexed, "I11", "its total of documents", func(m *maker) {
		_, man := m.index(0)
		man.Totals.Documents++
		data, err := blobschema.EncodeIndexManifest(&man)
		if err != nil {
			m.Fatal(err)
		}
		name := naming.IndexManifest(crawlID, 0, man.Number, data)
		m.objects[name] = data
		m.indexHead(func(h *blobschema.IndexHead) {
			h.Manifest, h.Documents, h.Totals = name, man.Totals.Documents, man.Totals
		})
	}},
	{"number of deleted documents", indexed, "I11", "deleted ones", func(m *maker) {
		m.firstSegment(func(r *blobschema.SegmentRef) { r.Gone-- })
	}},
	{"unknown deleted documents", indexed, "I6", "deleted documents", func(m *maker) {
		m.firstSegment(func(r *blobschema.SegmentRef) { *r = m.delete(*r, 2, 3, 99) })
	}},
	{"documents of a segment", indexed, "I11", "documents, deleted ones", func(m *maker) {
		m.firstSegment(func(r *blobschema.SegmentRef) { r.Documents++ })
	}},
	{"slots of a segment", indexed, "I11", "in a segment from", func(m *maker) {
		m.firstSegment(func(r *blobschema.SegmentRef) { r.First, r.Last = r.First+1, r.Last+1 })
	}},
	{"tokens of a segment", indexed, "I11", "tokens", func(m *maker) {
		m.firstSegment(func(r *blobschema.SegmentRef) { r.Lengths[segment.Body]++ })
	}},
	{"bytes of a segment", indexed, "I11", "its name, size", func(m *maker) {
		m.firstSegment(func(r *blobschema.SegmentRef) { r.Bytes++ })
	}},
	{"segment missing", indexed, "I6", "does not exist", func(m *maker) {
		_, man := m.index(0)
		delete(m.objects, man.Segments[1].Object)
	}},
	{"texts of links missing", indexed, "I6", "does not exist", func(m *maker) {
		_, man := m.index(0)
		delete(m.objects, man.Anchors[0].Object)
	}},
	{"segment damaged", indexed, "I6", "checksum", func(m *maker) {
		_, man := m.index(0)
		m.flip(man.Segments[0].Object, 40)
	}},
	{"segment with other content", indexed, "I11", "its name, size", func(m *maker) {
		_, man := m.index(0)
		d := m.doc(m.pageOf(2, "new"))
		d.Text = strings.ToUpper(d.Text)
		m.objects[man.Segments[1].Object] = m.objects[m.segment(0, 1, []segment.Document{d}).Object]
	}},
	{"manifest missing", indexed, "I6", "does not exist", func(m *maker) {
		h, _ := m.index(0)
		delete(m.objects, h.Manifest)
	}},
	{"manifest damaged", indexed, "I6", "", func(m *maker) {
		h, _ := m.index(0)
		m.flip(h.Manifest, 30)
	}},
	{"manifest with other content", indexed, "I6", "its name should be", func(m *maker) {
		h, man := m.index(0)
		man.Time = man.Time.Add(time.Second)
		m.putIndex(0, &man)
		now, _ := m.index(0)
		m.objects[h.Manifest] = m.objects[now.Manifest]
		m.indexHead(func(i *blobschema.IndexHead) { i.Manifest = h.Manifest })
	}},
	{"index head garbage", indexed, "I6", "cannot be decoded", func(m *maker) { m.records[naming.IndexKey(crawlID, 0)] = "{" }},
}

// TestFindsIndexRot checks that flipped bits in objects of an index are found.
func TestFindsIndexRot(t *testing.T) {
	h := newHand(t, mustCrawl(t, searchable))
	rng := rand.New(rand.NewPCG(1, 2))
	named := map[string]bool{}
	for p := range partition.ID(partitions) {
		m := &maker{hand: h}
		head, man := m.index(p)
		named[head.Manifest] = true
		for _, r := range man.Segments {
			named[r.Object] = true
		}
	}
	names := slices.Sorted(maps.Keys(named))
	for range 60 {
		name := names[rng.IntN(len(names))]
		at := rng.IntN(len(h.objects[name]))
		h.flip(name, at)
		if rep := check(t, h.memory, fsck.Options{}); rep.Clean() {
			t.Errorf("a flipped bit at %d of %s is not found", at, name)
		}
		h.flip(name, at)
	}
}

// TestIndexMoves checks an index that changes while it is read: a segment that the old manifest
// names is deleted.
func TestIndexMoves(t *testing.T) {
	m := indexed(t)
	key := naming.IndexKey(crawlID, 0)
	old := m.records[key]
	_, man := m.index(0)
	m.reindex(0, func(man *blobschema.IndexManifest) {
		man.Segments[0] = m.segment(0, man.Number, []segment.Document{m.doc(m.pageOf(1, "")), m.doc(m.pageOf(1, "copy"))})
		man.Seq = 3
		man.Segments = append(man.Segments, m.segment(0, man.Number, []segment.Document{m.doc(m.pageOf(3, "late"))}))
	})
	delete(m.objects, man.Segments[0].Object)
	early := m.heads[0][1] // the head before the last commit
	for _, tt := range []struct {
		name  string
		stale int // number of reads that return the old index head
		clean bool
	}{
		{"once", 2, true},
		{"always", 100, false},
	} {
		rep := check(t, &moving{memory: m.memory, old: func(k string, read int) string {
			switch {
			case k == key && read <= tt.stale:
				return old
			case k == naming.HeadKey(crawlID, 0) && read == 1:
				return early // the index is one commit ahead
			}
			return ""
		}}, fsck.Options{})
		if rep.Clean() != tt.clean || tt.clean && (rep.Index.Documents != 4 || rep.Index.Segments != 4) {
			t.Errorf("%s: found %v, %+v", tt.name, rep.Violations, rep.Index)
		}
	}
}

// TestPartOfACommit checks an index that contains part of a commit.
func TestPartOfACommit(t *testing.T) {
	for part, clean := range map[uint64]bool{0: false, 1: true} {
		m := indexed(t)
		m.reindex(0, func(man *blobschema.IndexManifest) {
			man.Part = part
			man.Segments = append(man.Segments, m.segment(0, man.Number, []segment.Document{m.doc(m.pageOf(3, "late"))}))
		})
		if rep := check(t, m.memory, fsck.Options{}); rep.Clean() != clean {
			t.Errorf("%d pages of the next commit: found %v", part, rep.Violations)
		}
	}
	m := indexed(t)
	m.reindex(0, func(man *blobschema.IndexManifest) { man.Seq, man.Part = 3, 1 })
	if rep := check(t, m.memory, fsck.Options{}); rep.Clean() {
		t.Error("part of an unknown commit is not found")
	}
}

// TestGoneElsewhere checks that a partition that has taken a slot and found a page gone lists its document
// as removed, once its index contains that commit.
func TestGoneElsewhere(t *testing.T) {
	m := moved(t)
	shown := m.doc(m.pageOf(1, ""))
	m.reindex(0, func(man *blobschema.IndexManifest) {
		man.Seq = 1
		man.Segments = []blobschema.SegmentRef{m.segment(0, 1, []segment.Document{shown})}
	})
	page := func(c *blobschema.Commit) int {
		return slices.IndexFunc(c.Pages, func(p blobschema.Page) bool { return p.Generation == 1 })
	}
	name, c := m.find(func(c *blobschema.Commit) bool { return c.Manifest.Partition == 4 && page(c) >= 0 })
	gone := func(gen uint32) []blobschema.RemovedDocument {
		return []blobschema.RemovedDocument{{Fingerprint: shown.Fingerprint, Slot: shown.Slot, Generation: gen}}
	}
	before := c.Manifest.Seq - 1
	for _, tt := range []struct {
		name    string
		hidden  bool
		seq     uint64
		removed []blobschema.RemovedDocument
		want    fsck.IndexReport
		says    string
	}{
		{"still there", false, before + 1, nil, fsck.IndexReport{}, ""},
		{"gone, not indexed yet", true, before, nil, fsck.IndexReport{Stale: 1}, ""},
		{"gone", true, before + 1, gone(1), fsck.IndexReport{Hidden: 1}, ""},
		{"gone, not listed", true, before + 1, nil, fsck.IndexReport{}, "does not say so"},
		{"listed with another generation", true, before + 1, gone(2), fsck.IndexReport{Hidden: 1}, "is not that of its last answer"},
		{"listed too early", true, before, gone(1), fsck.IndexReport{Stale: 1}, "is not that of its last answer"},
		{"listed, not gone", false, before + 1, gone(0), fsck.IndexReport{}, "is not that of its last answer"},
		{"listed twice", true, before + 1, append(gone(1), gone(1)...), fsck.IndexReport{Hidden: 1}, "twice"},
		{"listed out of order", true, before + 1, append(gone(1), blobschema.RemovedDocument{}), fsck.IndexReport{Hidden: 1}, "out of order"},
	} {
		m.rewrite(name, func(c *blobschema.Commit) { c.Pages[page(c)].NoIndex = tt.hidden })
		m.reindex(4, func(man *blobschema.IndexManifest) { man.Seq, man.Removed = tt.seq, tt.removed })
		rep := check(t, m.memory, fsck.Options{})
		said := slices.ContainsFunc(rep.Violations, func(v fsck.Violation) bool { return v.Invariant == "I11" && strings.Contains(v.What, tt.says) })
		if rep.Clean() != (tt.says == "") || said != (tt.says != "") || rep.Index.Documents != 1 {
			t.Errorf("%s: %v", tt.name, rep.Violations)
		}
		if tt.says == "" && (rep.Index.Hidden != tt.want.Hidden || rep.Index.Stale != tt.want.Stale) {
			t.Errorf("%s: %+v", tt.name, rep.Index)
		}
	}
	m.reindex(0, func(man *blobschema.IndexManifest) { man.Removed = gone(0) })
	rep := check(t, m.memory, fsck.Options{})
	if !slices.ContainsFunc(rep.Violations, func(v fsck.Violation) bool { return strings.Contains(v.What, "is gone, and shows it") }) {
		t.Errorf("shown and listed as removed: %v", rep.Violations)
	}
}

// TestRepairIndex checks that Repair deletes only index objects that no step can come to name.
func TestRepairIndex(t *testing.T) {
	m := indexed(t)
	_, man := m.index(0)
	doc := []segment.Document{m.doc(m.pageOf(1, "notext"))}
	goes := []string{
		m.segment(0, 1, doc).Object, naming.IndexManifest(crawlID, 0, 1, []byte("lost")), naming.Segment(crawlID, 0, 0, nil),
	}
	stays := []string{
		naming.Segment(crawlID, 0, man.Number+1, nil), naming.Segment(crawlID, 1, 1, nil), naming.Segment(crawlID, 77, 1, nil),
		naming.IndexPrefix(crawlID) + "else",
	}
	s := &mendable{memory: m.memory, modified: map[string]time.Time{}}
	for _, name := range slices.Concat(goes, stays) {
		if m.objects[name] == nil {
			m.objects[name] = []byte("half a")
		}
	}
	for name := range m.objects {
		s.modified[name] = m.now.Add(-2 * time.Hour)
	}
	young := naming.Segment(crawlID, 0, 1, []byte("young"))
	m.objects[young], s.modified[young] = nil, m.now
	did, err := fsck.Repair(context.Background(), s, fsck.RepairOptions{Options: fsck.Options{Time: m.now}})
	if err != nil {
		t.Fatal(err, did.Report.Violations)
	}
	var deleted, kept []string
	for _, r := range did.Deleted {
		deleted = append(deleted, r.Object)
	}
	for _, r := range did.Kept {
		kept = append(kept, r.Object)
	}
	slices.Sort(goes)
	stays = append(stays, young)
	slices.Sort(stays)
	if d := cmp.Diff(goes, deleted); d != "" {
		t.Errorf("deleted (-want +got):\n%s", d)
	}
	if d := cmp.Diff(stays, kept); d != "" {
		t.Errorf("kept (-want +got):\n%s", d)
	}
	if rep := check(t, m.memory, fsck.Options{}); !rep.Clean() {
		t.Errorf("after a repair: %v", rep.Violations)
	}
}
