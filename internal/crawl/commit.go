package crawl

import (
	"errors"
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

// dirty reports whether a commit would hold anything new.
func (s *Step) dirty() bool {
	return !s.batch.empty() || s.st.f.Dirty() || len(s.st.ter.owed)+len(s.st.ter.arrived) > 0
}

func (s *Step) leaseLeft() time.Duration {
	return min(s.leaseEnd.Wall.Sub(s.Now().Wall), s.leaseEnd.Mono-s.Now().Mono)
}

// maxTries is how often a step tries to store something before it gives up: its
// successor will fetch again what was not committed.
const maxTries = 10

// put stores an object, trying a few times, or once if the step is to end anyway.
func (s *Step) put(e actor.PutObject, then func()) { s.tryPut(e, 1, then) }

func (s *Step) tryPut(e actor.PutObject, try int, then func()) {
	s.Issue(e, func(r actor.Reply) {
		switch {
		case r.Err == nil:
			then()
		case s.leaseLeft() < s.cfg.Margin || s.stopping || try >= maxTries:
			s.End(fmt.Errorf("put %s: %w", e.Name, r.Err))
		default:
			s.Issue(actor.Sleep{For: time.Second}, func(actor.Reply) { s.tryPut(e, try+1, then) })
		}
	})
}

// commit makes everything since the last commit visible, in one conditional write
// of the head. Fetching goes on meanwhile, into the next batch.
//
//	put WARCs → put commit object → head names it → mail sent, and mail acknowledged
//
// A crash before the head is written leaves objects that nothing names: nothing
// happened. A crash after it leaves an outbox that the manifest names, which the next
// step publishes, and mail that is delivered again, which its number tells.
func (s *Step) commit(t *actor.Task) error {
	if err := s.obeyWish(t); err != nil {
		return err
	}
	now := s.Clock()
	s.lastCommit = now
	s.sinceCommit, s.requested = 0, false
	s.seal()
	s.refusals() // the records of all that is settled are in this commit
	b := s.batch
	s.batch = &batch{}
	clears := s.clearing
	c, opened := s.nextCommit(b)
	object := naming.Commit(s.cfg.Crawl.ID, s.cfg.Partition, c.Manifest.Seq, s.head.Fence)
	links, h := s.takeHeld(c, now), s.links.Hash
	for p, l := range links {
		s.mailed[p] += len(l)
	}
	t.Await(func() bool { return b.puts == 0 })

	v, err := t.Do(actor.Work{Do: func() (any, error) { return encodeCommit(c, links, object, h) }})
	if err != nil {
		return fmt.Errorf("commit %s: %w", object, err)
	}
	enc := v.(*encoded)
	stored := false
	s.put(actor.PutObject{Name: object, Parts: [][]byte{enc.data}}, func() { stored = true })
	t.Await(func() bool { return stored })

	head := s.nextHead(object, &enc.manifest)
	if err := s.writeHead(t, head); err != nil {
		return err
	}
	s.st.man = enc.manifest
	s.st.forgetIndexes()
	s.st.f.Committed()
	s.st.f.Open(opened)
	if err := s.limitLooks(t); err != nil {
		return err
	}
	if len(opened) > 0 { // others may have had answers since
		s.st.formers.newest = recent[string, blobschema.Page]{}
	}
	s.st.ter.given = slices.Clone(s.st.man.Given)
	if clears {
		s.clearing = false
	}
	s.unsent = append(s.unsent, c.Manifest.Seq)
	s.publish(c.Manifest.Seq, enc.outbox)
	s.acknowledge(b.receipts)
	s.nudgeReceivers()
	s.compact()
	if s.suspect != nil {
		tk := *s.suspect
		s.suspect = nil
		s.fetch(tk)
	}
	return nil
}

// nextCommit is the commit of a batch, but for the mail. The slots that it takes over are
// to be opened when it is made.
func (s *Step) nextCommit(b *batch) (c *blobschema.Commit, opened partition.Slots) {
	s.placements() // what is forwarded in this commit is with its new owner in this commit
	old := &s.st.man
	man := blobschema.Manifest{
		Version: wire.Version, Crawl: s.cfg.Crawl.ID, Partition: s.cfg.Partition,
		Seq: old.Seq + 1, Fence: s.head.Fence, Epoch: s.st.ter.pmap.Epoch(), Time: s.Now().Wall.UTC(),
		Commits: appendCommit(old.Commits, old.Fence, old.Seq),
		Runs:    slices.Clone(old.Runs),
		Unsent:  slices.Clone(s.unsent), HeldFrom: map[partition.ID]uint64{}, Sent: maps.Clone(old.Sent),
		Applied: map[partition.ID]blobschema.Marks{}, Wish: s.st.wish.Version,
		Scope: slices.Clone(s.st.wish.Scope), NewScope: slices.Concat(old.NewScope, b.newScope), WARCs: b.warcs,
		Delay: s.cfg.Crawl.Settings.Delay, Seeds: s.st.seeds,
	}
	if m := s.st.merged; m != nil {
		man.Runs, man.Dropped = m.replace(man.Runs)
		s.st.merged = nil
	}
	if man.Sent == nil {
		man.Sent = map[partition.ID]uint64{}
	}
	for p, m := range s.st.marks {
		man.Applied[p] = m.stored()
	}
	for _, u := range slices.Sorted(maps.Keys(s.suspects)) {
		man.Suspects = append(man.Suspects, slices.Repeat([]string{u}, s.suspects[u])...)
	}
	if s.suspect != nil { // if nothing is heard of it any more, this counts against it
		man.Suspects = append(man.Suspects, s.suspect.Request.URL.String())
	}
	man.Careful, man.Alarms = s.careful, s.alarms
	run, hosts := s.st.f.Delta(man.Seq)
	s.give(&man)
	var floor time.Time
	if opened, floor = s.takeArrived(&man); floor.After(s.head.Floor) {
		s.head.Floor, s.floor = floor, floor
		s.st.f.Floor(floor)
	}
	man.Moved = s.st.ter.holding.Moved()
	man.Slots = s.st.f.Summaries()
	if limit := s.cfg.Crawl.Settings.MaxDomainURLs; limit > 0 {
		// Shares too small to matter for the sum are not worth telling.
		man.Domains = s.st.f.Domains(max(1, limit/int64(4*s.partitions())))
	}
	man.Totals = s.snapshotTotals()
	return &blobschema.Commit{Manifest: man, Pages: b.pages, Links: b.links, Outside: b.outside, Hosts: hosts, State: run}, opened
}

// appendCommit adds a commit to the ranges; seq 0 is none.
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

// takeHeld decides what of the held links goes into mail with commit c. The rest
// stays held: its new part goes into the commit.
func (s *Step) takeHeld(c *blobschema.Commit, now time.Time) map[partition.ID][]blobschema.Queued {
	mail := map[partition.ID][]blobschema.Queued{}
	c.Held = map[partition.ID][]blobschema.Queued{}
	for p, o := range s.st.out {
		if len(o.links) == 0 {
			continue
		}
		if s.flushes(p, o, now) {
			mail[p] = o.links
			*o = outgoing{}
			continue
		}
		if o.stored < len(o.links) {
			c.Held[p] = slices.Clone(o.links[o.stored:])
			if o.stored == 0 {
				o.since = c.Manifest.Seq
			}
			o.stored = len(o.links)
		}
		c.Manifest.HeldFrom[p] = o.since
	}
	if len(mail) > 0 {
		s.lastMail = now
	}
	c.Manifest.Totals.Held = s.held()
	return mail
}

// encoded is a commit ready to be put.
type encoded struct {
	data     []byte
	manifest blobschema.Manifest
	outbox   []blobschema.OutMail
}

// encodeCommit numbers the mail and encodes everything. It runs off the loop.
func encodeCommit(c *blobschema.Commit, links map[partition.ID][]blobschema.Queued, object string, h partition.Hash) (*encoded, error) {
	man := &c.Manifest
	for _, p := range slices.Sorted(maps.Keys(links)) {
		for _, part := range blobschema.SplitMail(links[p], mailRaw) {
			man.Sent[p]++
			body, err := blobschema.EncodeMail(blobschema.Mail{Crawl: man.Crawl, From: man.Partition, To: p, Number: man.Sent[p], Epoch: man.Epoch, URLs: part})
			if err != nil {
				return nil, err
			}
			c.Outbox = append(c.Outbox, blobschema.OutMail{To: p, Number: man.Sent[p], Body: body})
		}
	}
	if len(c.Outbox) > 0 {
		man.Unsent = append(man.Unsent, man.Seq)
	}
	data, out, err := blobschema.EncodeCommit(c, object, h)
	if err != nil {
		return nil, err
	}
	return &encoded{data: data, manifest: out, outbox: c.Outbox}, nil
}

// snapshotTotals are the totals as of now, the frontier's counts included.
func (s *Step) snapshotTotals() blobschema.Totals {
	t := s.st.totals
	t.Outcomes = maps.Clone(t.Outcomes)
	n := s.st.f.Counts()
	t.Known, t.Pending, t.Unexamined, t.Hosts, t.Urgent = n.Known, n.Pending, n.Unexamined, n.Hosts, n.Urgent
	t.WaitMillis += n.WaitMillis
	t.Capped += n.Capped
	t.Held = s.held()
	t.Topics = s.topicTotals()
	return t
}

// nextHead is the head that names a commit. It renews the lease.
func (s *Step) nextHead(object string, man *blobschema.Manifest) blobschema.Head {
	h := s.head
	h.Commit, h.Seq, h.Epoch = object, man.Seq, man.Epoch
	if settled(&man.Totals) > settled(&s.head.Totals) {
		h.Crashes = 0 // only progress ends a loop of crashes, not a commit by itself
	}
	h.Wish, h.Scope, h.Domains = man.Wish, man.NewScope, man.Domains
	h.Totals = man.Totals
	h.Applied, h.Requests = s.appliedIn(man), man.Applied[partition.Requests].Low
	h.Sent = make([]uint64, s.partitions())
	for p, n := range man.Sent {
		h.Sent[p] = n
	}
	h.Due = due(s.here(man.Slots))
	if looks(&s.cfg.Crawl.Settings) {
		h.Threshold, h.LooksDue = s.st.f.Threshold(), time.Time{}
	}
	s.tellMoves(&h, man)
	s.tell(&h)
	return h
}

// tell says in a head what the partition's steps have cost so far.
func (s *Step) tell(h *blobschema.Head) {
	if s.cfg.Spent != nil {
		h.Calls = s.taken.Calls
		h.Calls.Add(s.cfg.Spent())
	}
}

// settled is the number of URLs that have their outcome.
func settled(t *blobschema.Totals) (n int64) {
	for _, c := range t.Outcomes {
		n += c
	}
	return n
}

// appliedIn counts the mail that a manifest says is applied.
func (s *Step) appliedIn(man *blobschema.Manifest) (n uint64) {
	for _, m := range man.Applied {
		n += m.Low + uint64(len(m.Above))
	}
	return n
}

// here are those of some slots whose state is here, and which a step can thus do something
// for.
func (s *Step) here(slots []blobschema.SlotSummary) []blobschema.SlotSummary {
	awaited := s.st.ter.awaited
	if len(awaited) == 0 {
		return slots
	}
	return slices.DeleteFunc(slices.Clone(slots), func(sum blobschema.SlotSummary) bool { return awaited[sum.Slot] != 0 })
}

// due is when the first of the slots needs a step; zero for never.
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

// writeHead replaces the head and renews the lease, from before the call. A write
// in doubt is repeated unchanged until it is known whether it happened.
func (s *Step) writeHead(t *actor.Task, h blobschema.Head) error {
	end := actor.Now{Wall: s.Now().Wall.Add(s.cfg.Lease), Mono: s.Now().Mono + s.cfg.Lease}
	if h.Owner != "" {
		h.LeaseUntil = end.Wall.UTC()
	} else {
		h.LeaseUntil = time.Time{}
	}
	key, value := naming.HeadKey(s.cfg.Crawl.ID, s.cfg.Partition), actor.Encode(h)
	for try := 0; ; try++ {
		v, err := t.Do(actor.WriteRecord{Key: key, Value: value, Revision: s.rev})
		if errors.Is(err, actor.ErrConflict) {
			// Perhaps our own write, whose reply was lost.
			rec, rerr := t.Record(key)
			if rerr != nil {
				return rerr
			}
			if !rec.Found || string(rec.Value) != string(value) {
				return ErrLeaseLost
			}
			v, err = rec.Revision, nil
		}
		if err == nil {
			s.rev, s.head, s.leaseEnd = v, h, end
			if h.Owner != "" && s.inflight > 0 {
				s.Issue(actor.ExtendFetches{Deadline: s.fetchDeadline()}, func(actor.Reply) {})
			}
			return nil
		}
		if s.leaseLeft() <= 0 && s.head.Fence > 0 || try > 2*maxTries || s.stopping && try > 3 {
			return fmt.Errorf("write head of partition %d: %w", s.cfg.Partition, err)
		}
		t.Sleep(min(5*time.Second, 50*time.Millisecond<<min(try, 7)))
	}
}

// renew writes the head unchanged but for the lease.
func (s *Step) renew(t *actor.Task) error {
	h := s.head
	if err := s.writeHead(t, h); err != nil {
		return err
	}
	return s.obeyWish(t)
}

// acknowledge deletes mail whose effect is committed. What is lost here comes again.
func (s *Step) acknowledge(receipts []actor.Receipt) {
	if len(receipts) == 0 {
		return
	}
	s.publishing++
	s.Issue(actor.Acknowledge{Queue: naming.MailboxQueue(s.cfg.Partition), Receipts: receipts}, func(actor.Reply) { s.publishing-- })
}

// finish ends the step: a last commit that flushes all mail, grants given back, and
// the lease released; where nobody else does, a wake for later work is sent.
func (s *Step) finish(t *actor.Task) error {
	s.stopping, s.closed = true, true
	if s.dirty() || s.held() > 0 {
		if err := s.commit(t); err != nil {
			return err
		}
	}
	t.Await(func() bool { return s.publishing == 0 && !s.merging })
	if err := s.giveBack(t); err != nil {
		return err
	}
	h, wake := s.lastHead()
	if err := s.writeHead(t, h); err != nil {
		return err
	}
	if wake {
		s.sendWake(t, max(0, h.WakeAt.Sub(s.Now().Wall)), s.cfg.Partition)
	}
	s.End(nil)
	return nil
}
