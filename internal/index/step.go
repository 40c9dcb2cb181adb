package index

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/token"
	"github.com/orbweaver/orbweaver/partition"
)

// Config describes a step. Zero values mean the defaults.
type Config struct {
	Crawl      blobschema.Crawl
	Partition  partition.ID
	Deadline   time.Duration // time after which the step must have stored its work; 0: none
	Processors int           // pieces of work that run in parallel; default 2
	BatchSize  int           // approximate number of pages between two manifests; default 5,000
	Memory     int           // bytes of memory to build one segment; default 128 MiB
	FanIn      int           // number of segments of one size that are merged; default 8
	MaxMerged  int64         // most bytes of the inputs of a merge, and of each output; default 192 MiB
	Grace      time.Duration // time to keep objects that no manifest names any more; default 15 min
	Rebuild    bool          // start with an empty index, because the existing one may be damaged
	// Spent returns the billed calls of the process since the step began; nil: they are not counted.
	Spent func() blobschema.Calls
}

func (c Config) withDefaults() Config {
	c.Processors = cmp.Or(c.Processors, 2)
	c.BatchSize = cmp.Or(c.BatchSize, 5000)
	c.Memory = cmp.Or(c.Memory, 128<<20)
	c.FanIn = cmp.Or(c.FanIn, 8)
	c.MaxMerged = cmp.Or(c.MaxMerged, 192<<20)
	c.Grace = cmp.Or(c.Grace, 15*time.Minute)
	if c.Deadline > 0 {
		c.MaxMerged = min(c.MaxMerged, max(1<<20, int64(c.Deadline.Seconds()*mergeRate)))
	}
	return c
}

// mergeRate is the number of bytes that a step expects to merge in a second. A merge cannot be stored in part, so
// the estimate is low: one processor merges about ten times as many.
const mergeRate = 1 << 20

// Report is what a step did.
type Report struct {
	Head      blobschema.IndexHead // after the step
	Manifests int                  // made by the step
	Pages     int64                // pages whose text it read
	Repeated  int64                // of these, pages that another step indexed too
	Behind    bool                 // the deadline ended the step before its work was done
	Lost      bool                 // another step works on the partition, or was faster
}

// Step indexes all commits of a partition. It is an [actor.Actor]. If its time ends earlier, it stores what it
// has: the manifest then says how many pages of the next commit are in the index.
type Step struct {
	actor.Procedure
	cfg     Config
	hash    partition.Hash
	start   time.Duration // on the monotonic clock
	head    blobschema.IndexHead
	man     blobschema.IndexManifest
	counted blobschema.Calls // the part of cfg.Spent that the head has
	stored  int64            // the part of report.Pages that a manifest covers
	window  int              // number of pages that are read before the clock is checked
	report  Report
}

// NewStep returns the actor.
func NewStep(cfg Config) (*Step, error) {
	s := &Step{cfg: cfg.withDefaults()}
	var err error
	if s.hash, err = cfg.Crawl.Hash(); err != nil {
		return nil, err
	}
	if s.window = 1; cfg.Deadline == 0 {
		s.window = math.MaxInt
	}
	s.Body = s.run
	return s, nil
}

// Report returns what the step did, after it has ended without an error.
func (s *Step) Report() Report { return s.report }

func (s *Step) run(t *actor.Task) error {
	s.start = t.Now().Mono
	err := s.work(t)
	// The next step continues. A step without progress does not wake it, because the chain might never end: the
	// coordinator does.
	if err == nil && s.report.Behind && !s.report.Lost && s.report.Manifests > 0 {
		_, err = t.Do(actor.Send{Queue: naming.IndexQueue, Bodies: [][]byte{blobschema.EncodeJob(s.cfg.Crawl.ID, s.cfg.Partition)}})
	}
	s.report.Head = s.head
	if err != nil {
		return fmt.Errorf("index partition %d: %w", s.cfg.Partition, err)
	}
	return nil
}

func (s *Step) work(t *actor.Task) error {
	id, p := s.cfg.Crawl.ID, s.cfg.Partition
	// Read the heads, and the manifest of the index. Leave a partition alone that another step has claimed.
	recs, err := t.Records(naming.HeadKey(id, p), naming.IndexKey(id, p), naming.RankHeadKey(id, p), naming.RankKey(id))
	if err != nil {
		return err
	}
	if err := s.open(t, recs[1]); err != nil {
		return err
	}
	if s.report.Lost = s.head.Until.After(t.Now().Wall); s.report.Lost {
		return nil
	}
	if err := s.restart(t); err != nil || s.report.Lost {
		return err
	}
	// Index the commits that are not in the index.
	head, err := actor.DecodeFound[blobschema.Head](recs[0], "head")
	if err != nil {
		return err
	}
	if head.Seq > s.man.Seq {
		if err := s.catchUp(t, head.Commit); err != nil || s.report.Lost {
			return err
		}
	}
	// Take the texts of links of a new rank job.
	if err := s.takeAnchors(t, recs[3], recs[2]); err != nil || s.report.Lost {
		return err
	}
	// Merge segments while there is time.
	for !s.report.Lost {
		inputs := s.due()
		if len(inputs) == 0 {
			break
		}
		if s.late(t) {
			s.report.Behind = true
			break
		}
		if err := s.merge(t, inputs); err != nil {
			return err
		}
	}
	return nil
}

// left returns the time until the deadline.
func (s *Step) left(t *actor.Task) time.Duration {
	if s.cfg.Deadline == 0 {
		return math.MaxInt64
	}
	return s.cfg.Deadline - (t.Now().Mono - s.start)
}

// late reports whether to leave work that cannot be stored in part to the next step, which begins with it. A step
// that has stored nothing yet may use all its time for such work; otherwise no step might make progress.
func (s *Step) late(t *actor.Task) bool {
	if s.report.Manifests == 0 {
		return s.left(t) <= 0
	}
	return s.left(t) < s.cfg.Deadline/2
}

// claim keeps other steps of the partition from doing the same work until this one has stored it or has ended. It
// costs a write, so it is for work that costs more. Two steps at once are harmless, so a step does not check its
// claim again.
func (s *Step) claim(t *actor.Task) error {
	if s.cfg.Deadline == 0 {
		return nil
	}
	return s.update(t, func(h *blobschema.IndexHead) {
		h.Partition, h.Until = s.cfg.Partition, t.Now().Wall.Add(s.left(t)+s.cfg.Deadline/4).UTC()
	})
}

// update changes the index head, unless another step has set a manifest or a claim since it was read.
func (s *Step) update(t *actor.Task, change func(*blobschema.IndexHead)) error {
	return actor.Update(t, naming.IndexKey(s.cfg.Crawl.ID, s.cfg.Partition), func(h *blobschema.IndexHead) bool {
		if s.report.Lost = h.Number != s.man.Number || h.Until.After(t.Now().Wall) && !h.Until.Equal(s.head.Until); s.report.Lost {
			return false
		}
		change(h)
		s.head.Until = h.Until
		return true
	})
}

// open reads the manifest that the index head names, if there is one.
func (s *Step) open(t *actor.Task, rec actor.Record) error {
	s.head.Partition = s.cfg.Partition
	s.man = blobschema.IndexManifest{Crawl: s.cfg.Crawl.ID, Partition: s.cfg.Partition, Terms: token.Version}
	if !rec.Found {
		return nil
	}
	var err error
	if s.head, err = actor.Decode[blobschema.IndexHead](rec, "index head"); err != nil || s.head.Manifest == "" {
		return err
	}
	man, err := blobschema.ReadIndexManifest(t.Object, s.head.Manifest)
	switch {
	case err == nil:
		s.man = man
	case s.cfg.Rebuild && (errors.Is(err, actor.ErrNotFound) || errors.Is(err, wire.ErrDamaged) || errors.Is(err, wire.ErrVersion)):
		s.man.Number = s.head.Number // its segments are orphans now: fsck --repair deletes them
	default:
		return err
	}
	return nil
}

// restart stores a manifest without documents, so that everything is indexed again. It does so for a rebuild, and
// if the terms of the index are of another version: a search would not find them.
func (s *Step) restart(t *actor.Task) error {
	if !s.cfg.Rebuild && s.man.CheckTerms(token.Version) == nil {
		return nil
	}
	m := s.next(t)
	for _, ref := range slices.Concat(m.Segments, m.Anchors) {
		m.Dropped = append(m.Dropped, blobschema.DroppedSegment{Object: ref.Object, Time: m.Time})
	}
	m.Terms, m.Seq, m.Part, m.Segments, m.Anchors, m.AnchorJob, m.Removed, m.Totals = token.Version, 0, 0, nil, nil, 0, nil, blobschema.IndexTotals{}
	return s.commit(t, m)
}

// catchUp indexes the commits after the last manifest, up to the named one.
func (s *Step) catchUp(t *actor.Task, commit string) error {
	man, err := blobschema.ReadManifest(t.Object, commit)
	if err != nil {
		return err
	}
	moved := map[partition.Slot]bool{}
	for _, m := range man.Moved {
		for _, slot := range m.Slots {
			moved[slot] = true
		}
	}
	b := s.newBatch(moved)
	for seq, name := range blobschema.CommitsAfter(man, s.man.Seq) {
		if s.left(t) < s.cfg.Deadline/4 && (len(b.commits) > 0 || s.report.Manifests > 0) {
			s.report.Behind = true
			if s.report.Manifests == 0 {
				return s.index(t, b) // otherwise no step might make progress
			}
			return nil
		}
		if err := b.read(t, name, seq); err != nil {
			return err
		}
		if len(b.pages) < s.cfg.BatchSize && len(b.commits) < maxCommits && seq < man.Seq {
			continue
		}
		if err := s.index(t, b); err != nil || s.report.Lost || s.report.Behind {
			return err
		}
		b = s.newBatch(moved)
	}
	return nil
}

// maxCommits bounds the commits of one manifest: there may be thousands with few pages each.
const maxCommits = 500

// fewPages is the number of pages above which a batch is worth a claim. A claim costs about as much as indexing them twice.
const fewPages = 64

// index makes a batch searchable, or the part of it for which there is time. It stores the segments first, then
// the manifest: a crash in between leaves segments that no manifest names, which fsck --repair deletes.
func (s *Step) index(t *actor.Task, b *batch) error {
	if len(b.pages) > fewPages {
		if err := s.claim(t); err != nil || s.report.Lost {
			return err
		}
	}
	m := s.next(t)
	added, err := b.segments(t, m)
	if err != nil {
		return err
	}
	m.Seq, m.Part = b.seq, b.part
	if err := s.hide(m, b); err != nil {
		return err
	}
	m.Segments = append(m.Segments, added...)
	return s.commit(t, m)
}

// next returns a copy of the manifest with the next number. It deletes objects whose grace period is over.
func (s *Step) next(t *actor.Task) *blobschema.IndexManifest {
	m := s.man
	m.Number++
	m.Time = t.Now().Wall
	m.Segments = append([]blobschema.SegmentRef(nil), m.Segments...)
	m.Dropped = nil
	for _, d := range s.man.Dropped {
		if m.Time.Sub(d.Time) >= s.cfg.Grace {
			if _, err := t.Do(actor.DeleteObject{Name: d.Object}); err == nil {
				continue
			} // the next manifest tries again
		}
		m.Dropped = append(m.Dropped, d)
	}
	if s.head.Manifest != "" {
		m.Dropped = append(m.Dropped, blobschema.DroppedSegment{Object: s.head.Manifest, Time: m.Time})
	}
	return &m
}

// commit stores a manifest and sets the index head to it, unless another step has set one. A crash before the head
// is set leaves an object that nothing names.
func (s *Step) commit(t *actor.Task, m *blobschema.IndexManifest) error {
	m.Totals.Documents = 0
	head := blobschema.IndexHead{Partition: s.cfg.Partition, Number: m.Number, Seq: m.Seq, Anchors: m.AnchorJob, Calls: s.head.Calls}
	for _, r := range m.Segments {
		m.Totals.Documents += int64(r.Documents - r.Gone)
		head.Bytes += r.Bytes
	}
	for _, r := range m.Anchors {
		head.Bytes += r.Bytes
	}
	head.Documents, head.Totals = m.Totals.Documents, m.Totals
	data, err := blobschema.EncodeIndexManifest(m)
	if err != nil {
		return err
	}
	head.Manifest = naming.IndexManifest(s.cfg.Crawl.ID, s.cfg.Partition, m.Number, data)
	if err := t.Put(head.Manifest, data); err != nil {
		return err
	}
	if s.cfg.Spent != nil {
		spent := s.cfg.Spent()
		head.Calls.Add(spent.Minus(s.counted))
		s.counted = spent
	}
	if err := s.update(t, func(h *blobschema.IndexHead) { *h = head }); err != nil {
		return err
	}
	if s.report.Lost {
		s.report.Repeated = s.report.Pages - s.stored
		return nil
	}
	s.head, s.man, s.stored = head, *m, s.report.Pages
	s.report.Manifests++
	return nil
}

// put stores a segment for a manifest.
func (s *Step) put(t *actor.Task, m *blobschema.IndexManifest, out segment.Output) (blobschema.SegmentRef, error) {
	name, sum := naming.Segment(s.cfg.Crawl.ID, s.cfg.Partition, m.Number, out.Data), out.Summary
	if err := t.Put(name, out.Data); err != nil {
		return blobschema.SegmentRef{}, err
	}
	ref := blobschema.SegmentRef{
		Object: name, Bytes: sum.Bytes, Documents: uint32(sum.Documents), First: sum.First, Last: sum.Last,
		Lengths: make([]uint64, segment.NumFields),
	}
	for f, n := range sum.Lengths {
		ref.Lengths[f] = uint64(n)
	}
	return ref, nil
}

// reader opens a segment to read it by ranges.
func reader(t *actor.Task, ref *blobschema.SegmentRef) (*segment.Reader, error) {
	r, err := segment.Open(func(off, length int64) ([]byte, error) { return t.Object(ref.Object, off, length) }, ref.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ref.Object, err)
	}
	return r, nil
}

// slotOf returns the slot of a host's documents.
func (s *Step) slotOf(host string) partition.Slot {
	key, _ := s.cfg.Crawl.Settings.PartitionBy.Key(host)
	return s.hash.Slot(key)
}
