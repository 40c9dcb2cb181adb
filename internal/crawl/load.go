package crawl

import (
	"fmt"
	"maps"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// load reads the state that the head names: the manifest, the buffered links, and summaries of the slots. The URLs of a
// slot are loaded when the slot is due.
func (s *Step) load(t *actor.Task) error {
	// A warm state needs no read.
	if s.st != nil {
		s.st.attach(s)
	} else if err := s.loadState(t); err != nil {
		return err
	}
	// Topics and map may have changed since the state was stored.
	if err := s.st.alignTopics(); err != nil {
		return err
	}
	if s.st.man.Epoch > s.st.ter.pmap.Epoch() || s.lease.head.Epoch > s.st.ter.pmap.Epoch() {
		if err := s.st.learnMap(t); err != nil {
			return err
		}
	}
	s.care.resume(&s.st.man, s.lease.head.Crashes, s.cfg.CrashesAllowed)
	// Seeds added since the last commit may bring earlier links into scope.
	if err := s.st.loadSeedScope(t); err != nil {
		return err
	}
	if s.st.seeds > s.st.man.Seeds { // seeds were added since the last commit
		if err := s.st.rescan(t); err != nil {
			return err
		}
		s.st.batch.applied = true
	}
	// A crash may have left mail unsent.
	for _, seq := range s.st.man.Unsent {
		if seq > s.lease.head.Published {
			if err := s.republish(t, seq); err != nil {
				return err
			}
		}
	}
	return s.obey(t)
}

// loadState creates a state and fills it from the head's commit, if there is one.
func (s *Step) loadState(t *actor.Task) error {
	set := &s.cfg.Crawl.Settings
	policy, err := s.cfg.policy(t, set.HostRanks)
	if err != nil {
		return err
	}
	sc, err := newScopes(set)
	if err != nil {
		return err
	}
	links, err := mapping(&s.cfg.Crawl)
	if err != nil {
		return err
	}
	// The frontier starts empty, with the settings of the crawl.
	known := map[string]polite.Pace{}
	st := &state{
		known: known,
		links: links, policy: policy, scopes: sc, topics: set.Topics, made: madeWith(set), out: buffers{}, marks: map[partition.ID]*blobschema.Marks{},
		sent: newSentFilter(1<<20, policy), indexes: map[string]*blobschema.RunIndex{},
		f: frontier.New(frontier.Config{
			Hash: links.Hash, Partition: s.cfg.Partition, Policy: policy, Token: s.cfg.Token, Delay: set.Delay,
			Retry: s.cfg.Retry, MaxResident: s.cfg.MaxResident, MaxPart: s.cfg.MaxPart, Resolve: set.PartitionBy == blobschema.ByIP,
			MaxHostURLs: set.MaxHostURLs, MaxDomainURLs: set.MaxDomainURLs,
			Topics: topics(set, nil), Began: s.cfg.Crawl.Created, Hosts: HostRules(set), Known: known, QueueBy: set.QueueBy, Queues: set.Queues,
			Revisits: revisits(set), Threshold: s.lease.head.Threshold,
		}),
	}
	st.attach(s)
	s.st = st
	st.f.Floor(s.lease.floor)
	if s.lease.head.Commit == "" {
		if st.ter, err = newTerritory(&s.cfg.Crawl, s.cfg.Partition, nil); err != nil {
			return err
		}
		return st.know(t)
	}
	// The manifest says which slots the partition holds.
	c, err := blobschema.ReadCommit(t.Object, s.lease.head.Commit)
	if err != nil {
		return err
	}
	if st.man, err = c.Manifest(); err != nil {
		return fmt.Errorf("manifest of %s: %w", s.lease.head.Commit, err)
	}
	if st.ter, err = newTerritory(&s.cfg.Crawl, s.cfg.Partition, st.man.Moved); err != nil {
		return err
	}
	st.ter.given = slices.Clone(st.man.Given)
	st.f.Restore(st.man.Slots)
	for _, sum := range st.man.Slots {
		if !st.ter.holding.Holds(sum.Slot) { // mail came for a slot that has not arrived yet
			st.f.Await([]partition.Slot{sum.Slot})
		}
	}
	// Totals, applied mail and scope continue from there.
	st.f.RestoreDomains(st.man.Domains)
	st.totals = st.man.Totals
	for p, m := range st.man.Applied {
		st.marks[p] = &blobschema.Marks{Low: m.Low, Above: slices.Clone(m.Above)}
	}
	for _, entry := range slices.Concat(st.man.Scope, st.man.NewScope) {
		st.scopes.add(entry)
	}
	st.desired.Version, st.desired.Scope, st.desired.Capped, st.desired.HalfCapped = st.man.Desired, st.man.Scope, nil, nil
	if err := st.know(t); err != nil {
		return err
	}
	return s.loadBuffered(t)
}

// section reads one section of a commit.
func section[T any](t *actor.Task, name string, read func(*blobschema.CommitReader) (T, error)) (v T, err error) {
	c, err := blobschema.ReadCommit(t.Object, name)
	if err != nil {
		return v, err
	}
	if v, err = read(c); err != nil {
		return v, fmt.Errorf("read %s: %w", name, err)
	}
	return v, nil
}

// loadBuffered reads the buffered links back from the commits: those that are in no mail yet.
func (s *Step) loadBuffered(t *actor.Task) error {
	since := slices.Sorted(maps.Values(s.st.man.BufferedFrom))
	if len(since) == 0 {
		return nil
	}
	for seq, name := range blobschema.CommitsAfter(&s.st.man, since[0]-1) {
		held, err := section(t, name, (*blobschema.CommitReader).Buffered)
		if err != nil {
			return err
		}
		s.st.out.restore(seq, held, s.st.man.BufferedFrom)
	}
	return nil
}

// loadSeedScope adds the hosts of all new seeds to the scope.
func (st *state) loadSeedScope(t *actor.Task) error {
	if !st.scopes.bounded() {
		st.seeds = len(st.cfg.Crawl.SeedBatches)
		return nil
	}
	for ; st.seeds < len(st.cfg.Crawl.SeedBatches); st.seeds++ {
		urls, err := blobschema.ReadSeeds(t.Object, st.cfg.Crawl.SeedBatches[st.seeds])
		if err != nil {
			return err
		}
		for _, q := range urls {
			if u, ok := weburl.Canonical(q.URL); ok {
				st.scopes.take(q.Topic, u.Host())
			}
		}
	}
	return nil
}

// republish sends the mail of a commit whose step may have crashed before it sent it.
func (s *Step) republish(t *actor.Task, seq uint64) error {
	s.outbox.unsent = append(s.outbox.unsent, seq)
	name := blobschema.CommitOf(&s.st.man, seq)
	if name == "" {
		return fmt.Errorf("the manifest of partition %d names outbox %d, but no such commit", s.cfg.Partition, seq)
	}
	outbox, err := section(t, name, (*blobschema.CommitReader).Outbox)
	if err != nil {
		return err
	}
	s.publish(seq, outbox)
	return nil
}

// madeWith returns the settings that a frontier is built with and keeps, as text to compare.
func madeWith(s *blobschema.Settings) string {
	return string(actor.Encode(blobschema.Settings{
		Delay: s.Delay, MaxHostURLs: s.MaxHostURLs, MaxDomainURLs: s.MaxDomainURLs,
		Hosts: s.Hosts, QueueBy: s.QueueBy, Queues: s.Queues, RecrawlPerHour: s.RecrawlPerHour,
	}))
}
