package frontier

import (
	"container/heap"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// Topic is what the scheduler knows of a topic (Fan, Li).
type Topic struct {
	Priority int
	Slice    time.Duration // of a turn; 0: blobschema.DefaultSlice
}

// readyQueue holds the stands that may be asked for something now, a heap for each topic. The
// highest priority that has any goes first: a topic is pre-empted between two requests, and no
// connection is closed for that. Topics of one priority take turns, each as long as its slice;
// what the one whose turn it is cannot use goes to the others, one request each.
type readyQueue struct {
	topics []Topic
	heaps  []readyHeap
	turns  map[int]*topicTurn // by priority
}

// topicTurn says whose turn it is among the topics of a priority.
type topicTurn struct {
	topic  int
	ends   time.Time
	filler int // who had last what the topic could not use
}

// setTopics changes priorities and slices; there may be more topics than before.
func (q *readyQueue) setTopics(topics []Topic) {
	q.topics = topics
	for len(q.heaps) < max(1, len(topics)) {
		q.heaps = append(q.heaps, nil)
	}
}

// heap returns that of a topic. One that nobody knows has priority 0.
func (q *readyQueue) heap(topic uint8) *readyHeap {
	for len(q.heaps) <= int(topic) {
		q.heaps = append(q.heaps, nil)
	}
	return &q.heaps[topic]
}

func (q *readyQueue) rule(topic int) (t Topic) {
	if topic < len(q.topics) {
		return q.topics[topic]
	}
	return Topic{}
}

// remove takes a stand out of its queue, if it is in one.
func (q *readyQueue) remove(st *stand) {
	if st.index >= 0 {
		heap.Remove(&q.heaps[st.topic], st.index)
	}
}

// empty reports whether no stand is ready.
func (q *readyQueue) empty() bool {
	for i := range q.heaps {
		if len(q.heaps[i]) > 0 {
			return false
		}
	}
	return true
}

// best returns the stand that is to be asked next, nil for none. What is asked for on purpose
// goes before all topics, and then what is to be looked at again.
func (q *readyQueue) best(now time.Time) *stand {
	if len(q.heaps) == 1 {
		if len(q.heaps[0]) == 0 {
			return nil
		}
		return q.heaps[0][0]
	}
	highest, any := 0, false
	var urgent *stand
	for i, h := range q.heaps {
		if len(h) == 0 {
			continue
		}
		p := q.rule(i).Priority
		if st := h[0]; st.urgent != found && (urgent == nil || st.urgent > urgent.urgent ||
			st.urgent == urgent.urgent && p > q.rule(int(urgent.topic)).Priority) {
			urgent = st
		}
		if !any || p > highest {
			highest, any = p, true
		}
	}
	switch {
	case urgent != nil:
		return urgent
	case !any:
		return nil
	}
	return q.heaps[q.turn(highest, now)][0]
}

// turn returns the topic of a priority that is to be asked now; one of them has a stand.
func (q *readyQueue) turn(priority int, now time.Time) int {
	t := q.turns[priority]
	if t == nil {
		t = &topicTurn{topic: -1}
		if q.turns == nil {
			q.turns = map[int]*topicTurn{}
		}
		q.turns[priority] = t
	}
	if t.topic < 0 || !now.Before(t.ends) {
		t.topic = q.after(t.topic, priority)
		t.filler = t.topic
		slice := q.rule(t.topic).Slice
		if slice <= 0 {
			slice = blobschema.DefaultSlice
		}
		t.ends = now.Add(slice)
	}
	if len(q.heaps[t.topic]) > 0 && q.rule(t.topic).Priority == priority {
		return t.topic
	}
	t.filler = q.after(t.filler, priority)
	return t.filler
}

// after is the next topic of a priority that has a stand.
func (q *readyQueue) after(topic, priority int) int {
	for i := range q.heaps {
		next := (topic + 1 + i) % len(q.heaps)
		if len(q.heaps[next]) > 0 && q.rule(next).Priority == priority {
			return next
		}
	}
	return 0 // cannot be: one of them has
}

// PendingOf returns the number of URLs of a topic that are not settled, as far as they are in
// memory.
func (f *Frontier) PendingOf(topic uint8) int64 { return f.pending[topic] }

// SetTopics changes what the scheduler knows of the topics, by number; 0 is that of URLs
// that belong to none.
func (f *Frontier) SetTopics(topics []Topic) { f.ready.setTopics(topics) }
