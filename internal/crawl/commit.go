package crawl

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

// commit makes everything since the last commit visible, in one conditional write of the head. Fetching continues
// meanwhile, into the next batch.
//
//	put WARCs → put commit object → head names it → mail sent, and mail acknowledged
//
// A crash before the head is written leaves objects that nothing names: nothing happened. A crash after it leaves an outbox
// that the manifest names, which the next step publishes, and mail that is delivered again and recognised by its number.
func (s *Step) commit(t *actor.Task) error {
	if err := s.obey(t); err != nil {
		return err
	}
	// From here on, events belong to the next batch.
	now := s.Clock()
	b := s.st.batch
	s.st.archive.seal(b)
	s.st.refusals() // this commit holds the records of everything that is settled
	s.st.batch = &batch{begun: now}
	clears := s.care.clearing
	c, opened := s.nextCommit(b)
	object := naming.Commit(s.cfg.Crawl.ID, s.cfg.Partition, c.Manifest.Seq, s.lease.head.Fence)
	all := s.lease.phase >= ending || s.idle()
	links, h := s.st.out.take(c, func(p partition.ID, n int) bool { return all || s.outbox.flushes(p, n, now) }), s.st.links.Hash
	for p, l := range links {
		s.outbox.mailed[p] += len(l)
		s.outbox.mailedAt = now
	}
	// The WARC objects must be stored before a commit names them.
	t.Await(func() bool { return b.puts == 0 })

	// A crash before the head is written leaves objects that nothing names.
	var data []byte
	var man blobschema.Manifest
	_, err := t.Do(actor.Work{Do: func() (_ any, err error) { // off the loop
		if err = numberMail(c, links); err == nil {
			data, man, err = blobschema.EncodeCommit(c, object, h)
		}
		return nil, err
	}})
	if err != nil {
		return fmt.Errorf("commit %s: %w", object, err)
	}
	stored := false
	s.lease.put(actor.PutObject{Name: object, Parts: [][]byte{data}}, func() { stored = true })
	t.Await(func() bool { return stored })

	head := s.nextHead(object, &man)
	if err := s.writeHead(t, head); err != nil {
		return err
	}

	// Now the commit is visible. Whatever a crash leaves undone from here on, the next step or the coordinator does.
	s.st.man = man
	s.st.forgetIndexes()
	s.st.f.Committed()
	s.st.f.Open(opened)
	if err := s.limitRevisits(t); err != nil {
		return err
	}
	if len(opened) > 0 { // the previous owner may have stored newer answers
		s.st.cache.newest = recent[string, blobschema.Page]{}
	}
	s.st.ter.given = slices.Clone(s.st.man.Given)
	if clears {
		s.care.clearing = false
	}
	s.outbox.unsent = append(s.outbox.unsent, c.Manifest.Seq)
	s.publish(c.Manifest.Seq, c.Outbox)
	s.outbox.acknowledge(b.receipts)
	s.nudgeReceivers()
	s.compact()
	if tk := s.care.release(); tk != nil {
		s.fetch(*tk)
	}
	return nil
}

// publish sends the mail of a commit.
func (s *Step) publish(seq uint64, mail []blobschema.OutMail) {
	s.outbox.publish(seq, mail, func(t *actor.Task) {
		if s.cfg.SendsWakes && !s.orders.paused && !s.orders.halted {
			s.outbox.wakeMailed(t, s.st.partitions())
		}
	})
}

// writeHead replaces the head and renews the lease, also for the requests under way.
func (s *Step) writeHead(t *actor.Task, h blobschema.Head) error {
	err := s.lease.write(t, h)
	if err == nil && h.Owner != "" && s.underWay > 0 {
		s.Issue(actor.ExtendFetches{Deadline: s.lease.deadline()}, func(actor.Reply) {})
	}
	return err
}

// nextCommit returns the commit of a batch, without the mail, and the slots that it takes over. They are opened once the
// commit is visible.
func (s *Step) nextCommit(b *batch) (c *blobschema.Commit, opened partition.Slots) {
	s.st.placements() // what this commit forwards must be in its mail or its state
	old := &s.st.man
	man := blobschema.Manifest{
		Version: wire.Version, Crawl: s.cfg.Crawl.ID, Partition: s.cfg.Partition,
		Seq: old.Seq + 1, Fence: s.lease.head.Fence, Epoch: s.st.ter.pmap.Epoch(), Time: s.Now().Wall.UTC(),
		Commits: appendCommit(old.Commits, old.Fence, old.Seq),
		Runs:    slices.Clone(old.Runs),
		Unsent:  slices.Clone(s.outbox.unsent), BufferedFrom: map[partition.ID]uint64{}, Sent: maps.Clone(old.Sent),
		Applied: map[partition.ID]blobschema.Marks{}, Desired: s.st.desired.Version,
		Scope: slices.Clone(s.st.desired.Scope), NewScope: slices.Concat(old.NewScope, b.newScope), WARCs: b.warcs,
		Delay: s.cfg.Crawl.Settings.Delay, Seeds: s.st.seeds,
	}
	// A finished merge replaces its runs.
	if m := s.st.merged; m != nil {
		man.Runs, man.Dropped = m.replace(man.Runs)
		s.st.merged = nil
	}
	if man.Sent == nil {
		man.Sent = map[partition.ID]uint64{}
	}
	// The marks say which mail is applied.
	for p, m := range s.st.marks {
		man.Applied[p] = blobschema.Marks{Low: m.Low, Above: slices.Clone(m.Above)}
	}
	s.care.record(&man)
	run, hosts := s.st.f.Delta(man.Seq)
	// Slots leave and arrive after the state of the frontier was taken.
	s.st.give(&man)
	var floor time.Time
	if opened, floor = s.st.takeArrived(&man); floor.After(s.lease.head.Floor) {
		s.lease.head.Floor, s.lease.floor = floor, floor
		s.st.f.Floor(floor)
	}
	man.Moved = s.st.ter.holding.Moved()
	man.Slots = s.st.f.Summaries()
	if limit := s.cfg.Crawl.Settings.MaxDomainURLs; limit > 0 {
		// Shares too small to change the sum are left out.
		man.Domains = s.st.f.Domains(max(1, limit/int64(4*s.st.partitions())))
	}
	man.Totals, man.Calls = s.st.figures(), s.lease.spent()
	return &blobschema.Commit{Manifest: man, Pages: b.pages, Links: b.links, Outside: b.outside, Hosts: hosts, State: run}, opened
}

// appendCommit adds a commit to the ranges; seq 0: no commit.
func appendCommit(ranges []blobschema.CommitRange, fence, seq uint64) []blobschema.CommitRange {
	if seq == 0 {
		return nil
	}
	out := slices.Clone(ranges)
	if n := len(out); n > 0 && out[n-1].Fence == fence && out[n-1].To == seq-1 {
		out[n-1].To = seq
		return out
	}
	return append(out, blobschema.CommitRange{Fence: fence, From: seq, To: seq})
}

// numberMail puts the links for other partitions into the outbox of a commit, as numbered mail.
func numberMail(c *blobschema.Commit, links map[partition.ID][]blobschema.Queued) error {
	man := &c.Manifest
	for _, p := range slices.Sorted(maps.Keys(links)) {
		for _, part := range blobschema.SplitMail(links[p], mailRaw) {
			man.Sent[p]++
			body, err := blobschema.EncodeMail(blobschema.Mail{Crawl: man.Crawl, From: man.Partition, To: p, Number: man.Sent[p], Epoch: man.Epoch, URLs: part})
			if err != nil {
				return err
			}
			c.Outbox = append(c.Outbox, blobschema.OutMail{To: p, Number: man.Sent[p], Body: body})
		}
	}
	if len(c.Outbox) > 0 {
		man.Unsent = append(man.Unsent, man.Seq)
	}
	return nil
}

// nextHead returns the head that names a commit.
func (s *Step) nextHead(object string, man *blobschema.Manifest) blobschema.Head {
	h := s.lease.head
	h.Commit, h.Seq, h.Epoch = object, man.Seq, man.Epoch
	if settled(&man.Totals) > settled(&s.lease.head.Totals) {
		h.Crashes = 0 // only progress ends a series of crashes, not a commit by itself
	}
	h.Desired, h.Scope, h.Domains = man.Desired, man.NewScope, man.Domains
	h.Totals = man.Totals
	h.Applied, h.Requests = 0, man.Applied[partition.Requests].Low
	for _, m := range man.Applied {
		h.Applied += m.Count()
	}
	h.Sent = make([]uint64, s.st.partitions())
	for p, n := range man.Sent {
		h.Sent[p] = n
	}
	h.Due = due(s.st.here(man.Slots))
	if revisits(&s.cfg.Crawl.Settings) {
		h.Threshold, h.RevisitsDue = s.st.f.Threshold(), time.Time{}
	}
	s.st.recordMoves(&h, man)
	h.Calls = s.lease.spent()
	return h
}

// settled returns the number of URLs that have their outcome.
func settled(t *blobschema.Totals) (n int64) {
	for _, c := range t.Outcomes {
		n += c
	}
	return n
}

// due returns when the first of the slots needs a step; zero: never.
func due(slots []blobschema.SlotSummary) time.Time {
	first := int64(0)
	for _, sum := range slots {
		d := sum.Due
		if sum.Unexamined > 0 {
			d = 1
		}
		if d > 0 && (first == 0 || d < first) {
			first = d
		}
	}
	if first == 0 {
		return time.Time{}
	}
	return time.UnixMilli(first).UTC()
}

// renew writes the head with nothing changed except the lease.
func (s *Step) renew(t *actor.Task) error {
	h := s.lease.head
	if err := s.writeHead(t, h); err != nil {
		return err
	}
	return s.obey(t)
}

// finish ends the step: it commits and flushes all mail, returns unused grants and releases the lease. Where steps send
// wakes, it wakes the partition for later work.
func (s *Step) finish(t *actor.Task) error {
	s.lease.phase, s.lease.hurry = closed, true
	if s.st.dirty() || s.st.out.links() > 0 {
		if err := s.commit(t); err != nil {
			return err
		}
	}
	t.Await(func() bool { return s.outbox.publishing == 0 && !s.reading.merge })
	if err := s.budget.giveBack(t, &s.st.totals.Pages); err != nil {
		return err
	}
	h, wake := s.lastHead()
	if err := s.writeHead(t, h); err != nil {
		return err
	}
	if wake {
		s.outbox.wake(t, max(0, h.WakeAt.Sub(s.Now().Wall)), s.cfg.Partition)
	}
	s.End(nil)
	return nil
}
