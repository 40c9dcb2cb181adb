package schedule

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// A key and its own site are stored as one KeyState. Each further site has a KeyState of its own,
// whose Key is the name of the key, a space, and the authority. So a change of one name of a
// large domain does not write all its names.

// joinSite returns the Key of the KeyState of a further site.
func joinSite(key, site string) string { return key + " " + site }

// SplitSite undoes joinSite. In the state of a key, site is "".
func SplitSite(host string) (key, site string) {
	key, site, _ = strings.Cut(host, " ")
	return key, site
}

// stored is the form of a key or a further site in a run. A further site has only Robots, Silent,
// Settled and Capped.
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

	Changes   blobschema.Change `cbor:"12,keyasint,omitzero"`
	Trust     Trust             `cbor:"13,keyasint,omitzero"`
	Revisited bool              `cbor:"14,keyasint,omitempty"`
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

// maxStoredRules bounds the rules of a robots.txt in bytes, so that two of them fit in a KeyState.
// Larger ones are not stored: the robots.txt is requested again after the next load.
const maxStoredRules = 400 << 10

func (k *Key) encode() []byte {
	st := k.own.stored()
	st.Pace, st.Requests, st.Failures = &k.pace, k.requests, k.failures
	st.Resolves, st.Hold, st.Asks = k.resolves, storeTime(k.hold), encodeAsks(k.asks)
	st.Changes, st.Trust, st.Revisited = k.changes, k.trust, k.revisited
	if k.Pinned() {
		st.Addr = k.addr.AsSlice()
	}
	return encodeState(&st)
}

func (st *site) encode() []byte {
	state := st.stored()
	return encodeState(&state)
}

func (st *site) stored() stored {
	out := stored{Silent: st.silent, Settled: st.settled, Capped: st.capped}
	for i := range st.origins {
		d := &st.origins[i]
		sr := storedRobots{Next: d.Next.String(), Hops: d.hops, Attempts: d.Attempts, Retry: storeTime(d.Retry)}
		if d.Rules != nil {
			if rules := d.Rules.Encode(); len(rules) <= maxStoredRules {
				sr.Rules, sr.Until = rules, d.Until.UnixMilli()
			}
		}
		out.Robots[i] = sr
	}
	return out
}

func encodeState(st *stored) []byte {
	b, err := cbor.Marshal(st)
	if err != nil {
		panic("schedule: host state cannot be encoded: " + err.Error()) // unreachable: every value of stored can be encoded
	}
	return b
}

func (k *Key) decode(b []byte) error {
	var st stored
	if err := cbor.Unmarshal(b, &st); err != nil {
		return err
	}
	if st.Pace != nil {
		k.pace = *st.Pace
	}
	k.requests, k.failures, k.resolves, k.hold = st.Requests, st.Failures, st.Resolves, loadTime(st.Hold)
	k.changes, k.trust, k.revisited = st.Changes, st.Trust, st.Revisited
	var err error
	if k.asks, err = decodeAsks(st.Asks); err != nil {
		return err
	}
	if len(st.Addr) > 0 && !k.placed {
		addr, ok := netip.AddrFromSlice(st.Addr)
		if !ok {
			return fmt.Errorf("address of %d bytes", len(st.Addr))
		}
		k.addr = addr
	}
	return k.own.restore(&st)
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
	st.key.settled += from.Settled
	st.key.capped += from.Capped
	for i, sr := range from.Robots {
		d := &st.origins[i]
		d.hops, d.Attempts, d.Retry = sr.Hops, sr.Attempts, loadTime(sr.Retry)
		if sr.Next != "" {
			u, err := weburl.Parse(sr.Next)
			if err != nil {
				return err
			}
			d.Next = u
		}
		if len(sr.Rules) > 0 {
			rules, err := polite.DecodeRobots(sr.Rules)
			if err != nil {
				return err
			}
			d.Rules, d.Until = rules, time.UnixMilli(sr.Until)
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

// HostInfo is the stored state of a key, or of a further site, for readers.
type HostInfo struct {
	Pace     polite.Pace // of a key
	HTTP     RobotsInfo  // of http URLs
	HTTPS    RobotsInfo  // of https URLs
	Requests uint64      // of a key, with those for robots.txt and those that failed
	Failures uint64      // of a key
	Settled  uint64      // URLs of the site
	Capped   uint64      // URLs of the site that a cap left out
	Addr     netip.Addr  // address that a name is pinned to; zero for none
	Hold     time.Time   // earliest time of the next attempt to resolve the name; zero for at once
}

// RobotsInfo is the state of one robots.txt.
type RobotsInfo struct {
	Rules    *polite.Robots // nil if none was read yet
	Until    time.Time      // end of validity of Rules
	Next     weburl.URL     // target of its redirect; zero for /robots.txt
	Attempts uint8          // failed attempts since the last rules
	Retry    time.Time      // earliest time of the next attempt; zero for at once
}

// DecodeHost decodes the Data of a [blobschema.KeyState]. It does not retain data.
func DecodeHost(data []byte) (HostInfo, error) {
	k := Key{}
	k.own.key = &k
	if err := k.decode(data); err != nil {
		return HostInfo{}, fmt.Errorf("decode host state: %w", err)
	}
	return k.Info(), nil
}

// Info returns the state of a key as it is stored.
func (k *Key) Info() HostInfo {
	return HostInfo{
		Pace: k.pace, HTTP: k.own.origins[0].RobotsInfo, HTTPS: k.own.origins[1].RobotsInfo, Requests: k.requests,
		Failures: k.failures, Settled: k.own.settled, Capped: k.own.capped, Addr: k.addr, Hold: k.hold,
	}
}

// ask is a request from outside for one URL, remembered with the politeness key.
type ask struct {
	id   uint64 // hash of request and URL
	unix uint32 // seconds
}

// Bounds on the requests that a key remembers.
const (
	askLifetime = 15 * 24 * time.Hour
	maxAsks     = 1000 // the oldest are forgotten
	askBytes    = 12
)

// FirstAsk reports whether a request for a URL is new, and remembers it.
func (s *Schedule) FirstAsk(k *Key, request, fp uint64, now time.Time) bool {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], request)
	binary.LittleEndian.PutUint64(b[8:], fp)
	id := s.cfg.Hash.Fingerprint(string(b[:]))
	old := now.Add(-askLifetime).Unix()
	if slices.ContainsFunc(k.asks, func(a ask) bool { return a.id == id && int64(a.unix) > old }) {
		return false
	}
	k.asks = slices.DeleteFunc(k.asks, func(a ask) bool { return int64(a.unix) <= old })
	if n := len(k.asks) - maxAsks + 1; n > 0 { // oldest first
		k.asks = slices.Delete(k.asks, 0, n)
	}
	k.asks = append(k.asks, ask{id: id, unix: uint32(now.Unix())})
	s.changes.key(k)
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

// LoadState restores a key of a group, or a further site of one.
func (s *Schedule) LoadState(now time.Time, g *Group, hs *blobschema.KeyState) error {
	key, name := SplitSite(hs.Key)
	k := s.Key(g, key)
	if k.group != g {
		return fmt.Errorf("it is of slot %d", k.group.Slot)
	}
	st := &k.own
	if name != "" {
		st = s.sites.named(k, name)
		st.version = hs.Version
		if err := st.decode(hs.Data); err != nil {
			return err
		}
	} else {
		k.version = hs.Version
		if err := k.decode(hs.Data); err != nil {
			return err
		}
		k.pace.Clamp(now)
	}
	if !s.floor.IsZero() { // after a crash: the previous step may have sent its last request to this site
		for i := range st.origins {
			k.pace.Floor(s.floor, st.origins[i].delay())
		}
	}
	return nil
}

// Still reports whether the keys and sites of a group are unchanged since a delta.
func (g *Group) Still(delta uint64) bool { return g.touched <= delta }
