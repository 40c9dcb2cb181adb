package crawl

import "github.com/orbweaver/orbweaver/blobschema"

// Task is the one coroutine of a procedure made elsewhere: what follows from a crawl is worked out by
// actors of the same kind, over the same effects. Its methods may be called by its body alone.
type Task = task

// Procedure is an actor that is one task from beginning to end.
type Procedure = procedure

// NewProcedure returns the actor that runs body. The error that body returns is the actor's.
func NewProcedure(body func(*Task) error) *Procedure { return &procedure{body: body} }

// Do carries out an effect and returns its reply.
func (t *task) Do(e Effect) (any, error) { return t.do(e) }

// All carries out effects side by side, at most limit at once, and calls done with each reply as it
// comes, in any order. The first error of done ends it, once what was under way is answered.
func (t *task) All(limit int, effects []Effect, done func(i int, v any, err error) error) error {
	next, open := 0, 0
	var failure error
	for next < len(effects) || open > 0 {
		for next < len(effects) && open < limit && failure == nil {
			i := next
			next, open = next+1, open+1
			t.l.issue(effects[i], func(r Reply) {
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
		t.await(func() bool { return open < before })
	}
	return failure
}

// Now is the time of the event that the task was resumed by.
func (t *task) Now() Now { return t.l.now }

// Records reads records, in the order of keys; reads that fail are tried again.
func (t *task) Records(keys ...string) ([]Record, error) { return readRecords(t, keys) }

// Object reads length bytes of an object from an offset, -1 for the rest; reads that fail are tried
// again. ErrNotFound if there is no such object.
func (t *task) Object(name string, off, length int64) ([]byte, error) {
	return getObject(t, name, off, length)
}

// Put stores an object; what fails is tried again.
func (t *task) Put(name string, data []byte) error {
	for fails := 0; ; {
		_, err := t.do(PutObject{Name: name, Parts: [][]byte{data}})
		if err == nil {
			return nil
		}
		if fails, err = t.failed(name, fails, err); err != nil {
			return err
		}
	}
}

// Commit opens a commit object.
func (t *task) Commit(name string) (*blobschema.CommitReader, error) { return readCommit(t, name) }

// Update changes a JSON record by compare-and-set until the change holds; change returns false if
// nothing needs changing, and is called again with what another wrote meanwhile.
func Update[T any](t *Task, key string, change func(*T) bool) error { return update(t, key, change) }

// DecodeRecord decodes a JSON record.
func DecodeRecord[T any](rec Record, what string) (T, error) { return decodeJSON[T](rec, what) }

// OpenPartitioning reads which partitions own which slots by the map record rec.
func OpenPartitioning(t *Task, c *blobschema.Crawl, rec Record) (Partitioning, error) {
	return openPartitioning(t, c, rec)
}
