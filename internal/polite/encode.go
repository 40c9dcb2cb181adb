package polite

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/wire"
)

// maxEncodedRobots bounds the input of DecodeRobots, in bytes. No file of maxRobotsBytes needs
// more.
const maxEncodedRobots = 2 << 20

// encodingVersion is the first byte of every encoding. Its layout, all numbers unsigned
// varints and all strings led by their length:
//
//	version, kind (a byte each), reason, Crawl-delay in milliseconds + 1 (0: none),
//	number of rules, each: (lines since the one before) * 2 + (1 for Allow), pattern
//	number of sitemaps, each: value
//	the cause of a denial (a byte), if it has one
const encodingVersion = 1

// Encode returns the stored form of a Robots: only the rules for its token. It usually has
// less than 1 KB, and at most maxEncodedRobots.
func (r *Robots) Encode() []byte {
	b := make([]byte, 0, 64+24*len(r.rules))
	b = append(b, encodingVersion, byte(r.kind))
	b = wire.AppendPrefixed(b, r.reason)
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
		b = wire.AppendPrefixed(binary.AppendUvarint(b, head), rule.pattern)
	}
	b = binary.AppendUvarint(b, uint64(len(r.sitemaps)))
	for _, s := range r.sitemaps {
		b = wire.AppendPrefixed(b, s)
	}
	if r.cause != blobschema.OutcomeNone {
		b = append(b, byte(r.cause))
	}
	return b
}

// DecodeRobots decodes the result of Encode, and refuses anything that Encode cannot have
// written. It keeps nothing of b.
func DecodeRobots(b []byte) (*Robots, error) {
	r, err := decodeRobots(b)
	if err != nil {
		return nil, fmt.Errorf("decode robots: %w", err)
	}
	return r, nil
}

func decodeRobots(b []byte) (*Robots, error) {
	if len(b) < 2 || len(b) > maxEncodedRobots {
		return nil, wire.Damaged("%d bytes", len(b))
	}
	if b[0] != encodingVersion {
		return nil, fmt.Errorf("%w: %d", wire.ErrVersion, b[0])
	}
	c := &wire.Cursor{Rest: b[2:]}
	r := &Robots{kind: kind(b[1]), reason: string(c.Prefixed(maxReasonBytes))}
	if r.kind < kindRules || r.kind > kindDeny {
		c.Fail("kind %d", r.kind)
	}
	if delay := c.Uvarint(uint64(MaxCrawlDelay/time.Millisecond) + 1); delay > 0 {
		r.delay, r.hasDelay = time.Duration(delay-1)*time.Millisecond, true
	}
	r.rules = decodeRules(c)
	for n := c.Uvarint(maxSitemaps); n > 0 && c.Err == nil; n-- {
		r.sitemaps = append(r.sitemaps, string(c.Prefixed(maxSitemapBytes)))
	}
	if r.kind == kindDeny && len(c.Rest) == 1 && ofHost(blobschema.Outcome(c.Rest[0])) {
		r.cause, c.Rest = blobschema.Outcome(c.Rest[0]), nil
	}
	if err := c.End(); err != nil {
		return nil, err
	}
	return newRobots(r), nil
}

func decodeRules(c *wire.Cursor) []rule {
	rules := make([]rule, 0, c.Count(2)) // a rule takes two bytes at least
	line := uint64(0)
	for n := cap(rules); n > 0 && c.Err == nil; n-- {
		head := c.Uvarint(2*maxRobotsBytes + 1)
		pattern := string(c.Prefixed(maxEncodedRobots))
		line += head >> 1
		// The index needs the normal form, and no line that is greater than a file can have.
		if head>>1 == 0 || line > maxRobotsBytes || pattern == "" || normalPattern([]byte(pattern)) != pattern {
			c.Fail("rule in line %d", line)
			break
		}
		rules = append(rules, newRule(int(line), verdict(head&1 == 1), pattern))
	}
	return rules
}

// ceilDiv returns the number of units in d, rounded up: a stored pause must not be shorter.
func ceilDiv(d, unit time.Duration) int64 {
	return int64((max(d, 0) + unit - 1) / unit)
}
