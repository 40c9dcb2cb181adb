package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
)

// Attempts to reach a host: at most so many addresses, one after another, each with an equal
// share of what is left of the connect time-out but never less than the least.
const (
	addressesTried  = 4
	leastPerAddress = 2 * time.Second
)

// A dialError says why there is no connection. It passes through net/http unchanged.
type dialError struct {
	outcome   blobschema.Outcome
	temporary bool
	err       error
}

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// forbiddenError is the refusal of an address.
type forbiddenError struct{ addr netip.Addr }

func (e forbiddenError) Error() string { return "address " + e.addr.String() + " may not be asked" }

// origin is what connections are kept for: those to a given address serve no request for another, or for none.
type origin struct {
	tls  bool
	host string // name or address, without brackets
	port uint16
	addr netip.Addr // the only address to connect to; zero: any of the host
}

// originOf returns the origin of a request. ok is false if the host spells an address, but the request is for another one.
func originOf(req *actor.Request) (o origin, ok bool) {
	u := url.URL{Host: string(req.URL.Host())}
	o = origin{tls: req.URL.Scheme() == "https", host: u.Hostname(), port: 80}
	if o.tls {
		o.port = 443
	}
	if p, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
		o.port = uint16(p)
	}
	literal, err := netip.ParseAddr(o.host)
	if err == nil {
		return o, !req.Addr.IsValid() || req.Addr.Unmap() == literal.Unmap()
	}
	o.addr = req.Addr.Unmap()
	return o, true
}

// dialer opens connections to allowed addresses only. Safe for concurrent use.
type dialer struct {
	names   *names
	allow   []netip.Prefix
	timeout time.Duration // of names and TCP together; of TLS once more
	tls     *tls.Config
	http2   *http.Transport // speaks HTTP/2 over connections made here
	// connecting, if not nil, is told of each address that a socket is about to connect to, and
	// may refuse it. For tests.
	connecting func(netip.AddrPort) error
}

// maxUnasked is how many bytes may come over a connection while no answer does: a handshake, and
// over HTTP/2 frames of its own, and what was under way when a body was cut, at most a window.
// A server that sends more would be read, and answered, for as long as the connection may idle
// or the header may take.
const maxUnasked = 4 << 20

// perByte is how many bytes may come over a connection for one of a body, besides maxUnasked for
// each answer, which is more than a window of HTTP/2: a byte of a body in a frame and a TLS record of its
// own is 32. An answer of empty frames would be read for as long as a request may take.
const perByte = 64

var (
	errUnasked = errors.New("server sends what nobody asked for")
	errNothing = errors.New("server sends an answer of nearly empty frames")
)

// conn is a connection. It counts what is received over its socket, TLS included.
type conn struct {
	net.Conn                  // socket
	stream   net.Conn         // what HTTP is spoken over: conn itself, or TLS over it
	h2       *http.ClientConn // over stream; nil: HTTP/1
	shared   bool             // HTTP/2
	origin   origin
	addr     string       // IP address at the other end
	answers  atomic.Int32 // HTTP/2 requests under way
	received atomic.Int64 // bytes
	told     atomic.Int64 // of these, attributed to a request already
	bodies   atomic.Int64 // bytes of bodies that came since

	users int       // requests that use it; guarded by pool.mu, as the rest
	next  time.Time // expected next use; zero: none is expected
	since time.Time // end of the last request
}

// usable reports whether a connection that was idle may carry a request: nothing has come over it that nobody requested, and it
// has not ended.
func (c *conn) usable() bool {
	if c.h2 != nil {
		return c.h2.Err() == nil && c.h2.Available() > 0
	}
	s, ok := c.Conn.(syscall.Conn)
	if !ok || !pending(s) {
		return true
	}
	if c.stream == net.Conn(c) {
		return false
	}
	// Over TLS it may be a session ticket, which a read takes without returning anything.
	if c.SetReadDeadline(time.Now().Add(time.Millisecond)) != nil {
		return false
	}
	var b [1]byte
	_, err := c.stream.Read(b[:])
	return errors.Is(err, os.ErrDeadlineExceeded) && c.SetReadDeadline(time.Time{}) == nil
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.received.Add(int64(n))
	if !c.shared { // read only as far as somebody waits for it
		return n, err
	}
	answers := int64(c.answers.Load())
	switch over := c.received.Load() - c.told.Load() - maxUnasked; {
	case answers == 0 && over > 0:
		err = errUnasked
	case over > answers*maxUnasked+perByte*c.bodies.Load():
		err = errNothing
	default:
		return n, err
	}
	c.Close()
	return 0, err
}

// take returns the bytes received since it was last called.
func (c *conn) take() int64 {
	n := c.received.Load()
	c.bodies.Store(0)
	return n - c.told.Swap(n)
}

// dial opens a connection to an origin. The error is a *dialError, or the cause of ctx's end.
func (d *dialer) dial(ctx context.Context, o origin) (*conn, error) {
	c, err := d.connect(ctx, o)
	if err != nil || !o.tls {
		return c, err
	}
	cfg := d.tls.Clone()
	cfg.ServerName = o.host
	shaken := tls.Client(c, cfg)
	c.stream = shaken
	shake, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	err = shaken.HandshakeContext(shake)
	if err == nil && shaken.ConnectionState().NegotiatedProtocol == "h2" {
		c.shared = true
		c.h2, err = d.http2.NewClientConn(context.WithValue(shake, dialled{}, shaken), "https", net.JoinHostPort(o.host, "443"))
	}
	if err != nil {
		c.Close()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var bad *tls.CertificateVerificationError
		return nil, &dialError{blobschema.OutcomeTLS, !errors.As(err, &bad), err}
	}
	return c, nil
}

// dialled is the key of the connection in a context that [newHTTP2] speaks over.
type dialled struct{}

// newHTTP2 returns a transport for [dialer.dial], which uses nothing of it but single connections.
func newHTTP2() *http.Transport {
	return &http.Transport{
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return ctx.Value(dialled{}).(net.Conn), nil
		},
		DisableCompression:     true, // bodies are stored as received
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: maxHeader,
		HTTP2: &http.HTTP2Config{
			// What a server may send ahead of our reading.
			MaxReceiveBufferPerStream:     1 << 20,
			MaxReceiveBufferPerConnection: 2 << 20,
		},
	}
}

// connect opens a TCP connection to an origin, whose host it resolves unless the address is given. The error is a *dialError, or
// the cause of ctx's end.
func (d *dialer) connect(ctx context.Context, o origin) (*conn, error) {
	host, pin := o.host, o.addr
	limited, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	addrs, err := []netip.Addr{pin}, error(nil) // control looks at it
	if !pin.IsValid() {
		addrs, err = d.addresses(limited, host)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	nc, addr, err := d.try(limited, addrs, o.port)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !pin.IsValid() {
			d.names.forget(host)
		}
		var forbidden forbiddenError
		if errors.As(err, &forbidden) {
			return nil, &dialError{blobschema.OutcomeForbidden, false, forbidden}
		}
		return nil, &dialError{blobschema.OutcomeConnect, true, err}
	}
	if !pin.IsValid() {
		d.names.prefer(host, addr)
	}
	c := &conn{Conn: nc, origin: o, addr: addr.Unmap().String()}
	c.stream = c
	return c, nil
}

// pin returns the address of host that all who know the same addresses choose: the lowest
// that is allowed, IPv4 before IPv6. The error is a *dialError.
func (d *dialer) pin(ctx context.Context, host string) (netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	addrs, err := d.addresses(ctx, host)
	if err != nil {
		return netip.Addr{}, err
	}
	return slices.MinFunc(addrs, netip.Addr.Compare).Unmap(), nil
}

// addresses returns those addresses of host, or the one that it spells, that are allowed.
func (d *dialer) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	addr, err := netip.ParseAddr(host)
	addrs := []netip.Addr{addr}
	if err != nil {
		addrs, err = d.names.resolve(ctx, host)
		if ctx.Err() != nil { // the look-up itself may go on
			err = &net.DNSError{Err: "no answer in time", Name: host, IsTimeout: true}
		}
		if err != nil {
			return nil, &dialError{blobschema.OutcomeDNS, !isNotFound(err), err}
		}
	}
	allowed := make([]netip.Addr, 0, len(addrs))
	for _, a := range addrs {
		if Allowed(a, d.allow) {
			allowed = append(allowed, a)
		}
	}
	if len(allowed) == 0 {
		return nil, &dialError{blobschema.OutcomeForbidden, false, forbiddenError{addrs[0]}}
	}
	return allowed, nil
}

// try connects to the first of addrs that answers. One after another, not in a race (RFC 8305):
// a race would cost a busy host connections that are thrown away, and names.prefer
// spares the wait from the second connection on.
func (d *dialer) try(ctx context.Context, addrs []netip.Addr, port uint16) (net.Conn, netip.Addr, error) {
	addrs = addrs[:min(len(addrs), addressesTried)]
	var first error
	for i, addr := range addrs {
		end, _ := ctx.Deadline()
		share := max(time.Until(end)/time.Duration(len(addrs)-i), leastPerAddress)
		nd := net.Dialer{Timeout: share, KeepAlive: -1, FallbackDelay: -1, ControlContext: d.control}
		nc, err := nd.DialContext(ctx, "tcp", netip.AddrPortFrom(addr, port).String())
		if err == nil {
			return nc, addr, nil
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, netip.Addr{}, first
}

// control sees the address that the socket is about to connect to: the last line, whatever
// name, look-up or cache led here, so that a name that changes its mind gains nothing.
func (d *dialer) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("parse address: %w", err)
	}
	if !Allowed(ap.Addr(), d.allow) {
		return forbiddenError{ap.Addr()}
	}
	if d.connecting != nil {
		return d.connecting(ap)
	}
	return nil
}
