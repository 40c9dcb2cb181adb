package schedule

// entry is what a heap holds.
type entry[T any] interface {
	// before reports whether the entry comes out before another one.
	before(T) bool
	// moved tells the entry its place in the heap; -1 if it left.
	moved(at int)
}

// heap is a binary heap whose entries know their places.
type heap[T entry[T]] []T

func (h *heap[T]) push(x T) {
	*h = append(*h, x)
	x.moved(len(*h) - 1)
	h.up(len(*h) - 1)
}

func (h *heap[T]) pop() T { return h.remove(0) }

// remove takes an entry out and returns it.
func (h *heap[T]) remove(at int) T {
	q := *h
	x, last := q[at], len(q)-1
	if at != last {
		h.swap(at, last)
	}
	clear(q[last:])
	*h = q[:last]
	if at != last {
		h.fix(at)
	}
	x.moved(-1)
	return x
}

// fix moves an entry whose order has changed.
func (h *heap[T]) fix(at int) {
	if !h.down(at) {
		h.up(at)
	}
}

// init orders the entries after some were taken out.
func (h *heap[T]) init() {
	for i, x := range *h {
		x.moved(i)
	}
	for i := len(*h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

func (h *heap[T]) swap(i, j int) {
	q := *h
	q[i], q[j] = q[j], q[i]
	q[i].moved(i)
	q[j].moved(j)
}

func (h *heap[T]) up(at int) {
	for at > 0 {
		parent := (at - 1) / 2
		if !(*h)[at].before((*h)[parent]) {
			return
		}
		h.swap(at, parent)
		at = parent
	}
}

// down reports whether it moved the entry.
func (h *heap[T]) down(at int) bool {
	q, begin := *h, at
	for {
		child := 2*at + 1
		if child >= len(q) {
			return at > begin
		}
		if child+1 < len(q) && q[child+1].before(q[child]) {
			child++
		}
		if !q[child].before(q[at]) {
			return at > begin
		}
		h.swap(at, child)
		at = child
	}
}
