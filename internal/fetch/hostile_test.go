package fetch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/netip"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/hostile"
)

// inTransit bounds the bytes that the kernel may take from a server before the crawler has read them.
const inTransit = 12 << 20

func hostileWeb(t testing.TB) *hostile.Server {
	t.Helper()
	log.SetOutput(io.Discard) // net/http reports bytes after an answer
	s, err := hostile.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// hostileTime is the timeout of requests that must end by another bound: shorter than the life of a server's
// connection, and longer than a busy machine needs.
const hostileTime = 50 * time.Second

// hostileClient returns a client that may connect to all hosts of s except the inside.
func hostileClient(t testing.TB, s *hostile.Server, change func(*Config)) *Client {
	return testClient(t, func(cfg *Config) {
		cfg.AllowNet = []netip.Prefix{hostile.Net()}
		cfg.Lookup, cfg.Roots, cfg.Requisites = s.Lookup, s.Roots(), true
		cfg.MaxBody = 1 << 20
		cfg.ConnectTimeout, cfg.HeaderTimeout, cfg.Timeout = hostileTime, hostileTime, hostileTime
		if change != nil {
			change(cfg)
		}
	})
}

// shortTimes sets short timeouts, for cases that only a timeout ends.
func shortTimes(cfg *Config) {
	cfg.ConnectTimeout, cfg.HeaderTimeout, cfg.Timeout = 300*time.Millisecond, 300*time.Millisecond, 500*time.Millisecond
}

func hostileRequest(t testing.TB, s *hostile.Server, i int) actor.Request {
	req := ask(t, s.URL(i))
	req.Robots = s.Cases()[i].Robots
	return req
}

// TestHostile requests each case once: first those that a timeout ends, all at once, then the others.
func TestHostile(t *testing.T) {
	s := hostileWeb(t)
	slow, quick := hostileClient(t, s, shortTimes), hostileClient(t, s, nil)
	cases := s.Cases()
	type result struct {
		out  *actor.Outcome
		took time.Duration
	}
	results := make([]result, len(cases))
	fetchAll := func(c *Client, isSlow bool, atOnce int) {
		places := make(chan struct{}, atOnce)
		var all sync.WaitGroup
		for i := range cases {
			if cases[i].Slow != isSlow {
				continue
			}
			places <- struct{}{}
			all.Go(func() {
				defer func() { <-places }()
				begun := time.Now()
				out := c.Fetch(context.Background(), hostileRequest(t, s, i))
				results[i] = result{out, time.Since(begun)}
			})
		}
		all.Wait()
	}
	fetchAll(slow, true, len(cases))
	fetchAll(quick, false, 8)
	slow.CloseIdle()
	quick.CloseIdle()
	for i, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			out, most := results[i].out, hostileTime*9/10
			if c.Slow {
				most = 3 * time.Second
			}
			checkRecords(t, out)
			if raced { // only timings would fail
				return
			}
			if results[i].took > most {
				t.Errorf("took %v", results[i].took)
			}
			checkWant(t, c, out)
			wire := c.Want.Wire
			if wire == 0 {
				wire = 256 << 10
			}
			if out.Wire > wire {
				t.Errorf("%d bytes received, want at most %d", out.Wire, wire)
			}
			if n := s.Sent(i); n > wire+inTransit {
				t.Errorf("%d bytes sent", n)
			}
		})
	}
	for end := time.Now().Add(hostile.MaxLife / 4); time.Now().Before(end); { // wait until the servers have noticed that no connection is left
		open := int64(0)
		for i := range cases {
			open += s.Open(i)
		}
		if open == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for i, c := range cases {
		if n := s.Open(i); n != 0 {
			t.Errorf("%s: %d connections are left", c.Name, n)
		}
	}
	if n := s.Reached(); n != 0 {
		t.Errorf("%d connections to the inside", n)
	}
}

func checkWant(t *testing.T, c hostile.Case, out *actor.Outcome) {
	t.Helper()
	p, want := out.Page, c.Want
	if p.Outcome != want.Outcome && (want.Or == 0 || p.Outcome != want.Or) {
		t.Fatalf("outcome %v, want %v (status %d, detail %q)", p.Outcome, want.Outcome, p.Status, p.Detail)
	}
	if p.Outcome == want.Outcome {
		if want.Status != 0 && p.Status != want.Status && !c.Slow {
			t.Errorf("status %d, want %d", p.Status, want.Status)
		}
		if !strings.Contains(p.Detail, want.Detail) {
			t.Errorf("detail %q, want %q in it", p.Detail, want.Detail)
		}
		if want.Truncated != (p.Truncated != "") {
			t.Errorf("truncated %q", p.Truncated)
		}
		if int64(len(want.Body)) > 0 && p.Digest != warc.PayloadDigest([]byte(want.Body)) {
			t.Errorf("stored another body, of %d bytes", p.BodyBytes)
		}
		if len(out.Links) < want.Links {
			t.Errorf("%d links, want %d", len(out.Links), want.Links)
		}
	}
	if (p.Detail == "") == !p.Outcome.Answered() {
		t.Errorf("outcome %v with detail %q", p.Outcome, p.Detail)
	}
	if strings.ContainsFunc(p.Detail, func(r rune) bool { return r < ' ' || r == 0x7f }) || len(p.Detail) > maxDetail {
		t.Errorf("detail %q", p.Detail)
	}
	for _, l := range out.Links {
		for _, c := range []byte(l.URL.String()) {
			if c <= ' ' || c >= 0x7f {
				t.Fatalf("link %q", l.URL)
			}
		}
	}
}

// checkRecords reads the records back. They must be exactly a request and a response, even if header and body
// contain text that looks like further records.
func checkRecords(t testing.TB, out *actor.Outcome) {
	t.Helper()
	if !out.Page.Outcome.Answered() {
		if len(out.Record) != 0 {
			t.Errorf("outcome %v with %d bytes of records", out.Page.Outcome, len(out.Record))
		}
		return
	}
	r := warc.NewReader(bytes.NewReader(out.Record))
	request := checkRecord(t, r, warc.TypeRequest)
	response := checkRecord(t, r, warc.TypeResponse)
	if rec, err := r.Next(); err != io.EOF {
		t.Fatalf("a third record: %+v, %v", rec, err)
	}
	if int64(out.ResponseAt) != response.Offset || out.Page.Length != response.Length {
		t.Errorf("response at %d, %d long; read at %d, %d long", out.ResponseAt, out.Page.Length, response.Offset, response.Length)
	}
	if response.ConcurrentTo != request.ID || response.TargetURI != out.Page.URL || request.TargetURI != out.Page.URL {
		t.Errorf("records of %s and %s", request.TargetURI, response.TargetURI)
	}
	if response.PayloadDigest != out.Page.Digest || response.Truncated != out.Page.Truncated || len(request.Body) != 0 {
		t.Errorf("record %+v", response)
	}
	if int64(len(response.Body)) != out.Page.BodyBytes {
		t.Errorf("body of %d bytes, page says %d", len(response.Body), out.Page.BodyBytes)
	}
	if m, err := response.HTTP(); err != nil || m.Status != int(out.Page.Status) {
		t.Errorf("status %d: %v", m.Status, err)
	}
}

// checkRecord reads the next record. The result shares no memory with the reader.
func checkRecord(t testing.TB, r *warc.Reader, kind warc.Type) warc.Record {
	t.Helper()
	rec, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	if rec.Type != kind {
		t.Fatalf("a record of type %s, want %s", rec.Type, kind)
	}
	if err := rec.Verify(); err != nil {
		t.Error(err)
	}
	// A response's header is as received, so it may hold anything; it ends at its first blank line all the same.
	lines := strings.ReplaceAll(string(rec.Header), "\r\n", "\n")
	head, ok := strings.CutSuffix(lines, "\n\n")
	if !ok || strings.Contains(head, "\n\n") {
		t.Errorf("header %q does not end where it ends", rec.Header)
	}
	if kind == warc.TypeRequest && strings.ContainsFunc(head, func(r rune) bool { return r < ' ' && r != '\n' || r == 0x7f }) {
		t.Errorf("header %q of a request", rec.Header)
	}
	kept := *rec
	kept.Header, kept.Body = bytes.Clone(rec.Header), bytes.Clone(rec.Body)
	return kept
}

// TestHostileBeside requests a good page before and after each case, over reused connections.
func TestHostileBeside(t *testing.T) {
	if raced {
		t.Skip("its bounds are of time")
	}
	s := hostileWeb(t)
	slow, quick := hostileClient(t, s, shortTimes), hostileClient(t, s, nil)
	pages := s.Pages()
	var all sync.WaitGroup
	places := make(chan struct{}, 32)
	for i, c := range s.Cases() {
		good := strings.Replace(strings.Replace(s.URL(i), "/x", "/page/1", 1), "/robots.txt", "/page/1", 1)
		want, ok := pages[good]
		if !ok {
			continue
		}
		client := quick
		if c.Slow {
			client = slow
		}
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			get := func(when string) {
				req := ask(t, good)
				out := quick.Fetch(context.Background(), req)
				if out.Temporary { // once more, as a crawler would: net/http may notice late that a connection has ended
					out = quick.Fetch(context.Background(), req)
				}
				if out.Page.Outcome != blobschema.OutcomeOK || out.Page.Digest != warc.PayloadDigest(want.Body) {
					t.Errorf("%s: the page %s it: %v, status %d, %d bytes, %q", c.Name, when, out.Page.Outcome, out.Page.Status, out.Page.BodyBytes, out.Page.Detail)
				}
			}
			get("before")
			client.Fetch(context.Background(), hostileRequest(t, s, i))
			get("after")
			get("long after")
		})
	}
	all.Wait()
}

// TestSurplusAnswer requests again immediately after an answer that is followed by another, many times. The
// unrequested answer must never be taken for the next one. This test finds such an error only by chance; the
// next test does so reliably.
func TestSurplusAnswer(t *testing.T) {
	s := hostileWeb(t)
	c := hostileClient(t, s, nil)
	for i, cs := range s.Cases() {
		if !strings.HasPrefix(cs.Name, "surplus-") {
			continue
		}
		good := strings.Replace(s.URL(i), "/x", "/page/1", 1)
		want := warc.PayloadDigest(s.Pages()[good].Body)
		for range 100 {
			checkWant(t, cs, c.Fetch(context.Background(), hostileRequest(t, s, i)))
			if out := c.Fetch(context.Background(), ask(t, good)); out.Page.Digest != want {
				t.Fatalf("%s: the next answer is %v, %q, %d bytes", cs.Name, out.Page.Outcome, out.Page.Detail, out.Page.BodyBytes)
			}
		}
	}
}

// chatty is a connection that always has more bytes.
type chatty struct{ net.Conn }

func (chatty) Read(p []byte) (int, error) { return len(p), nil }
func (chatty) Close() error               { return nil }

// TestEmptyFrames checks the bound on bytes besides the body of an answer. A body may come byte by byte, each
// with its own frame and TLS record.
func TestEmptyFrames(t *testing.T) {
	const step, most = 32, 20 << 20
	for _, k := range []struct {
		answers, bodies int64 // answers under way; bytes of their bodies in each read
		ends            error
		after           int64
	}{
		{0, 0, errUnsolicited, maxUnsolicited}, {1, 0, errNothing, 2 * maxUnsolicited}, {3, 0, errNothing, 4 * maxUnsolicited},
		{1, 1, nil, most}, {0, 1, errUnsolicited, maxUnsolicited},
	} {
		c := &conn{Conn: chatty{}, http2: true}
		c.answers.Store(int32(k.answers))
		var err error
		p := make([]byte, step)
		for err == nil && c.received.Load() < most {
			_, err = c.Read(p)
			c.bodies.Add(k.bodies)
		}
		if n := c.received.Load(); err != k.ends || n < k.after || n > k.after+step {
			t.Errorf("%d answers: %v after %d bytes", k.answers, err, n)
		}
		if c.take(); k.ends == nil && c.bodies.Load() != 0 {
			t.Errorf("%d bytes of bodies that were told", c.bodies.Load())
		}
	}
}

// TestSpokenFirst checks that an error of net/http about bytes before the request counts as the end of the
// connection. Chance decides whether net/http reports this error.
func TestSpokenFirst(t *testing.T) {
	for text, want := range map[string]bool{
		"http2: client conn could not be established":                         true,
		"http2: client connection lost":                                       true,
		"http2: Transport received Server's graceful shutdown GOAWAY":         true,
		"http2: server sent GOAWAY and closed the connection; LastStreamID=1": true,
		"malformed HTTP response":                                             false,
	} {
		if got := isCut(errors.New(text)); got != want {
			t.Errorf("%s: cut is %v", text, got)
		}
	}
}

// TestFloodAfterAnswer requests a server that sends more after its answer, on a connection that is kept.
func TestFloodAfterAnswer(t *testing.T) {
	if raced {
		t.Skip("its bounds are of time")
	}
	s := hostileWeb(t)
	c := hostileClient(t, s, nil)
	for i, cs := range s.Cases() {
		if cs.Name != "h2-flood-after-answer" {
			continue
		}
		begun := time.Now()
		wantOutcome(t, c.Fetch(context.Background(), hostileRequest(t, s, i)), blobschema.OutcomeOK)
		for s.Open(i) > 0 {
			time.Sleep(5 * time.Millisecond)
		}
		// The server would have ended at MaxSent or MaxLife.
		if n, d := s.Sent(i), time.Since(begun); n > maxUnsolicited+inTransit || d > hostile.MaxLife/2 {
			t.Errorf("the server could send %d bytes in %v", n, d)
		}
	}
}

// TestHostileMemory fetches all large cases with default bounds, eight at a time, and watches the heap.
func TestHostileMemory(t *testing.T) {
	if testing.Short() || raced {
		t.Skip("moves hundreds of megabytes")
	}
	s := hostileWeb(t)
	const maxBody, atOnce, most = 4 << 20, 8, 160 << 20
	c := hostileClient(t, s, func(cfg *Config) { cfg.MaxBody = maxBody })
	defer debug.SetGCPercent(debug.SetGCPercent(20)) // so that garbage hardly counts
	runtime.GC()
	watched := hostile.WatchHeap()
	places := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	count := 0
	for i, cs := range s.Cases() {
		if cs.Slow || cs.Want.Wire < 1<<20 {
			continue
		}
		count++
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			out := c.Fetch(context.Background(), hostileRequest(t, s, i))
			if n := int64(len(out.Record)); n > 2*maxBody {
				t.Errorf("%s: %d bytes of records", cs.Name, n)
			}
		})
	}
	all.Wait()
	before, peak := watched()
	t.Logf("%d answers, heap %d MB before, %d MB at most", count, before>>20, peak>>20)
	if peak > before+most {
		t.Errorf("the heap grew from %d MB to %d MB", before>>20, peak>>20)
	}
}

// TestHostileNames resolves a name again after its cached answer has expired, when it leads elsewhere.
func TestHostileNames(t *testing.T) {
	s := hostileWeb(t)
	var now clock
	c := hostileClient(t, s, func(cfg *Config) { cfg.Clock = now.now })
	for i, cs := range s.Cases() {
		if cs.Name != "dns-rebinds" {
			continue
		}
		wantOutcome(t, c.Fetch(context.Background(), ask(t, s.URL(i))), blobschema.OutcomeOK)
		c.CloseIdle()
		now.advance(foundFor)
		wantOutcome(t, c.Fetch(context.Background(), ask(t, s.URL(i))), blobschema.OutcomeForbidden)
	}
	if s.Reached() != 0 {
		t.Error("the inside was reached")
	}
}

// insideURLs are URLs of internal addresses in all spellings.
var insideURLs = []string{
	"http://127.0.0.1/", "http://127.1/", "http://2130706433/", "http://0x7f000001/", "http://0x7f.1/", "http://0177.0.0.1/", "http://017700000001/",
	"http://127.0.0.1./", "http://127.255.255.254/", "http://0/", "http://0.0.0.0/", "http://０/", "http://①②⑦.⓪.⓪.①/", "http://%31%32%37.1/",
	"http://user:pass@127.0.0.1/", "https://127.0.0.1/", "http://127.0.0.1:22/", "http://[::1]/", "http://[::]/", "http://[0:0:0:0:0:0:0:1]/",
	"http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[::127.0.0.1]/", "http://[::ffff:0:127.0.0.1]/", "http://[64:ff9b::127.0.0.1]/", "http://[64:ff9b:1::7f00:1]/",
	"http://[2002:7f00:1::]/", "http://[2001:0:7f00:1::]/", "http://10.0.0.1/", "http://012.0.0.1/", "http://167772161/", "http://10.255.255.255/",
	"http://172.16.0.1/", "http://172.31.255.255/", "http://192.168.0.1/", "http://0xc0a80001/", "http://100.64.0.1/", "http://100.100.100.200/",
	"http://169.254.169.254/latest/meta-data/", "http://2852039166/", "http://0251.0376.0251.0376/", "http://[::ffff:169.254.169.254]/", "http://[fd00:ec2::254]/",
	"http://[fe80::1]/", "http://[fc00::1]/", "http://[ff02::1]/", "http://224.0.0.1/", "http://255.255.255.255/", "http://192.0.0.192/", "http://198.18.0.1/", "http://168.63.129.16/",
	"http://localhost/", "http://LOCALHOST./", "http://metadata.google.internal/", "https://rebind.example/", "http://both.example/", "http://mapped.example/",
}

// TestNeverInside has the settings of a real crawl: no extra network is allowed. No URL, Location or name may
// make a socket begin to connect. The test refuses the public address that a name also has, so that nothing
// leaves this machine.
func TestNeverInside(t *testing.T) {
	s := hostileWeb(t)
	public := netip.MustParseAddr("93.184.216.34")
	var mu sync.Mutex
	var connected []netip.AddrPort
	c := testClient(t, func(cfg *Config) {
		cfg.AllowNet = nil
		cfg.Lookup = func(_ context.Context, name string) ([]netip.Addr, error) {
			switch name {
			case "localhost":
				return addrs("127.0.0.1", "::1"), nil
			case "metadata.google.internal":
				return addrs("169.254.169.254"), nil
			case "rebind.example":
				return addrs("10.0.0.1", "192.168.0.1", "fd00::1"), nil
			case "mapped.example":
				return addrs("::ffff:10.0.0.1", "64:ff9b::a00:1", "fe80::1%lo"), nil
			case "both.example":
				return []netip.Addr{loopback, public}, nil
			}
			return nil, errNoName
		}
	})
	d := c.dialer
	d.timeout, d.connecting = time.Second, func(a netip.AddrPort) error {
		mu.Lock()
		defer mu.Unlock()
		connected = append(connected, a)
		return errors.New("no connection in this test")
	}
	fetch := func(from, url string) {
		out := c.Fetch(context.Background(), ask(t, url))
		mu.Lock()
		defer mu.Unlock()
		if both := strings.Contains(url, "both.example"); both {
			if out.Page.Outcome != blobschema.OutcomeConnect || len(connected) != 1 || connected[0].Addr() != public {
				t.Errorf("%s: outcome %v, %v was connected to", url, out.Page.Outcome, connected)
			}
		} else if out.Page.Outcome != blobschema.OutcomeForbidden || len(connected) != 0 || !strings.Contains(out.Page.Detail, "is not allowed") {
			t.Errorf("%s%s: outcome %v, %q, %v was connected to", from, url, out.Page.Outcome, out.Page.Detail, connected)
		}
		connected = nil
	}
	for _, u := range insideURLs {
		fetch("", u)
	}
	redirects := 0
	asking := hostileClient(t, s, nil)
	for i, cs := range s.Cases() {
		if !cs.Follow {
			continue
		}
		out := asking.Fetch(context.Background(), hostileRequest(t, s, i))
		if len(out.Links) != 1 {
			t.Errorf("%s: links %v", cs.Name, out.Links)
			continue
		}
		redirects++
		fetch(cs.Name+": ", out.Links[0].URL.String())
	}
	if redirects < 20 || s.Reached() != 0 {
		t.Errorf("%d redirects, %d connections to the inside", redirects, s.Reached())
	}
	// The address of the socket is checked, not the name.
	for _, a := range addrs("127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fe80::1", "::ffff:192.168.1.1", "fd00:ec2::254") {
		_, _, err := d.try(context.Background(), []netip.Addr{a}, 80)
		if v := (verdict{}); !errors.As(err, &v) || v != forbidden(a.Unmap()) || len(connected) != 0 {
			t.Errorf("%v: %v, %v was connected to", a, err, connected)
		}
	}
}
