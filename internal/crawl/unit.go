package crawl

import (
	"net/netip"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// Unit is the unit of pacing that URLs of a host belong to, as far as the host tells:
// what has one slot and one pace. Partitioned by IP, a name's own slot is where its
// address is found and pinned; its URLs go on from there to the slot of the address,
// placed says that this is it already.
func Unit(by blobschema.PartitionBy, h weburl.Host) (unit string, placed bool) {
	switch by {
	case blobschema.ByDomain:
		return h.RegistrableDomain(), false
	case blobschema.ByIP:
		if addr, err := netip.ParseAddr(h.Name()); err == nil && h.IsIP() {
			return AddressUnit(addr), true
		}
	}
	return string(h), false
}

// AddressUnit is the unit of all names that share an address.
func AddressUnit(a netip.Addr) string { return "[" + a.Unmap().String() + "]" }
