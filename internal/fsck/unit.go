package fsck

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// unit returns the politeness key of a host. In a crawl by IP the key of a
// name is at first the name itself: there its address is resolved and pinned. From there the
// URLs of the name are forwarded to the politeness key of the address, which only their records name.
// literal says that the host is an address.
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

// unitOf returns the politeness key of a host.
func (c *checker) unitOf(host string) string {
	unit, _ := c.unit(weburl.Host(host))
	return unit
}

// addressUnit is the politeness key of all names with an address.
func addressUnit(a netip.Addr) string { return "[" + a.Unmap().String() + "]" }

// parseAddressUnit undoes addressUnit; ok is false for the name of another politeness key.
func parseAddressUnit(unit string) (a netip.Addr, ok bool) {
	inner, bracketed := strings.CutPrefix(unit, "[")
	a, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
	return a, bracketed && err == nil && addressUnit(a) == unit
}

// parse parses a stored URL.
func parse(text string) (a address) {
	a.text = text
	if a.url, a.err = weburl.Parse(text); a.err != nil {
		a.err = fmt.Errorf("is not a URL: %w", a.err)
	} else if s := a.url.String(); s != text {
		a.err = fmt.Errorf("is not canonical: it would be %q", s)
	}
	return a
}

// address parses a stored URL, and places it by its host.
func (c *checker) address(text string) address {
	a := parse(text)
	a.fp = c.hash.Fingerprint(text)
	if a.err == nil {
		a.unit, a.literal = c.unit(a.url.Host())
		a.slot = c.hash.Slot(a.unit)
	}
	return a
}

// place parses a URL that is pending or in mail, and that may have been placed by an address.
func (c *checker) place(q *blobschema.Queued) address {
	a := c.address(q.URL)
	a.flags = q.Flags
	if a.err != nil || q.Flags&blobschema.FlagPlaced == 0 {
		return a
	}
	at, ok := parseAddressUnit(q.Host)
	if !c.byIP() || !ok || a.literal && q.Host != a.unit {
		a.stray = fmt.Sprintf("%q", q.Host)
		return a
	}
	if a.unit, a.slot = q.Host, c.hash.Slot(q.Host); !a.literal {
		a.at = at
	}
	return a
}

func (c *checker) places(list []blobschema.Queued) []address {
	out := make([]address, len(list))
	for i := range list {
		out[i] = c.place(&list[i])
	}
	return out
}

// checkUnitName returns the fault of the name under which the state of a politeness key, or of a
// site within it, is stored.
func (c *checker) checkUnitName(name string) error {
	unit, site, further := strings.Cut(name, " ")
	if err := c.checkUnit(unit); err != nil || !further {
		return err
	}
	h, err := weburl.ParseHost(site)
	if err != nil || string(h) != site {
		return fmt.Errorf("its site %q is not canonical", site)
	}
	_, placed := parseAddressUnit(unit)
	if of, literal := c.unit(h); of != unit && (!c.byIP() || literal || !placed) || site == unit {
		return fmt.Errorf("its site %q belongs to the unit %q", site, of)
	}
	return nil
}

func (c *checker) checkUnit(unit string) error {
	if _, ok := parseAddressUnit(unit); ok && c.byIP() {
		return nil
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
