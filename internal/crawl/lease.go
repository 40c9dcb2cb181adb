package crawl

import (
	"errors"
	"fmt"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/polite"
)

// These errors end a step early. Both are normal: another step does the work.
var (
	ErrLeaseTaken = errors.New("another step holds the lease")
	ErrLeaseLost  = errors.New("the lease was lost to another step")
)

// phase is the stage of a step's life. It only advances.
type phase uint8

const (
	loading phase = iota // takes the lease and loads the state
	working
	ending // a Stop came or its time is up: requests finish, and no new one starts
	closed // its last commit is under way: no more mail is applied
)

// lease is the right to work on a partition, recorded in the partition's head. All writes of a step are made under it.
type lease struct {
	*actor.Loop
	cfg   *StepConfig
	head  blobschema.Head // head as last written, or as first read
	rev   actor.Revision  // revision of head
	end   actor.Now       // when another step may take over
	taken blobschema.Head // head as the previous step left it
	floor time.Time       // no host is requested before this time plus its pace; zero: none
	phase phase
	hurry bool // the step must end soon: a write gets only a few attempts
}

// take takes the lease: a conditional write of the head with the next fence. If two steps try, one succeeds (I4). A lease
// that was not released belongs to a step that crashed. Then no host is requested before its pace has passed, because
// nobody knows what the crashed step requested last (I9).
func (l *lease) take(t *actor.Task) (crashed bool, err error) {
	rec, err := t.Record(naming.HeadKey(l.cfg.Crawl.ID, l.cfg.Partition))
	if err != nil {
		return false, err
	}
	head := blobschema.Head{Partition: l.cfg.Partition}
	if rec.Found {
		if head, err = actor.Decode[blobschema.Head](rec, "head"); err != nil {
			return false, err
		}
	}
	if crashed = head.Owner != ""; crashed {
		void := l.cfg.Exclusive && !ownedBy(head.Owner, l.cfg.Process)
		if l.Now().Wall.Before(head.LeaseUntil) && !void {
			return true, ErrLeaseTaken
		}
		head.Floor = l.Clock().UTC()
		head.Crashes++
	}
	if l.Clock().Sub(head.Floor) < polite.MaxCrawlDelay { // within the longest pace, the floor still binds later steps
		l.floor = head.Floor
	}
	l.taken, l.head, l.rev = head, head, rec.Revision
	head.Fence++
	head.Owner = fmt.Sprintf("%s/%d", l.cfg.Process, head.Fence)
	return crashed, l.write(t, head)
}

func ownedBy(owner, process string) bool {
	return len(owner) > len(process) && owner[:len(process)] == process && owner[len(process)] == '/'
}

// left returns the time until the lease ends, by whichever clock, wall or monotonic, says less.
func (l *lease) left() time.Duration {
	return min(l.end.Wall.Sub(l.Now().Wall), l.end.Mono-l.Now().Mono)
}

// deadline is the end of all requests under way, unless the lease is renewed first.
func (l *lease) deadline() time.Time { return l.Now().Wall.Add(l.left() - l.cfg.Margin) }

// write replaces the head and renews the lease, counted from before the call. A write in doubt is repeated unchanged until
// its result is known.
func (l *lease) write(t *actor.Task, h blobschema.Head) error {
	end := actor.Now{Wall: l.Now().Wall.Add(l.cfg.Lease), Mono: l.Now().Mono + l.cfg.Lease}
	if h.Owner != "" {
		h.LeaseUntil = end.Wall.UTC()
	} else {
		h.LeaseUntil = time.Time{}
	}
	key, value := naming.HeadKey(l.cfg.Crawl.ID, l.cfg.Partition), actor.Encode(h)
	for try := 0; ; try++ {
		v, err := t.Do(actor.WriteRecord{Key: key, Value: value, Revision: l.rev})
		if errors.Is(err, actor.ErrConflict) {
			// This may be our own write, whose reply was lost.
			rec, rerr := t.Record(key)
			if rerr != nil {
				return rerr
			}
			if !rec.Found || string(rec.Value) != string(value) {
				return ErrLeaseLost
			}
			v, err = rec.Revision, nil
		}
		if err == nil {
			l.rev, l.head, l.end = v, h, end
			return nil
		}
		if l.left() <= 0 && l.head.Fence > 0 || try > 2*maxTries || l.hurry && try > 3 {
			return fmt.Errorf("write head of partition %d: %w", l.cfg.Partition, err)
		}
		t.Sleep(min(5*time.Second, 50*time.Millisecond<<min(try, 7)))
	}
}

// spent returns the calls of this step and of the steps before it.
func (l *lease) spent() blobschema.Calls {
	calls := l.taken.Calls
	if l.cfg.Spent != nil {
		calls.Add(l.cfg.Spent())
	}
	return calls
}

// maxTries bounds the attempts to store something. If all fail the step ends, and the next step revisits what was not
// committed.
const maxTries = 10

// put stores an object, with several attempts, or one if the step must end soon.
func (l *lease) put(e actor.PutObject, then func()) { l.tryPut(e, 1, then) }

func (l *lease) tryPut(e actor.PutObject, try int, then func()) {
	l.Issue(e, func(r actor.Reply) {
		switch {
		case r.Err == nil:
			then()
		case l.left() < l.cfg.Margin || l.hurry || try >= maxTries:
			l.End(fmt.Errorf("put %s: %w", e.Name, r.Err))
		default:
			l.Issue(actor.Sleep{For: time.Second}, func(actor.Reply) { l.tryPut(e, try+1, then) })
		}
	})
}
