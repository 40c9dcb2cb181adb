package fsck

import (
	"net/netip"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// i2 checks that a politeness key never changes its slot: the slot stored with a key or URL is that
// of its host, registrable domain or address, and a name has one address.
func i2(v *judge, fact any) {
	switch f := fact.(type) {
	case *urls:
		for i := range f.list {
			if a := &f.list[i]; a.stray != "" {
				v.violate(f.where, "%s is placed at %s, which is no address of it", a.text, a.stray)
			} else {
				v.pin(a.url, a.at, f.where)
			}
		}
	case *block:
		for i := range f.urls {
			v.inPlace(&f.Queued[i], &f.urls[i], f.object)
		}
	case *page:
		v.fetchedInPlace(f)
	case *commit:
		for i := range f.links {
			for _, t := range f.links[i].Targets {
				if int(t.Slot) >= v.pmap.Slots() {
					v.violate(f.name, "a link goes to slot %d, of %d", t.Slot, v.pmap.Slots())
				}
			}
		}
	case *located:
		slot := v.hash.Slot(f.key)
		v.must(slot == f.slot, f.object, "%s %s: slot %d, and belongs to %d", f.what, f.name, f.slot, slot)
	}
}

// pin keeps the address of a name, which never changes.
func (v *judge) pin(of weburl.URL, at netip.Addr, where string) {
	if !at.IsValid() {
		return
	}
	name := v.hash.Fingerprint(string(of.Host()))
	if old, ok := v.pins[name]; !ok {
		v.pins[name] = at
	} else if old != at {
		v.violate(where, "%s has the address %s, and elsewhere %s", of.Host(), at, old)
	}
}

// inPlace checks the politeness key and the slot that are stored with a pending URL.
func (v *judge) inPlace(q *blobschema.Queued, a *address, where string) {
	if v.Checked++; a.err == nil && (a.key != q.Key || a.slot != q.Slot) {
		v.violate(where, "pending %s has host %s and slot %d, and belongs to %s, slot %d", q.URL, q.Key, q.Slot, a.key, a.slot)
	}
}

// fetchedInPlace checks, in a crawl by IP, that a page was requested at an address of its slot.
func (v *judge) fetchedInPlace(pg *page) {
	if pg.home == nil {
		return
	}
	v.Checked++
	if !v.byIP() || pg.literal || pg.outside() || !pg.contacted.IsValid() {
		return
	}
	v.pin(pg.url, pg.contacted, pg.in.name)
	if of := v.hash.Slot(blobschema.AddressKey(pg.contacted)); of != pg.slot && !pg.in.broken {
		v.violate(pg.in.name, "%s was requested at %s, of slot %d, and belongs to slot %d", pg.URL, pg.contacted, of, pg.slot)
	}
}
