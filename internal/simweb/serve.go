package simweb

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Server serves a web over sockets. It writes HTTP/1.1 itself: net/http cannot cut or reset an answer or send a
// false length, and costs three times as much if server and crawler share a machine.
type Server struct {
	web       *Web
	tls       *tls.Config    // nil: plain HTTP
	listeners []net.Listener // one for each host that accepts connections
	records   []record
	buffers   sync.Pool // of *[]byte, for bodies

	running sync.WaitGroup     // all goroutines of the server
	cancel  context.CancelFunc // closes listeners and connections
	done    <-chan struct{}    // closed by cancel, or by the end of Serve's context
}

// record holds the requests that a host has received.
type record struct {
	mu     sync.Mutex
	counts map[string]int // by request URI
	starts []time.Time
}

const portAttempts = 20

// Start makes a web and serves it as [Serve] does. Its addresses are those of [Server.Web].
func Start(ctx context.Context, cfg Config) (*Server, error) {
	w, err := New(cfg)
	if err != nil {
		return nil, err
	}
	return Serve(ctx, w)
}

// Serve listens on each host's own loopback address, and returns when all listeners are open. The
// web must not have Config.Names. Use the web that [Server.Web] returns from then on: its URLs have
// the port, which is chosen here unless the configuration has one. The server ends with ctx or by
// Close.
func Serve(ctx context.Context, w *Web) (*Server, error) { return ServeTLS(ctx, w, nil) }

// ServeTLS is [Serve] over TLS, for a web that has Config.TLS: the configuration holds the
// certificate of all hosts. Without one it serves plain HTTP.
func ServeTLS(ctx context.Context, w *Web, tlsConfig *tls.Config) (*Server, error) {
	if w.cfg.Names {
		return nil, errors.New("serve generated web: its hosts have names instead of addresses")
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &Server{web: w, tls: tlsConfig, records: make([]record, w.Hosts()), cancel: cancel, done: ctx.Done()}
	s.buffers.New = func() any { b := make([]byte, 0, w.bodySize()); return &b }
	for i := range s.records {
		s.records[i].counts = make(map[string]int)
	}
	if err := s.listen(ctx); err != nil {
		cancel()
		return nil, fmt.Errorf("serve generated web: %w", err)
	}
	for _, l := range s.listeners {
		context.AfterFunc(ctx, func() { l.Close() })
		s.running.Go(func() { s.accept(ctx, l) })
	}
	return s, nil
}

// listen opens all listeners. A port that is free at the first address may be taken at another one; then listen
// tries another port.
func (s *Server) listen(ctx context.Context) error {
	w := s.web
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

// accept serves the connections to one host until ctx ends.
func (s *Server) accept(ctx context.Context, l net.Listener) {
	for {
		c, err := l.Accept()
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return
		default: // out of file descriptors, or a client that left
			time.Sleep(5 * time.Millisecond)
			continue
		}
		s.running.Go(func() {
			defer c.Close()
			defer context.AfterFunc(ctx, func() { c.Close() })()
			if s.tls != nil {
				s.serveConn(tls.Server(c, s.tls))
				return
			}
			s.serveConn(c)
		})
	}
}

// Close closes listeners and connections, and waits for all goroutines of the server. Its records can still be
// read.
func (s *Server) Close() {
	s.cancel()
	s.running.Wait()
}

// Web returns the web with the port that it is served at.
func (s *Server) Web() *Web { return s.web }

// Starts returns when requests to host i came in, in order.
func (s *Server) Starts(i int) []time.Time {
	r := &s.records[i]
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.starts)
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
func (r *record) begin(uri string, now time.Time) (before int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before = r.counts[uri]
	r.counts[uri] = before + 1
	r.starts = append(r.starts, now)
	return before
}
