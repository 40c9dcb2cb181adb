package polite

import (
	"fmt"
	"math"
	"time"

	"github.com/fxamacker/cbor/v2"
)

// storedPace is the stored form of a Pace. The general form of times depends on the options of
// the encoder, and truncates them to seconds by default.
type storedPace struct {
	Next         int64  `cbor:"1,keyasint,omitempty"` // milliseconds since 1970, as BackoffUntil
	Delay        int64  `cbor:"2,keyasint,omitempty"` // milliseconds, as Backoff
	Failures     uint8  `cbor:"3,keyasint,omitempty"`
	BackoffUntil int64  `cbor:"4,keyasint,omitempty"`
	Backoff      int64  `cbor:"5,keyasint,omitempty"`
	ConnTime     uint32 `cbor:"6,keyasint,omitempty"` // microseconds, as RespTime
	RespTime     uint32 `cbor:"7,keyasint,omitempty"`
	PerConn      uint32 `cbor:"8,keyasint,omitempty"` // thousandths; absent: NewPerConnection
	HTTP2        bool   `cbor:"9,keyasint,omitempty"`
	Prior        Prior  `cbor:"10,keyasint,omitempty"`
}

// maxPause bounds stored pauses, far above any real pause.
const maxPause = 365 * 24 * time.Hour

// MarshalCBOR implements cbor.Marshaler.
func (p Pace) MarshalCBOR() ([]byte, error) {
	var perConn uint32
	if p.PerConnection > 0 && p.PerConnection != NewPerConnection { // not NaN either
		perConn = uint32(math.Round(min(p.PerConnection, maxPerConnection) * 1000))
	}
	return cbor.Marshal(storedPace{
		Next: storeTime(p.Next), Delay: ceilDiv(min(p.Delay, maxPause), time.Millisecond),
		Failures:     p.Failures,
		BackoffUntil: storeTime(p.BackoffUntil), Backoff: ceilDiv(min(p.Backoff, maxPause), time.Millisecond),
		ConnTime: uint32(ceilDiv(min(p.ConnTime, maxObserved), time.Microsecond)),
		RespTime: uint32(ceilDiv(min(p.RespTime, maxObserved), time.Microsecond)),
		PerConn:  perConn, HTTP2: p.HTTP2, Prior: p.Prior,
	})
}

// UnmarshalCBOR implements cbor.Unmarshaler. It replaces a value out of bounds by the
// bound.
func (p *Pace) UnmarshalCBOR(b []byte) error {
	var s storedPace
	if err := cbor.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("decode pace: %w", err)
	}
	*p = Pace{
		Next: loadTime(s.Next), Delay: loadPause(s.Delay),
		Failures:     s.Failures,
		BackoffUntil: loadTime(s.BackoffUntil), Backoff: loadPause(s.Backoff),
		ConnTime:      min(time.Duration(s.ConnTime)*time.Microsecond, maxObserved),
		RespTime:      min(time.Duration(s.RespTime)*time.Microsecond, maxObserved),
		PerConnection: min(float64(s.PerConn)/1000, maxPerConnection),
		HTTP2:         s.HTTP2,
		Prior:         s.Prior,
	}
	if s.PerConn == 0 {
		p.PerConnection = NewPerConnection
	}
	return nil
}

// storeTime rounds up to the millisecond; the zero time, and any before 1970, is 0.
func storeTime(t time.Time) int64 {
	if t.Unix() < 0 {
		return 0
	}
	return t.Add(time.Millisecond - 1).UnixMilli()
}

func loadTime(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func loadPause(ms int64) time.Duration {
	return time.Duration(min(max(ms, 0), int64(maxPause/time.Millisecond))) * time.Millisecond
}
