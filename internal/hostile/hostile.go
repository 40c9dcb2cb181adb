// Package hostile is a hostile web on loopback: servers that each misbehave in one way,
// names that resolve to forbidden addresses, and good pages.
// A crawler must store every good page byte for byte, give every bad URL
// an outcome with a reason, and stay within its bounds of bytes, time and memory.
//
// [cases] lists the servers. [Start] opens a [Server] that runs them all. Each case has its own
// host, an address in [Net] with a port, so that cases do not affect each other. The
// servers write raw bytes, because net/http does not send malformed answers.
//
// One listener, the inside, is outside Net. It represents the addresses to which redirects and names must never
// lead, and counts the connections it receives.
//
// Each connection is closed after [MaxLife] or [maxSent], whichever comes
// first, which bounds the cost of a client that never gives up.
package hostile

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// Bounds of one connection.
const (
	MaxLife = time.Minute
	maxSent = 200 << 20 // bytes
)

// Net returns the network of all hosts except the inside, which is at 127.0.0.1.
func Net() netip.Prefix { return netip.MustParsePrefix("127.77.0.0/16") }

// Case is one way to misbehave.
type Case struct {
	Name  string // words joined by "-"; unique
	Does  string // behaviour of the server
	Bound string // bound or check that protects the crawler
	Want  Want

	Robots bool // the URL is a robots.txt and is requested as one
	Slow   bool // only a timeout ends the request
	Whole  bool // the host serves neither a robots.txt nor a good page
	Follow bool // the answer redirects to a forbidden address
	Alone  bool // after the answer a polite crawler does not request another page of the host
	Day    bool // after the answer a polite crawler waits for a day, so Index does not link to the case

	path   string // path of the URL; "" means "/x"
	secure func(*authority) *tls.Config
	serve  func(*conn)
	serve2 func(*stream)                                      // serve over HTTP/2
	lookup func(n int, good netip.Addr) ([]netip.Addr, error) // answer to the n-th query, counted from 0
}

// Want is the expected result of a case.
type Want struct {
	Outcome   blobschema.Outcome
	Or        blobschema.Outcome // alternative outcome, if chance decides which fault is noticed first; 0: none
	Status    uint16
	Detail    string // substring of the reason
	Body      string // stored body; "": any
	Truncated bool   // the crawler cuts the body at its limit
	Wire      int64  // most bytes read; 0: 256 KiB
	Links     int    // least number of links found
}

// Server runs all hosts. It is safe for concurrent use.
type Server struct {
	cases     []Case
	hosts     []*host // hosts of the cases, in their order; nil for a case of a name
	normal    []*host
	inside    net.Listener
	authority *authority

	reached atomic.Int64 // connections to the inside
	life    time.Duration
	running sync.WaitGroup
	cancel  context.CancelFunc // closes listeners and connections

	mu      sync.Mutex
	queries map[string]int // by name
}

// host is one listener with its counters.
type host struct {
	l    net.Listener
	c    *Case // nil for a host of good pages
	sent atomic.Int64
	open atomic.Int64
}

// Start opens the servers of all cases.
func Start() (*Server, error) { return startFor(MaxLife) }

// startFor starts the servers with a bound on the life of a connection.
func startFor(life time.Duration) (*Server, error) {
	a, err := newAuthority()
	if err != nil {
		return nil, fmt.Errorf("start hostile web: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{cases: cases(), authority: a, life: life, cancel: cancel, queries: map[string]int{}}
	if err := s.listen(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("start hostile web: %w", err)
	}
	return s, nil
}

func (s *Server) listen(ctx context.Context) (err error) {
	if s.inside, err = net.Listen("tcp4", "127.0.0.1:0"); err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { s.inside.Close() })
	s.running.Go(func() {
		for {
			c, err := s.inside.Accept()
			if err != nil {
				return
			}
			s.reached.Add(1)
			c.Close()
		}
	})
	for i := range normalHosts {
		h, err := s.open(ctx, fmt.Sprintf("127.77.0.%d:0", i+1), nil)
		if err != nil {
			return err
		}
		s.normal = append(s.normal, h)
	}
	for i := range s.cases {
		c := &s.cases[i]
		if c.lookup != nil {
			s.hosts = append(s.hosts, nil)
			continue
		}
		h, err := s.open(ctx, fmt.Sprintf("127.77.%d.%d:0", 1+i/200, 1+i%200), c)
		if err != nil {
			return err
		}
		s.hosts = append(s.hosts, h)
	}
	return nil
}

func (s *Server) open(ctx context.Context, address string, c *Case) (*host, error) {
	l, err := net.Listen("tcp4", address)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { l.Close() })
	h := &host{l: l, c: c}
	s.running.Go(func() {
		for {
			nc, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // a client that left, or no file descriptors
				time.Sleep(5 * time.Millisecond)
				continue
			}
			h.open.Add(1)
			s.running.Go(func() {
				defer h.open.Add(-1)
				defer nc.Close()
				defer context.AfterFunc(ctx, func() { nc.Close() })()
				s.handle(h, nc)
			})
		}
	})
	return h, nil
}

// Close ends all connections and waits for all goroutines of the server.
func (s *Server) Close() {
	s.cancel()
	s.running.Wait()
}

// Cases returns the cases that s serves.
func (s *Server) Cases() []Case { return s.cases }

// URL returns the URL of the i-th case.
func (s *Server) URL(i int) string {
	c := &s.cases[i]
	path := c.path
	if path == "" {
		path = "/x"
	}
	switch {
	case c.lookup != nil:
		_, port, _ := net.SplitHostPort(s.normal[0].l.Addr().String())
		return "http://" + c.Name + nameSuffix + ":" + port + pagePath(0)
	case c.secure != nil || strings.HasPrefix(c.Name, "tls-"):
		return "https://" + s.hosts[i].l.Addr().String() + path
	}
	return "http://" + s.hosts[i].l.Addr().String() + path
}

// Sent returns the number of bytes written for the i-th case, with those of TLS. Some may still be
// in buffers of the kernel.
func (s *Server) Sent(i int) int64 {
	if s.hosts[i] == nil {
		return 0
	}
	return s.hosts[i].sent.Load()
}

// Open returns the number of open connections to the host of the i-th case.
func (s *Server) Open(i int) int64 {
	if s.hosts[i] == nil {
		return 0
	}
	return s.hosts[i].open.Load()
}

// Inside returns the forbidden address and its port.
func (s *Server) Inside() netip.AddrPort {
	return s.inside.Addr().(*net.TCPAddr).AddrPort()
}

// Reached returns the number of connections to the inside.
func (s *Server) Reached() int64 { return s.reached.Load() }

// Roots returns the authority that signed the good certificates.
func (s *Server) Roots() *x509.CertPool { return s.authority.roots }

// conn is a connection to a host.
type conn struct {
	net.Conn
	s    *Server
	in   *bufio.Reader
	path string // path and query of the current request
	keep bool   // the connection stays open after the answer
}

// metered counts and bounds the bytes written to a connection.
type metered struct {
	net.Conn
	h    *host
	left int64
}

var errSpent = errors.New("sent enough")

func (m *metered) Write(p []byte) (int, error) {
	if int64(len(p)) > m.left {
		return 0, errSpent
	}
	n, err := m.Conn.Write(p)
	m.left -= int64(n)
	m.h.sent.Add(int64(n))
	return n, err
}

// handle serves one connection.
func (s *Server) handle(h *host, nc net.Conn) {
	nc.SetDeadline(time.Now().Add(s.life))
	x := &conn{Conn: &metered{Conn: nc, h: h, left: maxSent}, s: s}
	if h.c != nil && h.c.Whole && h.c.secure == nil {
		h.c.serve(x)
		return
	}
	if h.c != nil && h.c.secure != nil {
		tc := tls.Server(x.Conn, h.c.secure(s.authority))
		if tc.Handshake() != nil {
			return
		}
		x.Conn = tc
		if tc.ConnectionState().NegotiatedProtocol == "h2" {
			s.handle2(h, x)
			return
		}
	}
	x.in = bufio.NewReader(x.Conn)
	for {
		req, err := http.ReadRequest(x.in)
		if err != nil {
			return
		}
		x.path = req.RequestURI
		if h.c != nil && h.c.is(x.path) {
			h.c.serve(x)
			if !x.keep {
				return
			}
			continue
		}
		if _, err := x.Write(s.answer(x.path).encode()); err != nil {
			return
		}
	}
}

// is reports whether a request is for the URL of the case and not for another page of its host.
func (c *Case) is(path string) bool {
	path, _, _ = strings.Cut(path, "?")
	return path == c.path || c.path == "" && (path == "/x" || strings.HasPrefix(path, "/x/"))
}

// send writes s.
func (x *conn) send(s string) { io.WriteString(x, s) }

// leave waits until the client closes the connection.
func (x *conn) leave() { io.Copy(io.Discard, x.Conn) }

// reset makes the connection end with an RST instead of a FIN.
func (x *conn) reset() {
	nc := x.Conn
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	if m, ok := nc.(*metered); ok {
		if t, ok := m.Conn.(*net.TCPConn); ok {
			t.SetLinger(0)
		}
	}
}

// text sends s and closes the connection.
func text(s string) func(*conn) { return func(x *conn) { x.send(s) } }

// stall sends s and then nothing until the client leaves.
func stall(s string) func(*conn) {
	return func(x *conn) {
		x.send(s)
		x.leave()
	}
}

// endless sends start and then piece without end.
func endless(start, piece string) func(*conn) {
	block := strings.Repeat(piece, 1+(32<<10)/len(piece))
	return func(x *conn) {
		x.send(start)
		for {
			if _, err := io.WriteString(x, block); err != nil {
				return
			}
		}
	}
}

// drip sends start and then piece every 20 ms without end.
func drip(start, piece string) func(*conn) {
	return func(x *conn) {
		x.send(start)
		for {
			if _, err := io.WriteString(x, piece); err != nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// long sends start, n times piece, and end.
func long(start, piece string, n int, end string) func(*conn) {
	return func(x *conn) {
		w := bufio.NewWriterSize(x, 64<<10)
		w.WriteString(start)
		for range n {
			if _, err := w.WriteString(piece); err != nil {
				return
			}
		}
		w.WriteString(end)
		w.Flush()
	}
}
