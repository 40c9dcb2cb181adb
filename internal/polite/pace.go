package polite

import (
	"math"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// Bounds on the pauses kept as host state.
const (
	// maxRetryAfter is the longest Retry-After that a host can demand.
	maxRetryAfter = 24 * time.Hour
	// maxBackoff is the longest pause after failures without Retry-After.
	maxBackoff = time.Hour
	// clockSlack is the tolerance of Clamp. A time that is further in the future than its pause and
	// this tolerance means that the wall clock was set back.
	clockSlack = 2 * time.Minute

	// maxSilentBackoff is the longest pause for a host that does not answer at all. Such requests cost
	// the host nothing, and a few dead URLs at the end of its queue should not delay the end of a crawl.
	maxSilentBackoff = 5 * time.Minute

	// defaultBackoff is the unit of the pauses for an overloaded host. The unit for a
	// host that does not answer is a tenth of it.
	defaultBackoff = 10 * time.Second
)

// The estimators (Cao, Jiang, Singh, "crawl capability").
const (
	smoothing = 0.8 // weight of the past in a new estimate

	// NewPerConnection is the assumed number of requests per connection to a new host.
	NewPerConnection = 50
	// newConnTime and newRespTime are the assumed times of a new host before the first measurement.
	// They are those of a fast host, so that a policy that uses them tries new hosts soon and
	// delays the slow ones after their first answer. With the times of a slow host it would prefer the
	// hosts that it tried first to all others.
	newConnTime = 50 * time.Millisecond
	newRespTime = 50 * time.Millisecond

	maxPerConnection = 10_000
	maxObserved      = 10 * time.Minute
)

// Pace is the state of one host: the time of its next request, and the cost of its connections. It is plain data: no
// method reads a clock, and one actor at a time may change it.
//
// Its CBOR is a map with small integers as keys, of about 30 bytes. It stores times in
// milliseconds, rounded up: a stored pause is never shorter.
type Pace struct {
	Next  time.Time     // earliest start of a request; zero: any time
	Delay time.Duration // pause between two starts that led to Next

	Failures     uint8         // consecutive failures: failed connections, URLs for which the host was too busy, answers 429
	BackoffUntil time.Time     // earliest start of a request; zero: no back-off
	Backoff      time.Duration // pause that led to BackoffUntil

	ConnTime      time.Duration // estimated time to connect; zero: not measured
	RespTime      time.Duration // estimated time from request to end of answer; zero: not measured
	PerConnection float64       // estimated requests per connection; NewPerConnection before the first connection ended
	Prior         Prior         // the estimates that are of an earlier crawl
	HTTP2         bool          // its last answer came over HTTP/2, so a connection carries concurrent requests
}

// NewPace returns the state of a new host, which is ready immediately.
func NewPace() Pace { return Pace{PerConnection: NewPerConnection} }

// EffectiveDelay returns the pause between the starts of two requests to one host: the larger
// of the configured delay and robots.txt's Crawl-delay. robots may be nil.
func EffectiveDelay(configured time.Duration, robots *Robots) time.Duration {
	configured = max(configured, 0)
	if robots == nil {
		return configured
	}
	asked, _ := robots.CrawlDelay()
	return max(configured, asked)
}

// ReadyAt returns the earliest start of a request; zero: any time.
func (p *Pace) ReadyAt() time.Time { return later(p.Next, p.BackoffUntil) }

// Start records the start of a request, at ReadyAt or later. The next request may start delay later. If
// the request turns out to have started later, record it again.
func (p *Pace) Start(now time.Time, delay time.Duration) {
	p.pause(now, max(delay, 0))
}

// Floor delays the next request until now + delay, or until its own longer delay has passed. A
// step that takes over after a crash calls it for all its hosts, because it does not know the
// last requests of its predecessor. (The argument is a pause and not a time, because Clamp must know
// how far ahead Next can be.)
func (p *Pace) Floor(now time.Time, delay time.Duration) {
	p.pause(now, max(p.Delay, delay))
}

// pause sets Next and Delay to the pause that ends later.
func (p *Pace) pause(now time.Time, delay time.Duration) {
	if next := now.Add(delay); !next.Before(p.Next) {
		p.Next, p.Delay = next, delay
	}
}

// Clamp corrects the state after the wall clock was set back. Otherwise the host would rest
// until the clock has caught up. A time that is further ahead than its pause and clockSlack
// becomes one pause from now, so that no pause becomes shorter. Call
// it when a Pace is loaded, and when clocks disagree.
func (p *Pace) Clamp(now time.Time) {
	p.Next = clamp(p.Next, now, p.Delay)
	p.BackoffUntil = clamp(p.BackoffUntil, now, p.Backoff)
}

func clamp(t, now time.Time, pause time.Duration) time.Time {
	if t.After(now.Add(pause).Add(clockSlack)) {
		return now.Add(pause)
	}
	return t
}

// End is the end of a request.
type End struct {
	Outcome    blobschema.Outcome
	Status     uint16        // counts only for outcomes that are answers
	RetryAfter time.Duration // Retry-After of an answer of any status, at most maxRetryAfter; 0: none
	// Attempt counts the earlier failed requests for the same URL. Another failure tells nothing new about
	// the host. For a robots.txt it is 0, because its failures concern the host.
	Attempt uint8
}

// Done records the end of a request at the time now.
//
//	429                                     the host is overloaded: one failure more; no request for
//	                                        2^failures times the larger of its delay and 10 s,
//	                                        at most maxBackoff, or for RetryAfter if that is longer
//	502, 503, 504                           the page fails, or the host is too busy: one failure more, unless the URL
//	                                        has failed before. After one failure no request for twice
//	                                        the larger of its delay and 1 s: if the next URL is answered, it was
//	                                        the page. After more, as 429 with one failure less.
//	other OK, unchanged, redirect, 4xx, 5xx it answers (a 500 is usually the page's fault): no failures
//	cut, protocol                           it answers badly: no request for twice the larger of its
//	                                        delay and 1 s; failures stay as they are
//	DNS, connect, TLS, timeout              it does not answer: one failure more; no request for 2^failures times
//	                                        the larger of its delay and 1 s, at most maxSilentBackoff
//	all others                              nothing: it was not requested, or the crawler aborted
//
// The 10 s and 1 s are for the default unit, defaultBackoff (or 0), and scale with the unit.
// Done never shortens a running back-off, which another connection may have caused.
func (p *Pace) Done(now time.Time, end End, unit time.Duration) {
	if unit <= 0 {
		unit = defaultBackoff
	}
	pause := min(max(end.RetryAfter, 0), maxRetryAfter)
	c := classOf(end.Outcome, end.Status)
	if (c == failed || c == overloaded || c == busy && end.Attempt == 0) && p.Failures < math.MaxUint8 {
		p.Failures++
	}
	switch {
	case c == unknown:
		return
	case c == answered:
		p.Failures = 0
	case c == broken, c == busy && p.Failures <= 1:
		pause = max(pause, 2*max(unit/10, p.Delay))
	case c == busy:
		pause = max(pause, backoff(max(unit, p.Delay), p.Failures-1))
	case c == overloaded:
		pause = max(pause, backoff(max(unit, p.Delay), p.Failures))
	case c == failed:
		pause = max(pause, min(maxSilentBackoff, backoff(max(unit/10, p.Delay), p.Failures)))
	}
	if until := now.Add(pause); pause > 0 && until.After(p.BackoffUntil) {
		p.BackoffUntil, p.Backoff = until, pause
	} else if !now.Before(p.BackoffUntil) {
		p.BackoffUntil, p.Backoff = time.Time{}, 0 // it is over, and need not be stored
	}
}

// class is the meaning of the end of a request for the host.
type class uint8

const (
	unknown class = iota
	answered
	broken
	failed
	busy
	overloaded
)

func classOf(outcome blobschema.Outcome, status uint16) class {
	switch outcome {
	case blobschema.OutcomeOK, blobschema.OutcomeUnchanged, blobschema.OutcomeRedirect,
		blobschema.OutcomeClientError, blobschema.OutcomeServerError:
		switch status {
		case 429:
			return overloaded
		case 502, 503, 504:
			return busy
		}
		return answered
	case blobschema.OutcomeDNS, blobschema.OutcomeConnect, blobschema.OutcomeTLS, blobschema.OutcomeTimeout:
		return failed
	case blobschema.OutcomeProtocol, blobschema.OutcomeCut:
		return broken
	}
	return unknown
}

// backoff returns unit * 2^n, at most maxBackoff.
func backoff(unit time.Duration, n uint8) time.Duration {
	for ; n > 0 && unit < maxBackoff; n-- {
		unit *= 2
	}
	return min(unit, maxBackoff)
}

// ObserveConnection records the time to connect, with handshakes, of a new
// connection.
func (p *Pace) ObserveConnection(d time.Duration) { p.observe(&p.ConnTime, PriorConn, d) }

// ObserveResponse records the time from a request to the end of its answer.
func (p *Pace) ObserveResponse(d time.Duration) { p.observe(&p.RespTime, PriorResp, d) }

func (p *Pace) observe(estimate *time.Duration, which Prior, d time.Duration) {
	if d > 0 && p.Prior&which != 0 {
		*estimate = 0
		p.Prior &^= which
	}
	*estimate = smoothTime(*estimate, d)
}

// ObserveProtocol records whether an answer came over HTTP/2.
func (p *Pace) ObserveProtocol(http2 bool) { p.HTTP2 = http2 }

// ObserveClosed records that the server closed a connection after a number of requests.
// A connection that the crawler closed tells nothing about the server, unless it had served more
// requests than estimated.
func (p *Pace) ObserveClosed(requests int) {
	if requests < 1 {
		return
	}
	n := float64(min(requests, maxPerConnection))
	// The first measurement replaces the assumption: a quarter of all servers serve one
	// request per connection, and smoothing would take twenty measurements from 50 to 1.
	if p.PerConnection > 0 && p.PerConnection != NewPerConnection && p.Prior&PriorPerConnection == 0 {
		n = smooth(p.PerConnection, n)
	}
	p.Prior &^= PriorPerConnection
	p.PerConnection = n
}

// smooth returns X(i) = a * X(i-1) + (1-a) * measured. The conversions prevent fused
// operations, whose results depend on the processor.
func smooth(old, measured float64) float64 {
	return float64(smoothing*old) + float64((1-smoothing)*measured)
}

// smoothTime returns whole microseconds, the stored precision. The result is not zero, which
// would mean that there is no measurement.
func smoothTime(old, measured time.Duration) time.Duration {
	if measured <= 0 {
		return old
	}
	x := min(measured, maxObserved)
	if old > 0 {
		x = time.Duration(smooth(float64(old), float64(x)))
	}
	return max(x.Round(time.Microsecond), time.Microsecond)
}

// Connection estimates the pages and the cost of the next connection to the host, for a number of
// queued URLs:
//
//	pages P = min(requests per connection, queued)
//	cost  T = 2 * time to connect + P * time to respond / p
//
// P / T is the host's rank under the performance policy, and the sum of the qualities of
// its best P URLs / T its capability (Cao, Jiang, Singh). p is the paper's gain by pipelining, which
// HTTP/2 has replaced: it is the number of allowed concurrent requests (at least 1, at most P),
// which share one connection; over HTTP/1.1 it is 1. cost is never zero.
func (p *Pace) Connection(queued, allowed int) (pages int, cost time.Duration) {
	per, conn, resp := p.PerConnection, p.ConnTime, p.RespTime
	if per <= 0 {
		per = NewPerConnection
	}
	if conn <= 0 {
		conn = newConnTime
	}
	if resp <= 0 {
		resp = newRespTime
	}
	pages = max(min(int(math.Round(per)), queued), 0)
	at := 1
	if p.HTTP2 {
		at = max(min(allowed, pages), 1)
	}
	return pages, 2*conn + time.Duration(pages)*resp/time.Duration(at)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
