package blobschema

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// Crawl is the record of a crawl. One conditional create in the table begins the crawl. The record is
// frozen, except SeedBatches, Published and the Settings that may change.
type Crawl struct {
	Version    int       `json:"version"`
	ID         string    `json:"id"`
	Created    time.Time `json:"created"`
	HashKey    []byte    `json:"hash_key"` // 16 bytes
	Slots      int       `json:"slots"`
	Partitions int       `json:"partitions"` // of epoch 1
	Settings   Settings  `json:"settings"`
	// SeedBatches names the objects of all seeds in order. The batch at index i is
	// mail number i+1 from partition.Intake to every partition.
	SeedBatches []string `json:"seed_batches"`
	// Published counts the batches whose mail was sent. A batch may be sent again.
	Published int `json:"published"`
}

// Hash returns the hash that the crawl was created with.
func (c *Crawl) Hash() (partition.Hash, error) {
	if len(c.HashKey) != 16 {
		return partition.Hash{}, fmt.Errorf("crawl %s: the hash key has %d bytes, not 16", c.ID, len(c.HashKey))
	}
	return partition.NewHash([16]byte(c.HashKey), c.Slots)
}

// Scope selects the links that a crawl follows.
type Scope string

// The scopes.
const (
	ScopeHost   Scope = "host"   // the hosts of the seeds, and the hosts that seeds redirect to
	ScopeDomain Scope = "domain" // their registrable domains
	ScopeAny    Scope = "any"
)

// PartitionBy selects the politeness key of a URL, see [PartitionBy.Key].
type PartitionBy string

// The kinds of politeness key.
const (
	ByHost   PartitionBy = "host"   // the authority of a URL
	ByDomain PartitionBy = "domain" // its registrable domain
	ByIP     PartitionBy = "ip"     // the address of its name when the crawl first resolved it
)

// Key returns the politeness key of a host, given as the authority of a canonical URL: URLs
// with one key share a slot and a pace. In a crawl partitioned by IP, the key of a name is
// the name itself. Its slot resolves the name, pins the address, and forwards the URLs to the
// slot of [AddressKey]. placed is true if the host is an address, so that nothing is forwarded.
func (by PartitionBy) Key(host string) (key string, placed bool) {
	h := weburl.Host(host)
	switch by {
	case ByDomain:
		return h.RegistrableDomain(), false
	case ByIP:
		if addr, err := netip.ParseAddr(h.Name()); err == nil && h.IsIP() {
			return AddressKey(addr), true
		}
	}
	return host, false
}

// AddressKey returns the politeness key of all names that are pinned to an address.
func AddressKey(a netip.Addr) string { return "[" + a.Unmap().String() + "]" }
