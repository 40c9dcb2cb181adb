package fetch

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Bounds of the name cache. The resolver of the standard library returns no TTL, so it is fixed:
// long enough for a host's pages in one step, short enough to follow a move.
const (
	namesKept     = 8192 // names, about 250 bytes each
	addressesKept = 8    // per name
	foundFor      = 5 * time.Minute
	notFoundFor   = 30 * time.Second
)

// LookupFunc resolves a host name to its addresses. The error for a name that does not exist is a
// *net.DNSError with IsNotFound. It must be safe for concurrent use and obey ctx.
type LookupFunc func(ctx context.Context, host string) ([]netip.Addr, error)

// names is a bounded cache of name lookups. Concurrent callers with the same name share one
// lookup. It is safe for concurrent use.
type names struct {
	lookup  LookupFunc
	timeout time.Duration // limit of one lookup
	now     func() time.Time

	ctx     context.Context // context of all lookups, which outlive their first caller
	stop    context.CancelFunc
	running sync.WaitGroup

	mu sync.Mutex
	m  map[string]*name
}

type name struct {
	done    chan struct{} // closed when the lookup has ended and the other fields are set
	expires time.Time     // guarded by names.mu; zero while the lookup runs
	addrs   []netip.Addr  // guarded by names.mu; replaced as a whole
	err     error
}

func newNames(lookup LookupFunc, timeout time.Duration, now func() time.Time) *names {
	n := &names{lookup: lookup, timeout: timeout, now: now, m: make(map[string]*name)}
	n.ctx, n.stop = context.WithCancel(context.Background())
	return n
}

// close ends the running lookups and waits for them. No caller may start a lookup after it.
func (n *names) close() {
	n.stop()
	n.running.Wait()
}

// resolve returns at most addressesKept addresses of host. The first is the one that accepted the last
// connection. The slice is shared and read-only. The error is that of ctx or of the lookup.
func (n *names) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	e := n.m[host]
	if e == nil || !e.expires.IsZero() && !n.now().Before(e.expires) {
		e = &name{done: make(chan struct{})}
		n.makeRoom()
		n.m[host] = e
		n.running.Add(1)
		go n.run(host, e)
	}
	n.mu.Unlock()

	select {
	case <-e.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return e.addrs, e.err
}

func (n *names) run(host string, e *name) {
	defer n.running.Done()
	ctx, cancel := context.WithTimeout(n.ctx, n.timeout)
	defer cancel()
	addrs, err := n.lookup(ctx, host)
	if err == nil && len(addrs) == 0 {
		err = &net.DNSError{Err: "no address", Name: host, IsNotFound: true}
	}

	n.mu.Lock()
	defer n.mu.Unlock()
	defer close(e.done)
	e.addrs, e.err, e.expires = interleave(addrs), err, n.now().Add(foundFor)
	if err != nil {
		e.expires = n.now().Add(notFoundFor)
	}
}

// makeRoom drops any name from a full cache. It does not drop a running lookup, because the
// next caller would start it again. The caller holds mu.
func (n *names) makeRoom() {
	if len(n.m) < namesKept {
		return
	}
	for host, e := range n.m {
		if !e.expires.IsZero() {
			delete(n.m, host)
			return
		}
	}
}

// prefer moves addr, which has just accepted a connection, to the front of host's addresses, so
// that an address family that does not work here costs its timeout once and not per connection.
func (n *names) prefer(host string, addr netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if e := n.m[host]; e != nil {
		if i := slices.Index(e.addrs, addr); i > 0 {
			e.addrs = slices.Concat(e.addrs[i:i+1], e.addrs[:i], e.addrs[i+1:])
		}
	}
}

// forget drops a host if none of its addresses accepted a connection: it may have moved.
func (n *names) forget(host string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if e := n.m[host]; e != nil && !e.expires.IsZero() {
		delete(n.m, host)
	}
}

// interleave alternates the two address families, beginning with that of the first address
// (RFC 8305 section 4), and keeps at most addressesKept. Of more addresses it keeps the lowest, so that
// all processes keep the same ones even if a name server rotates its answers.
func interleave(addrs []netip.Addr) []netip.Addr {
	if len(addrs) == 0 {
		return nil
	}
	var same, other []netip.Addr
	for _, a := range addrs {
		a = a.Unmap()
		if a.Is4() == addrs[0].Unmap().Is4() {
			same = append(same, a)
		} else {
			other = append(other, a)
		}
	}
	if len(addrs) > addressesKept {
		slices.SortFunc(same, netip.Addr.Compare)
		slices.SortFunc(other, netip.Addr.Compare)
	}
	out := make([]netip.Addr, 0, addressesKept)
	for len(out) < addressesKept && len(same)+len(other) > 0 {
		if len(same) > 0 {
			out, same = append(out, same[0]), same[1:]
		}
		if len(other) > 0 {
			same, other = other, same
		}
	}
	return out
}

// systemLookup returns the lookup of the machine's resolver. It prefers the resolver written in Go, which
// occupies no thread while it waits.
func systemLookup() LookupFunc {
	r := &net.Resolver{PreferGo: true}
	return func(ctx context.Context, host string) ([]netip.Addr, error) {
		// Absolute, so that no search domain of this machine's network is tried.
		return r.LookupNetIP(ctx, "ip", host+".")
	}
}

func isNotFound(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound
}
