package crawl

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/stored"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// take takes the lease: a conditional write of the head with the next fence. Of two
// steps that try, one succeeds (I4). A lease that was not released belongs to a step
// that crashed: all hosts are left alone for a pace, since nobody knows what it
// asked for last (I9).
func (s *Step) take(t *actor.Task) error {
	rec, err := t.Record(naming.HeadKey(s.cfg.Crawl.ID, s.cfg.Partition))
	if err != nil {
		return err
	}
	head := blobschema.Head{Partition: s.cfg.Partition}
	if rec.Found {
		if head, err = actor.Decode[blobschema.Head](rec, "head"); err != nil {
			return err
		}
	}
	crashed := head.Owner != ""
	if crashed {
		void := s.cfg.Exclusive && !ownedBy(head.Owner, s.cfg.Process)
		if s.Now().Wall.Before(head.LeaseUntil) && !void {
			return ErrLeaseTaken
		}
		head.Floor = s.Clock().UTC()
		head.Crashes++
	}
	if s.Clock().Sub(head.Floor) < polite.MaxCrawlDelay { // also for the steps after this one
		s.floor = head.Floor
	}
	warm := s.head.Commit
	s.taken, s.head, s.rev = head, head, rec.Revision
	next := head
	next.Fence++
	next.Owner = fmt.Sprintf("%s/%d", s.cfg.Process, next.Fence)
	if err := s.writeHead(t, next); err != nil {
		return err
	}
	if s.st != nil && (warm != head.Commit || crashed) {
		s.st = nil // another step has committed since, or crashed: start afresh
	}
	return nil
}

func ownedBy(owner, process string) bool {
	return len(owner) > len(process) && owner[:len(process)] == process && owner[len(process)] == '/'
}

// load brings the state that the head names into memory: the manifest, the held
// links, and of the slots only summaries. Slots are loaded as they are due.
func (s *Step) load(t *actor.Task) error {
	if s.st == nil {
		if err := s.loadState(t); err != nil {
			return err
		}
	}
	if err := s.alignTopics(); err != nil {
		return err
	}
	s.policy = s.st.policy
	if s.st.man.Epoch > s.st.ter.pmap.Epoch() || s.head.Epoch > s.st.ter.pmap.Epoch() {
		if err := s.learnMap(t); err != nil {
			return err
		}
	}
	s.careful, s.alarms = s.st.man.Careful, s.st.man.Alarms
	if s.careful == 0 && s.head.Crashes > s.cfg.CrashesAllowed {
		s.careful = carefulRequests << (2 * min(s.alarms, maxAlarms))
		s.alarms++
	}
	for _, u := range s.st.man.Suspects {
		s.suspects[u]++
	}
	if err := s.loadSeedScope(t); err != nil {
		return err
	}
	if s.st.seeds > s.st.man.Seeds { // given since the last commit
		if err := s.rescan(t); err != nil {
			return err
		}
		s.batch.applied = true
	}
	for _, seq := range s.st.man.Unsent {
		if seq > s.head.Published {
			if err := s.republish(t, seq); err != nil {
				return err
			}
		}
	}
	return s.obeyWish(t)
}

func (s *Step) loadState(t *actor.Task) error {
	set := &s.cfg.Crawl.Settings
	if err := s.readRanks(t, set.HostRanks); err != nil {
		return err
	}
	sc, err := newScopes(set)
	if err != nil {
		return err
	}
	st := &state{
		policy: s.policy, scopes: sc, topics: set.Topics, made: madeWith(set), out: map[partition.ID]*outgoing{}, marks: map[partition.ID]*marks{},
		sent: newSentFilter(1<<20, s.policy), indexes: map[string]*blobschema.RunIndex{},
		f: frontier.New(frontier.Config{
			Hash: s.links.Hash, Partition: s.cfg.Partition, Policy: s.policy, Token: s.cfg.Token, Delay: set.Delay,
			Retry: s.cfg.Retry, MaxResident: s.cfg.MaxResident, MaxPart: s.cfg.MaxPart, Resolve: set.PartitionBy == blobschema.ByIP,
			MaxHostURLs: set.MaxHostURLs, MaxDomainURLs: set.MaxDomainURLs,
			Topics: topics(set, nil), Hosts: HostRules(set), QueueBy: set.QueueBy, Queues: set.Queues,
			Looks: looks(set), Threshold: s.head.Threshold,
		}),
	}
	s.st = st
	st.f.Floor(s.floor)
	if s.head.Commit == "" {
		st.ter, err = newTerritory(&s.cfg.Crawl, s.cfg.Partition, nil)
		return err
	}
	c, err := stored.Commit(t.Object, s.head.Commit)
	if err != nil {
		return err
	}
	if st.man, err = c.Manifest(); err != nil {
		return fmt.Errorf("manifest of %s: %w", s.head.Commit, err)
	}
	if st.ter, err = newTerritory(&s.cfg.Crawl, s.cfg.Partition, st.man.Moved); err != nil {
		return err
	}
	st.ter.given = slices.Clone(st.man.Given)
	st.f.Restore(st.man.Slots)
	for _, sum := range st.man.Slots {
		if !st.ter.holding.Holds(sum.Slot) { // it came for a slot that is to come
			st.f.Await([]partition.Slot{sum.Slot})
		}
	}
	st.f.RestoreDomains(st.man.Domains)
	st.totals = st.man.Totals
	for p, m := range st.man.Applied {
		mk := &marks{low: m.Low}
		for _, n := range m.Above {
			mk.add(n)
		}
		st.marks[p] = mk
	}
	for _, entry := range slices.Concat(st.man.Scope, st.man.NewScope) {
		st.scopes.add(entry)
	}
	st.wish.Version, st.wish.Scope, st.wish.Capped, st.wish.HalfCapped = st.man.Wish, st.man.Scope, nil, nil
	return s.loadHeld(t)
}

// loadHeld reads back the links that are in commits but in no mail yet.
func (s *Step) loadHeld(t *actor.Task) error {
	first := uint64(0)
	for _, seq := range s.st.man.HeldFrom {
		if first == 0 || seq < first {
			first = seq
		}
	}
	if first == 0 {
		return nil
	}
	for seq, name := range blobschema.CommitsAfter(&s.st.man, first-1) {
		c, err := stored.Commit(t.Object, name)
		if err != nil {
			return err
		}
		held, err := c.Held()
		if err != nil {
			return fmt.Errorf("held links of %s: %w", name, err)
		}
		for p, links := range held {
			from, ok := s.st.man.HeldFrom[p]
			if !ok || seq < from {
				continue
			}
			o := s.st.out[p]
			if o == nil {
				o = &outgoing{since: seq}
				s.st.out[p] = o
			}
			o.links = append(o.links, links...)
			o.stored = len(o.links)
		}
	}
	return nil
}

// loadSeedScope takes the hosts of all seeds into the scope.
func (s *Step) loadSeedScope(t *actor.Task) error {
	if !s.st.scopes.bounded() {
		s.st.seeds = len(s.cfg.Crawl.SeedBatches)
		return nil
	}
	for ; s.st.seeds < len(s.cfg.Crawl.SeedBatches); s.st.seeds++ {
		urls, err := stored.URLs(t.Object, s.cfg.Crawl.SeedBatches[s.st.seeds])
		if err != nil {
			return err
		}
		for _, q := range urls {
			if u, ok := weburl.Canonical(q.URL); ok {
				s.st.scopes.take(q.Topic, u.Host())
			}
		}
	}
	return nil
}

// republish sends the mail of a commit whose step may have crashed before it did.
func (s *Step) republish(t *actor.Task, seq uint64) error {
	s.unsent = append(s.unsent, seq)
	name := blobschema.CommitOf(&s.st.man, seq)
	if name == "" {
		return fmt.Errorf("the manifest of partition %d names outbox %d, but no such commit", s.cfg.Partition, seq)
	}
	c, err := stored.Commit(t.Object, name)
	if err != nil {
		return err
	}
	outbox, err := c.Outbox()
	if err != nil {
		return fmt.Errorf("outbox of %s: %w", name, err)
	}
	s.publish(seq, outbox)
	return nil
}

// madeWith is what of the settings a frontier is made with and keeps.
func madeWith(s *blobschema.Settings) string {
	return string(actor.Encode(blobschema.Settings{
		Delay: s.Delay, MaxHostURLs: s.MaxHostURLs, MaxDomainURLs: s.MaxDomainURLs,
		Hosts: s.Hosts, QueueBy: s.QueueBy, Queues: s.Queues, RecrawlPerHour: s.RecrawlPerHour,
	}))
}

// obeyWish reads what the operator wishes, and the hosts that redirects of seeds have
// brought into the scope anywhere.
func (s *Step) obeyWish(t *actor.Task) error {
	s.look = false
	defer s.applyLater()
	if len(s.later) > 0 {
		if err := s.learnMap(t); err != nil {
			return err
		}
	}
	recs, err := t.Records(naming.WishKey(s.cfg.Crawl.ID), naming.CrawlKey(s.cfg.Crawl.ID))
	if err != nil {
		return err
	}
	if recs[0].Found {
		w, err := actor.Decode[blobschema.Wish](recs[0], "wish")
		if err != nil {
			return err
		}
		s.paused = w.Pause
		if s.halted = w.Stop; w.Stop {
			s.stop()
		}
		if old := &s.st.wish; len(w.Capped)+len(w.HalfCapped) != len(old.Capped)+len(old.HalfCapped) { // they only grow
			old.Capped, old.HalfCapped = w.Capped, w.HalfCapped
			s.st.f.CapDomains(w.Capped, w.HalfCapped)
		}
		if w.Map > s.st.ter.record.Version {
			if err := s.learnMap(t); err != nil {
				return err
			}
		}
		if !maps.Equal(w.Slices, s.st.wish.Slices) {
			s.st.wish.Slices = w.Slices
			s.st.f.SetTopics(topics(&s.cfg.Crawl.Settings, w.Slices))
		}
		s.obeyThreshold(w.Threshold)
		if err := s.takeRanks(t, w.HostRanks); err != nil {
			return err
		}
		switch {
		case w.Version != s.st.wish.Version:
			err = s.obeyScope(t, w, recs[1])
		case !s.informed: // the steps before may have had a newer record than this one began with
			err = s.takeRecord(t, recs[1], w.Slices)
		}
		if err != nil {
			return err
		}
		s.informed = true
	}
	return nil
}

// obeyScope takes new hosts into the scope and follows the links to them that were
// out of scope when they were found: every commit has kept its own.
func (s *Step) obeyScope(t *actor.Task, w blobschema.Wish, rec actor.Record) error {
	s.rescanning = true
	defer func() { s.rescanning = false }()
	before := s.st.seeds
	if err := s.takeRecord(t, rec, w.Slices); err != nil {
		return err
	}
	news := s.st.seeds != before
	for _, entry := range w.Scope {
		if slices.Contains(s.st.wish.Scope, entry) {
			continue
		}
		news = true
		s.st.scopes.add(entry)
	}
	if news {
		if err := s.rescan(t); err != nil {
			return err
		}
	}
	s.st.wish = w
	s.batch.applied = true // the head must say that the wish is obeyed
	return nil
}

// takeRecord takes over topics and seeds from the crawl record.
func (s *Step) takeRecord(t *actor.Task, rec actor.Record, shrunk map[uint8]time.Duration) error {
	if rec.Found {
		c, err := actor.Decode[blobschema.Crawl](rec, "crawl")
		if err != nil {
			return err
		}
		s.cfg.Crawl.SeedBatches = c.SeedBatches
		if err := s.takeTopics(c.Settings.Topics, shrunk); err != nil {
			return err
		}
	}
	return s.loadSeedScope(t)
}

func (s *Step) rescan(t *actor.Task) error {
	again := func(links []blobschema.Queued) {
		for _, q := range links {
			l, ok := s.links.Stored(&q)
			if sc := s.st.scopes.of(l.Topic); !ok || !sc.host(l.URL.Host()) || !sc.patterns(l.URL) {
				continue
			}
			if s.owner(l.Slot) != s.cfg.Partition {
				s.buffer(l) // past the filter of sent links: it knows this one
				continue
			}
			s.add(l)
		}
	}
	again(s.batch.outside)
	if s.st.man.Seq == 0 || !s.st.scopes.bounded() {
		return nil
	}
	for name := range blobschema.CommitNames(&s.st.man) {
		c, err := stored.Commit(t.Object, name)
		if err != nil {
			return err
		}
		links, err := c.Outside()
		if err != nil {
			return fmt.Errorf("links of %s: %w", name, err)
		}
		again(links)
	}
	return nil
}

// loadWanted loads the parts of slots that are due and not in memory. Where nothing of them may
// be asked for, and no request waits for one, it loads none, and at the limit on pages none of which that is known: those
// that do not fit into memory together would take turns for ever.
func (s *Step) loadWanted(now time.Time) {
	if s.loading > 0 || s.stopping || s.rescanning || s.asksNothing() && len(s.asking) == 0 {
		return
	}
	wanted := s.st.f.Wanted(now, s.exhausted && s.limited())
	if len(wanted) == 0 {
		return
	}
	s.loading++
	s.Spawn(func(t *actor.Task) error {
		defer func() { s.loading-- }()
		states, err := s.readParts(t, wanted)
		for try := 0; errors.Is(err, actor.ErrNotFound) && try < 3; try++ { // a run that was merged and swept meanwhile
			states, err = s.readParts(t, wanted)
		}
		if errors.Is(err, actor.ErrNotFound) && s.leaseLeft() <= 0 { // it stood still, and others went on
			return ErrLeaseLost
		}
		if err != nil {
			return fmt.Errorf("load slots of partition %d: %w", s.cfg.Partition, err)
		}
		for _, id := range wanted {
			if err := s.st.f.Load(s.Clock(), id, states[id]); err != nil {
				return err
			}
		}
		return nil
	})
}

// readParts reads the state of some parts of slots, which are in order, from all runs that
// hold any of it.
func (s *Step) readParts(t *actor.Task, wanted []frontier.PartID) (map[frontier.PartID]*blobschema.Run, error) {
	var slots []partition.Slot
	for _, id := range wanted {
		if n := len(slots); n == 0 || slots[n-1] != id.Slot {
			slots = append(slots, id.Slot)
		}
	}
	refs := s.st.man.Runs
	var pieces []runPiece
	for _, ref := range refs {
		if ref.Last < slots[0] || ref.First > slots[len(slots)-1] {
			continue
		}
		ix, err := s.index(t, ref)
		if err != nil {
			return nil, err
		}
		for _, piece := range wantedPieces(ix, slots) {
			if piece.data, err = t.Object(ref.Object, ref.Offset+piece.at, piece.length); err != nil {
				return nil, err
			}
			pieces = append(pieces, piece)
		}
	}
	h := s.links.Hash
	v, err := t.Do(actor.Work{Do: func() (any, error) { return joinParts(h, wanted, pieces) }})
	if err != nil {
		return nil, err
	}
	return v.(map[frontier.PartID]*blobschema.Run), nil
}

// runPiece is a range of a run's bytes that holds whole blocks.
type runPiece struct {
	blocks     []blobschema.BlockRef
	at, length int64
	data       []byte
}

// wantedPieces are the ranges of a run to read for some slots, ascending. Neighbours
// are read in one.
func wantedPieces(ix *blobschema.RunIndex, slots []partition.Slot) []runPiece {
	const gap = 64 << 10 // bytes read in vain that cost less than another request
	var blocks []blobschema.BlockRef
	for _, b := range ix.Blocks(slots[0], slots[len(slots)-1]) {
		if i, _ := slices.BinarySearch(slots, b.First); i < len(slots) && slots[i] <= b.Last {
			blocks = append(blocks, b)
		}
	}
	slices.SortFunc(blocks, func(a, b blobschema.BlockRef) int { return cmp.Compare(a.Offset, b.Offset) })
	var pieces []runPiece
	for _, b := range blocks {
		if n := len(pieces); n > 0 && b.Offset-pieces[n-1].at-pieces[n-1].length <= gap {
			pieces[n-1].blocks = append(pieces[n-1].blocks, b)
			pieces[n-1].length = b.Offset + b.Length - pieces[n-1].at
			continue
		}
		pieces = append(pieces, runPiece{blocks: []blobschema.BlockRef{b}, at: b.Offset, length: b.Length})
	}
	return pieces
}

// joinParts joins what pieces of runs hold of some parts, and tells it apart: each part has a run.
func joinParts(h partition.Hash, wanted []frontier.PartID, pieces []runPiece) (map[frontier.PartID]*blobschema.Run, error) {
	bySlot := map[partition.Slot][]blobschema.Part{}
	for _, id := range wanted {
		bySlot[id.Slot] = append(bySlot[id.Slot], id.Part)
	}
	// of is the part that a URL belongs to, if it is wanted. Where it is all of its slot, no
	// fingerprint is needed.
	of := func(slot partition.Slot, fp func() uint64) (frontier.PartID, bool) {
		parts := bySlot[slot]
		for _, is := range parts {
			if is == (blobschema.Part{}) || is.Has(fp()) {
				return frontier.PartID{Slot: slot, Part: is}, true
			}
		}
		return frontier.PartID{}, false
	}
	queued := func(q *blobschema.Queued) (frontier.PartID, bool) {
		return of(q.Slot, func() uint64 { return h.Fingerprint(q.URL) })
	}
	settled := func(e *blobschema.Settled) (frontier.PartID, bool) {
		return of(e.Slot, func() uint64 { return e.Fingerprint })
	}
	var runs []*blobschema.Run
	for _, p := range pieces {
		run := &blobschema.Run{}
		for _, b := range p.blocks {
			if int64(len(p.data)) < p.length {
				return nil, wire.ErrDamaged
			}
			s, q := len(run.Settled), len(run.Queued)
			if err := blobschema.DecodeBlock(p.data[b.Offset-p.at:][:b.Length], b, run, wanted[0].Slot, wanted[len(wanted)-1].Slot); err != nil {
				return nil, err
			}
			run.Settled = append(run.Settled[:s], slices.DeleteFunc(run.Settled[s:], func(e blobschema.Settled) bool {
				_, ok := settled(&e)
				return !ok
			})...)
			run.Queued = append(run.Queued[:q], slices.DeleteFunc(run.Queued[q:], func(e blobschema.Queued) bool {
				_, ok := queued(&e)
				return !ok
			})...)
		}
		runs = append(runs, run)
	}
	out := make(map[frontier.PartID]*blobschema.Run, len(wanted))
	for _, id := range wanted {
		out[id] = &blobschema.Run{}
	}
	all := blobschema.MergeRuns(h, runs)
	for i := range all.Settled {
		id, _ := settled(&all.Settled[i])
		out[id].Settled = append(out[id].Settled, all.Settled[i])
	}
	for i := range all.Queued {
		id, _ := queued(&all.Queued[i])
		out[id].Queued = append(out[id].Queued, all.Queued[i])
	}
	for i := range all.Hosts { // every part may be the first of its slot
		for _, is := range bySlot[all.Hosts[i].Slot] {
			run := out[frontier.PartID{Slot: all.Hosts[i].Slot, Part: is}]
			run.Hosts = append(run.Hosts, all.Hosts[i])
		}
	}
	return out, nil
}

func (s *Step) index(t *actor.Task, ref blobschema.RunRef) (*blobschema.RunIndex, error) {
	if ix := s.st.indexes[ref.Object]; ix != nil {
		return ix, nil
	}
	data, err := t.Object(ref.Object, ref.Offset+ref.Index, ref.Length-ref.Index)
	if err != nil {
		return nil, err
	}
	ix, err := blobschema.OpenRun(data, ref)
	if err != nil {
		return nil, fmt.Errorf("index of %s: %w", ref.Object, err)
	}
	s.st.indexes[ref.Object] = ix
	return ix, nil
}

// forgetIndexes forgets the indexes of runs that the manifest names no more.
func (st *state) forgetIndexes() {
	if len(st.indexes) <= len(st.man.Runs) {
		return
	}
	named := make(map[string]*blobschema.RunIndex, len(st.man.Runs))
	for _, r := range st.man.Runs {
		if ix := st.indexes[r.Object]; ix != nil {
			named[r.Object] = ix
		}
	}
	st.indexes = named
}
