package fetch

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
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

// pinned returns what net/http is to take for the host of a request that goes to addr only:
// the address as 32 hexadecimal digits, '|', and the host. net/http keeps connections by this
// name, so one made for an address serves no request for another, or for none, whenever it
// is dialled or becomes idle. The real host is in the Host field. No canonical host contains
// '|'. A host that spells its address stays as it is.
func pinned(addr netip.Addr, host string) string {
	if _, err := netip.ParseAddr((&url.URL{Host: host}).Hostname()); err == nil || !addr.IsValid() {
		return host
	}
	b := addr.As16()
	return hex.EncodeToString(b[:]) + "|" + host
}

// unpinned undoes pinned; addr is zero for a host that is not pinned.
func unpinned(host string) (addr netip.Addr, name string, err error) {
	digits, name, ok := strings.Cut(host, "|")
	if !ok {
		return netip.Addr{}, host, nil
	}
	b, err := hex.DecodeString(digits)
	if err != nil || len(b) != 16 {
		return netip.Addr{}, "", fmt.Errorf("pinned host %q", host)
	}
	return netip.AddrFrom16([16]byte(b)).Unmap(), name, nil
}

// dialer opens connections to allowed addresses only. Safe for concurrent use.
type dialer struct {
	names   *names
	allow   []netip.Prefix
	timeout time.Duration // of names and TCP together; of TLS once more
	tls     *tls.Config
	idle    *idle
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

// conn counts what is received over one connection, TLS included.
type conn struct {
	net.Conn
	addr     string       // IP address at the other end
	served   atomic.Bool  // has carried a request
	answers  atomic.Int32 // that are coming over it
	received atomic.Int64 // bytes
	told     atomic.Int64 // of these, attributed to a request already
	bodies   atomic.Int64 // bytes of bodies that came since
	reading  atomic.Bool  // all that came was taken, and more is waited for
	closed   atomic.Bool
	idle     *idle
	users    int // requests that use it; guarded by idle.mu
}

func (c *conn) Close() error {
	c.closed.Store(true)
	c.idle.closed(c)
	return c.Conn.Close()
}

// settle waits until all that came over c was looked at. net/http closes a connection over which
// something comes that nobody asked for, but it puts it back for the next request before it
// looks: a request that is quicker would get as its answer what stood behind the one before.
// For HTTP/1, before the request; the connection may turn out closed.
func (c *conn) settle() {
	for range maxSettle {
		if c.reading.Load() || c.closed.Load() {
			return
		}
		time.Sleep(settleStep)
	}
	c.Close()
}

// How often settle looks, and how many times: 100 ms in all, where microseconds will do.
const (
	settleStep = 50 * time.Microsecond
	maxSettle  = 2000
)

func (c *conn) Read(p []byte) (int, error) {
	c.reading.Store(true)
	n, err := c.Conn.Read(p)
	c.reading.Store(false)
	c.received.Add(int64(n))
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

// isHTTP2 reports whether what net/http holds speaks HTTP/2.
func isHTTP2(nc net.Conn) bool {
	t, ok := nc.(*tls.Conn)
	return ok && t.ConnectionState().NegotiatedProtocol == "h2"
}

// counted finds the conn beneath what net/http holds.
func counted(nc net.Conn) *conn {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	c, _ := nc.(*conn)
	return c
}

// dial is for http.Transport.DialContext. net/http detaches the context of a dial from that
// of the request, to keep the connection for later requests; here nothing may last past a
// request's end, so the flight that ctx carries puts its own end back.
func (d *dialer) dial(ctx context.Context, _, address string) (net.Conn, error) {
	ctx, cancel := withFlight(ctx)
	defer cancel()
	c, err := d.connect(ctx, address)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// dialTLS is for http.Transport.DialTLSContext.
func (d *dialer) dialTLS(ctx context.Context, _, address string) (net.Conn, error) {
	ctx, cancel := withFlight(ctx)
	defer cancel()
	c, err := d.connect(ctx, address)
	if err != nil {
		return nil, err
	}
	cfg := d.tls.Clone()
	host, _, _ := net.SplitHostPort(address)
	_, cfg.ServerName, _ = unpinned(host) // connect has looked at both errors
	tc := tls.Client(c, cfg)
	shake, cancelShake := context.WithTimeout(ctx, d.timeout)
	defer cancelShake()
	if err := tc.HandshakeContext(shake); err != nil {
		c.Close()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var bad *tls.CertificateVerificationError
		return nil, &dialError{blobschema.OutcomeTLS, !errors.As(err, &bad), err}
	}
	return tc, nil
}

// connect resolves the host of address, unless it is pinned, and opens a TCP connection to
// it. The error is a *dialError, or the cause of ctx's end.
func (d *dialer) connect(ctx context.Context, address string) (*conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &dialError{blobschema.OutcomeConnect, false, err}
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, &dialError{blobschema.OutcomeConnect, false, fmt.Errorf("parse port: %w", err)}
	}
	pin, host, err := unpinned(host)
	if err != nil {
		return nil, &dialError{blobschema.OutcomeConnect, false, err}
	}
	limited, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	addrs := []netip.Addr{pin} // control looks at it
	if !pin.IsValid() {
		addrs, err = d.addresses(limited, host)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	nc, addr, err := d.try(limited, addrs, uint16(number))
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
	return &conn{Conn: nc, addr: addr.Unmap().String(), idle: d.idle}, nil
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
