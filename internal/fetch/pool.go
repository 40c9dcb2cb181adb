package fetch

import (
	"sync"
	"time"
)

// idleTimeout bounds how long a connection stays open without a request.
const idleTimeout = time.Minute

// pool keeps the connections that requests may reuse: at most one idle connection per origin. If there are too
// many, it closes the one that will be needed last. A crawler visits its hosts in rotation, so the connection
// that was used last is usually needed last; closing the oldest one would close each connection just before its
// next use. It is safe for concurrent use.
type pool struct {
	most int // most connections without a request

	mu    sync.Mutex
	conns map[origin]*conn // an idle connection, or an HTTP/2 connection that further requests may share
	idle  int              // number of conns without a request
	sweep *time.Timer      // closes connections that have been idle for too long; nil while none is idle
}

// take returns a connection for one more request to an origin, or nil if there is no usable one.
func (p *pool) take(o origin) *conn {
	p.mu.Lock()
	c := p.conns[o]
	if c != nil {
		if c.users == 0 {
			p.idle--
		}
		if c.users++; c.h2 == nil {
			delete(p.conns, o)
		}
	}
	p.mu.Unlock()
	if c == nil || c.usable() {
		return c
	}
	p.left(c, time.Time{}, false)
	return nil
}

// add registers a new connection with its first request. Further requests may share an HTTP/2 connection from now on.
func (p *pool) add(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.users = 1
	if c.h2 != nil && p.conns[c.origin] == nil {
		p.conns[c.origin] = c
	}
}

// left records that a request no longer uses c. keep reports whether c can serve another request, which is
// expected at next; zero: none is expected.
func (p *pool) left(c *conn, next time.Time, keep bool) {
	p.mu.Lock()
	c.users--
	c.next, c.since = next, time.Now()
	kept := p.conns[c.origin]
	var drop *conn
	switch {
	case !keep:
		if kept == c {
			delete(p.conns, c.origin)
		}
		drop = c
	case c.users > 0:
	case kept != nil && kept != c:
		drop = c
	default:
		p.conns[c.origin] = c
		p.idle++
		drop = p.surplus()
		if p.sweep == nil {
			p.sweep = time.AfterFunc(idleTimeout, p.expire)
		}
	}
	p.mu.Unlock()
	if drop != nil {
		drop.Close()
	}
}

// surplus removes and returns the connection that will be needed last, if too many are idle. The caller holds mu.
func (p *pool) surplus() (last *conn) {
	if p.idle <= p.most {
		return nil
	}
	for _, c := range p.conns {
		if c.users == 0 && (last == nil || c.next.IsZero() || !last.next.IsZero() && c.next.After(last.next)) {
			last = c
		}
	}
	p.idle--
	delete(p.conns, last.origin)
	return last
}

// expire closes the connections that have been idle for idleTimeout. It schedules its next run while any
// connection is idle.
func (p *pool) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeIdle(time.Now().Add(-idleTimeout))
	if p.sweep = nil; p.idle > 0 {
		p.sweep = time.AfterFunc(idleTimeout/4, p.expire)
	}
}

// closeIdle closes the connections that have been idle since a time. The caller holds mu.
func (p *pool) closeIdle(since time.Time) {
	for o, c := range p.conns {
		if c.users == 0 && !c.since.After(since) {
			delete(p.conns, o)
			p.idle--
			c.Close()
		}
	}
}

// close closes all idle connections.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeIdle(time.Now())
	if p.sweep != nil {
		p.sweep.Stop()
		p.sweep = nil
	}
}
