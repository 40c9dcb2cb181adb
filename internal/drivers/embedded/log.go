package embedded

import "fmt"

// Bucket names one of the durable maps that a [Mutation] changes.
type Bucket string

// The buckets. Their names are part of the file format.
const (
	bucketQueue    Bucket = "queue"    // queue name -> configuration, JSON
	bucketMessage  Bucket = "message"  // queue name, 0, id (8 bytes) -> message
	bucketReceives Bucket = "receives" // empty; the file format requires it
	bucketTable    Bucket = "table"    // key -> revision (8 bytes), value
	bucketCounter  Bucket = "counter"  // counter name -> last number given (8 bytes)
)

const (
	counterMessage  = "message"
	counterRevision = "revision"
)

// Buckets returns all buckets in the order in which Load needs them: queues before their messages.
func Buckets() []Bucket {
	return []Bucket{bucketCounter, bucketQueue, bucketMessage, bucketReceives, bucketTable}
}

// Mutation sets Key of Bucket to Value, or deletes it if Value is nil. Its receiver does not change
// the slices.
type Mutation struct {
	Bucket Bucket
	Key    []byte
	Value  []byte
}

// Log collects mutations until they are drained. A [Queues] and a [Table] that share a Log change
// together. A later mutation of a key replaces an earlier one, so a drain holds each key once.
//
// The nil Log records nothing.
type Log struct {
	list []Mutation
	at   map[logKey]int
}

type logKey struct {
	bucket Bucket
	key    string
}

// NewLog returns an empty log.
func NewLog() *Log { return &Log{at: map[logKey]int{}} }

// Len returns the number of mutations that wait for Drain.
func (l *Log) Len() int {
	if l == nil {
		return 0
	}
	return len(l.list)
}

// Drain returns the mutations since the last drain and forgets them. The caller makes all of them
// durable in one transaction, in the order of the drains.
func (l *Log) Drain() []Mutation {
	if l.Len() == 0 {
		return nil
	}
	list := l.list
	l.list = nil
	clear(l.at)
	return list
}

// set records that key now has value; the log keeps the slice.
func (l *Log) set(b Bucket, key string, value []byte) {
	if l == nil {
		return
	}
	k := logKey{b, key}
	if i, ok := l.at[k]; ok {
		l.list[i].Value = value
		return
	}
	l.at[k] = len(l.list)
	l.list = append(l.list, Mutation{b, []byte(key), value})
}

// remove records that key is gone.
func (l *Log) remove(b Bucket, key string) { l.set(b, key, nil) }

// Load rebuilds queues and table from durable mutations. Call it once for every key of every bucket, in
// the order of [Buckets], before any other method. It copies the slices. An error says that the
// stored bytes are damaged or have another format.
//
// Afterwards no message is in flight: those that were delivered are visible at once, and delayed ones
// still wait for their time.
func Load(q *Queues, t *Table, m Mutation) error {
	var err error
	switch m.Bucket {
	case bucketCounter:
		var n uint64
		if n, err = decodeUint64(m.Value); err != nil {
			break
		}
		switch string(m.Key) {
		case counterMessage:
			q.lastID = max(q.lastID, n)
		case counterRevision:
			t.rev = max(t.rev, n)
		default:
			err = errDamaged
		}
	case bucketQueue:
		err = q.loadConfig(string(m.Key), m.Value)
	case bucketMessage:
		err = q.loadMessage(string(m.Key), m.Value)
	case bucketTable:
		err = t.load(string(m.Key), m.Value)
	default:
		err = errDamaged
	}
	if err != nil {
		return fmt.Errorf("load %s %.100q: %w", m.Bucket, m.Key, err)
	}
	return nil
}
