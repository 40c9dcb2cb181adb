package polite

import (
	"math"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// Bounds on the pauses kept as host state.
const (
	// maxRetryAfter is the longest Retry-After obeyed.
	maxRetryAfter = 24 * time.Hour
	// maxBackoff is the longest pause that failures alone bring about.
	maxBackoff = time.Hour
	// clockSlack is how much further in the future than its pauses explain Clamp lets a
	// time be before it takes it for a wall clock set back.
	clockSlack = 2 * time.Minute

	// maxSilentBackoff is the longest pause for a host that does not answer at all: it costs
	// nothing to ask it, and a few dead URLs at the end of its queue should not hold up a crawl.
	maxSilentBackoff = 5 * time.Minute

	// defaultBackoff is the unit of the pauses for a host that says it has too much to do; that
	// for one that does not answer is a tenth of it.
	defaultBackoff = 10 * time.Second
)

// The estimators (Cao, Jiang, Singh, "crawl capability").
const (
	smoothing = 0.8 // weight of the past in a new estimate

	// NewPerConnection is how many requests a connection to a new host is taken to serve.
	NewPerConnection = 50
	// newConnTime and newRespTime are what a new host is taken to need, until it was
	// measured. They are a fast host's, so that a policy that goes by them tries a new one soon: its
	// first answer tells, and a slow one is put off then. With those of a slow host the first that were tried
	// would be preferred to all others for ever.
	newConnTime = 50 * time.Millisecond
	newRespTime = 50 * time.Millisecond

	maxPerConnection = 10_000
	maxObserved      = 10 * time.Minute
)

// Pace is when one host may be asked, and what its connections cost. It is plain data: no
// method reads a clock, and one actor at a time may change it.
//
// As CBOR it is a map with small integers as keys, about 30 bytes. Times are stored in
// milliseconds, rounded up: storing a Pace never makes a pause shorter.
type Pace struct {
	Next  time.Time     // no request may start before; zero: any time
	Delay time.Duration // the pause from start to start that Next was made with

	Failures     uint8         // in a row: connections that failed, URLs that the host was too busy for, answers 429
	BackoffUntil time.Time     // no request may start before; zero: no back-off
	Backoff      time.Duration // the pause BackoffUntil was made with

	ConnTime      time.Duration // estimated time to connect; zero: never measured
	RespTime      time.Duration // estimated time from request to end of answer; zero: never measured
	PerConnection float64       // estimated requests a connection serves; NewPerConnection until one was seen to end
	HTTP2         bool          // its last answer came over HTTP/2: a connection carries several requests at once
}

// NewPace is the state of a host never asked: it is ready at once.
func NewPace() Pace { return Pace{PerConnection: NewPerConnection} }

// EffectiveDelay is the pause between the starts of two requests to one host: the larger
// of the configured one and robots.txt's Crawl-delay. robots may be nil.
func EffectiveDelay(configured time.Duration, robots *Robots) time.Duration {
	configured = max(configured, 0)
	if robots == nil {
		return configured
	}
	asked, _ := robots.CrawlDelay()
	return max(configured, asked)
}

// ReadyAt is the earliest time a request may start; zero: any time.
func (p *Pace) ReadyAt() time.Time { return later(p.Next, p.BackoffUntil) }

// Start books the start of a request, made at ReadyAt or later: the next may start delay later. To
// book the same request again, when it turns out to have started later, does no harm.
func (p *Pace) Start(now time.Time, delay time.Duration) {
	p.pause(now, max(delay, 0))
}

// Floor keeps the host from being asked before now + delay, or its own longer delay. A
// step that takes over after a crash calls it for all its hosts, for it cannot know what
// its predecessor started last. (It takes a pause and not a time, for Clamp must know how
// far ahead Next may rightly be.)
func (p *Pace) Floor(now time.Time, delay time.Duration) {
	p.pause(now, max(p.Delay, delay))
}

// pause keeps Next and Delay together: of two pauses the one that ends later.
func (p *Pace) pause(now time.Time, delay time.Duration) {
	if next := now.Add(delay); !next.Before(p.Next) {
		p.Next, p.Delay = next, delay
	}
}

// Clamp undoes what a wall clock set back would do, which is to leave the host untouched
// until the clock has caught up: a time further ahead than its pause and clockSlack
// explain becomes one pause from now. A clock set back never shortens a pause by that. To
// be called when a Pace is loaded, and whenever clocks are seen to disagree.
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

// End is how a request ended.
type End struct {
	Outcome    blobschema.Outcome
	Status     uint16        // counts only for outcomes that are answers
	RetryAfter time.Duration // of the answer, whatever its status; 0: none; bounded to maxRetryAfter
	// Attempt counts the requests for the same URL that failed before: another failure says no more about
	// the host. A robots.txt stands for its host, so it is 0.
	Attempt uint8
}

// Done takes note of how a request ended. now is when it ended.
//
//	429                                     the host is overloaded: one failure more; no request for
//	                                        2^failures times the larger of its delay and 10 s,
//	                                        at most maxBackoff, or for RetryAfter if that is longer
//	502, 503, 504                           the page fails, or the host is too busy: one failure more, unless the URL
//	                                        has failed before. After one failure no request for twice
//	                                        the larger of its delay and 1 s: if the next URL is answered, it was
//	                                        the page. After more, as 429 with a failure less.
//	other OK, unchanged, redirect, 4xx, 5xx it answers (a 500 is as a rule the page's fault): no failures
//	cut, protocol                           it answers badly: no request for twice the larger of its
//	                                        delay and 1 s; failures stay as they are
//	DNS, connect, TLS, timeout              it does not: one failure more; no request for 2^failures times
//	                                        the larger of its delay and 1 s, at most maxSilentBackoff
//	all others                              nothing: it was not asked, or we broke off
//
// The 10 s and 1 s are for a unit of defaultBackoff, which 0 stands for, and scale with it.
// A back-off already running is never shortened, for another connection may have brought
// it.
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
		p.BackoffUntil, p.Backoff = time.Time{}, 0 // over; nothing to store
	}
}

// class is what the end of a request says about the host.
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

// backoff is unit * 2^n, at most maxBackoff.
func backoff(unit time.Duration, n uint8) time.Duration {
	for ; n > 0 && unit < maxBackoff; n-- {
		unit *= 2
	}
	return min(unit, maxBackoff)
}

// ObserveConnection takes note of the time it took to connect, handshakes included. Not
// for a connection that had served before.
func (p *Pace) ObserveConnection(d time.Duration) { p.ConnTime = smoothTime(p.ConnTime, d) }

// ObserveResponse takes note of the time from a request to the end of its answer.
func (p *Pace) ObserveResponse(d time.Duration) { p.RespTime = smoothTime(p.RespTime, d) }

// ObserveProtocol takes note of whether an answer came over HTTP/2.
func (p *Pace) ObserveProtocol(http2 bool) { p.HTTP2 = http2 }

// ObserveClosed takes note that the server closed a connection after so many requests.
// What we closed ourselves tells nothing about the server, unless it had served more than
// estimated.
func (p *Pace) ObserveClosed(requests int) {
	if requests < 1 {
		return
	}
	n := float64(min(requests, maxPerConnection))
	// The first measurement replaces the guess: a quarter of all servers serve one
	// request per connection, and from 50 down to there smoothing would take twenty of
	// them.
	if p.PerConnection > 0 && p.PerConnection != NewPerConnection {
		n = smooth(p.PerConnection, n)
	}
	p.PerConnection = n
}

// smooth is X(i) = a * X(i-1) + (1-a) * measured. The conversions forbid fusing the two
// operations, which would give other results on other processors.
func smooth(old, measured float64) float64 {
	return float64(smoothing*old) + float64((1-smoothing)*measured)
}

// smoothTime keeps whole microseconds, as they are stored. A time is never zero, which
// would mean that none was measured.
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

// Connection is what the next connection to the host is expected to bring and to cost, if
// queued URLs wait for it:
//
//	pages P = min(requests per connection, queued)
//	cost  T = 2 * time to connect + P * time to respond / p
//
// P / T is the host's rank under the performance policy, and the sum of the qualities of
// its best P URLs / T its capability (Cao, Jiang, Singh). p is the paper's gain by pipelining, in whose
// place HTTP/2 is today: as many requests as are allowed to be under way at once (less than 1 counts
// as 1), but no more than there are, share one connection; over HTTP/1.1 it is 1. cost is never zero.
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
