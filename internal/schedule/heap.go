package schedule

// entry is what a heap holds.
type entry[T any] interface {
	// before reports whether the entry comes out before another one.
	before(T) bool
	// moved records the place of the entry in the heap; -1 if it left.
	moved(at int)
}

// heap is a binary heap whose entries know their places.
type heap[T entry[T]] []T

func (h *heap[T]) push(x T) {
	*h = append(*h, x)
	h.up(len(*h) - 1)
}

func (h *heap[T]) pop() T { return h.remove(0) }

// remove takes an entry out and returns it.
func (h *heap[T]) remove(at int) T {
	q := *h
	x, last := q[at], len(q)-1
	q[at] = q[last]
	clear(q[last:])
	*h = q[:last]
	if at != last {
		h.fix(at)
	}
	x.moved(-1)
	return x
}

// fix moves an entry to its place after its order has changed.
func (h *heap[T]) fix(at int) {
	if !h.down(at) {
		h.up(at)
	}
}

// init restores the order after entries were deleted from the slice.
func (h *heap[T]) init() {
	for i, x := range *h {
		x.moved(i)
	}
	for i := len(*h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

// up moves an entry towards the top.
func (h heap[T]) up(at int) {
	x := h[at]
	for at > 0 {
		parent := (at - 1) / 2
		if !x.before(h[parent]) {
			break
		}
		h.put(at, h[parent])
		at = parent
	}
	h.put(at, x)
}

// down moves an entry away from the top, and reports whether it did.
func (h heap[T]) down(at int) bool {
	x, begin := h[at], at
	for {
		child := 2*at + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].before(h[child]) {
			child++
		}
		if !h[child].before(x) {
			break
		}
		h.put(at, h[child])
		at = child
	}
	if at == begin {
		return false
	}
	h.put(at, x)
	return true
}

func (h heap[T]) put(at int, x T) {
	h[at] = x
	x.moved(at)
}
