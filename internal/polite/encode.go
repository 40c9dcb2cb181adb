package polite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// maxEncodedRobots is the size of the largest encoding DecodeRobots looks at, more than
// any file of maxRobotsBytes can need.
const maxEncodedRobots = 2 << 20

// encodingVersion is the first byte of every encoding. Its layout, all numbers unsigned
// varints and all strings led by their length:
//
//	version, kind (a byte each), reason, Crawl-delay in milliseconds + 1 (0: none),
//	number of rules, each: (lines since the one before) * 2 + (1 for Allow), pattern
//	number of sitemaps, each: value
//	the cause of a denial (a byte), if it has one
const encodingVersion = 1

var (
	errVersion   = errors.New("unknown version")
	errTruncated = errors.New("truncated")
	errMalformed = errors.New("malformed")
)

// Encode gives the form in which a Robots is stored with its host: only what applies to
// the token it was read for. Usually well under 1 KB, at most maxEncodedRobots.
func (r *Robots) Encode() []byte {
	b := make([]byte, 0, 64+24*len(r.rules))
	b = append(b, encodingVersion, byte(r.kind))
	b = appendString(b, r.reason)
	var delay uint64
	if r.hasDelay {
		delay = uint64(ceilDiv(r.delay, time.Millisecond)) + 1
	}
	b = binary.AppendUvarint(b, delay)
	b = binary.AppendUvarint(b, uint64(len(r.rules)))
	var line int32
	for i := range r.rules {
		rule := &r.rules[i]
		head := uint64(rule.line-line) << 1
		if rule.verdict == allow {
			head |= 1
		}
		line = rule.line
		b = appendString(binary.AppendUvarint(b, head), rule.pattern)
	}
	b = binary.AppendUvarint(b, uint64(len(r.sitemaps)))
	for _, s := range r.sitemaps {
		b = appendString(b, s)
	}
	if r.cause != blobschema.OutcomeNone {
		b = append(b, byte(r.cause))
	}
	return b
}

// DecodeRobots reads what Encode wrote, and refuses whatever it cannot have written. It
// keeps nothing of b.
func DecodeRobots(b []byte) (*Robots, error) {
	r, err := decodeRobots(b)
	if err != nil {
		return nil, fmt.Errorf("decode robots: %w", err)
	}
	return r, nil
}

func decodeRobots(b []byte) (*Robots, error) {
	switch {
	case len(b) < 2:
		return nil, errTruncated
	case b[0] != encodingVersion:
		return nil, errVersion
	case len(b) > maxEncodedRobots:
		return nil, errMalformed
	}
	d := decoder{rest: string(b[2:])} // one copy; all strings are parts of it
	r := &Robots{kind: kind(b[1]), reason: d.text(maxReasonBytes)}
	if r.kind < kindRules || r.kind > kindDeny {
		return nil, errMalformed
	}
	if delay := d.number(uint64(MaxCrawlDelay/time.Millisecond) + 1); delay > 0 {
		r.delay, r.hasDelay = time.Duration(delay-1)*time.Millisecond, true
	}
	d.rules(r)
	for range d.number(maxSitemaps) {
		if d.err != nil {
			break
		}
		r.sitemaps = append(r.sitemaps, d.text(maxSitemapBytes))
	}
	if d.err == nil && r.kind == kindDeny && len(d.rest) == 1 && ofHost(blobschema.Outcome(d.rest[0])) {
		r.cause, d.rest = blobschema.Outcome(d.rest[0]), ""
	}
	if d.err == nil && d.rest != "" {
		d.err = errMalformed
	}
	if d.err != nil {
		return nil, d.err
	}
	return newRobots(r), nil
}

// decoder takes values off the front of rest. After the first error it gives zeros.
type decoder struct {
	rest string
	err  error
}

func (d *decoder) rules(r *Robots) {
	n := d.number(uint64(len(d.rest) / 2)) // two bytes are the least a rule takes
	if d.err != nil {
		return
	}
	r.rules = make([]rule, 0, n)
	line := uint64(0)
	for range n {
		head := d.number(2*maxRobotsBytes + 1)
		pattern := d.text(maxEncodedRobots)
		line += head >> 1
		// The index relies on normal form, and on lines no greater than a file can have.
		if d.err == nil && (head>>1 == 0 || line > maxRobotsBytes || pattern == "" || normalPattern([]byte(pattern)) != pattern) {
			d.err = errMalformed
		}
		if d.err != nil {
			return
		}
		r.rules = append(r.rules, newRule(int(line), verdict(head&1 == 1), pattern))
	}
}

func (d *decoder) number(limit uint64) uint64 {
	var v uint64
	for i := 0; d.err == nil; i++ {
		if i == len(d.rest) {
			d.err = errTruncated
			break
		}
		c := d.rest[i]
		v |= uint64(c&0x7f) << (7 * i)
		if i >= 4 || v > limit { // 4 bytes are 28 bits, more than any limit here
			d.err = errMalformed
			break
		}
		if c < 0x80 {
			d.rest = d.rest[i+1:]
			return v
		}
	}
	return 0
}

func (d *decoder) text(limit uint64) string {
	n := d.number(limit)
	if d.err == nil && n > uint64(len(d.rest)) {
		d.err = errTruncated
	}
	if d.err != nil {
		return ""
	}
	s := d.rest[:n]
	d.rest = d.rest[n:]
	return s
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// ceilDiv counts units in d, rounding up: a pause must not become shorter by being
// stored.
func ceilDiv(d, unit time.Duration) int64 {
	return int64((max(d, 0) + unit - 1) / unit)
}
