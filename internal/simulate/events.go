package simulate

import (
	"container/heap"
	"time"
)

// event is an action at a time. Events of the same time run in the order of their numbers.
type event struct {
	at  time.Duration
	seq uint64
	do  func()
}

// events is a heap of events, the next one first.
type events []event

func (h events) Len() int { return len(h) }
func (h events) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].seq < h[j].seq
}
func (h events) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *events) Push(x any)   { *h = append(*h, x.(event)) }
func (h *events) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = event{}
	*h = (*h)[:last]
	return e
}

func (h *events) push(e event) { heap.Push(h, e) }

// pop removes the next event. The heap must not be empty.
func (h *events) pop() event { return heap.Pop(h).(event) }
