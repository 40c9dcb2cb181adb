package frontier

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/fresh"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// A unit is stored as one HostState, with the site whose authority is its key; each
// further site as another, whose Host is that of the unit, a space, and the authority:
// so a domain with many names is not written whole each time.

// joinSite returns the Host of a HostState for a further site of a unit.
func joinSite(unit, site string) string { return unit + " " + site }

// SplitSite undoes joinSite. For the state of a unit site is "".
func SplitSite(host string) (unit, site string) {
	unit, site, _ = strings.Cut(host, " ")
	return unit, site
}

// stored is how a unit or a further site is kept in a run. Of a site it has no more than
// Robots, Silent, Settled and Capped.
type stored struct {
	Pace     *polite.Pace    `cbor:"1,keyasint,omitempty"`
	Robots   [2]storedRobots `cbor:"2,keyasint"`
	Requests uint64          `cbor:"3,keyasint,omitempty"`
	Failures uint64          `cbor:"4,keyasint,omitempty"`
	Silent   int             `cbor:"5,keyasint,omitempty"`
	Settled  uint64          `cbor:"6,keyasint,omitempty"`
	Capped   uint64          `cbor:"7,keyasint,omitempty"`
	Addr     []byte          `cbor:"8,keyasint,omitempty"` // 4 or 16 bytes
	Resolves uint8           `cbor:"9,keyasint,omitempty"`
	Hold     int64           `cbor:"10,keyasint,omitempty"` // Unix milliseconds
	Asks     []byte          `cbor:"11,keyasint,omitempty"` // askBytes each

	Changes *blobschema.Change `cbor:"12,keyasint,omitempty"`
	Trust   *fresh.Trust       `cbor:"13,keyasint,omitempty"`
	Looked  bool               `cbor:"14,keyasint,omitempty"`
}

type storedRobots struct {
	_        struct{} `cbor:",toarray"`
	Rules    []byte
	Until    int64
	Next     string
	Hops     uint8
	Attempts uint8
	Retry    int64
}

// maxStoredRules bounds the rules of a robots.txt that are stored, so that two of them
// fit in a HostState. Larger ones are asked for again when they are loaded next.
const maxStoredRules = 400 << 10

func (u *unit) encode() []byte {
	st := u.own.stored()
	st.Pace, st.Requests, st.Failures = &u.pace, u.requests, u.failures
	st.Resolves, st.Hold, st.Asks = u.resolves, storeTime(u.hold), encodeAsks(u.asks)
	if u.changes != (blobschema.Change{}) {
		st.Changes = &u.changes
	}
	if u.trust != (fresh.Trust{}) {
		st.Trust = &u.trust
	}
	st.Looked = u.looked
	if u.pinned() {
		st.Addr = u.addr.AsSlice()
	}
	return encodeState(&st)
}

func (st *site) encode() []byte {
	state := st.stored()
	return encodeState(&state)
}

func (st *site) stored() stored {
	out := stored{Silent: st.silent, Settled: st.settled, Capped: st.capped}
	for i := range st.doors {
		d := &st.doors[i]
		sr := storedRobots{Next: d.next.String(), Hops: d.hops, Attempts: d.attempts, Retry: storeTime(d.retry)}
		if d.rules != nil {
			if rules := d.rules.Encode(); len(rules) <= maxStoredRules {
				sr.Rules, sr.Until = rules, d.until.UnixMilli()
			}
		}
		out.Robots[i] = sr
	}
	return out
}

func encodeState(st *stored) []byte {
	b, err := cbor.Marshal(st)
	if err != nil {
		panic("frontier: host state cannot be encoded: " + err.Error()) // a fixed type: unreachable
	}
	return b
}

func (u *unit) decode(b []byte) error {
	var st stored
	if err := cbor.Unmarshal(b, &st); err != nil {
		return err
	}
	if st.Pace != nil {
		u.pace = *st.Pace
	}
	u.requests, u.failures, u.resolves, u.hold = st.Requests, st.Failures, st.Resolves, loadTime(st.Hold)
	if st.Changes != nil {
		u.changes = *st.Changes
	}
	if st.Trust != nil {
		u.trust = *st.Trust
	}
	u.looked = st.Looked
	var err error
	if u.asks, err = decodeAsks(st.Asks); err != nil {
		return err
	}
	if len(st.Addr) > 0 && !u.placed {
		addr, ok := netip.AddrFromSlice(st.Addr)
		if !ok {
			return fmt.Errorf("address of %d bytes", len(st.Addr))
		}
		u.addr = addr
	}
	return u.own.restore(&st)
}

func (st *site) decode(b []byte) error {
	var state stored
	if err := cbor.Unmarshal(b, &state); err != nil {
		return err
	}
	return st.restore(&state)
}

func (st *site) restore(from *stored) error {
	st.silent, st.settled, st.capped = max(from.Silent, 0), from.Settled, from.Capped
	st.unit.settled += from.Settled
	st.unit.capped += from.Capped
	for i, sr := range from.Robots {
		d := &st.doors[i]
		d.hops, d.attempts, d.retry = sr.Hops, sr.Attempts, loadTime(sr.Retry)
		if sr.Next != "" {
			u, err := weburl.Parse(sr.Next)
			if err != nil {
				return err
			}
			d.next = u
		}
		if len(sr.Rules) > 0 {
			rules, err := polite.DecodeRobots(sr.Rules)
			if err != nil {
				return err
			}
			d.rules, d.until = rules, time.UnixMilli(sr.Until)
		}
	}
	return nil
}

func storeTime(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func loadTime(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// HostInfo is what the stored state of a unit, or of a further site, says, for those
// who only look.
type HostInfo struct {
	Pace     polite.Pace // of a unit
	HTTP     RobotsInfo  // of http URLs
	HTTPS    RobotsInfo  // of https URLs
	Requests uint64      // of a unit: robots.txt included, and those that brought nothing
	Failures uint64      // of a unit
	Settled  uint64      // URLs of the site
	Capped   uint64      // URLs of the site left out for a cap
	Addr     netip.Addr  // that a name is pinned to; zero for none
	Hold     time.Time   // the name is resolved again no earlier; zero for at once
}

// RobotsInfo is what is known of one robots.txt.
type RobotsInfo struct {
	Rules    *polite.Robots // nil if none was read yet
	Until    time.Time      // Rules are good until then
	Next     string         // where its redirect points to, "" for the usual place
	Attempts uint8          // in vain, since the last rules
	Retry    time.Time      // it is asked for again no earlier; zero for at once
}

// DecodeHost reads the Data of a [blobschema.HostState]. It keeps nothing of data.
func DecodeHost(data []byte) (HostInfo, error) {
	u := unit{}
	u.own.unit = &u
	if err := u.decode(data); err != nil {
		return HostInfo{}, fmt.Errorf("decode host state: %w", err)
	}
	info := HostInfo{
		Pace: u.pace, Requests: u.requests, Failures: u.failures, Settled: u.own.settled, Capped: u.own.capped, Addr: u.addr, Hold: u.hold,
	}
	for i, to := range []*RobotsInfo{&info.HTTP, &info.HTTPS} {
		d := &u.own.doors[i]
		*to = RobotsInfo{Rules: d.rules, Until: d.until, Next: d.next.String(), Attempts: d.attempts, Retry: d.retry}
	}
	return info, nil
}

// ask is a request from outside for one URL, remembered with the unit.
type ask struct {
	id   uint64 // hash of request and URL
	unix uint32 // seconds
}

// Bounds on the requests remembered.
const (
	askLifetime = 15 * 24 * time.Hour
	maxAsks     = 1000 // of a unit; the oldest go
	askBytes    = 12
)

// firstAsk reports whether a request for a URL was not heard of before, and remembers it.
func (f *Frontier) firstAsk(u *unit, request, fp uint64, now time.Time) bool {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], request)
	binary.LittleEndian.PutUint64(b[8:], fp)
	id := f.cfg.Hash.Fingerprint(string(b[:]))
	old := now.Add(-askLifetime).Unix()
	if slices.ContainsFunc(u.asks, func(a ask) bool { return a.id == id && int64(a.unix) > old }) {
		return false
	}
	u.asks = slices.DeleteFunc(u.asks, func(a ask) bool { return int64(a.unix) <= old })
	if n := len(u.asks) - maxAsks + 1; n > 0 { // oldest first
		u.asks = slices.Delete(u.asks, 0, n)
	}
	u.asks = append(u.asks, ask{id: id, unix: uint32(now.Unix())})
	f.touchUnit(u)
	return true
}

func encodeAsks(asks []ask) []byte {
	var b []byte
	for _, a := range asks {
		b = binary.LittleEndian.AppendUint64(b, a.id)
		b = binary.LittleEndian.AppendUint32(b, a.unix)
	}
	return b
}

func decodeAsks(b []byte) ([]ask, error) {
	if len(b)%askBytes != 0 || len(b) > maxAsks*askBytes {
		return nil, fmt.Errorf("requests in %d bytes", len(b))
	}
	var asks []ask
	for ; len(b) > 0; b = b[askBytes:] {
		asks = append(asks, ask{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint32(b[8:])})
	}
	return asks, nil
}
