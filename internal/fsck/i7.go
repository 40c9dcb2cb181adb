package fsck

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
)

// settled is a page record of a URL.
type settled struct {
	fp     uint64
	gen    uint32
	origin blobschema.Origin // its commit
	state  blobschema.State
	// scope says that it is about a URL out of scope, or over a cap. It may settle a URL, but
	// mostly is of none in the state, and there is one as often as that is asked for.
	scope bool
}

// checkSettled compares page records with the state: what is settled was asked for,
// and what was asked for is settled, once per generation.
func (c *checker) checkSettled(p *part) {
	slices.SortFunc(p.records, func(a, b settled) int {
		return cmp.Or(cmp.Compare(a.fp, b.fp), cmp.Compare(a.gen, b.gen), compareBool(a.scope, b.scope), a.origin.Compare(b.origin))
	})
	rest := p.records
	c.checked["I7"] += int64(len(p.state))
	c.checked["I8"] += int64(len(rest))
	for i := range rest {
		if i > 0 && rest[i-1].fp == rest[i].fp && rest[i-1].gen == rest[i].gen && !rest[i-1].scope && !rest[i].scope {
			c.violate("I8", c.commitOf(rest[i]), "%s has another page record of generation %d, in commit %d of partition %d",
				c.urlOf(rest[i]), rest[i].gen, rest[i-1].origin.Seq, rest[i-1].origin.Partition)
		}
	}
	unknown := func(s settled) {
		if s.scope {
			return
		}
		c.violate("I7", c.commitOf(s), "%s has a page record, and no run knows it", c.urlOf(s))
	}
	for state := p.state; len(state) > 0; {
		fp, n := state[0].fp, 1
		for n < len(state) && state[n].fp == fp {
			n++
		}
		for len(rest) > 0 && rest[0].fp < fp {
			unknown(rest[0])
			rest = rest[1:]
		}
		m := 0
		for m < len(rest) && rest[m].fp == fp {
			m++
		}
		c.compareURL(p, state[:n], rest[:m])
		state, rest = state[n:], rest[m:]
	}
	for _, s := range rest {
		unknown(s)
	}
}

// compareURL compares all that the state says of a URL with its page records. In a
// crawl by IP a partition may own both the slot that has it and the one that sent
// it on.
func (c *checker) compareURL(p *part, entries []entry, of []settled) {
	var home, sent *entry
	for i := range entries {
		e := &entries[i]
		switch {
		case e.state == blobschema.Forwarded:
			sent = e
			if o := e.origin; o != (blobschema.Origin{}) {
				c.violate("I7", c.where(p), "the origin of %016x is commit %d of partition %d, and it was forwarded", e.fp, o.Seq, o.Partition)
			}
		case home != nil:
			c.violate("I8", c.where(p), "the URL %016x is in slot %d and in slot %d", e.fp, home.slot, e.slot)
		default:
			home = e
		}
	}
	if home != nil {
		c.compare(p, *home, of)
		return
	}
	for _, s := range of { // of an earlier generation, when its name had no address yet
		if s.gen >= sent.gen && !s.scope {
			c.violate("I7", c.commitOf(s), "%s has a page record of generation %d, and was forwarded in generation %d", c.urlOf(s), s.gen, sent.gen)
		}
	}
}

// compare compares what the state says of a URL with its page records, which are
// sorted by generation. Some generations may have none: what a crash undid while the
// URL was asked for again is not repeated.
func (c *checker) compare(p *part, e entry, of []settled) {
	settles, named := false, e.origin == (blobschema.Origin{}) && e.state == blobschema.Pending
	for _, s := range of {
		switch {
		case s.scope && s.gen == e.gen && s.state == e.state:
			settles = true
			named = named || s.origin == e.origin
		case s.scope && s.gen == e.gen:
		case s.gen > e.gen:
			c.violate("I7", c.commitOf(s), "%s has a page record of generation %d, and the state is of %d", c.urlOf(s), s.gen, e.gen)
		case s.gen < e.gen:
			named = named || e.state == blobschema.Pending && s.origin == e.origin
		case e.state == blobschema.Pending:
			c.violate("I8", c.commitOf(s), "%s has a page record and is pending still: it will be asked for again", c.urlOf(s))
		default:
			settles = true
			named = named || s.origin == e.origin
			if s.state != e.state {
				c.violate("I7", c.commitOf(s), "%s is %s by its page record, and %s by the state", c.urlOf(s), s.state, e.state)
			}
		}
	}
	switch {
	case e.state != blobschema.Pending && !settles:
		c.violate("I7", c.where(p), "the URL %016x of slot %d is %s, generation %d, and has no page record", e.fp, e.slot, e.state, e.gen)
	case named:
	case e.state == blobschema.Pending: // it may name none, if that is not known
		c.violate("I7", c.where(p), "the URL %016x of slot %d is pending in generation %d, and its former record is in commit %d of partition %d, where there is none",
			e.fp, e.slot, e.gen, e.origin.Seq, e.origin.Partition)
	default:
		c.violate("I7", c.where(p), "the origin of %s, commit %d of partition %d, is not the commit with its record of generation %d",
			c.urlOf(of[0]), e.origin.Seq, e.origin.Partition, e.gen)
	}
}

func (c *checker) commitOf(s settled) string {
	return commitAt(c.parts[s.origin.Partition], uint64(s.origin.Seq))
}

func commitAt(p *part, seq uint64) string {
	return cmp.Or(blobschema.CommitOf(p.man, seq), p.head.Commit)
}

// urlOf finds the URL of a page record again, for a message.
func (c *checker) urlOf(s settled) string {
	url := fmt.Sprintf("%016x", s.fp)
	if c.kept["I7"]+c.kept["I8"] > 2*c.opt.MaxViolations {
		return url // it would not be kept
	}
	c.findPage(c.parts[s.origin.Partition], uint64(s.origin.Seq), func(pg *blobschema.Page) bool {
		if c.hash.Fingerprint(pg.URL) != s.fp {
			return false
		}
		url = pg.URL
		return true
	})
	return url
}

// findPage reads the page records of a commit again until one is found.
func (c *checker) findPage(p *part, seq uint64, found func(*blobschema.Page) bool) {
	data, err := c.store.Object(c.ctx, commitAt(p, seq))
	if err != nil {
		return
	}
	r, err := blobschema.OpenCommit(data)
	if err != nil {
		return
	}
	pages, _ := r.Pages()
	for i := range pages {
		if found(&pages[i]) {
			return
		}
	}
}

// checkForwarded checks, in a crawl by IP, that what a name's slot sent on is known to
// the slot of an address, or on its way, and that no URL is known at two addresses.
func (c *checker) checkForwarded() {
	if !c.byIP() {
		return
	}
	var all []uint64
	for _, p := range c.parts {
		if p.broken {
			return // counts and comparisons would only repeat it
		}
		all = append(all, p.known...)
	}
	slices.Sort(all)
	for i := 1; i < len(all); i++ {
		if all[i] == all[i-1] {
			c.violate("I8", c.id, "the URL %016x is known to the slots of two addresses", all[i])
		}
	}
	for _, p := range c.parts {
		for _, fp := range p.forwarded {
			known := has(all, fp) || slices.ContainsFunc(c.parts, func(q *part) bool { return has(q.flights, fp) })
			// Only its own slot could tell which other slot a cap may have kept it from.
			if !known && !slices.ContainsFunc(c.parts, func(q *part) bool { return q.man != nil && q.man.Totals.Capped > 0 }) {
				c.violate("I7", c.where(p), "the URL %016x was forwarded, and no partition knows it at an address", fp)
			}
		}
	}
}

// checkTotals counts again what the manifest counts.
func (c *checker) checkTotals(h *history) {
	where, want, got := h.head.Commit, &h.man.Totals, &h.totals
	for _, n := range []struct {
		what      string
		want, got int64
	}{
		{"answers of robots.txt", want.Robots, got.Robots},
		{"held links", want.Held, got.Held},
		{"revisits", want.Revisits, got.Revisits},
	} {
		if n.want != n.got {
			c.violate("I7", where, "its total of %s is %d, and there are %d", n.what, n.want, n.got)
		}
	}
	if c.opt.WARCs == allWARCs && !h.unread && want.Stored != h.was.Stored+h.read {
		c.violate("I7", where, "its total of bytes in WARC objects is %d, and there are %d", want.Stored, h.was.Stored+h.read)
	}
	if !maps.Equal(want.Outcomes, got.Outcomes) {
		c.violate("I7", where, "its totals of outcomes are %v, and there are %v", want.Outcomes, got.Outcomes)
	}
	c.checkSlots(h)
}

// checkForwardedTotals counts what was forwarded again: over all partitions, for what one has
// forwarded may be in a slot of another by now.
func (c *checker) checkForwardedTotals(all []*history) {
	var total, urls, generations int64
	for _, h := range all {
		if h.man != nil {
			total += h.man.Totals.Forwarded
		}
		urls += int64(len(h.forwarded))
		generations += h.sentOn
	}
	if total < urls || total > generations {
		c.violate("I7", c.where(all[0].part), "its total of forwarded URLs is %d, and there are %d, of %d generations", total, urls, generations)
	}
}

// checkPages checks the totals of pages, which limits count. What was asked for on
// purpose is not in them, and no record says which pages these are: so where there
// may be any, the total is only an upper bound.
func (c *checker) checkPages() {
	whole := !slices.ContainsFunc(c.parts, func(p *part) bool { return p.broken })
	for _, p := range c.parts {
		if p.man == nil || p.broken {
			continue
		}
		n := p.man.Totals.Pages
		if exact := whole && !c.onPurpose && !p.again; n > p.pages || exact && n < p.pages {
			c.violate("I7", p.head.Commit, "its total of pages is %d, and there are %d", n, p.pages)
		}
	}
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
