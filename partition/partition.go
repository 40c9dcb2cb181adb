// Package partition divides a crawl's work in two levels. A politeness key, usually a host, hashes to one
// of M slots, which never changes. A map assigns each slot to a partition, which may change.
//
// The path of a URL is politeness key → slot → partition. The first arrow is [Hash.Slot], which is
// frozen when a crawl is created (invariant I2). The second is [Map.Owner], which
// changes only with a new epoch (I3). Adding or removing a partition thus moves
// the fewest possible slots, and no key changes its slot. The scheme is the two-level
// mapping of WebGather 2.0 (Yan, Wang, Li, Guo).
//
// The package is pure: it keeps no state, reads no clock, and does no I/O.
package partition

import (
	"encoding/binary"
	"fmt"

	"github.com/dchest/siphash"
)

// Slot is the first level: a bucket of politeness keys, 0 to M-1.
type Slot uint32

// ID is the number of a partition: the slots on which one step works.
type ID uint32

// Intake is the sender of mail with seeds. It owns no slots and has no step.
const Intake ID = 1<<32 - 1

// Requests is the sender of mail with URLs from operators' requests.
const Requests ID = 1<<32 - 2

// All returns the partitions of a crawl with n of them.
func All(n int) []ID {
	out := make([]ID, n)
	for p := range out {
		out[p] = ID(p)
	}
	return out
}

// Epoch is the version of a [Map]. It only grows.
type Epoch uint64

// Bounds on the division of a crawl.
const (
	DefaultSlots  = 1 << 14 // 16 slots a partition at 1,000 partitions: shares differ by at most 6%
	MaxSlots      = 1 << 16
	MaxPartitions = 1 << 12
)

// Hash maps politeness keys to slots and URLs to fingerprints, by SipHash-2-4 with
// the crawl's own hash key, so that no site can choose names that collide with
// those of another. A Hash is small, immutable, and safe for concurrent use.
type Hash struct {
	k0, k1 uint64
	slots  uint32
}

// NewHash returns the hash of a crawl with the given hash key and number of slots.
func NewHash(key [16]byte, slots int) (Hash, error) {
	if slots < 1 || slots > MaxSlots {
		return Hash{}, fmt.Errorf("number of slots %d is not between 1 and %d", slots, MaxSlots)
	}
	k0, k1 := binary.LittleEndian.Uint64(key[:8]), binary.LittleEndian.Uint64(key[8:])
	return Hash{k0: k0, k1: k1, slots: uint32(slots)}, nil
}

// Slots returns M, the number of slots.
func (h Hash) Slots() int { return int(h.slots) }

// Slot returns the slot of a politeness key. It scales the high half of the
// hash to M, so that every slot gets an equal share of the hash values.
func (h Hash) Slot(key string) Slot {
	v := h.sum(key)
	return Slot((v >> 32) * uint64(h.slots) >> 32)
}

// Fingerprint returns the 64-bit identity of a canonical URL within a crawl.
func (h Hash) Fingerprint(url string) uint64 {
	return h.sum(url)
}

// sum copies s to the stack; otherwise the compiler would copy a long string to the heap.
func (h Hash) sum(s string) uint64 {
	var buf [256]byte
	return siphash.Hash(h.k0, h.k1, append(buf[:0], s...))
}
