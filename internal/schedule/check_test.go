package schedule

import "slices"

// check recomputes all counts that the schedule keeps, and compares.
func (r *rig) check() {
	r.t.Helper()
	s := r.s
	var want Counts
	var pending [256]int64
	bySite, byKey := map[*site]int{}, map[*Key]int{}
	for _, p := range r.pools {
		want.Pending += int64(p.npend)
		want.Urgent += int64(p.urgent)
		want.InFlight += int64(p.inFlight)
		want.Revisits += int64(p.revisits)
		r.checkPool(p, bySite, byKey)
		for i := range p.items {
			if it := &p.items[i]; it.length > 0 {
				pending[it.topic]++
			}
		}
	}
	want.Keys, want.WaitMillis = int64(len(r.group.keys)), s.tally.counts.WaitMillis
	if want != s.tally.counts || pending != s.tally.pending || int(want.Urgent) != r.group.urgent {
		r.t.Errorf("counts are %+v, should be %+v; by topic %v, should be %v", s.tally.counts, want, s.tally.pending[:4], pending[:4])
	}
	asking := map[*Key]int{}
	sites := slices.Clone(r.group.further)
	for _, k := range r.group.keys {
		sites = append(sites, &k.own)
		r.checkKey(k, r.group.Frozen)
	}
	for _, st := range sites {
		if st.pending != bySite[st] {
			r.t.Errorf("%s has %d pending URLs, but counts %d", st.name, bySite[st], st.pending)
		}
		asking[st.key] += r.checkOrigins(st)
	}
	for _, k := range r.group.keys {
		if byKey[k]+asking[k] != k.inFlight {
			r.t.Errorf("%s has %d URLs and %d robots.txt files under way, but counts %d", k.name, byKey[k], asking[k], k.inFlight)
		}
	}
	r.checkQueues()
	if r.t.Failed() {
		r.t.FailNow()
	}
}

// checkQueues checks the ready queues and the timers.
func (r *rig) checkQueues() {
	r.t.Helper()
	s := r.s
	for n, h := range slices.Concat(s.queues.ready.heaps, s.queues.ready.revisits) {
		topic, revisits := n%len(s.queues.ready.heaps), n >= len(s.queues.ready.heaps)
		for i, st := range h {
			k := st.key
			if k.state != ready || st.index != i || int(st.topic) != topic || (st.urgent == revisit) != revisits || s.keys[k.name] != k ||
				st.urgent != st.urgency() || k.readyAt().After(r.now) || len(st.lanes) == 0 || i > 0 && h[i].before(h[(i-1)/2]) {
				r.t.Errorf("ready queue %d of topic %d (%s) is in state %d at %d", i, topic, k.name, k.state, st.index)
			}
		}
	}
	for i, k := range s.queues.timers {
		if k.state != waiting || k.index != i || s.keys[k.name] != k || !k.at.Equal(k.readyAt()) || i > 0 && k.before(s.queues.timers[(i-1)/2]) {
			r.t.Errorf("waiting key %d (%s) is in state %d at %d", i, k.name, k.state, k.index)
		}
	}
}

// checkPool checks the items and queues of a pool.
func (r *rig) checkPool(p *Pool, bySite map[*site]int, byKey map[*Key]int) {
	r.t.Helper()
	spare, text, waits, asked, urgent, busyLanes, revisits := 0, 0, 0, 0, 0, 0, 0
	for i := p.spare; i > 0; i = p.items[i-1].pos {
		spare++
	}
	for i := range p.items {
		it := &p.items[i]
		if text += int(it.length); it.length == 0 {
			continue
		}
		st := p.lanes[it.lane].origin.site
		bySite[st]++
		if it.bits&isInFlight != 0 {
			asked++
			byKey[st.key]++
		} else if _, ok := p.followUps[uint32(i)]; ok {
			r.t.Errorf("%s has no request under way, but a follow-up", p.url(it))
		}
		if it.urgent() {
			urgent++
		}
		if r.s.cfg.Revisits && it.rank == revisitRank {
			revisits++
		}
		if _, ok := p.rare[uint32(i)]; ok != (it.bits&isRare != 0) {
			r.t.Errorf("%s is rare: %v", p.url(it), ok)
		}
		if w := r.at[it.fp]; w != (spot{p, uint32(i)}) || it.fp != r.hash.Fingerprint(p.url(it).String()) {
			r.t.Errorf("%s is at the wrong place", p.url(it))
		}
	}
	for n, l := range p.lanes {
		if l.pool != p || int(l.number) != n || !slices.Contains(l.origin.lanes, l) {
			r.t.Errorf("lane %d has the wrong pool, number or origin", n)
		}
		if l.inFlight {
			busyLanes++
		}
		for pos, i := range l.queue {
			waits++
			it := &p.items[i]
			if it.bits&isInFlight != 0 || int(it.pos) != pos || p.lanes[it.lane] != l || it.topic != l.topic || pos > 0 && p.less(i, l.queue[(pos-1)/2]) {
				r.t.Errorf("%s is wrongly in this lane or at the wrong place", p.url(it))
			}
		}
	}
	for _, k := range r.group.keys {
		for i, d := range k.later {
			if d.pool != p {
				continue
			}
			waits++
			if it := d.it(); int(it.pos) != i || p.rareOf(d.item).notBefore != d.at || it.bits&isInFlight != 0 || i > 0 && d.before(k.later[(i-1)/2]) {
				r.t.Errorf("%s wrongly waits until %d", p.url(it), d.at)
			}
		}
	}
	if len(p.items)-spare != p.npend || text != len(p.text)-p.dead || waits+asked != p.npend || busyLanes != asked || urgent != p.urgent || revisits != p.revisits {
		r.t.Errorf("%d items, %d spare, %d pending, %d wait, %d are under way of %d lanes, %d of %d urgent, %d of %d revisits; %d bytes of text",
			len(p.items), spare, p.npend, waits, asked, busyLanes, urgent, p.urgent, revisits, p.revisits, text)
	}
}

// checkKey checks the topic queues and lanes of a key.
func (r *rig) checkKey(k *Key, frozen bool) {
	r.t.Helper()
	if k.inFlight < 0 || k.inFlight > k.allowed || (k.state == busy) != (k.inFlight == k.allowed || k.starting != nil) || k.starting != nil && k.inFlight == 0 {
		r.t.Errorf("key %s has %d of %d requests under way, but is in state %d", k.name, k.inFlight, k.allowed, k.state)
	}
	if k.state == idle && k.waits() && !frozen {
		r.t.Errorf("key %s has URLs, but is in no queue", k.name)
	}
	topics := map[uint8]bool{}
	for _, st := range k.topicQueues {
		if st.key != k || topics[st.topic] {
			r.t.Errorf("a topic queue of %s has another key, or exists twice", k.name)
		}
		topics[st.topic] = true
		if queued := k.state == ready && len(st.lanes) > 0; queued != (st.index >= 0) {
			r.t.Errorf("the queue of %s in topic %d is at %d, with %d lanes", k.name, st.topic, st.index, len(st.lanes))
		}
		for i, l := range st.lanes {
			if l.where != open || l.index != i || l.topicQueue != st || l.topic != st.topic || l.origin.site.key != k || len(l.queue) == 0 || i > 0 && st.lanes[i].before(st.lanes[(i-1)/2]) {
				r.t.Errorf("lane %d of %s is out of place", i, k.name)
			}
		}
	}
	for i, l := range k.blocked {
		if l.where != blocked || l.index != i || l.origin.site.key != k || len(l.queue) == 0 || i > 0 && k.blocked[i].before(k.blocked[(i-1)/2]) {
			r.t.Errorf("blocked lane %d of %s is out of place", i, k.name)
		}
	}
}

// checkOrigins checks the origins of a site and their lanes, and counts the requests for robots.txt under way.
func (r *rig) checkOrigins(st *site) (asking int) {
	r.t.Helper()
	for i := range st.origins {
		d := &st.origins[i]
		if d.site != st || d.https != (i == 1) {
			r.t.Errorf("an origin of %s has another site", st.name)
		}
		if d.asking {
			asking++
		}
		for _, l := range d.lanes {
			if l.origin != d || l.pool.lanes[l.number] != l || l.topicQueue.key != st.key {
				r.t.Errorf("a lane of %s has another origin", st.name)
			}
			closed := len(l.queue) == 0 || l.inFlight || d.asking || l.pool.full
			if (l.where == nowhere) != closed {
				r.t.Errorf("a lane of %s has %d URLs and is in %d", st.name, len(l.queue), l.where)
			}
		}
	}
	return asking
}
