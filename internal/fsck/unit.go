package fsck

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// unit returns the unit that a host tells: what has one slot and one pace. Partitioned
// by IP, that of a name is itself, where its address is looked up and pinned: the URLs
// of the name go on from there to the unit of the address, which only those records tell
// that say it. literal says that the host is an address.
func (c *checker) unit(h weburl.Host) (unit string, literal bool) {
	switch c.crawl.Settings.PartitionBy {
	case blobschema.ByDomain:
		return h.RegistrableDomain(), false
	case blobschema.ByIP:
		if a, err := netip.ParseAddr(h.Name()); err == nil {
			return addressUnit(a), true
		}
	}
	return string(h), false
}

func (c *checker) byIP() bool { return c.crawl.Settings.PartitionBy == blobschema.ByIP }

// addressUnit is the unit of all names with an address.
func addressUnit(a netip.Addr) string { return "[" + a.Unmap().String() + "]" }

// parseAddressUnit undoes addressUnit; ok is false for what is none.
func parseAddressUnit(unit string) (a netip.Addr, ok bool) {
	inner, bracketed := strings.CutPrefix(unit, "[")
	a, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
	return a, bracketed && err == nil && addressUnit(a) == unit
}

// placeOf returns the unit of a URL that travels or waits, and reports an address that
// is none, or is another than the name has elsewhere.
func (c *checker) placeOf(u weburl.URL, q *blobschema.Queued, where string) (unit string) {
	unit, literal := c.unit(u.Host())
	if q.Flags&blobschema.FlagPlaced == 0 {
		return unit
	}
	a, ok := parseAddressUnit(q.Host)
	if !c.byIP() || !ok || literal && q.Host != unit {
		c.violate("I2", where, "%s is placed at %q, which is no address of it", u, q.Host)
		return unit
	}
	if !literal {
		c.pin(u.Host(), a, where)
	}
	return q.Host
}

// pin takes note of the address of a name, which it keeps for good.
func (c *checker) pin(h weburl.Host, a netip.Addr, where string) {
	key := c.hash.Fingerprint(string(h))
	if old, ok := c.pins[key]; !ok {
		c.pins[key] = a
	} else if old != a {
		c.violate("I2", where, "%s has the address %s, and elsewhere %s", h, a, old)
	}
}

// checkUnitName says what is wrong with the name under which the state of a unit, or of
// a site within it, is stored; unit is what decides the slot.
func (c *checker) checkUnitName(name string) (unit string, err error) {
	unit, site, further := strings.Cut(name, " ")
	if err := c.checkUnit(unit); err != nil {
		return unit, err
	}
	if !further {
		return unit, nil
	}
	h, err := weburl.ParseHost(site)
	if err != nil || string(h) != site {
		return unit, fmt.Errorf("its site %q is not canonical", site)
	}
	_, placed := parseAddressUnit(unit)
	if of, literal := c.unit(h); of != unit && (!c.byIP() || literal || !placed) || site == unit {
		return unit, fmt.Errorf("its site %q belongs to the unit %q", site, of)
	}
	return unit, nil
}

func (c *checker) checkUnit(unit string) error {
	if c.byIP() {
		if _, ok := parseAddressUnit(unit); ok {
			return nil
		}
	}
	text := unit
	if c.crawl.Settings.PartitionBy == blobschema.ByDomain && strings.Contains(unit, ":") {
		text = "[" + unit + "]" // the domain of an address is the address alone
	}
	h, err := weburl.ParseHost(text)
	if err != nil || string(h) != text {
		return errors.New("it is not canonical")
	}
	if of, _ := c.unit(h); of != unit {
		return fmt.Errorf("it belongs to the unit %q", of)
	}
	return nil
}
