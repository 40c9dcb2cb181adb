package rank

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

// atOnce is the number of objects that a step reads or deletes in parallel.
const atOnce = 32

// StepConfig describes a step.
type StepConfig struct {
	Crawl     blobschema.Crawl
	Partition partition.ID
	Deadline  time.Duration           // time after which the step begins no round; 0: none
	Spent     func() blobschema.Calls // calls of the step so far; nil: not counted
}

// Report is what a step did.
type Report struct {
	Job    uint64
	Round  int // last round that the partition has finished; -1 for none
	Rounds int // rounds that this step has finished
	Done   bool
}

// Step does the partition's next round of the running job. It continues with the following rounds while all other
// partitions have finished the previous one. Two steps of a partition at once are harmless: the slower one in a round
// ends and wakes no partition, so that the number of steps does not grow with each round. Step is an [actor.Actor].
type Step struct {
	actor.Procedure
	cfg    StepConfig
	warm   *Warm
	report Report

	hash    partition.Hash
	pmap    *partition.Map
	slots   map[string]partition.Slot
	job     ranks.Job
	heads   []ranks.Head
	late    bool // another step of the partition was faster
	began   time.Duration
	counted blobschema.Calls
}

// Warm is the state after a round, which a step keeps for the next step of its partition. It is used
// only if the partition's head is at that round.
type Warm struct {
	crawl  string
	of     partition.ID
	job    uint64
	round  int
	self   []byte // values of the round for this partition itself
	kept   []*ranks.Graph
	graph  []*ranks.Graph
	out    *targets
	layout *ranks.Layout
	levels levels
}

// NewStep returns the actor. warm is the state of a previous step of the partition, or nil. No other step may use it.
func NewStep(cfg StepConfig, warm *Warm) *Step {
	s := &Step{cfg: cfg, warm: warm, slots: map[string]partition.Slot{}}
	s.report.Round = -1
	if warm == nil || warm.crawl != cfg.Crawl.ID || warm.of != cfg.Partition {
		s.warm = s.cold()
	}
	s.Body = func(t *actor.Task) error {
		err := s.run(t)
		if err != nil {
			s.warm = s.cold()
		}
		return err
	}
	return s
}

func (s *Step) cold() *Warm { return &Warm{crawl: s.cfg.Crawl.ID, of: s.cfg.Partition, round: -1} }

// Warm returns the state for the next step of the partition, after this one has ended.
func (s *Step) Warm() *Warm { return s.warm }

// Report returns what the step has done.
func (s *Step) Report() Report { return s.report }

func (s *Step) run(t *actor.Task) error {
	s.began = t.Now().Mono
	for first := true; ; first = false {
		// Read the job and all heads.
		if err := s.readHeads(t); err != nil || s.job.Number == 0 {
			return err
		}
		own, job := s.own(), s.job.Number
		s.report.Job, s.report.Round, s.report.Done = job, own.Round(job), !s.job.Done.IsZero()
		if s.report.Done {
			return s.tidyUp(t)
		}
		if int(s.cfg.Partition) >= len(s.heads) {
			return nil
		}
		// Leave the next round to the last partition that finishes this one: it wakes the others.
		if s.least() < own.Round(job) {
			return nil
		}
		// After the last round make the tables of the whole job.
		round := own.Round(job) + 1
		if own.Final && own.Job == job {
			if err := s.finish(t); err != nil {
				return s.unlessOvertaken(t, round, err)
			}
			continue
		}
		// This step may have been the last to finish the round.
		if !first {
			if err := s.wakeOthers(t, round-1); err != nil {
				return err
			}
			if s.over(t) {
				return nil
			}
		}
		// Do the next round.
		if err := s.prepare(t); err != nil {
			return err
		}
		if err := s.next(t, round); err != nil {
			return s.unlessOvertaken(t, round, err)
		}
		if s.late {
			return nil
		}
	}
}

func (s *Step) own() *ranks.Head {
	if int(s.cfg.Partition) >= len(s.heads) {
		return &ranks.Head{}
	}
	return &s.heads[s.cfg.Partition]
}

// over reports whether the time for new rounds is over.
func (s *Step) over(t *actor.Task) bool {
	return s.cfg.Deadline > 0 && t.Now().Mono-s.began >= s.cfg.Deadline
}

// readHeads reads the job and all heads.
func (s *Step) readHeads(t *actor.Task) error {
	for {
		keys := []string{naming.RankKey(s.cfg.Crawl.ID)}
		for p := range s.heads {
			keys = append(keys, naming.RankHeadKey(s.cfg.Crawl.ID, partition.ID(p)))
		}
		recs, err := t.Records(keys...)
		if err != nil || !recs[0].Found {
			return err
		}
		job, err := actor.Decode[ranks.Job](recs[0], "rank job")
		if err != nil {
			return err
		}
		if job.Version != wire.Version {
			return fmt.Errorf("rank job of crawl %s: %w: %d", s.cfg.Crawl.ID, wire.ErrVersion, job.Version)
		}
		if job.Number != s.job.Number {
			s.pmap = nil
		}
		if s.job = job; len(job.Inputs) != len(s.heads) {
			s.heads = make([]ranks.Head, len(job.Inputs))
			continue
		}
		for p, rec := range recs[1:] {
			s.heads[p] = ranks.Head{Partition: partition.ID(p)}
			if rec.Found {
				if s.heads[p], err = actor.Decode[ranks.Head](rec, "rank head"); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// least returns the last round that all partitions have finished.
func (s *Step) least() int {
	p := NewProgress(s.job, s.heads)
	return p.Round
}

// unlessOvertaken returns nil if an error in a round was caused by a faster step of this partition, which has deleted
// objects that no partition needs. Otherwise it returns the error.
func (s *Step) unlessOvertaken(t *actor.Task, round int, err error) error {
	if !errors.Is(err, actor.ErrNotFound) {
		return err
	}
	job := s.job.Number
	if lerr := s.readHeads(t); lerr != nil {
		return errors.Join(err, lerr)
	}
	if s.job.Number == job && s.job.Done.IsZero() && s.own().Round(job) < round {
		return err
	}
	s.warm = s.cold()
	return nil
}

// wakeOthers wakes the partitions whose last round is this one. All have finished it, this partition last. A crash
// before the messages are sent loses them: this step's own message comes again, and NewRemind wakes the others.
func (s *Step) wakeOthers(t *actor.Task, round int) error {
	var to []partition.ID
	for p := range s.heads {
		if s.heads[p].Round(s.job.Number) == round && (partition.ID(p) != s.cfg.Partition || s.over(t)) {
			to = append(to, partition.ID(p))
		}
	}
	return send(t, s.cfg.Crawl.ID, to)
}

// prepare reads the hash and the map, which all rounds need.
func (s *Step) prepare(t *actor.Task) error {
	if s.pmap != nil {
		return nil
	}
	var err error
	if s.hash, err = s.cfg.Crawl.Hash(); err != nil {
		return err
	}
	s.pmap, err = blobschema.ReadMap(t.Object, &s.cfg.Crawl, s.job.Map)
	return err
}

// slot returns the slot of a host's politeness key. All pages of a host have their ranks there, even if they were
// fetched from addresses in other slots.
func (s *Step) slot(host string) partition.Slot {
	slot, ok := s.slots[host]
	if !ok {
		key, _ := s.cfg.Crawl.Settings.PartitionBy.Key(host)
		slot = s.hash.Slot(key)
		s.slots[host] = slot
	}
	return slot
}

func (s *Step) owner(slot partition.Slot) partition.ID {
	return min(s.pmap.Owner(slot), partition.ID(len(s.heads)-1))
}

// outcome is the result of a round.
type outcome struct {
	parts  [][]byte // for each partition; nil if the round has nothing for any
	state  []byte   // for the next round of this partition
	sums   ranks.Sums
	totals *ranks.Totals
	final  bool
	drop   []string // objects that are not needed after the round
	next   func(*ranks.Result)
}

// next does the partition's next round and stores it.
func (s *Step) next(t *actor.Task, round int) error {
	// The state in memory serves only the round after the one that left it.
	if s.warm.job != s.job.Number || s.warm.round != round-1 {
		s.warm = s.cold()
	}
	did, err := s.round(t, round)
	if err != nil {
		return fmt.Errorf("rank job %d, round %d of partition %d: %w", s.job.Number, round, s.cfg.Partition, err)
	}
	if did == nil {
		return nil // the job has failed
	}
	s.warm.job, s.warm.round = s.job.Number, round
	return s.commit(t, round, did)
}

func (s *Step) round(t *actor.Task, round int) (*outcome, error) {
	switch round {
	case ranks.Gather:
		return s.gather(t)
	case ranks.Join:
		return s.join(t)
	case ranks.Nodes:
		return s.number(t)
	case ranks.Start:
		return s.start(t)
	}
	return s.iterate(t, round)
}

// commit stores the result of a round and sets the head to it:
//
//	delete unneeded objects → put the round's object → set the head
//
// A crash before the head is set leaves an object that the next try stores again, with the same bytes.
func (s *Step) commit(t *actor.Task, round int, did *outcome) error {
	// Join the parts and the state.
	var object, lengths []byte
	s.warm.self = nil
	for p := range s.heads {
		var part []byte
		if did.parts != nil {
			part = did.parts[p]
		}
		if partition.ID(p) == s.cfg.Partition {
			s.warm.self = part
		}
		object = append(object, part...)
		lengths = binary.AppendUvarint(lengths, uint64(len(part)))
	}
	object = append(object, did.state...)
	lengths = binary.AppendUvarint(lengths, uint64(len(did.state)))
	// Name the object by its content. Deleting comes first, so that a crash leaves no deleted object in the head.
	name := naming.RankObject(s.cfg.Crawl.ID, s.cfg.Partition, s.job.Number, fmt.Sprintf("r%04d", round), object)
	if err := s.deleteDropped(t); err != nil {
		return err
	}
	if err := t.Put(name, object); err != nil {
		return err
	}
	// Set the head, unless another step of the partition has finished this round.
	head := s.head(round, did, name, lengths, t.Now().Wall)
	spent := s.spent()
	late := false
	err := actor.Update(t, naming.RankHeadKey(s.cfg.Crawl.ID, s.cfg.Partition), func(h *ranks.Head) bool {
		late = false
		if h.Job > s.job.Number || h.Round(s.job.Number) >= round {
			late = true
			return false
		}
		calls := h.Calls
		calls.Add(spent)
		*h = head
		h.Calls = calls
		return true
	})
	if err != nil {
		return err
	}
	if s.late = late; late {
		return s.takeBack(t, name)
	}
	s.counted.Add(spent)
	s.heads[s.cfg.Partition] = head
	s.report.Round, s.report.Rounds = round, s.report.Rounds+1
	return nil
}

// takeBack deletes the object of a step that was slower than another of its partition, which may have deleted the
// object before. It keeps objects that the head still names, and those that will be deleted later.
func (s *Step) takeBack(t *actor.Task, name string) error {
	if err := s.readHeads(t); err != nil {
		return err
	}
	own, least := s.own(), s.least()
	current := own.Job == s.job.Number && s.job.Done.IsZero()
	if current && slices.ContainsFunc(own.Rounds, func(r ranks.Round) bool { return r.Object == name }) ||
		slices.ContainsFunc(own.Dropped, func(d ranks.Dropped) bool { return d.Object == name && !s.deletable(d, least) }) {
		return nil
	}
	_, err := deleteAll(t, []string{name})
	return err
}

// deletable reports whether no partition needs a dropped object, given the round that all have finished.
func (s *Step) deletable(d ranks.Dropped, least int) bool {
	return d.Job == s.job.Number && d.Round <= least || d.Job < s.job.Number && least >= ranks.Gather
}

func (s *Step) spent() blobschema.Calls {
	if s.cfg.Spent == nil {
		return blobschema.Calls{}
	}
	return s.cfg.Spent().Minus(s.counted)
}

// head returns the partition's head after a round.
func (s *Step) head(round int, did *outcome, object string, parts []byte, now time.Time) ranks.Head {
	old, job := s.own(), s.job.Number
	h := ranks.Head{Partition: s.cfg.Partition, Job: job, Final: did.final, Totals: old.Totals, Next: old.Next, Last: old.Last, Dropped: slices.Clone(old.Dropped)}
	drop := func(round int, names ...string) {
		for _, n := range names {
			if n != "" {
				h.Dropped = append(h.Dropped, ranks.Dropped{Object: n, Job: job, Round: round})
			}
		}
	}
	// Keep the last two rounds: other partitions may still read the one before this.
	if old.Job == job {
		h.Rounds = slices.Clone(old.Rounds)
		if len(h.Rounds) == 2 {
			drop(round, h.Rounds[0].Object)
			h.Rounds = h.Rounds[1:]
		}
	} else {
		// The first round of a job drops the objects of previous jobs, except the results of the last finished one, with
		// which this job starts.
		for _, r := range old.Rounds {
			drop(ranks.Gather, r.Object)
		}
		if p := s.job.Previous; p != nil && old.Next.Job == p.Number && old.Final {
			drop(ranks.Start, old.Last.Objects()...)
			h.Last = old.Next
		} else {
			drop(ranks.Gather, old.Next.Objects()...)
			if p == nil { // the results are rebuilt
				drop(ranks.Gather, old.Last.Objects()...)
				h.Last = ranks.Result{}
			}
		}
		h.Totals, h.Next = ranks.Totals{}, ranks.Result{Job: job, Seq: s.job.Inputs[s.cfg.Partition].Seq}
	}
	// Add the results of this round.
	if did.totals != nil {
		h.Totals = *did.totals
	}
	if did.next != nil {
		did.next(&h.Next)
	}
	drop(round, did.drop...)
	h.Rounds = append(h.Rounds, ranks.Round{Number: round, Time: now.UTC(), Object: object, Parts: parts, Sums: did.sums})
	return h
}

// deleteDropped deletes the objects that no partition needs. A slow step may still read one: it finds that its own
// partition has moved on.
func (s *Step) deleteDropped(t *actor.Task) error {
	own, least := s.own(), s.least()
	var names []string
	for _, d := range own.Dropped {
		if s.deletable(d, least) {
			names = append(names, d.Object)
		}
	}
	gone, err := deleteAll(t, names)
	own.Dropped = slices.DeleteFunc(slices.Clone(own.Dropped), func(d ranks.Dropped) bool { return gone[d.Object] })
	return err
}

// deleteAll deletes objects and returns those it has deleted. The others are tried again later.
func deleteAll(t *actor.Task, names []string) (gone map[string]bool, err error) {
	effects := make([]actor.Effect, len(names))
	for i, name := range names {
		effects[i] = actor.DeleteObject{Name: name}
	}
	gone = map[string]bool{}
	err = t.All(atOnce, effects, func(i int, _ any, err error) error {
		gone[names[i]] = err == nil
		return nil
	})
	return gone, err
}

// tidyUp deletes the objects of the rounds after the job is done.
func (s *Step) tidyUp(t *actor.Task) error {
	own := s.own()
	if own.Job != s.job.Number {
		return nil
	}
	var names []string
	for _, d := range own.Dropped {
		names = append(names, d.Object)
	}
	for _, r := range own.Rounds {
		if r.Object != "" {
			names = append(names, r.Object)
		}
	}
	if len(names) == 0 {
		return nil
	}
	gone, err := deleteAll(t, names)
	if err != nil {
		return err
	}
	spent := s.spent()
	return actor.Update(t, naming.RankHeadKey(s.cfg.Crawl.ID, s.cfg.Partition), func(h *ranks.Head) bool {
		if h.Job != s.job.Number {
			return false
		}
		before := len(h.Dropped)
		h.Dropped = slices.DeleteFunc(h.Dropped, func(d ranks.Dropped) bool { return gone[d.Object] })
		changed := len(h.Dropped) < before
		for i := range h.Rounds {
			if r := &h.Rounds[i]; gone[r.Object] {
				r.Object, r.Parts, changed = "", nil, true
			}
		}
		if changed {
			h.Calls.Add(spent)
		}
		return changed
	})
}

// parts reads the part for this partition from the round of each partition; nil if it is empty.
func (s *Step) parts(t *actor.Task, round int) ([][]byte, error) {
	out := make([][]byte, len(s.heads))
	var gets []actor.GetObject
	var from []int
	for q := range s.heads {
		if q == int(s.cfg.Partition) && s.warm.job == s.job.Number && s.warm.round == round && s.warm.self != nil {
			out[q] = s.warm.self
			continue
		}
		get, err := s.get(q, round, int(s.cfg.Partition))
		if err != nil {
			return nil, err
		}
		if get != nil {
			gets, from = append(gets, *get), append(from, q)
		}
	}
	data, err := getAll(t, atOnce, gets)
	for i, q := range from {
		out[q] = data[i]
	}
	return out, err
}

// getAll reads objects in parallel. It retries those that fail, one by one.
func getAll(t *actor.Task, limit int, gets []actor.GetObject) ([][]byte, error) {
	effects, data := make([]actor.Effect, len(gets)), make([][]byte, len(gets))
	for i, g := range gets {
		effects[i] = g
	}
	var failed []int
	err := t.All(limit, effects, func(i int, v any, err error) error {
		switch {
		case errors.Is(err, actor.ErrNotFound):
			return fmt.Errorf("get %s: %w", gets[i].Name, err)
		case err != nil:
			failed = append(failed, i)
		default:
			data[i] = v.([]byte)
		}
		return nil
	})
	for _, i := range failed {
		if err == nil {
			data[i], err = t.Object(gets[i].Name, gets[i].Offset, gets[i].Length)
		}
	}
	return data, err
}

// get returns the effect that reads a part of a partition's round; nil if the part is empty.
func (s *Step) get(q, round, part int) (*actor.GetObject, error) {
	r := s.heads[q].At(round)
	if r == nil {
		return nil, fmt.Errorf("partition %d has forgotten round %d: %w", q, round, actor.ErrNotFound)
	}
	if r.Object == "" {
		return nil, nil
	}
	off, length, err := r.Part(part)
	if err != nil || length == 0 {
		return nil, err
	}
	return &actor.GetObject{Name: r.Object, Offset: off, Length: length}, nil
}

// part reads a part of what partition q has stored for a round. The part after those of all partitions is the state for its
// next round.
func (s *Step) part(t *actor.Task, q, round, part int) ([]byte, error) {
	get, err := s.get(q, round, part)
	if err != nil {
		return nil, err
	}
	if get == nil {
		return nil, fmt.Errorf("round %d of partition %d has left nothing: %w", round, q, wire.ErrDamaged)
	}
	return t.Object(get.Name, get.Offset, get.Length)
}
