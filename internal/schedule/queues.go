package schedule

import "time"

// queues holds the keys that wait for a request, each in one queue.
type queues struct {
	policy  Policy
	ready   readyQueue
	timers  heap[*Key]
	pauses  [pauseKinds]int // keys in the timers, by reason
	turn    uint64          // number of the last arrival
	virtual uint64          // virtual time of fair queueing: the turn of the key taken last
	view    KeyView         // scratch of rank, which is called too often to allocate one each time
	viewed  [1]*topicQueue  // of view
}

// wake enqueues the keys whose time has come, and returns the sum of their waits in milliseconds.
func (q *queues) wake(now time.Time) (waited int64) {
	for len(q.timers) > 0 && !q.timers[0].at.After(now) {
		k := q.timers.pop()
		waited += now.Sub(k.since).Milliseconds()
		k.state = idle
		q.pauses[k.pause]--
		q.enqueue(k, now)
	}
	return waited
}

// enqueue puts a key that is not busy into the queue it belongs in.
func (q *queues) enqueue(k *Key, now time.Time) {
	if k.state == busy || k.group.Filling { // Filled enqueues all keys of the group
		return
	}
	k.promote(now)
	if k.group.Frozen {
		return
	}
	switch k.state {
	case ready: // it keeps its turn
		if k.open() {
			q.updateReady(k)
			return
		}
		q.dequeue(k)
	case waiting:
		if k.waits() && k.at.Equal(k.readyAt()) && k.at.After(now) {
			return
		}
		q.dequeue(k)
	}
	if !k.waits() {
		return
	}
	q.turn++
	k.turn = q.turn
	if at := k.readyAt(); at.After(now) {
		q.await(k, at, now)
		return
	}
	if k.connected && k.requests == 1 && q.outranked(k) {
		k.served, k.connected = 0, false
	}
	if !k.connected { // otherwise its visit continues in the same turn
		k.start = k.domain.nextTurn(q.virtual)
	}
	k.state = ready
	q.updateReady(k)
}

// rank sets the policy's rank of a topic queue that has URLs.
func (q *queues) rank(st *topicQueue) {
	k := st.key
	q.viewed[0] = st
	q.view = KeyView{Pending: k.pending, Allowed: k.allowed, Pace: &k.pace, topicQueues: q.viewed[:]}
	st.rank = q.policy.KeyRank(&q.view)
	st.ranked, st.top = k.pending, st.best()
}

// outranked reports whether another ready key ranks above a key that has answered once. The first
// answer shows how fast the host is; later answers change little, so they do not end a visit.
func (q *queues) outranked(k *Key) bool {
	for _, st := range k.topicQueues {
		if len(st.lanes) == 0 {
			continue
		}
		q.rank(st)
		if h := *q.ready.heap(st); len(h) > 0 && h[0].rank > st.rank {
			return true
		}
	}
	return false
}

// updateReady puts the topic queues of a ready key into the queues of their topics, and removes those
// without a URL.
func (q *queues) updateReady(k *Key) {
	for _, st := range k.topicQueues {
		urgent := st.urgency()
		if st.urgent != urgent {
			q.ready.remove(st)
			st.urgent = urgent
		}
		queue := q.ready.heap(st)
		switch {
		case len(st.lanes) == 0:
			q.ready.remove(st)
		case st.index < 0:
			if !k.connected || st.ranked == 0 { // otherwise its visit continues
				q.rank(st)
			}
			queue.push(st)
		case k.pending > st.ranked+st.ranked/4 || st.best() < st.top: // its rank may have risen
			q.rank(st)
			queue.fix(st.index)
		}
	}
}

// dequeue takes a key out of its queue, if it is in one.
func (q *queues) dequeue(k *Key) {
	switch k.state {
	case waiting:
		q.timers.remove(k.index)
		q.pauses[k.pause]--
	case ready:
		for _, st := range k.topicQueues {
			q.ready.remove(st)
		}
	default:
		return
	}
	k.state = idle
}

// await puts an idle key into the timers.
func (q *queues) await(k *Key, at, now time.Time) {
	k.state, k.at, k.since = waiting, at, now
	switch {
	case !k.pace.BackoffUntil.After(now):
		k.pause = paced
	case k.silent:
		k.pause = unanswered
	default:
		k.pause = backedOff
	}
	q.pauses[k.pause]++
	q.timers.push(k)
}

// awaitUrgent moves ready keys without an urgent URL, but perhaps with a delayed one, to the timers
// until the first delayed URL is due. Otherwise they would stay in the ready queue, where only
// urgent URLs are taken, and no timer would wake them.
func (q *queues) awaitUrgent(now time.Time, revisits bool) {
	var hidden []*Key
	for _, h := range q.ready.heaps {
		for _, st := range h {
			if k := st.key; len(k.blocked)+len(k.later) > 0 && !k.hasUrgent() && (revisits || k.group.urgent > 0) {
				hidden = append(hidden, k)
			}
		}
	}
	for _, k := range hidden {
		if k.state != ready { // it has several topic queues
			continue
		}
		k.revisited = false // while only urgent URLs are taken, new ones have no turn
		if q.enqueue(k, now); k.hasUrgent() || k.state != ready {
			continue
		}
		if at := k.nextTry(); !at.IsZero() {
			q.dequeue(k)
			q.await(k, at, now)
		}
	}
}
