package simweb

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// Recording says how much a Server remembers of its requests.
type Recording uint8

const (
	RecordAll    Recording = iota // counts by URL, start times by host
	RecordCounts                  // counts by URL only, which temporary failures need
)

// ListenOptions are the options of Serve. The zero value is a good one.
type ListenOptions struct {
	Recording Recording
	TLS       *tls.Config // with the certificate of all hosts, if the web has Config.TLS
}

// Server serves a web over sockets. It writes HTTP/1.1 itself: net/http can neither cut,
// reset nor lie, and costs three times as much where server and crawler share a machine.
type Server struct {
	web       *Web
	recording Recording
	tls       *tls.Config    // nil: plain HTTP
	listeners []net.Listener // one a host but those that refuse; with Names only one
	records   []record
	buffers   sync.Pool // of *[]byte, for bodies

	wg   sync.WaitGroup // all goroutines of the server
	stop func() bool    // of the context's watch
	done chan struct{}  // closed by Close

	mu     sync.Mutex
	conns  map[net.Conn]struct{} // guarded by mu; nil once closed
	closed bool                  // guarded by mu
}

// record is what is remembered of a host.
type record struct {
	mu          sync.Mutex
	counts      map[string]int // by request URI
	starts      []time.Time    // at most maxStarts
	inFlight    int
	maxInFlight int
}

const (
	maxStarts    = 1 << 16 // remembered per host; the older half is dropped beyond
	portAttempts = 20
)

// Start makes a web and serves it as [Serve] does. Its addresses are those of [Server.Web].
func Start(ctx context.Context, cfg Config, opt ListenOptions) (*Server, error) {
	w, err := New(cfg)
	if err != nil {
		return nil, err
	}
	return Serve(ctx, w, opt)
}

// Serve listens on each host's own loopback address, and returns when all do. Use the web
// that [Server.Web] returns from then on: its URLs have the port, which is chosen here
// unless the configuration has one. With Config.Names there is one listener, for clients
// that dial [Server.Addr] whatever the URL's host (or use it as a proxy), and the port is
// not made part of the URLs. The server ends with ctx or by Close.
func Serve(ctx context.Context, w *Web, o ListenOptions) (*Server, error) {
	s := &Server{
		web: w, recording: o.Recording, tls: o.TLS, records: make([]record, w.Hosts()),
		done: make(chan struct{}), conns: make(map[net.Conn]struct{}),
	}
	s.buffers.New = func() any { b := make([]byte, 0, w.bodySize()); return &b }
	for i := range s.records {
		s.records[i].counts = make(map[string]int)
	}
	if err := s.listen(ctx); err != nil {
		return nil, fmt.Errorf("serve generated web: %w", err)
	}
	for _, l := range s.listeners {
		s.wg.Go(func() { s.accept(l) })
	}
	s.stop = context.AfterFunc(ctx, s.shut)
	return s, nil
}

// listen opens all listeners. A port that the first address has free may be taken at
// another one: then another port is tried.
func (s *Server) listen(ctx context.Context) error {
	w := s.web
	if w.cfg.Names {
		return s.listenAt(ctx, []string{address(0)}, w.cfg.Port)
	}
	var addrs []string
	for i := range w.hosts {
		if w.hosts[i].down != FaultRefused {
			addrs = append(addrs, address(i))
		}
	}
	for try := 1; ; try++ {
		err := s.listenAt(ctx, addrs, w.cfg.Port)
		if err == nil {
			break
		}
		if w.cfg.Port != 0 || try == portAttempts || !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
	}
	if w.cfg.Port == 0 {
		s.web = w.withPort(s.listeners[0].Addr().(*net.TCPAddr).Port)
	}
	return nil
}

func (s *Server) listenAt(ctx context.Context, addrs []string, port int) error {
	var c net.ListenConfig
	for _, a := range addrs {
		l, err := c.Listen(ctx, "tcp4", fmt.Sprintf("%s:%d", a, port))
		if err != nil {
			for _, l := range s.listeners {
				l.Close()
			}
			s.listeners = nil
			return err
		}
		port = l.Addr().(*net.TCPAddr).Port
		s.listeners = append(s.listeners, l)
	}
	return nil
}

func (s *Server) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			select {
			case <-s.done:
				return
			case <-time.After(5 * time.Millisecond): // out of file descriptors, or a client that left
				continue
			}
		}
		if !s.keep(c) {
			c.Close()
			return
		}
		s.wg.Go(func() {
			defer s.drop(c)
			if s.tls != nil {
				s.serveConn(tls.Server(c, s.tls))
				return
			}
			s.serveConn(c)
		})
	}
}

func (s *Server) keep(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

func (s *Server) drop(c net.Conn) {
	c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// shut ends all that runs without waiting for it.
func (s *Server) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	close(s.done)
	for _, l := range s.listeners {
		l.Close()
	}
	for c := range s.conns {
		c.Close()
	}
}

// Close closes listeners and connections, and waits until nothing of the server runs. What
// was recorded can still be read.
func (s *Server) Close() {
	s.stop()
	s.shut()
	s.wg.Wait()
}

// Web returns the web with the port that it is served at.
func (s *Server) Web() *Web { return s.web }

// Addr returns the address to dial for an authority of the web: its own, or with
// Config.Names the one address that all names are served at; "" for an unknown one or one
// whose name is not to resolve.
func (s *Server) Addr(authority string) string {
	h, ok := s.web.HostOf(authority)
	switch {
	case !ok || s.web.hosts[h].down == FaultDNS:
		return ""
	case s.web.cfg.Names:
		return s.listeners[0].Addr().String()
	default:
		return fmt.Sprintf("%s:%d", address(h), s.listeners[0].Addr().(*net.TCPAddr).Port)
	}
}

// Starts returns when requests to host i came in, in order: the last 32,768 at least.
func (s *Server) Starts(i int) []time.Time {
	r := &s.records[i]
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]time.Time(nil), r.starts...)
}

// MaxConcurrent returns how many requests host i had to answer at once at most. One counts
// from when it was read until just before the last of its answer is written, so that a
// client that waits for answers is never found to have two; one that is never answered
// does not count for longer than a moment.
func (s *Server) MaxConcurrent(i int) int {
	r := &s.records[i]
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.maxInFlight
}

// Requests returns the number of requests for each URL, including robots.txt files.
func (s *Server) Requests() map[string]int {
	all := make(map[string]int)
	for i := range s.records {
		r := &s.records[i]
		r.mu.Lock()
		for uri, n := range r.counts {
			all[s.web.scheme()+s.web.authority[i]+uri] = n
		}
		r.mu.Unlock()
	}
	return all
}

// begin records a request and returns the number of earlier requests for its URL.
func (r *record) begin(uri string, now time.Time, what Recording) (before int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before = r.counts[uri]
	r.counts[uri] = before + 1
	if what == RecordAll {
		if len(r.starts) == maxStarts {
			r.starts = append(r.starts[:0], r.starts[maxStarts/2:]...)
		}
		r.starts = append(r.starts, now)
	}
	r.inFlight++
	r.maxInFlight = max(r.maxInFlight, r.inFlight)
	return before
}

func (r *record) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inFlight--
}
