package embedded

import (
	"bytes"
	"container/heap"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What the methods of [Queues] refuse.
var (
	ErrNoQueue = errors.New("no such queue")
	ErrName    = errors.New("bad queue name")
	ErrConfig  = errors.New("bad queue configuration")
)

// Attributes that a message gains when it is moved to a dead-letter queue.
const (
	AttrDeadQueue    = "orbweaver-dead-queue"    // the queue it came from
	AttrDeadReason   = "orbweaver-dead-reason"   // why, in words
	AttrDeadReceives = "orbweaver-dead-receives" // how often it had been delivered
)

// defaultVisibility is what a zero QueueConfig.Visibility stands for, as in SQS.
const defaultVisibility = 30 * time.Second

// maxQueueName bounds names; SQS allows 80 characters.
const maxQueueName = 255

// QueueConfig says how a queue treats its messages.
type QueueConfig struct {
	// Visibility is how long a delivered message is hidden from other
	// receivers. 0 stands for [defaultVisibility].
	Visibility time.Duration `json:"visibility"`
	// MaxReceives is how often a message is delivered. When the last delivery
	// ends unacknowledged the message moves to DeadLetter. 0 is for ever.
	MaxReceives int `json:"maxReceives,omitempty"`
	// DeadLetter names the queue for such messages; needed with MaxReceives.
	DeadLetter string `json:"deadLetter,omitempty"`
}

// Receipt stands for one delivery of one message. Receipts are never used twice
// by the same Queues and mean nothing to another.
type Receipt uint64

// Delivery is a message handed to a receiver. Its fields are the receiver's own.
type Delivery struct {
	ID       uint64 // of the message, unique over all queues and for ever
	Receipt  Receipt
	Body     []byte
	Attrs    map[string]string // nil if it has none
	Receives int               // how often it has been delivered, this time included
}

// Queues is a set of named queues. Each delivers every message at least once, to
// one receiver at a time, roughly the oldest first. Not safe for concurrent use.
// Time may not be the same everywhere but should not go back; when it does,
// messages only stay hidden for longer. Use [NewQueues].
type Queues struct {
	log         *Log
	queues      map[string]*queue
	lastID      uint64
	lastReceipt Receipt
	woken       []string // see Woken
}

type queue struct {
	name   string
	config QueueConfig
	ready  messageHeap // visible, by id
	hidden messageHeap // in flight or delayed, by the time they become visible
	// delayed counts the hidden ones that were never delivered.
	delayed int
	held    map[Receipt]*message // by the last delivery of each
	loading map[uint64]*message  // until the first call after Load
}

// message is in exactly one of its queue's heaps.
type message struct {
	id       uint64
	stored   []byte // see encodeMessage
	receives int
	receipt  Receipt   // of the last delivery; 0: none by this process
	until    time.Time // hidden till then
	hidden   bool
	index    int // in its heap
}

// NewQueues returns an empty set that records its changes in log, which may be nil.
func NewQueues(log *Log) *Queues {
	return &Queues{log: log, queues: map[string]*queue{}}
}

// Create makes the queue, and an empty dead-letter queue if that is missing. If
// the queue exists its messages stay and the new configuration holds from now on.
// A name is 1 to 255 bytes without a zero byte ([ErrName]).
func (q *Queues) Create(name string, c QueueConfig) error {
	if err := checkName(name); err != nil {
		return err
	}
	if c.Visibility == 0 {
		c.Visibility = defaultVisibility
	}
	switch {
	case c.Visibility < 0, c.MaxReceives < 0:
		return fmt.Errorf("create queue %q: %w: negative", name, ErrConfig)
	case c.MaxReceives > 0 && c.DeadLetter == "":
		return fmt.Errorf("create queue %q: %w: bounded deliveries need a dead-letter queue", name, ErrConfig)
	case c.DeadLetter == name:
		return fmt.Errorf("create queue %q: %w: its own dead-letter queue", name, ErrConfig)
	}
	if c.DeadLetter != "" && q.queues[c.DeadLetter] == nil {
		if err := q.Create(c.DeadLetter, QueueConfig{}); err != nil {
			return err
		}
	}
	if old := q.queues[name]; old == nil {
		q.queues[name] = newQueue(name, c)
	} else if old.config == c {
		return nil
	} else {
		old.config = c
	}
	if q.log != nil {
		stored, err := json.Marshal(c)
		if err != nil {
			return fmt.Errorf("create queue %q: %w", name, err)
		}
		q.log.set(bucketQueue, name, stored)
	}
	return nil
}

func checkName(name string) error {
	if name == "" || len(name) > maxQueueName || strings.IndexByte(name, 0) >= 0 {
		return fmt.Errorf("%w: %.40q", ErrName, name)
	}
	return nil
}

func newQueue(name string, c QueueConfig) *queue {
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
		held: map[Receipt]*message{},
	}
}

// Names returns the names of all queues, sorted.
func (q *Queues) Names() []string { return slices.Sorted(maps.Keys(q.queues)) }

// Config returns a queue's configuration.
func (q *Queues) Config(name string) (QueueConfig, error) {
	qu, err := q.get(name)
	if err != nil {
		return QueueConfig{}, err
	}
	return qu.config, nil
}

func (q *Queues) get(name string) (*queue, error) {
	qu := q.queues[name]
	if qu == nil {
		return nil, fmt.Errorf("%w: %.100q", ErrNoQueue, name)
	}
	return qu, nil
}

// Send puts a message into the queue and returns its id. It becomes visible after
// delay. Body and attributes are copied.
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

// Receive delivers up to limit visible messages, the oldest first, and hides them
// for the queue's visibility. None is no error.
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
		if err != nil { // cannot be: encoded here, or checked by Load
			return out, fmt.Errorf("receive %q: message %d: %w", name, m.id, err)
		}
		heap.Pop(&qu.ready)
		delete(qu.held, m.receipt)
		q.lastReceipt++
		m.receipt = q.lastReceipt
		qu.held[m.receipt] = m
		m.receives++
		m.until = now.Add(qu.config.Visibility)
		qu.hide(m)
		if q.log != nil && qu.config.MaxReceives > 0 {
			q.log.set(bucketReceives, messageKey(name, m.id), binary.AppendUvarint(nil, uint64(m.receives)))
		}
		out = append(out, Delivery{
			ID: m.id, Receipt: m.receipt, Receives: m.receives,
			Body: bytes.Clone(d.body), Attrs: d.attrs,
		})
	}
	return out, nil
}

// Ack removes the message that was delivered under receipt. As in SQS's standard
// queues it also does so when visibility has ended meanwhile, but not when the
// message was delivered to somebody else since: then, and when it is gone
// already, Ack does nothing and that is no error.
func (q *Queues) Ack(now time.Time, name string, receipt Receipt) error {
	qu, err := q.get(name)
	if err != nil {
		return err
	}
	if m := qu.held[receipt]; m != nil {
		qu.unlink(m)
		q.forget(qu, m)
	}
	q.advance(now, qu)
	return nil
}

// Nack gives the message back: it is visible at once, or moves to the dead-letter
// queue if this was its last delivery. A receipt that no longer holds the message
// does nothing, as for Ack.
func (q *Queues) Nack(now time.Time, name string, receipt Receipt) error {
	qu, err := q.get(name)
	if err != nil {
		return err
	}
	if m := qu.held[receipt]; m != nil && m.hidden {
		qu.unlink(m)
		q.surface(qu, m)
	}
	q.advance(now, qu)
	return nil
}

// NextVisible returns when, without any further call, the queue has a visible
// message: the zero time if it has one already. It is false if there is nothing
// in the queue.
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

// EndVisibility makes everything that is in flight in any queue visible at once
// and its receipts void, as Load does: nobody from before is alive. Delayed
// messages stay so. Messages on their last delivery become dead letters.
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
			qu.unlink(m)
			q.surface(qu, m)
		}
		for _, m := range qu.held {
			m.receipt = 0
		}
		clear(qu.held)
	}
}

// Woken returns, and forgets, the queues that gained a visible message by a move
// from another queue, in which case no Send tells their receivers.
func (q *Queues) Woken() []string {
	w := q.woken
	q.woken = nil
	return w
}

// advance ends what is over at now.
func (q *Queues) advance(now time.Time, qu *queue) {
	qu.loading = nil
	for qu.hidden.Len() > 0 && !qu.hidden.items[0].until.After(now) {
		m := qu.hidden.items[0]
		qu.unlink(m)
		q.surface(qu, m)
	}
}

// surface makes m, which is in no heap, visible, or a dead letter if it has been
// delivered as often as it may.
func (q *Queues) surface(qu *queue, m *message) {
	limit := qu.config.MaxReceives
	dead := q.queues[qu.config.DeadLetter]
	if limit == 0 || m.receives < limit || dead == nil {
		heap.Push(&qu.ready, m)
		return
	}
	d, err := decodeMessage(m.stored)
	if err != nil { // cannot be, see Receive; keep it
		heap.Push(&qu.ready, m)
		return
	}
	q.forget(qu, m)
	attrs := maps.Clone(d.attrs)
	if attrs == nil {
		attrs = map[string]string{}
	}
	attrs[AttrDeadQueue] = qu.name
	attrs[AttrDeadReceives] = strconv.Itoa(m.receives)
	attrs[AttrDeadReason] = "delivered " + strconv.Itoa(m.receives) + " times without being acknowledged"
	moved := &message{id: m.id, stored: encodeMessage(d.sent, d.sent, attrs, d.body)}
	heap.Push(&dead.ready, moved)
	q.log.set(bucketMessage, messageKey(dead.name, m.id), moved.stored)
	if !slices.Contains(q.woken, dead.name) {
		q.woken = append(q.woken, dead.name)
	}
}

// forget drops m, which is in no heap any more, from everything else.
func (q *Queues) forget(qu *queue, m *message) {
	delete(qu.held, m.receipt)
	if q.log == nil {
		return
	}
	key := messageKey(qu.name, m.id)
	q.log.remove(bucketMessage, key)
	if m.receives > 0 {
		q.log.remove(bucketReceives, key)
	}
}

func (qu *queue) hide(m *message) {
	m.hidden = true
	heap.Push(&qu.hidden, m)
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
	if err := checkName(name); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(stored))
	dec.DisallowUnknownFields()
	var c QueueConfig
	if err := dec.Decode(&c); err != nil {
		return fmt.Errorf("%w: %v", errDamaged, err)
	}
	if c.Visibility <= 0 || c.MaxReceives < 0 || q.queues[name] != nil {
		return errDamaged
	}
	q.queues[name] = newQueue(name, c)
	return nil
}

func (q *Queues) loadMessage(key string, stored []byte) error {
	qu, id, err := q.loadKey(key)
	if err != nil {
		return err
	}
	d, err := decodeMessage(stored)
	if err != nil {
		return err
	}
	m := &message{id: id, stored: bytes.Clone(stored)}
	if d.due.After(d.sent) {
		m.until = d.due
	}
	if qu.config.MaxReceives > 0 {
		if qu.loading == nil {
			qu.loading = map[uint64]*message{}
		}
		qu.loading[id] = m
	}
	// Hidden till due, for most till the zero time, not till the time of sending:
	// the clock may have been set back. Only the first call that knows the time
	// may move it, because only then its count is loaded.
	qu.hide(m)
	qu.delayed++
	q.lastID = max(q.lastID, id)
	return nil
}

func (q *Queues) loadReceives(key string, stored []byte) error {
	qu, id, err := q.loadKey(key)
	if err != nil {
		return err
	}
	n, size := binary.Uvarint(stored)
	if size != len(stored) || size <= 0 || n > 1<<31-1 {
		return errDamaged
	}
	// A count without its message can be when the queue's bound was taken away
	// and given back; it does no harm.
	if m := qu.loading[id]; m != nil {
		m.receives = int(n)
	}
	return nil
}

func (q *Queues) loadKey(key string) (*queue, uint64, error) {
	name, id, err := splitMessageKey(key)
	if err != nil {
		return nil, 0, err
	}
	qu, err := q.get(name)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return qu, id, nil
}

// messageHeap is a heap for container/heap that tells its items their place.
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
