// Package fetch requests one URL and returns one outcome: it connects, sends the request, reads the answer, and
// makes the WARC records to store and the links to follow. The step issues an actor.Request when package polite
// allows a request to the host. This package returns an actor.Outcome, whose records the step packs into WARC
// objects.
//
// [Client] is its main type. [Client.Fetch] takes an idle connection of the origin from a pool (pool.go) or
// opens one to an allowed address (dial.go, names.go, address.go). It speaks HTTP/1.1 itself (exchange.go,
// framing.go), so that the records hold the bytes that came over the network. HTTP/2 over TLS is spoken by
// net/http over connections that this package opens. A flight measures the time and the bytes of one request
// (flight.go). Then [Assemble] makes the outcome. It has no sockets and no clock, so the simulation runs the
// same code on generated answers.
//
// Invariants:
//   - No name, redirect or Request.Addr leads to a connection to an address that [Allowed]
//     refuses: the address is checked when the socket connects. If there is a Request.Addr,
//     there is no connection to any other address.
//   - All memory that a server can use is bounded: header, body, decoded body,
//     addresses per name, names. So is the time, mainly by the request's deadline (I9).
//   - A failure of the web is an outcome of the closed list in blobschema, never an error.
//   - Equal answers give equal links, records and outcomes (I10).
//
// The package does not follow redirects, keep cookies, obey robots.txt or pace requests: the step does. It
// sends a request a second time only if a reused connection ended before the answer began.
//
// Read fetch.go, exchange.go and assemble.go first.
package fetch

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/extract"
)

// maxRobots bounds the part of a robots.txt that is kept, in bytes, before and after decoding. RFC 9309
// section 2.5 demands at least 500 KiB.
const maxRobots = 512 << 10

const maxHeader = 64 << 10 // bytes of the head of an answer

// A body that arrives at MinRate or faster may take up to Patience times the timeout. The rate is
// measured over half of the timeout.
const (
	MinRate  = 1000 // bytes per second; a slower server is hardly useful to anybody
	Patience = 4    // with the default timeout, the largest body then needs 70 kB/s
)

// Config is the configuration of a Client. The zero value of a field means its default, which its comment names
// last.
type Config struct {
	UserAgent  string           // value of the User-Agent field; no default
	Token      string           // product token under which robots directives address the crawler; no default
	Requisites bool             // what pages need to be displayed is linked too
	AllowNet   []netip.Prefix   // networks that are allowed although they are not public
	Roots      *x509.CertPool   // trusted certificate authorities; the system's
	Lookup     LookupFunc       // resolves names; the system's resolver
	Clock      func() time.Time // for stamps, deadlines and the name cache; time.Now

	MaxBody        int64         // longest body without transfer coding, in bytes; the rest is cut; 16 MiB
	ConnectTimeout time.Duration // limit for name and TCP together, and again for TLS; 10 s
	HeaderTimeout  time.Duration // limit from the request sent to the header received; 20 s
	Timeout        time.Duration // limit of the whole request, unless its body arrives steadily, see Client.Fetch; 60 s
	MaxIdle        int           // most connections open without a request; 256
	MaxLarge       int           // most bodies above 1 MiB buffered at a time, others wait; 8
	Processors     int           // most answers assembled at a time; GOMAXPROCS

	Compression warc.Compression // of the records; gzip level 1
}

// ProductToken is the name by which robots.txt may address a user agent (RFC 9309 section 2.2.1): the product's
// name without its version. It is "" if agent begins with no such name.
func ProductToken(agent string) string {
	name, _, _ := strings.Cut(agent, " ")
	name, _, _ = strings.Cut(name, "/")
	if strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_") != "" {
		return ""
	}
	return name
}

// Validate returns an error if c would make requests fail.
func (c Config) Validate() error {
	c = c.withDefaults()
	switch {
	case c.UserAgent == "" || !httpguts.ValidHeaderFieldValue(c.UserAgent):
		return fmt.Errorf("check fetch configuration: user agent %q is empty or unfit for a header", c.UserAgent)
	case !httpguts.ValidHeaderFieldName(c.Token):
		return fmt.Errorf("check fetch configuration: %q is not a product token", c.Token)
	case c.MaxBody > warc.MaxBlock-maxHeader-warc.MaxHeader:
		return fmt.Errorf("check fetch configuration: a body of %d bytes does not fit a WARC record", c.MaxBody)
	}
	for _, p := range c.AllowNet {
		if !p.IsValid() {
			return errors.New("check fetch configuration: invalid allowed net")
		}
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.MaxBody = cmp.Or(c.MaxBody, 16<<20)
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, 10*time.Second)
	c.HeaderTimeout = cmp.Or(c.HeaderTimeout, 20*time.Second)
	c.Timeout = cmp.Or(c.Timeout, 60*time.Second)
	c.MaxIdle = cmp.Or(c.MaxIdle, 256)
	c.MaxLarge = cmp.Or(c.MaxLarge, 8)
	c.Processors = cmp.Or(c.Processors, runtime.GOMAXPROCS(0))
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Lookup == nil {
		c.Lookup = systemLookup()
	}
	return c
}

// requestFields lists the fields of every request after Host, in the order of HTTP/1.1 requests.
// Accept-Encoding names every coding that Assemble can decode. Bodies are stored
// as received: a body that the server has compressed is not compressed again.
func (c Config) requestFields() []warc.HeaderField {
	return []warc.HeaderField{
		{Name: "User-Agent", Value: c.UserAgent},
		{Name: "Accept", Value: "text/html,application/xhtml+xml;q=0.9,*/*;q=0.5"},
		{Name: "Accept-Encoding", Value: extract.AcceptedCodings},
	}
}

// Client fetches URLs. It is safe for concurrent use. Two concurrent requests to one host use two connections,
// or two streams of one HTTP/2 connection; then Outcome.Wire does not separate their bytes. A client
// keeps at most one idle connection per origin, and one more for each
// address that Request.Addr named for that origin: these connections do not replace each other. If there are more than
// Config.MaxIdle, it closes the one that, by Request.Next, will be needed last.
type Client struct {
	cfg     Config
	fields  []warc.HeaderField // of every request, after Host
	names   *names
	dialer  *dialer
	pool    *pool
	buffers sync.Pool     // of *buffers
	pages   sync.Pool     // of *[pageBuffer]byte
	scratch chan *Scratch // one per answer that may be assembled now; nil until its first use
	large   chan struct{} // one element per body that has a large buffer
}

// New returns a Client. The configuration must pass Validate.
func New(cfg Config) *Client {
	cfg = cfg.withDefaults()
	c := &Client{
		cfg:     cfg,
		fields:  cfg.requestFields(),
		names:   newNames(cfg.Lookup, cfg.ConnectTimeout, cfg.Clock),
		buffers: sync.Pool{New: func() any { return new(buffers) }},
		pages:   sync.Pool{New: func() any { return new([pageBuffer]byte) }},
		scratch: make(chan *Scratch, cfg.Processors),
		large:   make(chan struct{}, cfg.MaxLarge),
	}
	for range cfg.Processors {
		c.scratch <- nil
	}
	c.dialer = &dialer{
		names: c.names, allow: cfg.AllowNet, timeout: cfg.ConnectTimeout, http2: newHTTP2(cfg.HeaderTimeout),
		tls: &tls.Config{
			RootCAs:            cfg.Roots,
			NextProtos:         []string{"h2", "http/1.1"},
			ClientSessionCache: tls.NewLRUClientSessionCache(512), // a resumed handshake does not verify the chain again
		},
	}
	c.pool = &pool{most: cfg.MaxIdle, conns: map[origin]*conn{}}
	return c
}

// CloseIdle closes the connections that carry no request.
func (c *Client) CloseIdle() { c.pool.close() }

// Close ends name lookups and idle connections, and waits for the lookups. Call it after the last Fetch has returned.
func (c *Client) Close() {
	c.names.close()
	c.pool.close()
}

// errTimeout and errLongest are the causes with which a flight ends the context of its request. Any other cause says
// nothing about the server.
var (
	errTimeout = errors.New("took too long")
	errLongest = errors.New("body took too long")
)

// Fetch requests req.URL and returns the outcome. Every failure is an outcome. Soon after ctx ends, Fetch
// returns OutcomeAborted. It is safe for concurrent use.
//
// A request that reaches the timeout ends with OutcomeTimeout, or with OutcomeConnect or OutcomeDNS
// if it never got a connection. While a
// body arrives at MinRate or faster, the request continues up to Patience times
// the timeout; then the part received is the answer, marked as truncated. A robots.txt never gets more than the
// timeout, because a part of the rules could mean anything.
//
// If req.Resolve is set, Fetch only resolves the name. It returns OutcomeOK with Outcome.Addr,
// OutcomeDNS, or OutcomeForbidden if no address is allowed. It chooses the lowest allowed
// address, IPv4 before IPv6, so that all processes that resolve the same addresses choose the same one.
//
// If req.Addr is set, Fetch connects to that address without resolving the name;
// the certificate must still match the name. A host that is itself an address cannot be reached
// at another one: OutcomeForbidden.
func (c *Client) Fetch(ctx context.Context, req actor.Request) *actor.Outcome {
	started := c.cfg.Clock()
	timed, end := context.WithCancelCause(ctx)
	defer end(nil)
	f := &flight{outer: ctx, end: end, next: req.Next, timeout: c.cfg.Timeout, longest: Patience * c.cfg.Timeout}
	if req.Longest > 0 {
		f.timeout, f.longest = min(f.timeout, req.Longest), min(f.longest, req.Longest)
	}
	if req.Robots {
		f.longest = 0
	}
	f.ctx = timed
	defer f.watch()()

	var out *actor.Outcome
	if req.Resolve {
		out = c.resolve(f, &req, started)
	} else {
		out = c.request(f, &req, started)
	}
	f.observe(out)
	return out
}

// resolve carries out a request with Resolve.
func (c *Client) resolve(f *flight, req *actor.Request, started time.Time) *actor.Outcome {
	addr, err := c.dialer.pin(f.ctx, req.URL.Host().Name())
	out := blank(req, started, c.cfg.Clock())
	switch {
	case err == nil:
		out.Page.Outcome, out.Addr = blobschema.OutcomeOK, addr
		return out
	case context.Cause(f.ctx) == errTimeout: // the lookup used up the whole timeout
		return refuse(out, verdict{blobschema.OutcomeDNS, true, errTimeout.Error()})
	}
	return c.failed(f, req, started, 0, err)
}

// request carries out a request for a URL. The caller adds the figures of the connection to the outcome.
func (c *Client) request(f *flight, req *actor.Request, started time.Time) *actor.Outcome {
	o, ok := originOf(req)
	if !ok {
		return c.failed(f, req, started, 0, forbidden(req.Addr))
	}
	b := c.buffer()
	defer c.release(b)
	limit := c.cfg.MaxBody
	if req.Robots {
		limit = min(limit, maxRobots)
	}
	resp, err := c.exchange(f, o, req, b, limit)
	if f.conn != nil {
		f.closed = f.closed || err != nil
		f.wire = f.conn.take()
		c.pool.left(f.conn, f.next, !f.closed)
	}
	if err != nil {
		return c.failed(f, req, started, resp.Status, err)
	}
	resp.Started, resp.Ended = started, c.cfg.Clock()
	select {
	case s := <-c.scratch:
		if s == nil {
			s = NewScratch(c.cfg)
		}
		defer func() { c.scratch <- s }()
		return Assemble(s, *req, resp)
	case <-f.outer.Done(): // a later request fetches the answer again
		return c.failed(f, req, started, resp.Status, context.Cause(f.outer))
	}
}

// requestHead writes the head of the request for req.URL into b: start line, fields, blank line. HTTP/1.1 sends
// these bytes; the records store them for HTTP/2 too.
func (c *Client) requestHead(b *buffers, req *actor.Request) {
	b.fields = append(b.fields[:0], warc.HeaderField{Name: "Host", Value: string(req.URL.Host())})
	b.fields = append(append(b.fields, c.fields...), Conditions(req)...)
	b.head = warc.AppendHTTPRequestHead(b.head[:0], http.MethodGet, req.URL.RequestURI(), b.fields)
}
