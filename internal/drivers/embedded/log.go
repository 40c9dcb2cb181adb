package embedded

import "fmt"

// Bucket names one of the durable maps that a [Mutation] changes.
type Bucket string

// The buckets. Their names are part of the file format.
const (
	bucketQueue    Bucket = "queue"    // queue name -> configuration, JSON
	bucketMessage  Bucket = "message"  // queue name, 0, id (8 bytes) -> message
	bucketReceives Bucket = "receives" // as message -> delivery count, uvarint
	bucketTable    Bucket = "table"    // key -> revision (8 bytes), value
	bucketCounter  Bucket = "counter"  // counter name -> last number given (8 bytes)
)

const (
	counterMessage  = "message"
	counterRevision = "revision"
)

// Buckets returns every bucket in the order in which Load wants to see them:
// queues before the messages in them.
func Buckets() []Bucket {
	return []Bucket{bucketCounter, bucketQueue, bucketMessage, bucketReceives, bucketTable}
}

// Mutation sets Key of Bucket to Value, or deletes it when Value is nil. Neither
// slice may be changed by whoever gets it.
type Mutation struct {
	Bucket Bucket
	Key    []byte
	Value  []byte
}

// Log collects mutations until somebody drains them. One Log may serve a [Queues]
// and a [Table] together, so that both are one atomic whole. Later mutations of a
// key replace earlier ones, so a drain holds each key once and a message that
// came and went in between costs little.
//
// The nil Log records nothing: it is what the simulation and memory use.
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

// Drain returns what was recorded since the last drain and forgets it. The caller
// makes all of it durable at once or none of it, and in the order of the drains.
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

// Load rebuilds queues and table from durable mutations: call it once for every
// key of every bucket, the buckets in the order of [Buckets], before any other
// method. The slices are copied. An error says that what was stored is damaged or
// of another format.
//
// Nothing is in flight afterwards: what was being worked on is visible at once,
// what was delayed still waits for its time.
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
	case bucketReceives:
		err = q.loadReceives(string(m.Key), m.Value)
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
