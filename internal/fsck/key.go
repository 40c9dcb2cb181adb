package fsck

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

func (c *checker) byIP() bool { return c.crawl.Settings.PartitionBy == blobschema.ByIP }

// keyOf returns the politeness key of a host; literal reports that the host is an address in a crawl by
// IP. There the key of a name is the name itself, until its address is pinned. Then the URLs of the
// name are forwarded to the key of the address, which only their records name.
func (c *checker) keyOf(host string) (key string, literal bool) {
	return c.crawl.Settings.PartitionBy.Key(host)
}

// addressOf returns the address of a politeness key; ok is false if it is the key of a name.
func addressOf(key string) (a netip.Addr, ok bool) {
	a, err := netip.ParseAddr(strings.Trim(key, "[]"))
	return a, err == nil && blobschema.AddressKey(a) == key
}

// address parses a stored URL, and places it by its host.
func (c *checker) address(text string) (a address) {
	a.text, a.fp = text, c.hash.Fingerprint(text)
	if a.url, a.err = weburl.Parse(text); a.err != nil {
		a.err = fmt.Errorf("is not a URL: %w", a.err)
	} else if s := a.url.String(); s != text {
		a.err = fmt.Errorf("is not canonical: it would be %q", s)
	} else {
		a.key, a.literal = c.keyOf(string(a.url.Host()))
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
	at, ok := addressOf(q.Key)
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

// checkKeyName checks the name under which the state of a politeness key, or of a site within it, is stored.
func (c *checker) checkKeyName(name string) error {
	key, site, further := strings.Cut(name, " ")
	if err := c.checkKey(key); err != nil || !further {
		return err
	}
	if h, err := weburl.ParseHost(site); err != nil || string(h) != site {
		return fmt.Errorf("its site %q is not canonical", site)
	}
	_, placed := addressOf(key)
	if of, literal := c.keyOf(site); of != key && (!c.byIP() || literal || !placed) || site == key {
		return fmt.Errorf("its site %q belongs to the politeness key %q", site, of)
	}
	return nil
}

func (c *checker) checkKey(key string) error {
	if _, ok := addressOf(key); ok && c.byIP() {
		return nil
	}
	text := key
	if c.crawl.Settings.PartitionBy == blobschema.ByDomain && strings.Contains(key, ":") {
		text = "[" + key + "]" // the domain of an address is the address alone
	}
	if h, err := weburl.ParseHost(text); err != nil || string(h) != text {
		return errors.New("it is not canonical")
	}
	if of, _ := c.keyOf(text); of != key {
		return fmt.Errorf("it belongs to the politeness key %q", of)
	}
	return nil
}
