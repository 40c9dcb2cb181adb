package polite

import (
	"math"
	"testing"
	"time"
)

// TestRemember checks that estimates of an earlier crawl are bounded, and fade to those of an unknown host.
func TestRemember(t *testing.T) {
	const all = PriorConn | PriorResp | PriorPerConnection
	for _, c := range []struct {
		conn, resp time.Duration
		per        float64
		age        time.Duration
		want       Pace
	}{
		{0, 0, 0, 0, NewPace()},
		{0, 0, math.NaN(), 0, NewPace()},
		{20 * time.Millisecond, 800 * time.Millisecond, 1, 0, Pace{ConnTime: 20 * time.Millisecond, RespTime: 800 * time.Millisecond, PerConnection: 1, Prior: all}},
		{0, time.Hour, 1e9, -time.Hour, Pace{RespTime: maxPriorTime, PerConnection: maxPerConnection, Prior: PriorResp | PriorPerConnection}},
		// After a month, halfway on a logarithmic scale.
		{200 * time.Millisecond, 800 * time.Millisecond, 2, priorHalfLife, Pace{ConnTime: 100 * time.Millisecond, RespTime: 200 * time.Millisecond, PerConnection: 10, Prior: all}},
		{time.Hour, time.Hour, 1, 100 * priorHalfLife, Pace{ConnTime: newConnTime, RespTime: newRespTime, PerConnection: NewPerConnection, Prior: all}},
	} {
		got := NewPace()
		got.Remember(c.conn, c.resp, c.per, c.age)
		got.PerConnection = math.Round(1e6*got.PerConnection) / 1e6
		if got != c.want {
			t.Errorf("of %v, %v, %v and age %v: %+v, want %+v", c.conn, c.resp, c.per, c.age, got, c.want)
		}
	}
}

// TestMeasuredAfterRemembered checks that the first measurement replaces an estimate of an earlier crawl, also after the pace
// was stored, and that the next one is smoothed.
func TestMeasuredAfterRemembered(t *testing.T) {
	p := NewPace()
	p.Remember(time.Millisecond, time.Millisecond, 100, 0)
	data, err := p.MarshalCBOR()
	if err != nil {
		t.Fatal(err)
	}
	if p = (Pace{}); p.UnmarshalCBOR(data) != nil {
		t.Fatal("it cannot be decoded")
	}
	for range 2 {
		p.ObserveConnection(time.Second)
		p.ObserveResponse(2 * time.Second)
		p.ObserveClosed(4) // a power of two, of which a mean is exact
		if want := (Pace{ConnTime: time.Second, RespTime: 2 * time.Second, PerConnection: 4}); p != want {
			t.Errorf("%+v, want %+v", p, want)
		}
	}
	if p.ObserveConnection(2 * time.Second); p.ConnTime != 1200*time.Millisecond {
		t.Errorf("the third measurement makes %v", p.ConnTime)
	}
}
