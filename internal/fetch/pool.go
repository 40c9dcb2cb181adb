package fetch

import (
	"sync"
	"time"
)

// idleTimeout bounds how long a connection stays open without a request.
const idleTimeout = time.Minute

// pool keeps the connections that requests may reuse: at most one per origin. If there are too many, it closes the
// one that will be needed last. A crawler visits its hosts in rotation, so the connection that was used last is usually needed
// last; closing the oldest one would close each connection just before its next use. Safe for concurrent use.
type pool struct {
	most int // most connections

	mu    sync.Mutex
	idle  map[origin]*conn
	sweep *time.Timer // closes connections that have been idle for too long; nil while none is idle
}

// take removes and returns the connection to an origin, or returns nil if there is no usable one.
func (p *pool) take(o origin) *conn {
	p.mu.Lock()
	c := p.idle[o]
	delete(p.idle, o)
	p.mu.Unlock()
	if c == nil || c.usable() {
		return c
	}
	c.Close()
	return nil
}

// put keeps a connection for a request that is expected at next; zero: none is expected.
func (p *pool) put(c *conn, next time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle[c.origin] != nil {
		c.Close()
		return
	}
	c.next, c.since = next, time.Now()
	p.idle[c.origin] = c
	if len(p.idle) > p.most {
		p.drop(p.last())
	}
	if p.sweep == nil {
		p.sweep = time.AfterFunc(idleTimeout, p.expire)
	}
}

// last returns the connection that will be needed last. The caller holds mu.
func (p *pool) last() (last *conn) {
	for _, c := range p.idle {
		if last == nil || c.next.IsZero() || !last.next.IsZero() && c.next.After(last.next) {
			last = c
		}
	}
	return last
}

// drop closes a connection of the pool. The caller holds mu.
func (p *pool) drop(c *conn) {
	delete(p.idle, c.origin)
	c.Close()
}

// expire closes the connections that have been idle for idleTimeout. It schedules its next run while any connection is idle.
func (p *pool) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.idle {
		if time.Since(c.since) >= idleTimeout {
			p.drop(c)
		}
	}
	if p.sweep = nil; len(p.idle) > 0 {
		p.sweep = time.AfterFunc(idleTimeout/4, p.expire)
	}
}

// close closes all connections.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.idle {
		p.drop(c)
	}
	if p.sweep != nil {
		p.sweep.Stop()
		p.sweep = nil
	}
}
