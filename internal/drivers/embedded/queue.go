package embedded

import (
	"bytes"
	"container/heap"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// ErrNoQueue says that a queue was not created.
var ErrNoQueue = errors.New("no such queue")

// config is how the configuration of a queue is stored.
type config struct {
	// Visibility is how long a delivered message is hidden from other receivers.
	Visibility time.Duration `json:"visibility"`
}

// Receipt identifies one delivery of one message. A Queues never uses a receipt twice.
type Receipt uint64

// Delivery is a received message. Its receiver owns its fields.
type Delivery struct {
	ID       uint64 // of the message; no other message of any queue ever has it
	Receipt  Receipt
	Body     []byte
	Attrs    map[string]string // nil if it has none
	Receives int               // number of deliveries, this one included, since Load
}

// Queues is a set of named queues. Each delivers every message at least once, to one receiver at a time,
// roughly the oldest first. If the callers' clock goes back, messages stay hidden longer. It is not safe for
// concurrent use. Use [NewQueues].
type Queues struct {
	log         *Log
	queues      map[string]*queue
	lastID      uint64
	lastReceipt Receipt
}

type queue struct {
	name   string
	config config
	ready  messageHeap // visible, by id
	hidden messageHeap // in flight or delayed, by the time they become visible
	// delayed counts the hidden messages that were not delivered since Load.
	delayed  int
	inFlight map[Receipt]*message // by the last delivery of each
}

// message is in exactly one of its queue's heaps.
type message struct {
	id       uint64
	stored   []byte // see encodeMessage
	receives int
	receipt  Receipt   // of the last delivery; 0: none by this process
	until    time.Time // hidden until then
	hidden   bool
	index    int // in its heap
}

// NewQueues returns an empty set that records its changes in log, which may be nil.
func NewQueues(log *Log) *Queues {
	return &Queues{log: log, queues: map[string]*queue{}}
}

// Create makes a queue, or gives an existing one this visibility; its messages stay.
func (q *Queues) Create(name string, visibility time.Duration) error {
	c := config{visibility}
	switch old := q.queues[name]; {
	case old == nil:
		q.queues[name] = newQueue(name, c)
	case old.config == c:
		return nil
	default:
		old.config = c
	}
	stored, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("create queue %q: %w", name, err)
	}
	q.log.set(bucketQueue, name, stored)
	return nil
}

func newQueue(name string, c config) *queue {
	return &queue{
		name:   name,
		config: c,
		ready:  messageHeap{less: func(a, b *message) bool { return a.id < b.id }},
		hidden: messageHeap{less: func(a, b *message) bool {
			if c := a.until.Compare(b.until); c != 0 {
				return c < 0
			}
			return a.id < b.id
		}},
		inFlight: map[Receipt]*message{},
	}
}

// Names returns the names of all queues, sorted.
func (q *Queues) Names() []string { return slices.Sorted(maps.Keys(q.queues)) }

func (q *Queues) get(name string) (*queue, error) {
	qu := q.queues[name]
	if qu == nil {
		return nil, fmt.Errorf("%w: %.100q", ErrNoQueue, name)
	}
	return qu, nil
}

// Send puts a message into the queue and returns its id. The message becomes visible after delay. Send
// copies body and attributes.
func (q *Queues) Send(now time.Time, name string, body []byte, attrs map[string]string, delay time.Duration) (id uint64, err error) {
	qu, err := q.get(name)
	if err != nil {
		return 0, err
	}
	q.lastID++
	m := &message{id: q.lastID, until: now.Add(delay)}
	m.stored = encodeMessage(now, m.until, attrs, body)
	if delay > 0 {
		qu.hide(m)
		qu.delayed++
	} else {
		heap.Push(&qu.ready, m)
	}
	if q.log != nil {
		q.log.set(bucketMessage, messageKey(name, m.id), m.stored)
		q.log.set(bucketCounter, counterMessage, encodeUint64(q.lastID))
	}
	return m.id, nil
}

// Receive delivers at most limit visible messages, the oldest first, and hides them for the queue's visibility.
// If there are none, it returns no error.
func (q *Queues) Receive(now time.Time, name string, limit int) ([]Delivery, error) {
	qu, err := q.get(name)
	if err != nil {
		return nil, err
	}
	q.advance(now, qu)
	var out []Delivery
	for len(out) < limit && qu.ready.Len() > 0 {
		m := qu.ready.items[0]
		d, err := decodeMessage(m.stored)
		if err != nil { // cannot happen: Send encoded it, or Load checked it
			return out, fmt.Errorf("receive %q: message %d: %w", name, m.id, err)
		}
		heap.Pop(&qu.ready)
		delete(qu.inFlight, m.receipt)
		q.lastReceipt++
		m.receipt = q.lastReceipt
		qu.inFlight[m.receipt] = m
		m.receives++
		m.until = now.Add(qu.config.Visibility)
		qu.hide(m)
		out = append(out, Delivery{
			ID: m.id, Receipt: m.receipt, Receives: m.receives,
			Body: bytes.Clone(d.body), Attrs: d.attrs,
		})
	}
	return out, nil
}

// Ack removes the message that was delivered under receipt, even after its visibility has ended, as SQS does.
// If the message has been delivered again or is gone, Ack does nothing and returns no error.
func (q *Queues) Ack(now time.Time, name string, receipt Receipt) error {
	qu, err := q.get(name)
	if err != nil {
		return err
	}
	if m := qu.inFlight[receipt]; m != nil {
		qu.unlink(m)
		q.forget(qu, m)
	}
	q.advance(now, qu)
	return nil
}

// Nack makes the message visible at once. If the receipt no longer holds the message, Nack does
// nothing, as Ack does.
func (q *Queues) Nack(now time.Time, name string, receipt Receipt) error {
	qu, err := q.get(name)
	if err != nil {
		return err
	}
	if m := qu.inFlight[receipt]; m != nil && m.hidden {
		qu.show(m)
	}
	q.advance(now, qu)
	return nil
}

// NextVisible returns when the queue's next message becomes visible if no other method is called: the zero time
// if one is visible already. It returns false if the queue is empty.
func (q *Queues) NextVisible(name string) (time.Time, bool) {
	qu := q.queues[name]
	switch {
	case qu == nil:
		return time.Time{}, false
	case qu.ready.Len() > 0:
		return time.Time{}, true
	case qu.hidden.Len() > 0:
		return qu.hidden.items[0].until, true
	}
	return time.Time{}, false
}

// Depth counts the queue's messages: visible at now, in flight, and delayed.
func (q *Queues) Depth(now time.Time, name string) (visible, inFlight, delayed int, err error) {
	qu, err := q.get(name)
	if err != nil {
		return 0, 0, 0, err
	}
	q.advance(now, qu)
	return qu.ready.Len(), qu.hidden.Len() - qu.delayed, qu.delayed, nil
}

// EndVisibility makes every delivered message visible at once and its receipt void, as opening a
// folder does. Delayed messages stay delayed.
func (q *Queues) EndVisibility() {
	for _, name := range q.Names() {
		qu := q.queues[name]
		var flying []*message
		for _, m := range qu.hidden.items {
			if m.receipt != 0 {
				flying = append(flying, m)
			}
		}
		for _, m := range flying {
			qu.show(m)
		}
		for _, m := range qu.inFlight {
			m.receipt = 0
		}
		clear(qu.inFlight)
	}
}

// advance makes the messages visible whose time has come.
func (q *Queues) advance(now time.Time, qu *queue) {
	for qu.hidden.Len() > 0 && !qu.hidden.items[0].until.After(now) {
		qu.show(qu.hidden.items[0])
	}
}

// forget drops m, which must be in no heap.
func (q *Queues) forget(qu *queue, m *message) {
	delete(qu.inFlight, m.receipt)
	if q.log != nil {
		q.log.remove(bucketMessage, messageKey(qu.name, m.id))
	}
}

func (qu *queue) hide(m *message) {
	m.hidden = true
	heap.Push(&qu.hidden, m)
}

// show moves a hidden message to the visible ones.
func (qu *queue) show(m *message) {
	qu.unlink(m)
	heap.Push(&qu.ready, m)
}

// unlink takes m out of its heap.
func (qu *queue) unlink(m *message) {
	if !m.hidden {
		heap.Remove(&qu.ready, m.index)
		return
	}
	heap.Remove(&qu.hidden, m.index)
	m.hidden = false
	if m.receipt == 0 {
		qu.delayed--
	}
}

func (q *Queues) loadConfig(name string, stored []byte) error {
	dec := json.NewDecoder(bytes.NewReader(stored))
	dec.DisallowUnknownFields()
	var c config
	if err := dec.Decode(&c); err != nil {
		return fmt.Errorf("%w: %v", errDamaged, err)
	}
	if c.Visibility <= 0 || q.queues[name] != nil {
		return errDamaged
	}
	q.queues[name] = newQueue(name, c)
	return nil
}

func (q *Queues) loadMessage(key string, stored []byte) error {
	name, id, err := splitMessageKey(key)
	if err != nil {
		return err
	}
	qu, err := q.get(name)
	if err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	d, err := decodeMessage(stored)
	if err != nil {
		return err
	}
	m := &message{id: id, stored: bytes.Clone(stored)}
	if d.due.After(d.sent) {
		m.until = d.due
	}
	// A message that was not delayed is hidden until the zero time, not until it was sent: the clock
	// may have been set back. The first call that passes the time shows it.
	qu.hide(m)
	qu.delayed++
	q.lastID = max(q.lastID, id)
	return nil
}

// messageHeap is a heap for container/heap that stores in each item its index.
type messageHeap struct {
	items []*message
	less  func(a, b *message) bool
}

func (h *messageHeap) Len() int           { return len(h.items) }
func (h *messageHeap) Less(i, j int) bool { return h.less(h.items[i], h.items[j]) }

func (h *messageHeap) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.items[i].index, h.items[j].index = i, j
}

func (h *messageHeap) Push(x any) {
	m := x.(*message)
	m.index = len(h.items)
	h.items = append(h.items, m)
}

func (h *messageHeap) Pop() any {
	last := len(h.items) - 1
	m := h.items[last]
	h.items[last] = nil
	h.items = h.items[:last]
	return m
}
