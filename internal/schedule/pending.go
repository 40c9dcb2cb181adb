package schedule

import (
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// Source is the origin of an entry.
type Source uint8

// The sources.
const (
	Outside    Source = iota // not from the stored state
	Appended                 // appended to a part that was not in memory; perhaps in no run yet
	Unexamined               // from a run of a part with appended entries, and perhaps one of them
	Stored                   // from a run, and unchanged since
)

// inRun reports whether a run holds the entry, so that the next delta can leave it out.
func (f Source) inRun() bool { return f >= Unexamined }

// Known returns the number of known URLs of the site of a URL.
func (s *Schedule) Known(k *Key, u weburl.URL) uint64 { return s.sites.of(k, u).known() }

// Settled returns the number of settled URLs of the site of a URL.
func (s *Schedule) Settled(k *Key, u weburl.URL) uint64 { return s.sites.of(k, u).settled }

// CountSettled counts settled URLs of the site of a URL.
func (s *Schedule) CountSettled(k *Key, u weburl.URL, n int) { s.countSettled(s.sites.of(k, u), n) }

// CountCapped counts a URL of a site that a cap left out.
func (s *Schedule) CountCapped(k *Key, u weburl.URL) {
	st := s.sites.of(k, u)
	st.capped++
	k.capped++
	s.changes.site(st)
}

// Fits reports whether the pool has room for another URL.
func (p *Pool) Fits() bool { return len(p.text) <= maxText }

// Insert adds a URL that is not pending, and returns its item.
func (s *Schedule) Insert(now time.Time, p *Pool, k *Key, u weburl.URL, fp uint64, q *blobschema.Queued, from Source) uint32 {
	st := s.sites.of(k, u)
	l := s.lane(p, st, u, q.Topic)
	s.seq++
	i := p.newItem(item{
		fp: fp, seq: s.seq, rank: q.Rank, gen: q.Generation, lane: l.number, topic: l.topic, depth: q.Depth, attempts: q.Attempts,
	}, u.RequestURI())
	p.items[i].setFlags(q.Flags)
	if q.NotBefore != 0 || q.Previous != (blobschema.RecordRef{}) || q.Change != (blobschema.Change{}) {
		p.setRare(i, func(r *rare) { r.notBefore, r.previous, r.change = q.NotBefore, q.Previous, q.Change })
	}
	s.tally.counts.Pending++
	s.tally.pending[l.topic]++
	k.pending++
	st.pending++
	s.tally.count(p, &p.items[i], 1)
	k.add(p, i, now)
	s.queues.enqueue(k, now)
	if !from.inRun() {
		s.changes.item(p, i)
	}
	return i
}

// Join merges another entry of a pending URL into its item, field by field, as the merge of runs
// does. It reports whether the item changed.
func (s *Schedule) Join(now time.Time, p *Pool, i uint32, q *blobschema.Queued, from Source) bool {
	it := &p.items[i]
	if it.bits&isInFlight != 0 && q.Generation > it.gen {
		return s.fetchAgain(p, i, q, true)
	}
	old, oldMore := *it, p.rareOf(i)
	more, topic := oldMore, it.topic
	switch {
	case q.Generation > it.gen:
		topic = q.Topic
		it.gen, it.depth, it.rank, it.attempts = q.Generation, q.Depth, q.Rank, q.Attempts
		it.setFlags(q.Flags)
	case q.Generation < it.gen && q.Flags&blobschema.FlagSeed == 0:
		return false
	default: // a seed is a seed in every generation
		if q.Generation == it.gen {
			topic = s.joinFind(it, q, from)
		}
		it.setFlags(it.allFlags().Join(q.Flags))
	}
	if q.Previous.Compare(more.previous) > 0 {
		more.previous = q.Previous
	}
	if q.Change.Compare(more.change) > 0 {
		more.change = q.Change
	}
	lane := p.relaned(it, topic)
	if *it == old && more == oldMore && lane == it.lane {
		return false
	}
	if more != oldMore {
		p.setRare(i, func(r *rare) { *r = more })
	}
	s.moved(now, p, i, &old, lane)
	if !from.inRun() {
		s.changes.item(p, i)
	}
	return true
}

// joinFind merges another find of an item's generation into its rank, depth and attempts, and returns its topic. A find as
// a page counts more than one as a requisite.
func (s *Schedule) joinFind(it *item, q *blobschema.Queued, from Source) (topic uint8) {
	it.attempts = max(it.attempts, q.Attempts)
	switch {
	case it.requisite() && !q.Flags.Requisite():
		it.rank, it.depth = q.Rank, q.Depth
		return q.Topic
	case q.Flags.Requisite() && !it.requisite():
		return it.topic
	case from == Outside && it.rank > 0 && q.Rank > 0 && !it.requisite():
		it.rank = s.Rank(it.gen, s.cfg.Policy.Found(it.rank, q.Rank))
	default:
		it.rank = min(it.rank, q.Rank)
	}
	it.depth = min(it.depth, q.Depth)
	return min(it.topic, q.Topic)
}

// Again makes a pending URL urgent because somebody requested it. If done is false, the caller must
// still join q, which Again completes. changed reports whether the item changed.
func (s *Schedule) Again(now time.Time, p *Pool, i uint32, q *blobschema.Queued) (done, changed bool) {
	it := &p.items[i]
	switch {
	case it.bits&isInFlight != 0:
		return true, s.fetchAgain(p, i, q, false)
	case p.waitsForRevisit(i):
		s.reschedule(now, p, i, now, 0)
		return true, true
	}
	q.Generation, q.Depth, q.Attempts, q.Topic = it.gen, it.depth, it.attempts, it.topic
	return false, false
}

// RetryRobots allows the robots.txt of a requested URL to be fetched again if the last attempt
// failed. Otherwise that failure would refuse the URL for a day.
func (s *Schedule) RetryRobots(now time.Time, p *Pool, i uint32) {
	if d := p.lanes[p.items[i].lane].origin; d.Rules != nil && d.Rules.Unreachable() && d.Until.After(now) {
		d.Until = now
		s.changes.site(d.site)
	}
}

// relaned returns the number of the lane in which an item belongs under a topic.
func (p *Pool) relaned(it *item, topic uint8) uint32 {
	if it.topic == topic {
		return it.lane
	}
	l := p.lanes[it.lane]
	return l.origin.lane(p, topic, l.sub).number
}

// moved requeues a pending item whose urgency, rank or lane has changed.
func (s *Schedule) moved(now time.Time, p *Pool, i uint32, old *item, lane uint32) {
	it := &p.items[i]
	if it.rank == old.rank && it.urgent() == old.urgent() && it.lane == lane {
		return
	}
	s.tally.count(p, old, -1)
	s.tally.count(p, it, 1)
	if it.bits&isInFlight != 0 || p.rareOf(i).notBefore != 0 {
		s.tally.setLane(p, it, lane)
		return // it is in no queue that is ordered by rank
	}
	l := p.lanes[it.lane]
	if it.lane != lane {
		l.remove(int(it.pos))
		l.enlist(now)
		s.tally.setLane(p, it, lane)
		l.topicQueue.key.push(p, i, now)
	} else {
		l.up(int(it.pos))
		l.down(int(it.pos))
		l.enlist(now)
	}
	s.queues.enqueue(l.topicQueue.key, now)
}

// fetchAgain plans the next generation of an item whose request is under way. It reports whether the
// plan changed.
func (s *Schedule) fetchAgain(p *Pool, i uint32, q *blobschema.Queued, firm bool) bool {
	it := &p.items[i]
	w, ok := p.followUps[i]
	old := w
	switch {
	case !ok && !firm:
		w = followUp{gen: it.gen + 1, rank: q.Rank, depth: q.Depth, flags: q.Flags, topic: q.Topic}
	case !ok || firm && q.Generation > w.gen:
		w = followUp{gen: q.Generation, rank: q.Rank, depth: q.Depth, flags: q.Flags, topic: q.Topic, firm: true}
	case firm && q.Generation < w.gen:
		return false
	default:
		w.rank, w.depth, w.flags, w.firm = min(w.rank, q.Rank), min(w.depth, q.Depth), w.flags|q.Flags, w.firm || firm
		w.topic = min(w.topic, q.Topic)
	}
	if ok && w == old {
		return false
	}
	if p.followUps == nil {
		p.followUps = map[uint32]followUp{}
	}
	p.followUps[i] = w
	s.changes.item(p, i)
	return true
}

// Pin moves the URLs of a name whose address is known to near, the key of the address in the same
// group. If near is nil, they end as forwarded.
func (s *Schedule) Pin(now time.Time, k, near *Key) {
	for _, w := range k.empty() {
		if near != nil {
			s.move(w, near, now)
			continue
		}
		url := w.pool.url(w.it())
		s.end(w, blobschema.Forwarded).URL = url
	}
}

// move gives an item that is in no queue to another key of its group.
func (s *Schedule) move(w spot, to *Key, now time.Time) {
	p, it := w.pool, w.it()
	l := p.lanes[it.lane]
	l.origin.site.pending--
	l.topicQueue.key.pending--
	url := p.url(it)
	st := s.sites.of(to, url)
	st.pending++
	to.pending++
	it.lane = s.lane(p, st, url, l.topic).number
	it.setFlags(it.allFlags() | blobschema.FlagPlaced)
	s.changes.item(p, w.item)
	to.add(p, w.item, now)
	s.queues.enqueue(to, now)
}
