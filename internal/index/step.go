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
	"github.com/orbweaver/orbweaver/internal/stored"
	"github.com/orbweaver/orbweaver/internal/token"
	"github.com/orbweaver/orbweaver/partition"
)

// Config says what a step indexes, and what it may take for it. Zero values stand for the defaults.
type Config struct {
	Crawl      blobschema.Crawl
	Partition  partition.ID
	Deadline   time.Duration // time after which the step must have stored its work; 0: none
	Processors int           // pieces of work on the processor at once; default 2
	BatchSize  int           // pages between two manifests, about; default 5,000
	Memory     int           // bytes that the documents of one segment may take; default 64 MiB
	FanIn      int           // segments of one size that are merged into one; default 8
	MaxMerged  int64         // bytes of the segments that are merged into one, and of that; default 192 MiB
	Grace      time.Duration // for which objects are kept that no manifest names any more; default 15 min
	Rebuild    bool          // begin with an empty index: what there is may be damaged
	// Spent is what the process was billed for since the step began; nil: that is not counted.
	Spent func() blobschema.Calls
}

func (c Config) withDefaults() Config {
	c.Processors = cmp.Or(c.Processors, 2)
	c.BatchSize = cmp.Or(c.BatchSize, 5000)
	c.Memory = cmp.Or(c.Memory, 64<<20)
	c.FanIn = cmp.Or(c.FanIn, 8)
	c.MaxMerged = cmp.Or(c.MaxMerged, 192<<20)
	c.Grace = cmp.Or(c.Grace, 15*time.Minute)
	if c.Deadline > 0 {
		c.MaxMerged = min(c.MaxMerged, max(1<<20, int64(c.Deadline.Seconds()*mergeRate)))
	}
	return c
}

// mergeRate is how many bytes of segments a step expects to merge in a second. A merge cannot be stored in part, so
// the estimate is low: one processor merges about ten times as many.
const mergeRate = 1 << 20

// Report is what a step did.
type Report struct {
	Head      blobschema.IndexHead // as it is since
	Manifests int                  // that the step made
	Pages     int64                // whose text it read
	Repeated  int64                // those of Pages that another step has indexed, or will
	Behind    bool                 // there is more to do; time was over
	Lost      bool                 // another step is at work on the partition, or was faster
}

// Step brings the index of a partition up to its last commit. It is an [actor.Actor]. A step whose time is up before
// that stores what it has: the manifest says how many pages of the next commit are in the index too.
type Step struct {
	actor.Procedure
	cfg    Config
	hash   partition.Hash
	start  time.Duration // on the monotonic clock
	head   blobschema.IndexHead
	man    blobschema.IndexManifest
	told   blobschema.Calls // of cfg.Spent, what the head has
	stored int64            // of report.Pages, those whose documents a manifest names
	window int              // pages whose text is read between two looks at the clock
	report Report
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

// Report returns what the step did, once it has ended well.
func (s *Step) Report() Report { return s.report }

func (s *Step) run(t *actor.Task) error {
	s.start = t.Now().Mono
	err := s.work(t)
	// A step that got nowhere does not call the next one: else a chain of them might never end. The coordinator does.
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
	if err := s.anew(t); err != nil || s.report.Lost {
		return err
	}
	head, err := actor.DecodeFound[blobschema.Head](recs[0], "head")
	if err != nil {
		return err
	}
	if head.Seq > s.man.Seq {
		if err := s.catchUp(t, head.Commit); err != nil || s.report.Lost {
			return err
		}
	}
	if err := s.takeAnchors(t, recs[3], recs[2]); err != nil || s.report.Lost {
		return err
	}
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

// left is the time until the deadline.
func (s *Step) left(t *actor.Task) time.Duration {
	if s.cfg.Deadline == 0 {
		return math.MaxInt64
	}
	return s.cfg.Deadline - (t.Now().Mono - s.start)
}

// late reports whether work that cannot be stored in part is left to the next step, which begins with it. A step that
// has stored nothing yet may use all its time for that: else no step might get further.
func (s *Step) late(t *actor.Task) bool {
	if s.report.Manifests == 0 {
		return s.left(t) <= 0
	}
	return s.left(t) < s.cfg.Deadline/2
}

// claim keeps other steps of the partition from doing the same work, until this one has stored it or must have ended.
// It costs a write, so it is for work that costs more. Two steps at once are harmless, so no step checks its claim again.
func (s *Step) claim(t *actor.Task) error {
	if s.cfg.Deadline == 0 {
		return nil
	}
	return s.update(t, func(h *blobschema.IndexHead) {
		h.Partition, h.Until = s.cfg.Partition, t.Now().Wall.Add(s.left(t)+s.cfg.Deadline/4).UTC()
	})
}

// update changes the index head, unless another step has made a manifest or a claim meanwhile.
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
	man, err := readManifest(t, s.head.Manifest)
	switch {
	case err == nil:
		s.man = man
	case s.cfg.Rebuild && (errors.Is(err, actor.ErrNotFound) || errors.Is(err, wire.ErrDamaged) || errors.Is(err, wire.ErrVersion)):
		s.man.Number = s.head.Number // nothing names its segments any more: fsck --repair deletes them
	default:
		return err
	}
	return nil
}

func readManifest(t *actor.Task, name string) (m blobschema.IndexManifest, err error) {
	data, err := t.Object(name, 0, -1)
	if err != nil {
		return m, err
	}
	if m, err = blobschema.DecodeIndexManifest(data); err != nil {
		return m, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// anew stores a manifest without documents, so that everything is indexed again, if the index is to be rebuilt, or if its
// terms are of another version: a search would not find terms of this version among them.
func (s *Step) anew(t *actor.Task) error {
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

// catchUp indexes the commits that are not in the index, up to that of a name.
func (s *Step) catchUp(t *actor.Task, commit string) error {
	man, err := stored.Manifest(t.Object, commit)
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
				return s.index(t, b) // or no step might ever get further
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

// maxCommits are as many as are read for one manifest: there may be thousands with few pages.
const maxCommits = 500

// fewPages are not worth a claim: it costs about as much as indexing them twice.
const fewPages = 64

// index makes a batch searchable, or as much of it as there is time for: segments, then the manifest.
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

// next is the manifest to come, as yet like the one there is. What was dropped long ago is deleted.
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
			} // else the next manifest tries again
		}
		m.Dropped = append(m.Dropped, d)
	}
	if s.head.Manifest != "" {
		m.Dropped = append(m.Dropped, blobschema.DroppedSegment{Object: s.head.Manifest, Time: m.Time})
	}
	return &m
}

// commit makes a manifest the current one, unless another step has made one of its number.
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
		head.Calls.Add(spent.Minus(s.told))
		s.told = spent
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

// put stores a segment made for a manifest.
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

// reader opens a segment, to be read range by range.
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
