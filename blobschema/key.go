package blobschema

import (
	"fmt"
	"net/netip"

	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// Hash returns the hash that the crawl was created with.
func (c *Crawl) Hash() (partition.Hash, error) {
	if len(c.HashKey) != 16 {
		return partition.Hash{}, fmt.Errorf("crawl %s: the hash key has %d bytes, not 16", c.ID, len(c.HashKey))
	}
	return partition.NewHash([16]byte(c.HashKey), c.Slots)
}

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
