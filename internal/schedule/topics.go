package schedule

import (
	"cmp"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// Topic holds the scheduling parameters of a topic (Fan, Li).
type Topic struct {
	Priority int
	Slice    time.Duration // length of a turn; default blobschema.DefaultSlice
}

// readyQueue holds the topic queues that may send a request now, by topic. The topic with the highest
// priority goes first. It preempts others between two requests; no connection is closed for
// that. Topics of one priority take turns of the length of their slices. Requests that the topic
// in turn cannot use go to the others, one at a time.
//
// Topic queues whose best URL is a due revisit have heaps of their own. A revisit goes before new URLs.
// But while new URLs are ready, at most every other request is a revisit. Otherwise a crawl with few
// connections that is behind with its revisits would never fetch a new URL.
type readyQueue struct {
	topics   []Topic
	began    time.Time           // start of the first round of slices
	pending  *[256]int64         // URLs of parts in memory that are not settled, by topic
	heaps    []heap[*topicQueue] // by topic: new URLs, and those requested
	revisits []heap[*topicQueue] // by topic: due revisits
	fillers  map[int]int         // topic that got the last request that the one in turn could not use, by priority
	revisit  bool                // the last request was a revisit
}

// setTopics changes priorities and slices; there may be more topics than before.
func (q *readyQueue) setTopics(topics []Topic) {
	q.topics = topics
	q.grow(len(topics))
}

// grow makes heaps for n topics, at least for one.
func (q *readyQueue) grow(n int) {
	for len(q.heaps) < max(1, n) {
		q.heaps, q.revisits = append(q.heaps, nil), append(q.revisits, nil)
	}
}

// heap returns the heap for a topic queue. An unknown topic has priority 0.
func (q *readyQueue) heap(st *topicQueue) *heap[*topicQueue] {
	q.grow(int(st.topic) + 1)
	if st.urgent == revisit {
		return &q.revisits[st.topic]
	}
	return &q.heaps[st.topic]
}

func (q *readyQueue) rule(topic int) (t Topic) {
	if topic < len(q.topics) {
		return q.topics[topic]
	}
	return Topic{}
}

// remove takes a topic queue out of its queue, if it is in one.
func (q *readyQueue) remove(st *topicQueue) {
	if st.index >= 0 {
		q.heap(st).remove(st.index)
	}
}

// empty reports whether no topic queue is ready.
func (q *readyQueue) empty() bool {
	for i := range q.heaps {
		if len(q.heaps[i])+len(q.revisits[i]) > 0 {
			return false
		}
	}
	return true
}

// next returns the topic queue that sends the next request, or nil. URLs that somebody requested come
// first, whatever their topic. With urgentOnly, next returns no topic queue whose best URL is new.
func (q *readyQueue) next(now time.Time, urgentOnly bool) *topicQueue {
	first, look := q.top(q.heaps, urgentOnly), q.top(q.revisits, urgentOnly)
	switch {
	case first != nil && first.urgent == requested:
		return first
	case look != nil && (first == nil || urgentOnly || !q.revisit):
		return look
	case first == nil || urgentOnly && first.urgent == found:
		return nil
	case len(q.heaps) == 1 || urgentOnly:
		return first
	}
	return q.heaps[q.turn(q.rule(int(first.topic)).Priority, now)][0]
}

// top returns the best of the first topic queues of all topics, by urgency and then by priority; nil for
// none. A requisite has the priority of its topic, unless urgentOnly is set.
func (q *readyQueue) top(heaps []heap[*topicQueue], urgentOnly bool) (top *topicQueue) {
	class := func(st *topicQueue) urgency {
		if st.urgent == needed && !urgentOnly {
			return found
		}
		return st.urgent
	}
	for _, h := range heaps {
		if len(h) > 0 && (top == nil || cmp.Or(cmp.Compare(class(h[0]), class(top)),
			cmp.Compare(q.rule(int(h[0].topic)).Priority, q.rule(int(top.topic)).Priority)) > 0) {
			top = h[0]
		}
	}
	return top
}

// turn returns the topic of a priority that sends the next request; at least one of them has a topic
// queue. The clock decides whose slice it is, so a step that starts without memory continues the
// round of the previous one. Only topics with pending URLs have slices.
func (q *readyQueue) turn(priority int, now time.Time) int {
	var round time.Duration
	for i := range q.heaps {
		round += q.slice(i, priority)
	}
	at := now.Sub(q.began) % round
	if at < 0 { // the clock was set back
		at += round
	}
	topic := 0
	for at >= q.slice(topic, priority) {
		at -= q.slice(topic, priority)
		topic++
	}
	if len(q.heaps[topic]) > 0 {
		return topic
	}
	if q.fillers == nil {
		q.fillers = map[int]int{}
	}
	q.fillers[priority] = q.after(q.fillers[priority], priority)
	return q.fillers[priority]
}

// slice returns the time of a topic in a round of a priority; 0 if it takes no part.
func (q *readyQueue) slice(topic, priority int) time.Duration {
	rule := q.rule(topic)
	switch {
	case rule.Priority != priority || q.pending[topic] == 0 && len(q.heaps[topic]) == 0:
		return 0
	case rule.Slice <= 0:
		return blobschema.DefaultSlice
	}
	return rule.Slice
}

// after returns the next topic of a priority that has a topic queue.
func (q *readyQueue) after(topic, priority int) int {
	for i := range q.heaps {
		next := (topic + 1 + i) % len(q.heaps)
		if len(q.heaps[next]) > 0 && q.rule(next).Priority == priority {
			return next
		}
	}
	return 0 // unreachable: one of them has a topic queue
}
