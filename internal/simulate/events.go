package simulate

import "time"

// event is something to be done at a time. Of one time, the first asked for comes first.
type event struct {
	at  time.Duration
	seq uint64
	do  func()
}

// events is a binary heap.
type events []event

func (h events) less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].seq < h[j].seq
}

func (h *events) push(e event) {
	*h = append(*h, e)
	l := *h
	for i := len(l) - 1; i > 0; {
		up := (i - 1) / 2
		if !l.less(i, up) {
			return
		}
		l[i], l[up] = l[up], l[i]
		i = up
	}
}

// pop takes the first event out of a heap that is not empty.
func (h *events) pop() event {
	l := *h
	first, last := l[0], len(l)-1
	l[0], l[last] = l[last], event{}
	l = l[:last]
	*h = l
	for i := 0; ; {
		next := 2*i + 1
		if next >= len(l) {
			return first
		}
		if next+1 < len(l) && l.less(next+1, next) {
			next++
		}
		if !l.less(next, i) {
			return first
		}
		l[i], l[next] = l[next], l[i]
		i = next
	}
}
