package blobschema

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/partition"
)

// Commit is the work of a step and the resulting state: the content of one immutable
// object (I6). Everything except the manifest may be empty.
type Commit struct {
	Manifest Manifest
	Pages    []Page
	Links    []PageLinks
	// Buffered are links for other partitions that are in no mail yet, by receiver. Only the
	// fields of mail are stored, in no particular order.
	Buffered map[partition.ID][]Queued
	Outbox   []OutMail
	Outside  []Queued // links out of scope; only the fields of mail are stored
	Hosts    []HostObservation
	State    *Run // changes of the partition's state
}

// OutMail is mail as it is sent and resent. Body is a result of [EncodeMail].
type OutMail struct {
	To     partition.ID
	Number uint64
	Body   []byte
}

// HostObservation is a commit's estimate of a host's capability (Cao, Jiang, Singh: crawl capability).
type HostObservation struct {
	Host          string         `cbor:"1,keyasint" json:"-"`
	Slot          partition.Slot `cbor:"2,keyasint" json:"-"`
	Conn          time.Duration  `cbor:"3,keyasint,omitempty" json:"connect_ns,omitempty"`     // smoothed time to connect
	Resp          time.Duration  `cbor:"4,keyasint,omitempty" json:"response_ns,omitempty"`    // smoothed time of a response
	PerConnection float64        `cbor:"5,keyasint,omitempty" json:"per_connection,omitempty"` // requests
	Requests      uint64         `cbor:"6,keyasint,omitempty" json:"requests,omitempty"`
	Failures      uint64         `cbor:"7,keyasint,omitempty" json:"failures,omitempty"`
	Score         float64        `cbor:"8,keyasint,omitempty" json:"score,omitempty"`
	Known         uint64         `cbor:"9,keyasint,omitempty" json:"known,omitempty"`    // examined URLs
	Pending       uint64         `cbor:"10,keyasint,omitempty" json:"pending,omitempty"` // of Known: not settled
	Capped        uint64         `cbor:"11,keyasint,omitempty" json:"capped,omitempty"`  // links skipped by the cap on Known
}

// The sections of a commit object. All are present, except the run of an empty state.
const (
	sectionRun      = "run" // first, so that the manifest can say where it is
	sectionManifest = "manifest"
	sectionPages    = "pages"         // CBOR sequence (RFC 8742)
	sectionLinks    = "links"         // see encodeLinks
	sectionBuffered = "held"          // count, then per receiver: ID, length, URLs
	sectionOutbox   = "outbox"        // count, then per message: receiver, number, body; not compressed again
	sectionOutside  = "outside"       // URLs
	sectionHosts    = "hosts"         // CBOR sequence
	maxListText     = wire.MaxSection // of a list's strings, expanded
	maxListURLs     = wire.MaxSection // each takes at least a byte
	maxSequence     = 1 << 20         // items of a CBOR sequence; one byte may decode to an item of hundreds
)

// EncodeCommit encodes the object of a commit that will be stored under the given name. It returns the manifest that it
// stored: the manifest of c with Version set, times truncated to microseconds in UTC, and the run of c.State, if any,
// appended to Runs. A hand-over without runs gets the manifest's runs that may hold its slots. EncodeCommit sorts
// c.State in place and changes nothing else of c.
//
// Every error is a bound that c exceeds, so that no commit is written that
// could not be read.
func EncodeCommit(c *Commit, object string, h partition.Hash) (data []byte, manifest Manifest, err error) {
	manifest = c.Manifest
	manifest.Version = wire.Version
	manifest.Time = storedTime(manifest.Time)
	var sections []wire.Section
	if c.State != nil && c.State.Len() > 0 {
		if err := c.State.Check(); err != nil {
			return nil, Manifest{}, fmt.Errorf("encode commit: %w", err)
		}
		run, ref := EncodeRun(c.State, h)
		ref.Object, ref.Offset = object, int64(wire.HeaderSize)
		manifest.Runs = append(slices.Clip(manifest.Runs), ref)
		sections = append(sections, wire.Section{Name: sectionRun, Data: run})
	}
	manifest.Given = slices.Clone(manifest.Given)
	for i := range manifest.Given {
		if h := &manifest.Given[i]; h.Runs == nil {
			h.Runs = runsOf(manifest.Runs, h.Slots)
		}
	}
	if err := manifest.check(); err != nil {
		return nil, Manifest{}, fmt.Errorf("encode commit: manifest: %w", err)
	}
	for _, s := range []struct {
		name   string
		append func(c *Commit) ([]byte, error)
	}{
		{sectionManifest, func(*Commit) ([]byte, error) { return cborEnc.Marshal(&manifest) }},
		{sectionPages, encodePages},
		{sectionLinks, encodeLinks},
		{sectionBuffered, encodeBuffered},
		{sectionOutside, encodeOutside},
		{sectionHosts, func(c *Commit) ([]byte, error) { return encodeSequence(c.Hosts) }},
	} {
		raw, err := s.append(c)
		if err == nil && len(raw) > wire.MaxSection {
			err = fmt.Errorf("%d bytes are above the bound of %d", len(raw), wire.MaxSection)
		}
		if err != nil {
			return nil, Manifest{}, fmt.Errorf("encode commit: section %s: %w", s.name, err)
		}
		sections = append(sections, wire.Section{Name: s.name, Data: wire.AppendPacked(nil, raw)})
	}
	sections = append(sections, wire.Section{Name: sectionOutbox, Data: encodeOutbox(c.Outbox)})
	return wire.Append(nil, sections), manifest, nil
}

// runsOf returns the runs that may hold entries of some slots. The result is not nil.
func runsOf(runs []RunRef, slots partition.Slots) []RunRef {
	out := []RunRef{}
	for _, r := range runs {
		if len(slots) > 0 && r.First <= slots[len(slots)-1] && r.Last >= slots[0] {
			out = append(out, r)
		}
	}
	return out
}

// storedTime returns t with the precision of stored times.
func storedTime(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// check refuses ranges of commits that are out of order or reach beyond m.Seq: CommitNames
// would take too long.
func (m *Manifest) check() error {
	var next uint64
	for _, r := range m.Commits {
		if r.From < next || r.From > r.To || r.To >= m.Seq {
			return wire.Damaged("commits %d to %d before %d", r.From, r.To, m.Seq)
		}
		next = r.To + 1
	}
	return nil
}

func encodeSequence[T any](list []T) ([]byte, error) {
	if len(list) > maxSequence {
		return nil, fmt.Errorf("%d items are above the bound of %d", len(list), maxSequence)
	}
	var buf bytes.Buffer
	buf.Grow(256 * len(list))
	for i := range list {
		if err := cborEnc.MarshalToBuffer(&list[i], &buf); err != nil {
			return nil, err
		}
	}
	return buf.Bytes(), nil
}

func decodeSequence[T any](raw []byte) ([]T, error) {
	var list []T
	for len(raw) > 0 {
		var v T
		rest, err := cborDec.UnmarshalFirst(raw, &v)
		if err != nil {
			return nil, wire.Damaged("CBOR: %v", err)
		}
		if len(list) == maxSequence {
			return nil, wire.Damaged("more than %d items", maxSequence)
		}
		list, raw = append(list, v), rest
	}
	return list, nil
}

// encodePages makes every text valid UTF-8. CBOR demands it; servers send other bytes too.
func encodePages(c *Commit) ([]byte, error) {
	pages := slices.Clone(c.Pages)
	for i := range pages {
		p := &pages[i]
		p.Time = storedTime(p.Time)
		for _, s := range []*string{&p.URL, &p.MIME, &p.Truncated, &p.Redirect, &p.ETag, &p.Modified, &p.Detail,
			&p.Title, &p.Description, &p.Canonical, &p.Lang, &p.H1, &p.Charset, &p.Directives, &p.IP, &p.Protocol} {
			*s = strings.ToValidUTF8(*s, "\uFFFD")
		}
		if p.Original != nil {
			o := *p.Original
			o.Time = storedTime(o.Time)
			p.Original = &o
		}
	}
	return encodeSequence(pages)
}

func encodeBuffered(c *Commit) ([]byte, error) {
	dst := binary.AppendUvarint(nil, uint64(len(c.Buffered)))
	for _, p := range slices.Sorted(maps.Keys(c.Buffered)) {
		if err := checkURLs(c.Buffered[p], maxListURLs, maxListText); err != nil {
			return nil, fmt.Errorf("for partition %d: %w", p, err)
		}
		dst = binary.AppendUvarint(dst, uint64(p))
		dst = wire.AppendPrefixed(dst, encodeURLs(sortedByURL(c.Buffered[p])))
	}
	return dst, nil
}

func encodeOutside(c *Commit) ([]byte, error) {
	if err := checkURLs(c.Outside, maxListURLs, maxListText); err != nil {
		return nil, err
	}
	return encodeURLs(sortedByURL(c.Outside)), nil
}

func encodeOutbox(outbox []OutMail) []byte {
	dst := binary.AppendUvarint(nil, uint64(len(outbox)))
	for _, m := range outbox {
		dst = binary.AppendUvarint(dst, uint64(m.To))
		dst = binary.AppendUvarint(dst, m.Number)
		dst = wire.AppendPrefixed(dst, m.Body)
	}
	return dst
}

// CommitReader reads a commit object section by section: each call of a method decodes
// the section of that method. It is safe for concurrent use.
type CommitReader struct {
	pack *wire.Pack
}

// OpenCommit opens a whole commit object. The reader keeps data, which must not
// change afterwards.
func OpenCommit(data []byte) (*CommitReader, error) {
	p, err := wire.Open(data)
	if err != nil {
		return nil, fmt.Errorf("open commit: %w", err)
	}
	return &CommitReader{p}, nil
}

// decodeSection decompresses one section and decodes it.
func decodeSection[T any](r *CommitReader, section string, decode func(raw []byte) (T, error)) (v T, err error) {
	raw, err := r.pack.Unpacked(section)
	if err == nil {
		v, err = decode(raw)
	}
	if err != nil {
		var none T
		return none, fmt.Errorf("decode commit: section %s: %w", section, err)
	}
	return v, nil
}

// Manifest decodes the manifest.
func (r *CommitReader) Manifest() (Manifest, error) {
	return decodeSection(r, sectionManifest, func(raw []byte) (m Manifest, err error) {
		// The version is read first: another version may have other types.
		var v struct {
			Version int `cbor:"1,keyasint"`
		}
		if err := cborDec.Unmarshal(raw, &v); err != nil {
			return m, wire.Damaged("CBOR: %v", err)
		}
		if v.Version != wire.Version {
			return m, fmt.Errorf("%w: %d", wire.ErrVersion, v.Version)
		}
		if err := cborDec.Unmarshal(raw, &m); err != nil {
			return m, wire.Damaged("CBOR: %v", err)
		}
		return m, m.check()
	})
}

// Pages decodes the page records.
func (r *CommitReader) Pages() ([]Page, error) {
	return decodeSection(r, sectionPages, decodeSequence[Page])
}

// Links decodes the links of the pages.
func (r *CommitReader) Links() ([]PageLinks, error) {
	return decodeSection(r, sectionLinks, decodeLinks)
}

// Buffered decodes the links buffered for other partitions.
func (r *CommitReader) Buffered() (map[partition.ID][]Queued, error) {
	return decodeSection(r, sectionBuffered, func(raw []byte) (map[partition.ID][]Queued, error) {
		c := &wire.Cursor{Rest: raw}
		held := make(map[partition.ID][]Queued)
		for n := c.Count(2); n > 0 && c.Err == nil; n-- {
			p := partition.ID(c.Uvarint(1<<32 - 1))
			list := &wire.Cursor{Rest: c.Prefixed(wire.MaxSection)}
			if _, twice := held[p]; twice {
				c.Fail("partition %d twice", p)
			}
			held[p] = readURLs(list, maxListURLs, maxListText)
			if err := list.End(); err != nil {
				return nil, err
			}
		}
		return held, c.End()
	})
}

// Outbox decodes the mail of the commit. Bodies are views of the object.
func (r *CommitReader) Outbox() ([]OutMail, error) {
	b, err := r.pack.Section(sectionOutbox)
	if err != nil {
		return nil, fmt.Errorf("decode commit: %w", err)
	}
	c := &wire.Cursor{Rest: b}
	outbox := make([]OutMail, 0, c.Count(3))
	for n := cap(outbox); n > 0 && c.Err == nil; n-- {
		m := OutMail{To: partition.ID(c.Uvarint(1<<32 - 1)), Number: c.Uvarint(1<<64 - 1)}
		m.Body = c.Prefixed(wire.MaxSection)
		outbox = append(outbox, m)
	}
	if err := c.End(); err != nil {
		return nil, fmt.Errorf("decode commit: section %s: %w", sectionOutbox, err)
	}
	return outbox, nil
}

// Outside decodes the links out of scope.
func (r *CommitReader) Outside() ([]Queued, error) {
	return decodeSection(r, sectionOutside, func(raw []byte) ([]Queued, error) {
		c := &wire.Cursor{Rest: raw}
		list := readURLs(c, maxListURLs, maxListText)
		return list, c.End()
	})
}

// Hosts decodes the observations of hosts.
func (r *CommitReader) Hosts() ([]HostObservation, error) {
	return decodeSection(r, sectionHosts, decodeSequence[HostObservation])
}

// Run returns the bytes of the commit's own run, a view of the object, for
// [DecodeRun] with the last ref of the manifest's Runs. It is nil if the commit
// changed no state.
func (r *CommitReader) Run() ([]byte, error) {
	if off, _ := r.pack.SectionAt(sectionRun); off == 0 {
		return nil, nil
	}
	b, err := r.pack.Section(sectionRun)
	if err != nil {
		return nil, fmt.Errorf("decode commit: %w", err)
	}
	return b, nil
}
