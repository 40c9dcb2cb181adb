package fetch

import (
	"sync"
	"time"
)

// idle is the set of connections that carry no request. If there are too many, it closes the
// one that will be needed last. A crawler visits its hosts in rotation, so the connection that was
// used last is as a rule the one needed last. To close the oldest one, as net/http does, would
// close each connection just before its next use.
type idle struct {
	most int // connections without a request

	mu   sync.Mutex
	next map[*conn]time.Time // expected next use; zero: none is expected
}

// taken notes that one more request uses c.
func (i *idle) taken(c *conn) {
	i.mu.Lock()
	defer i.mu.Unlock()
	c.users++
	delete(i.next, c)
}

// left notes that a request no longer uses c, and that the next one is expected at next. If net/http
// hands out the connection that left is about to close, it finds it closed, and dials again.
func (i *idle) left(c *conn, next time.Time) {
	i.mu.Lock()
	if c.users--; c.users == 0 && !c.closed.Load() {
		i.next[c] = next
	}
	var last *conn
	if len(i.next) > i.most {
		for c, at := range i.next {
			if last == nil || at.IsZero() || !i.next[last].IsZero() && at.After(i.next[last]) {
				last = c
			}
		}
	}
	i.mu.Unlock()
	if last != nil {
		last.Close()
	}
}

// closed forgets c.
func (i *idle) closed(c *conn) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.next, c)
}
