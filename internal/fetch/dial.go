package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
)

// Bounds of the attempts to connect to a host. The addresses are tried one after another, each with an equal
// share of the remaining connect timeout.
const (
	addressesTried  = 4
	leastPerAddress = 2 * time.Second // least share
)

// forbidden returns the refusal of an address.
func forbidden(addr netip.Addr) verdict {
	return verdict{blobschema.OutcomeForbidden, false, "address " + addr.String() + " is not allowed"}
}

// origin is the key under which connections are pooled: scheme, host and port, and the address if the request
// names one. A connection to a named address serves only requests that name the same address.
type origin struct {
	tls  bool
	host string // name or address, without brackets
	port uint16
	addr netip.Addr // the only address to connect to; zero: any of the host
}

// originOf returns the origin of a request. ok is false if the host is itself an address and the request names
// another one.
func originOf(req *actor.Request) (o origin, ok bool) {
	o = origin{tls: req.URL.Scheme() == "https", host: req.URL.Host().Name(), port: 80}
	if o.tls {
		o.port = 443
	}
	if p, err := strconv.ParseUint(req.URL.Host().Port(), 10, 16); err == nil {
		o.port = uint16(p)
	}
	literal, err := netip.ParseAddr(o.host)
	if err == nil {
		return o, !req.Addr.IsValid() || req.Addr.Unmap() == literal.Unmap()
	}
	o.addr = req.Addr.Unmap()
	return o, true
}

// dialer opens connections to allowed addresses only. It is safe for concurrent use.
type dialer struct {
	names   *names
	allow   []netip.Prefix
	timeout time.Duration // limit for name and TCP together, and again for TLS
	tls     *tls.Config
	http2   *http.Transport // speaks HTTP/2 over connections of this dialer
	// connecting, if not nil, receives each address that a socket is about to connect to, and
	// may refuse it. For tests.
	connecting func(netip.AddrPort) error
}

// maxUnsolicited bounds the bytes received over an HTTP/2 connection without an answer: the handshake, frames
// of the connection itself, and at most a window of a body that was cut. net/http reads and answers such frames
// for as long as the connection is open, so a server could otherwise send them without end.
const maxUnsolicited = 4 << 20

// perByte bounds the bytes received per byte of a body over HTTP/2, in addition to maxUnsolicited for each
// answer, which is more than a window. A body byte with its own frame and TLS record takes 32 bytes. Without
// this bound, an answer of empty frames would be read until the request times out.
const perByte = 64

var (
	errUnsolicited = errors.New("server sends data without a request")
	errNothing     = errors.New("server sends an answer of nearly empty frames")
)

// conn is a connection. It counts the bytes received over its socket, with those of TLS.
type conn struct {
	net.Conn                  // socket
	stream   net.Conn         // carries HTTP: conn itself, or TLS over it
	h2       *http.ClientConn // over stream; nil: HTTP/1
	http2    bool             // HTTP/2, else HTTP/1.1
	origin   origin
	addr     string       // IP address of the server
	answers  atomic.Int32 // running HTTP/2 requests
	received atomic.Int64 // bytes received since the last take
	bodies   atomic.Int64 // bytes of bodies

	users int       // requests that use it; pool.mu guards users, next and since
	next  time.Time // expected next use; zero: none is expected
	since time.Time // end of the last request
}

// usable reports whether an idle connection can carry a request: it is open, and no data has arrived without a request.
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
	// Over TLS the data may be a session ticket. A read consumes it without returning anything.
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
	if !c.http2 { // over HTTP/1 this package reads only while it waits for an answer
		return n, err
	}
	answers := int64(c.answers.Load())
	switch over := c.received.Load() - maxUnsolicited; {
	case answers == 0 && over > 0:
		err = errUnsolicited
	case over > answers*maxUnsolicited+perByte*c.bodies.Load():
		err = errNothing
	default:
		return n, err
	}
	c.Close()
	return 0, err
}

// take returns the number of bytes received since its last call.
func (c *conn) take() int64 {
	c.bodies.Store(0)
	return c.received.Swap(0)
}

// dial opens a connection to an origin. The error is a verdict, which is meaningless if ctx has ended.
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
		c.http2 = true
		c.h2, err = d.http2.NewClientConn(context.WithValue(shake, dialled{}, shaken), "https", net.JoinHostPort(o.host, "443"))
	}
	if err != nil {
		c.Close()
		var bad *tls.CertificateVerificationError
		return nil, verdict{blobschema.OutcomeTLS, !errors.As(err, &bad), reason(err)}
	}
	return c, nil
}

// dialled is the context key under which the transport of [newHTTP2] finds its connection.
type dialled struct{}

// newHTTP2 returns a transport that speaks HTTP/2 over single connections. [dialer.dial] does not use its pool.
func newHTTP2(headerTimeout time.Duration) *http.Transport {
	return &http.Transport{
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return ctx.Value(dialled{}).(net.Conn), nil
		},
		ResponseHeaderTimeout:  headerTimeout,
		DisableCompression:     true, // bodies are stored as received
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: maxHeader,
		HTTP2: &http.HTTP2Config{
			// Bytes that a server may send before they are read.
			MaxReceiveBufferPerStream:     1 << 20,
			MaxReceiveBufferPerConnection: 2 << 20,
		},
	}
}

// connect opens a TCP connection to an origin. It resolves the host unless the origin names an address. Its
// error is like that of dial.
func (d *dialer) connect(ctx context.Context, o origin) (*conn, error) {
	host, pin := o.host, o.addr
	limited, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	addrs, err := []netip.Addr{pin}, error(nil) // control checks it
	if !pin.IsValid() {
		addrs, err = d.addresses(limited, host)
	}
	if err != nil {
		return nil, err
	}
	nc, addr, err := d.try(limited, addrs, o.port)
	if err != nil {
		if ctx.Err() == nil && !pin.IsValid() {
			d.names.forget(host)
		}
		var v verdict
		if !errors.As(err, &v) {
			v = verdict{blobschema.OutcomeConnect, true, reason(err)}
		}
		return nil, v
	}
	if !pin.IsValid() {
		d.names.prefer(host, addr)
	}
	c := &conn{Conn: nc, origin: o, addr: addr.Unmap().String()}
	c.stream = c
	return c, nil
}

// pin returns the lowest allowed address of host, IPv4 before IPv6. All processes that resolve the same
// addresses choose the same one. The error is a verdict.
func (d *dialer) pin(ctx context.Context, host string) (netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	addrs, err := d.addresses(ctx, host)
	if err != nil {
		return netip.Addr{}, err
	}
	return slices.MinFunc(addrs, netip.Addr.Compare).Unmap(), nil
}

// addresses returns the allowed addresses of host, which may itself be an address.
func (d *dialer) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	addr, err := netip.ParseAddr(host)
	addrs := []netip.Addr{addr}
	if err != nil {
		addrs, err = d.names.resolve(ctx, host)
		if ctx.Err() != nil { // the lookup itself may continue for other callers
			err = &net.DNSError{Err: "no answer in time", Name: host, IsTimeout: true}
		}
		if err != nil {
			return nil, verdict{blobschema.OutcomeDNS, !isNotFound(err), reason(err)}
		}
	}
	allowed := make([]netip.Addr, 0, len(addrs))
	for _, a := range addrs {
		if Allowed(a, d.allow) {
			allowed = append(allowed, a)
		}
	}
	if len(allowed) == 0 {
		return nil, forbidden(addrs[0])
	}
	return allowed, nil
}

// try connects to the first of addrs that answers. It tries them one after another. A race (RFC 8305)
// would cost a busy host connections that nobody uses, and after the first connection names.prefer
// avoids the wait.
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

// control checks the address that the socket is about to connect to. No name, lookup or cache can bypass this check, so
// a name that resolves differently the second time gains nothing.
func (d *dialer) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("parse address: %w", err)
	}
	if !Allowed(ap.Addr(), d.allow) {
		return forbidden(ap.Addr())
	}
	if d.connecting != nil {
		return d.connecting(ap)
	}
	return nil
}
