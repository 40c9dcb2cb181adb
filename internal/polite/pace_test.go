package polite

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
)

var epoch = time.Date(2025, 1, 2, 3, 4, 5, 678_900_000, time.UTC)

const (
	answer    = blobschema.OutcomeOK
	connect   = blobschema.OutcomeConnect
	clientErr = blobschema.OutcomeClientError
	serverErr = blobschema.OutcomeServerError
)

// ready reports whether a request may start now.
func (p *Pace) ready(now time.Time) bool { return !now.Before(p.ReadyAt()) }

func TestEffectiveDelay(t *testing.T) {
	slow := ParseRobots([]byte("User-agent: *\nCrawl-delay: 5"), "bot")
	for _, c := range []struct {
		configured time.Duration
		robots     *Robots
		want       time.Duration
	}{
		{time.Second, nil, time.Second},
		{time.Second, allowAll(""), time.Second},
		{time.Second, slow, 5 * time.Second},
		{10 * time.Minute, slow, 10 * time.Minute},
		{-time.Second, nil, 0},
	} {
		if got := EffectiveDelay(c.configured, c.robots); got != c.want {
			t.Errorf("%v: got %v, want %v", c.configured, got, c.want)
		}
	}
}

func TestStart(t *testing.T) {
	p := NewPace()
	if !p.ready(epoch) || !p.ready(time.Time{}) {
		t.Error("a new host is not ready")
	}
	p.Start(epoch, -time.Hour)
	if !p.ReadyAt().Equal(epoch) {
		t.Errorf("after a pause below zero it is ready at %v", p.ReadyAt())
	}
	p.Start(epoch, time.Second)
	if p.ready(epoch.Add(time.Second - 1)) {
		t.Error("ready too early")
	}
	if !p.ready(epoch.Add(time.Second)) {
		t.Error("not ready when due")
	}
	p.Start(epoch.Add(300*time.Millisecond), time.Second) // the same request, started later
	p.Start(epoch, time.Second)                           // and its first time again
	if want := epoch.Add(1300 * time.Millisecond); !p.ReadyAt().Equal(want) {
		t.Errorf("ready at %v, want %v", p.ReadyAt(), want)
	}
}

// TestStartShorter: a shorter pause booked later must not let Clamp shorten the longer one.
func TestStartShorter(t *testing.T) {
	p := NewPace()
	p.Start(epoch, time.Hour)
	p.Start(epoch, time.Second)
	p.Floor(epoch, time.Second)
	p.Clamp(epoch)
	if got := p.ReadyAt().Sub(epoch); got != time.Hour {
		t.Errorf("ready after %v", got)
	}
}

func TestFloor(t *testing.T) {
	p := NewPace()
	p.Start(epoch, 5*time.Second)
	p.Floor(epoch.Add(time.Second), time.Second)
	if want := epoch.Add(6 * time.Second); !p.ReadyAt().Equal(want) {
		t.Errorf("its own delay is longer: got %v, want %v", p.ReadyAt(), want)
	}
	p = NewPace()
	p.Floor(epoch, time.Hour)
	p.Clamp(epoch)
	if want := epoch.Add(time.Hour); !p.ReadyAt().Equal(want) {
		t.Errorf("Clamp took a floor away: got %v, want %v", p.ReadyAt(), want)
	}
	p.Floor(epoch, time.Second)
	if want := epoch.Add(time.Hour); !p.ReadyAt().Equal(want) {
		t.Errorf("a lower floor counts: got %v, want %v", p.ReadyAt(), want)
	}
}

// TestDone checks the state of a host after its first request.
func TestDone(t *testing.T) {
	for _, c := range []struct {
		outcome  blobschema.Outcome
		status   uint16
		after    time.Duration
		failures uint8
		backoff  time.Duration
	}{
		{answer, 200, 0, 0, 0},
		{answer, 200, time.Minute, 0, time.Minute},
		{blobschema.OutcomeRedirect, 301, 0, 0, 0},
		{blobschema.OutcomeUnchanged, 304, 0, 0, 0},
		{blobschema.OutcomeUnchanged, 304, time.Minute, 0, time.Minute},
		{clientErr, 404, 0, 0, 0},
		{clientErr, 429, 0, 1, 20 * time.Second},
		{clientErr, 429, time.Second, 1, 20 * time.Second},
		{clientErr, 429, time.Hour, 1, time.Hour},
		{clientErr, 429, 100 * time.Hour, 1, maxRetryAfter},
		{clientErr, 429, -time.Hour, 1, 20 * time.Second},
		{serverErr, 500, 0, 0, 0},
		{serverErr, 500, 2 * time.Hour, 0, 2 * time.Hour},
		{serverErr, 502, 0, 1, 6 * time.Second},
		{serverErr, 503, 0, 1, 6 * time.Second},
		{serverErr, 503, time.Minute, 1, time.Minute},
		{serverErr, 504, 0, 1, 6 * time.Second},
		{blobschema.OutcomeDNS, 0, 0, 1, 6 * time.Second},
		{connect, 0, 0, 1, 6 * time.Second},
		{blobschema.OutcomeTLS, 0, 0, 1, 6 * time.Second},
		{blobschema.OutcomeTimeout, 429, 0, 1, 6 * time.Second},
		{blobschema.OutcomeProtocol, 0, 0, 0, 6 * time.Second},
		{blobschema.OutcomeCut, 200, 0, 0, 6 * time.Second},
		{blobschema.OutcomeNone, 503, time.Hour, 0, 0},
		{blobschema.OutcomeAborted, 0, 0, 0, 0},
		{blobschema.OutcomeForbidden, 0, 0, 0, 0},
		{blobschema.OutcomeRobots, 0, 0, 0, 0},
		{blobschema.OutcomeRobotsGone, 0, 0, 0, 0},
		{blobschema.OutcomeSuspect, 0, 0, 0, 0},
		{255, 503, 0, 0, 0},
	} {
		p := NewPace()
		p.Start(epoch, 3*time.Second)
		p.Done(epoch, End{Outcome: c.outcome, Status: c.status, RetryAfter: c.after}, 0)
		want := Pace{Next: epoch.Add(3 * time.Second), Delay: 3 * time.Second, Failures: c.failures, PerConnection: NewPerConnection}
		if c.backoff > 0 {
			want.BackoffUntil, want.Backoff = epoch.Add(c.backoff), c.backoff
		}
		if diff := cmp.Diff(want, p); diff != "" {
			t.Errorf("%d %d %v (-want +got):\n%s", c.outcome, c.status, c.after, diff)
		}
	}
}

// TestDoneUnit checks that pauses scale with the unit, and that a longer delay of the host counts.
func TestDoneUnit(t *testing.T) {
	for _, c := range []struct {
		outcome     blobschema.Outcome
		status      uint16
		unit, delay time.Duration
		backoff     time.Duration
	}{
		{clientErr, 429, time.Minute, time.Second, 2 * time.Minute},
		{clientErr, 429, time.Second, 5 * time.Second, 10 * time.Second},
		{clientErr, 429, -1, 0, 2 * defaultBackoff},
		{serverErr, 503, time.Minute, time.Second, 12 * time.Second},
		{connect, 0, time.Minute, time.Second, 12 * time.Second},
		{connect, 0, time.Hour, 0, maxSilentBackoff},
		{blobschema.OutcomeCut, 200, time.Minute, time.Second, 12 * time.Second},
		{blobschema.OutcomeProtocol, 0, time.Minute, 10 * time.Second, 20 * time.Second},
	} {
		p := NewPace()
		p.Start(epoch, c.delay)
		p.Done(epoch, End{Outcome: c.outcome, Status: c.status}, c.unit)
		if p.Backoff != c.backoff || !p.BackoffUntil.Equal(epoch.Add(c.backoff)) {
			t.Errorf("%+v: %v, until %v", c, p.Backoff, p.BackoffUntil)
		}
	}
}

func TestBackoff(t *testing.T) {
	p := NewPace()
	now := epoch
	var waits []string
	for range 300 {
		p.Done(now, End{Outcome: connect}, 0)
		waits = append(waits, p.BackoffUntil.Sub(now).String())
		now = p.ReadyAt()
	}
	want := "2s 4s 8s 16s 32s 1m4s 2m8s 4m16s 5m0s 5m0s 5m0s 5m0s 5m0s"
	if got := strings.Join(waits[:13], " "); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if p.Failures != math.MaxUint8 || waits[299] != "5m0s" {
		t.Errorf("after 300: %d failures, %s", p.Failures, waits[299])
	}
	p.Done(now, End{Outcome: answer, Status: 200}, 0)
	if p.Failures != 0 || !p.ready(now) || !p.BackoffUntil.IsZero() || p.Backoff != 0 {
		t.Errorf("an answer does not end it: %+v", p)
	}
	p.Done(now, End{Outcome: connect}, 0)
	if got := p.BackoffUntil.Sub(now); got != 2*time.Second {
		t.Errorf("it does not begin anew: %v", got)
	}
	p.Start(now, 2*time.Hour)
	p.Done(now, End{Outcome: connect}, 0)
	if got := p.ReadyAt().Sub(now); got != 2*time.Hour {
		t.Errorf("shorter than the delay: %v", got)
	}
}

// TestBackoffBusy checks which failures of pages lengthen the pause of their host: those of different URLs in a row.
func TestBackoffBusy(t *testing.T) {
	busy := func(attempt uint8) End { return End{Outcome: serverErr, Status: 503, Attempt: attempt} }
	good := End{Outcome: answer, Status: 200}
	for _, c := range []struct {
		name string
		ends []End
		want string
	}{
		{"one page, again and again", []End{busy(0), busy(1), busy(2)}, "2s 2s 2s"},
		{"three pages, others between them", []End{busy(0), good, busy(0), good, busy(1), busy(1), good, busy(0)}, "2s 0s 2s 0s 2s 2s 0s 2s"},
		{"all pages", []End{busy(0), busy(0), busy(0), busy(0), busy(1), busy(1), good}, "2s 20s 40s 1m20s 1m20s 1m20s 0s"},
		{"more than an hour", slices.Repeat([]End{busy(0)}, 12), "2s 20s 40s 1m20s 2m40s 5m20s 10m40s 21m20s 42m40s 1h0m0s 1h0m0s 1h0m0s"},
		{"after connections that failed", []End{{Outcome: connect}, {Outcome: connect}, busy(1), busy(0)}, "2s 4s 20s 40s"},
		{"429, the same page", []End{{Outcome: clientErr, Status: 429}, {Outcome: clientErr, Status: 429, Attempt: 1}}, "20s 40s"},
	} {
		p, now, waits := NewPace(), epoch, []string(nil)
		for _, e := range c.ends {
			p.Done(now, e, 0)
			waits = append(waits, max(0, p.ReadyAt().Sub(now)).String())
			now = later(now, p.ReadyAt())
		}
		if got := strings.Join(waits, " "); got != c.want {
			t.Errorf("%s: got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// TestBackoffStays: another connection's answer does not end what Retry-After requested.
func TestBackoffStays(t *testing.T) {
	p := NewPace()
	p.Done(epoch, End{Outcome: serverErr, Status: 503, RetryAfter: time.Hour}, 0)
	p.Done(epoch.Add(time.Second), End{Outcome: answer, Status: 200}, 0)
	p.Done(epoch.Add(2*time.Second), End{Outcome: connect}, 0)
	if got := p.ReadyAt().Sub(epoch); got != time.Hour || p.Backoff != time.Hour {
		t.Errorf("ready after %v", got)
	}
}

func TestClamp(t *testing.T) {
	p := NewPace()
	p.Start(epoch, time.Second)
	p.Done(epoch, End{Outcome: serverErr, Status: 503, RetryAfter: time.Hour}, 0)
	for _, c := range []struct {
		back          time.Duration // time by which the clock was set back
		next, backoff time.Duration // from the new now
	}{
		{0, time.Second, time.Hour},
		{-time.Hour, time.Second - time.Hour, 0},
		{time.Minute, time.Second + time.Minute, time.Hour + time.Minute},
		{clockSlack, time.Second + clockSlack, time.Hour + clockSlack},
		{clockSlack + 1, time.Second, time.Hour},
		{1000 * time.Hour, time.Second, time.Hour},
		{math.MaxInt64 / 2, time.Second, time.Hour},
	} {
		q, now := p, epoch.Add(-c.back)
		q.Clamp(now)
		if next, backoff := q.Next.Sub(now), q.BackoffUntil.Sub(now); next != c.next || backoff != c.backoff {
			t.Errorf("%v: %v and %v, want %v and %v", c.back, next, backoff, c.next, c.backoff)
		}
	}
	q := NewPace()
	q.Clamp(epoch)
	if diff := cmp.Diff(NewPace(), q); diff != "" {
		t.Errorf("a new host (-want +got):\n%s", diff)
	}
}

// TestPaceHolds checks invariant I9 for one host, with random requests, ends, takeovers, stores, loads and clocks that are set
// back. No two starts are closer in real time than the delay of the first, no start is within a Retry-After, and the host
// is always ready again in time.
func TestPaceHolds(t *testing.T) {
	outcomes := []struct {
		o blobschema.Outcome
		s uint16
	}{{answer, 200}, {answer, 200}, {answer, 200}, {connect, 0}, {serverErr, 503}, {clientErr, 429}, {blobschema.OutcomeAborted, 0}, {serverErr, 500}}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 5))
		duration := func(most time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(most))) }
		p := NewPace()
		actual, offset := epoch, time.Duration(0) // the wall clock shows actual + offset
		wall := func() time.Time { return actual.Add(offset) }
		var floor time.Time // earliest next start, in real time
		starts := 0
		for range 300 {
			switch rng.IntN(12) {
			case 0:
				offset -= duration(72 * time.Hour)
				p.Clamp(wall())
			case 1:
				b, err := cbor.Marshal(p)
				if err != nil {
					t.Fatal(err)
				}
				if err := cbor.Unmarshal(b, &p); err != nil {
					t.Fatal(err)
				}
			case 2:
				d := duration(10 * time.Minute)
				p.Floor(wall(), d)
				floor = later(floor, actual.Add(d))
			case 3:
				actual = actual.Add(duration(time.Hour))
			default:
				actual = actual.Add(duration(3 * time.Second))
			}
			if limit := wall().Add(max(p.Delay, p.Backoff) + clockSlack + time.Millisecond); p.ReadyAt().After(limit) {
				t.Fatalf("seed %d: ready at %v, clock shows %v: %+v", seed, p.ReadyAt(), wall(), p)
			}
			if !p.ready(wall()) {
				continue
			}
			starts++
			if actual.Before(floor) {
				t.Fatalf("seed %d: a start at %v, none is allowed before %v", seed, actual, floor)
			}
			delay := duration(20 * time.Second)
			p.Start(wall(), delay)
			floor = actual.Add(delay)
			actual = actual.Add(duration(5 * time.Second))
			out, after := outcomes[rng.IntN(len(outcomes))], time.Duration(0)
			if rng.IntN(4) == 0 && out.o != blobschema.OutcomeAborted {
				after = duration(10 * time.Minute)
			}
			p.Done(wall(), End{Outcome: out.o, Status: out.s, RetryAfter: after, Attempt: uint8(rng.IntN(2))}, 0)
			floor = later(floor, actual.Add(after))
		}
		if starts < 10 {
			t.Errorf("seed %d: only %d starts", seed, starts)
		}
	}
}

func TestObserve(t *testing.T) {
	p := NewPace()
	p.ObserveConnection(0) // a connection that was used before
	p.ObserveResponse(-1)
	p.ObserveClosed(0)
	if diff := cmp.Diff(NewPace(), p); diff != "" {
		t.Errorf("nothing was measured (-want +got):\n%s", diff)
	}
	if pages, cost := p.Connection(1000, 8); pages != 50 || cost != 2*newConnTime+50*newRespTime {
		t.Errorf("new host: %d pages, %v", pages, cost)
	}
	p.ObserveConnection(100 * time.Millisecond)
	p.ObserveConnection(200 * time.Millisecond)
	p.ObserveResponse(time.Second)
	p.ObserveResponse(500 * time.Millisecond)
	p.ObserveConnection(0)
	p.ObserveResponse(-1)
	p.ObserveClosed(10)
	p.ObserveClosed(20)
	want := Pace{ConnTime: 120 * time.Millisecond, RespTime: 900 * time.Millisecond, PerConnection: 12}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, c := range []struct {
		queued, pages int
		cost          time.Duration
	}{
		{100, 12, 240*time.Millisecond + 12*900*time.Millisecond},
		{3, 3, 240*time.Millisecond + 3*900*time.Millisecond},
		{0, 0, 240 * time.Millisecond},
		{-1, 0, 240 * time.Millisecond},
	} {
		if pages, cost := p.Connection(c.queued, 8); pages != c.pages || cost != c.cost {
			t.Errorf("%d queued: %d pages, %v; want %d, %v", c.queued, pages, cost, c.pages, c.cost)
		}
	}
	p.ObserveProtocol(true)
	for _, c := range []struct {
		queued, allowed int
		cost            time.Duration
	}{
		{100, 8, 240*time.Millisecond + 12*900*time.Millisecond/8},
		{3, 8, 240*time.Millisecond + 900*time.Millisecond}, // at most as many as there are
		{100, 0, 240*time.Millisecond + 12*900*time.Millisecond},
		{100, -1, 240*time.Millisecond + 12*900*time.Millisecond},
		{0, 8, 240 * time.Millisecond},
	} {
		if _, cost := p.Connection(c.queued, c.allowed); cost != c.cost {
			t.Errorf("HTTP/2, %d queued, %d at once: %v; want %v", c.queued, c.allowed, cost, c.cost)
		}
	}
	p.ObserveProtocol(false)
	if _, cost := p.Connection(3, 8); cost != 240*time.Millisecond+3*900*time.Millisecond {
		t.Errorf("HTTP/1.1 again: %v", cost)
	}
	p.ObserveConnection(math.MaxInt64)
	p.ObserveClosed(math.MaxInt)
	if p.ConnTime > maxObserved || p.PerConnection > maxPerConnection {
		t.Errorf("unbounded: %+v", p)
	}
	p = Pace{}
	if pages, cost := p.Connection(1000, 8); pages != 50 || cost <= 0 {
		t.Errorf("zero value: %d pages, %v", pages, cost)
	}
	p.ObserveClosed(1)
	p.ObserveResponse(1)
	if p.PerConnection != 1 || p.RespTime != time.Microsecond {
		t.Errorf("the first measurement does not replace the guess: %+v", p)
	}
}

func TestPaceCBOR(t *testing.T) {
	p := Pace{
		Next: epoch.Add(1), Delay: 1500*time.Millisecond + 1, Failures: 3,
		BackoffUntil: epoch.Add(time.Minute), Backoff: time.Minute,
		ConnTime: 120 * time.Millisecond, RespTime: 345678 * time.Microsecond, PerConnection: 12.3456, HTTP2: true,
	}
	b, err := cbor.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	const golden = "a9011b0000019424f8632f021905dd0303041b0000019424f94d8f0519ea60061a0001d4c0071a0005464e0819303a09f5"
	if got := fmt.Sprintf("%x", b); got != golden {
		t.Errorf("got %s\nwant %s", got, golden)
	}
	var got Pace
	if err := cbor.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	want := p
	want.Next = epoch.Truncate(time.Millisecond).Add(time.Millisecond) // rounded up
	want.BackoffUntil = want.Next.Add(time.Minute)
	want.Delay = 1501 * time.Millisecond
	want.PerConnection = 12.346
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if b, err := cbor.Marshal(NewPace()); err != nil || len(b) != 1 {
		t.Errorf("a new host takes %d bytes, %v", len(b), err)
	}

	b, err = cbor.Marshal(NewPace())
	if err != nil {
		t.Fatal(err)
	}
	if err := cbor.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(NewPace(), got); diff != "" || !got.ReadyAt().IsZero() {
		t.Errorf("a new host (-want +got):\n%s", diff)
	}
	if err := got.UnmarshalCBOR([]byte{0xa1, 0x01, 0x60}); err == nil {
		t.Error("a text is taken for a time")
	}
	got = want

	// In a larger record, with options that would cut times to seconds.
	type host struct {
		Name string `cbor:"1,keyasint"`
		Pace Pace   `cbor:"2,keyasint"`
	}
	b, err = cbor.Marshal(host{"a", got})
	if err != nil {
		t.Fatal(err)
	}
	var h host
	if err := cbor.Unmarshal(b, &h); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(host{"a", want}, h); diff != "" {
		t.Errorf("stored again (-want +got):\n%s", diff)
	}
}

func FuzzPaceCBOR(f *testing.F) {
	b, err := cbor.Marshal(Pace{Next: epoch, Delay: 1, Failures: 1, PerConnection: 2})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte{0xa1, 0x01, 0x1b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0xa2, 0x02, 0x20, 0x05, 0x20}) // pauses below zero
	f.Fuzz(func(t *testing.T, b []byte) {
		var p Pace
		if cbor.Unmarshal(b, &p) != nil {
			return
		}
		if p.Delay < 0 || p.Backoff < 0 || p.ConnTime < 0 || p.RespTime < 0 || !(p.PerConnection > 0) {
			t.Fatalf("out of bounds: %+v", p)
		}
		again, err := cbor.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var q Pace
		if err := cbor.Unmarshal(again, &q); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p, q); diff != "" {
			t.Fatalf("-first +second:\n%s", diff)
		}
		p.Clamp(epoch)
		if limit := epoch.Add(max(p.Delay, p.Backoff) + clockSlack); p.ReadyAt().After(limit) {
			t.Fatalf("ready at %v", p.ReadyAt())
		}
		p.Done(epoch, End{Outcome: connect}, 0)
		p.Connection(3, 2)
	})
}
