package crawl

import (
	"maps"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
)

// obey reads the desired state and does what has changed in it: orders, capped domains, the map, slices, the threshold of
// revisits, ranks of hosts, and the scope.
func (s *Step) obey(t *actor.Task) error {
	s.orders.signalled = false
	defer s.applyLater()
	// Mail that waits may refer to a newer map.
	if len(s.inbox.later) > 0 {
		if err := s.st.learnMap(t); err != nil {
			return err
		}
	}
	recs, err := t.Records(naming.DesiredKey(s.cfg.Crawl.ID), naming.CrawlKey(s.cfg.Crawl.ID))
	if err != nil {
		return err
	}
	if recs[0].Found {
		w, err := actor.Decode[blobschema.DesiredState](recs[0], "desired state")
		if err != nil {
			return err
		}
		// Orders come first, because they may end the step.
		s.orders.paused = w.Pause
		if s.orders.halted = w.Stop; w.Stop {
			s.stop()
		}
		// Each other change is applied if it differs from what the step knows.
		if old := &s.st.desired; len(w.Capped)+len(w.HalfCapped) != len(old.Capped)+len(old.HalfCapped) { // the lists only grow
			old.Capped, old.HalfCapped = w.Capped, w.HalfCapped
			s.st.f.CapDomains(w.Capped, w.HalfCapped)
		}
		if w.Map > s.st.ter.record.Version {
			if err := s.st.learnMap(t); err != nil {
				return err
			}
		}
		if !maps.Equal(w.Slices, s.st.desired.Slices) {
			s.st.desired.Slices = w.Slices
			s.st.f.SetTopics(topics(&s.cfg.Crawl.Settings, w.Slices))
		}
		s.st.obeyThreshold(w.Threshold)
		if err := s.st.takeRanks(t, w.HostRanks); err != nil {
			return err
		}
		// A new version may widen the scope, or add seeds and topics.
		switch {
		case w.Version != s.st.desired.Version:
			err = s.obeyScope(t, w, recs[1])
		case !s.orders.informed: // earlier steps may have read a newer record than this step began with
			err = s.st.takeRecord(t, recs[1], w.Slices)
		}
		if err != nil {
			return err
		}
		s.orders.informed = true
	}
	return nil
}

// obeyScope adds new hosts to the scope and follows the links to them that were out of scope when they were found. Every
// commit keeps its own such links.
func (s *Step) obeyScope(t *actor.Task, w blobschema.DesiredState, rec actor.Record) error {
	s.reading.rescan = true
	defer func() { s.reading.rescan = false }()
	before := s.st.seeds
	if err := s.st.takeRecord(t, rec, w.Slices); err != nil {
		return err
	}
	news := s.st.seeds != before
	for _, entry := range w.Scope {
		if slices.Contains(s.st.desired.Scope, entry) {
			continue
		}
		news = true
		s.st.scopes.add(entry)
	}
	if news {
		if err := s.st.rescan(t); err != nil {
			return err
		}
	}
	s.st.desired = w
	s.st.batch.applied = true // the head must report that the desired state is obeyed
	return nil
}

// takeRecord takes topics and seeds from the crawl record.
func (st *state) takeRecord(t *actor.Task, rec actor.Record, shrunk map[uint8]time.Duration) error {
	if rec.Found {
		c, err := actor.Decode[blobschema.Crawl](rec, "crawl")
		if err != nil {
			return err
		}
		st.cfg.Crawl.SeedBatches = c.SeedBatches
		if err := st.takeTopics(c.Settings.Topics, shrunk); err != nil {
			return err
		}
	}
	return st.loadSeedScope(t)
}

// rescan follows the links in the batch and in all commits that were out of scope and no longer are.
func (st *state) rescan(t *actor.Task) error {
	again := func(links []blobschema.Queued) {
		for _, q := range links {
			l, ok := st.links.Stored(&q)
			if sc := st.scopes.of(l.Topic); !ok || !sc.host(l.URL.Host()) || !sc.patterns(l.URL) {
				continue
			}
			if st.owner(l.Slot) != st.cfg.Partition {
				st.buffer(l) // bypasses the filter of sent links, which knows it
				continue
			}
			st.add(l)
		}
	}
	again(st.batch.outside)
	if st.man.Seq == 0 || !st.scopes.bounded() {
		return nil
	}
	for name := range blobschema.CommitNames(&st.man) {
		links, err := section(t, name, (*blobschema.CommitReader).Outside)
		if err != nil {
			return err
		}
		again(links)
	}
	return nil
}
