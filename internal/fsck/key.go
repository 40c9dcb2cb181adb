package fsck

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// key returns the politeness key of a host. In a crawl by IP the key of a
// name is at first the name itself: there its address is resolved and pinned. From there the
// URLs of the name are forwarded to the politeness key of the address, which only their records name.
// literal says that the host is an address.
func (c *checker) key(h weburl.Host) (key string, literal bool) {
	switch c.crawl.Settings.PartitionBy {
	case blobschema.ByDomain:
		return h.RegistrableDomain(), false
	case blobschema.ByIP:
		if a, err := netip.ParseAddr(h.Name()); err == nil {
			return addressKey(a), true
		}
	}
	return string(h), false
}

func (c *checker) byIP() bool { return c.crawl.Settings.PartitionBy == blobschema.ByIP }

// keyOf returns the politeness key of a host.
func (c *checker) keyOf(host string) string {
	key, _ := c.key(weburl.Host(host))
	return key
}

// addressKey is the politeness key of all names with an address.
func addressKey(a netip.Addr) string { return "[" + a.Unmap().String() + "]" }

// parseAddressKey undoes addressKey; ok is false for the name of another politeness key.
func parseAddressKey(key string) (a netip.Addr, ok bool) {
	inner, bracketed := strings.CutPrefix(key, "[")
	a, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
	return a, bracketed && err == nil && addressKey(a) == key
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
		a.key, a.literal = c.key(a.url.Host())
		a.slot = c.hash.Slot(a.key)
	}
	return a
}

// locate parses a URL that is pending or in mail, and that may have been placed by an address.
func (c *checker) locate(q *blobschema.Queued) address {
	a := c.address(q.URL)
	a.flags = q.Flags
	if a.err != nil || q.Flags&blobschema.FlagPlaced == 0 {
		return a
	}
	at, ok := parseAddressKey(q.Key)
	if !c.byIP() || !ok || a.literal && q.Key != a.key {
		a.stray = fmt.Sprintf("%q", q.Key)
		return a
	}
	if a.key, a.slot = q.Key, c.hash.Slot(q.Key); !a.literal {
		a.at = at
	}
	return a
}

func (c *checker) locateAll(list []blobschema.Queued) []address {
	out := make([]address, len(list))
	for i := range list {
		out[i] = c.locate(&list[i])
	}
	return out
}

// checkKeyName returns the fault of the name under which the state of a politeness key, or of a
// site within it, is stored.
func (c *checker) checkKeyName(name string) error {
	key, site, further := strings.Cut(name, " ")
	if err := c.checkKey(key); err != nil || !further {
		return err
	}
	h, err := weburl.ParseHost(site)
	if err != nil || string(h) != site {
		return fmt.Errorf("its site %q is not canonical", site)
	}
	_, placed := parseAddressKey(key)
	if of, literal := c.key(h); of != key && (!c.byIP() || literal || !placed) || site == key {
		return fmt.Errorf("its site %q belongs to the politeness key %q", site, of)
	}
	return nil
}

func (c *checker) checkKey(key string) error {
	if _, ok := parseAddressKey(key); ok && c.byIP() {
		return nil
	}
	text := key
	if c.crawl.Settings.PartitionBy == blobschema.ByDomain && strings.Contains(key, ":") {
		text = "[" + key + "]" // the domain of an address is the address alone
	}
	h, err := weburl.ParseHost(text)
	if err != nil || string(h) != text {
		return errors.New("it is not canonical")
	}
	if of, _ := c.key(h); of != key {
		return fmt.Errorf("it belongs to the politeness key %q", of)
	}
	return nil
}
