package actor

import (
	"errors"
	"fmt"
	"time"
)

// Task is one coroutine of an actor. Only its own function may call its methods.
type Task struct {
	l     *Loop
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	ready func() bool // the condition that the task awaits, if not a reply
	reply Reply
	done  bool
}

// stopped unwinds a task whose actor has ended.
type stopped struct{}

func (t *Task) pause() {
	if !t.yield(struct{}{}) {
		panic(stopped{})
	}
}

// Now returns the time of the event that resumed the task.
func (t *Task) Now() Now { return t.l.now }

// Do issues an effect and returns its reply.
func (t *Task) Do(e Effect) (any, error) {
	t.l.Issue(e, func(r Reply) {
		t.reply = r
		t.next()
	})
	t.pause()
	return t.reply.Value, t.reply.Err
}

// Await waits until a condition on the actor's state holds.
func (t *Task) Await(cond func() bool) {
	if cond() {
		return
	}
	t.ready = cond
	t.pause()
}

// Sleep waits for a duration.
func (t *Task) Sleep(d time.Duration) { _, _ = t.Do(Sleep{For: d}) }

// All issues effects concurrently, at most limit at a time, and calls done with each reply, in order of
// arrival. The first error of done ends it after the replies to all issued effects.
func (t *Task) All(limit int, effects []Effect, done func(i int, v any, err error) error) error {
	next, open := 0, 0
	var failure error
	for next < len(effects) || open > 0 {
		for next < len(effects) && open < limit && failure == nil {
			i := next
			next, open = next+1, open+1
			t.l.Issue(effects[i], func(r Reply) {
				open--
				if err := done(i, r.Value, r.Err); err != nil && failure == nil {
					failure = err
				}
			})
		}
		if failure != nil && open == 0 {
			break
		}
		before := open
		t.Await(func() bool { return open < before })
	}
	return failure
}

// Retry limits: extra attempts for reads, total attempts for writes, and the first delay of each.
const (
	readRetries  = 8
	firstReread  = 50 * time.Millisecond
	maxWrites    = 10
	firstRewrite = 50 * time.Millisecond
)

// Records reads records, in the order of keys. It retries failed reads a few times.
func (t *Task) Records(keys ...string) ([]Record, error) {
	v, err := t.read(ReadRecords{Keys: keys})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", keys[0], err)
	}
	return v.([]Record), nil
}

// Record reads one record, as Records does.
func (t *Task) Record(key string) (Record, error) {
	recs, err := t.Records(key)
	if err != nil {
		return Record{}, err
	}
	return recs[0], nil
}

// Object reads length bytes of an object from an offset, -1 for the rest. It retries failed reads
// a few times. ErrNotFound if there is no such object.
func (t *Task) Object(name string, offset, length int64) ([]byte, error) {
	v, err := t.read(GetObject{Name: name, Offset: offset, Length: length})
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", name, err)
	}
	return v.([]byte), nil
}

func (t *Task) read(e Effect) (any, error) {
	for try := 0; ; try++ {
		v, err := t.Do(e)
		if err == nil || errors.Is(err, ErrNotFound) || try == readRetries {
			return v, err
		}
		t.Sleep(firstReread << min(try, 7))
	}
}

// Put stores an object. It retries a few times.
func (t *Task) Put(name string, data []byte) error {
	for fails := 0; ; {
		_, err := t.Do(PutObject{Name: name, Parts: [][]byte{data}})
		if err == nil {
			return nil
		}
		if fails, err = t.Failed(name, fails, err); err != nil {
			return err
		}
	}
}

// Write creates a record, or replaces the record with a revision. After an error the record
// may hold the new value anyway, even after a conflict: the client library of a cloud may have
// retried by itself.
func (t *Task) Write(key string, v any, revision Revision) error {
	value := Encode(v)
	for fails := 0; ; {
		_, err := t.Do(WriteRecord{Key: key, Value: value, Revision: revision})
		if err == nil {
			return nil
		}
		recs, rerr := t.Records(key)
		switch {
		case rerr != nil:
			return rerr
		case recs[0].Found && string(recs[0].Value) == string(value):
			return nil
		case errors.Is(err, ErrConflict):
			return fmt.Errorf("write %s: %w", key, err)
		}
		if fails, err = t.Failed(key, fails, err); err != nil {
			return err
		}
	}
}

// Failed counts a failed write and waits before the caller reads the record again. A lost race
// does not count: another writer succeeded. After too many failures Failed returns an error.
func (t *Task) Failed(key string, fails int, err error) (int, error) {
	if errors.Is(err, ErrConflict) {
		return fails, nil
	}
	if fails++; fails >= maxWrites {
		return fails, fmt.Errorf("write %s: %w", key, err)
	}
	t.Sleep(firstRewrite << min(fails-1, 6))
	return fails, nil
}
