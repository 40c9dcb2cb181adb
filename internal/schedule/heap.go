package schedule

import stdheap "container/heap"

// entry is an entry of a heap.
type entry[T any] interface {
	// before reports whether the entry comes out before another one.
	before(T) bool
	// moved records the place of the entry in the heap; -1 if it left.
	moved(at int)
}

// heap is a binary heap whose entries know their places. The exported methods are for package container/heap.
type heap[T entry[T]] []T

func (h *heap[T]) push(x T)        { stdheap.Push(h, x) }
func (h *heap[T]) pop() T          { return stdheap.Pop(h).(T) }
func (h *heap[T]) remove(at int) T { return stdheap.Remove(h, at).(T) }

// fix moves an entry to its place after its order has changed.
func (h *heap[T]) fix(at int) { stdheap.Fix(h, at) }

// init restores the order after entries were deleted from the slice.
func (h *heap[T]) init() {
	for i, x := range *h {
		x.moved(i)
	}
	stdheap.Init(h)
}

func (h heap[T]) Len() int           { return len(h) }
func (h heap[T]) Less(i, j int) bool { return h[i].before(h[j]) }

func (h heap[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].moved(i)
	h[j].moved(j)
}

func (h *heap[T]) Push(x any) {
	x.(T).moved(len(*h))
	*h = append(*h, x.(T))
}

func (h *heap[T]) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	clear((*h)[last:])
	*h = (*h)[:last]
	x.moved(-1)
	return x
}
