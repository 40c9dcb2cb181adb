package fsck

import (
	"maps"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/partition"
)

// checkMarks checks that no mail is applied that was not sent.
func (c *checker) checkMarks(p *part) {
	where := p.head.Commit
	for _, from := range slices.Sorted(maps.Keys(p.man.Applied)) {
		c.checked["I5"]++
		m := p.man.Applied[from]
		if !slices.IsSorted(m.Above) || len(m.Above) > 0 && m.Above[0] <= m.Low+1 {
			c.violate("I5", where, "its marks of mail from %s are %v", sender(from), m)
		}
		sent := uint64(0)
		switch {
		case from == partition.Intake:
			sent = uint64(len(c.crawl.SeedBatches))
		case from == partition.Requests:
			sent = c.requests.Sent[p.id]
		case int(from) < len(c.parts):
			if man := c.parts[from].man; man != nil {
				sent = man.Sent[p.id]
			} else if c.parts[from].broken {
				continue
			}
		}
		last := max(m.Low, slices.Max(append(m.Above, 0)))
		if last > sent && int(from) < len(c.parts) { // its head may have been read before it sent that
			now, _, err := record[blobschema.Head](c, naming.HeadKey(c.id, from))
			if err == nil && int(p.id) < len(now.Sent) {
				sent = max(sent, now.Sent[p.id])
			}
		}
		if last > sent {
			c.violate("I5", where, "mail %d from %s is applied, of which %d were sent", last, sender(from), sent)
		}
	}
}

// checkOutbox checks the mail of a commit: numbered on from the commit before, and
// readable. What its receiver has not applied is on its way. A partition writes to
// itself what it asks for again, so that a crash does not lose it.
func (c *checker) checkOutbox(h *history, name string, r *blobschema.CommitReader, prev, m *blobschema.Manifest) {
	outbox, err := r.Outbox()
	if err != nil {
		c.unreadable(h, name, err)
		return
	}
	sent := maps.Clone(prev.Sent)
	if sent == nil {
		sent = map[partition.ID]uint64{}
	}
	for _, out := range outbox {
		c.checked["I5"]++
		sent[out.To]++
		mail, ok := c.mail(h.part, name, out)
		if !ok {
			continue
		}
		if out.Number != sent[out.To] && m.Seq == prev.Seq+1 {
			c.violate("I5", name, "mail %d to partition %d follows mail %d", out.Number, out.To, sent[out.To]-1)
		}
		sent[out.To] = out.Number
		if mail.Epoch > m.Epoch {
			c.violate("I3", name, "mail %d to partition %d is of epoch %d, and the commit of epoch %d", out.Number, out.To, mail.Epoch, m.Epoch)
		}
		to := c.parts[out.To]
		for i := range mail.URLs {
			q := &mail.URLs[i]
			c.onPurpose = c.onPurpose || q.Flags&blobschema.FlagAgain != 0
			slot, ok := c.slotOf(q, name)
			if home := c.homeOf(slot); ok && !to.isApplied(h.id, out.Number) {
				home.flights = append(home.flights, c.hash.Fingerprint(q.URL))
			}
		}
	}
	if m.Seq == prev.Seq+1 && !maps.Equal(sent, m.Sent) {
		c.violate("I5", name, "its mail ends with the numbers %v, and its manifest says %v", sent, m.Sent)
	}
	if len(outbox) > 0 && !slices.Contains(m.Unsent, m.Seq) {
		c.violate("I5", name, "it has mail that its manifest does not name as unsent")
	}
}

// mail decodes mail of a commit's outbox, and checks its head.
func (c *checker) mail(p *part, name string, out blobschema.OutMail) (blobschema.Mail, bool) {
	mail, err := blobschema.DecodeMail(out.Body)
	if err != nil {
		c.violate("I6", name, "mail %d to partition %d: %v", out.Number, out.To, err)
		return mail, false
	}
	if mail.Crawl != c.id || mail.From != p.id || mail.To != out.To || mail.Number != out.Number || int(out.To) >= len(c.parts) {
		c.violate("I5", name, "mail %d to partition %d says it is mail %d of crawl %s from %d to %d", out.Number, out.To, mail.Number, mail.Crawl, mail.From, mail.To)
		return mail, false
	}
	return mail, true
}

// slotOf returns the slot of a URL that travels, 0 for one that is not canonical.
func (c *checker) slotOf(q *blobschema.Queued, where string) (slot partition.Slot, ok bool) {
	u, ok := c.canonical(q.URL, where)
	if !ok {
		return 0, false
	}
	return c.hash.Slot(c.placeOf(u, q, where)), true
}

// checkHeld collects the links that are in commits but in no mail yet.
func (c *checker) checkHeld(h *history, name string, r *blobschema.CommitReader, m *blobschema.Manifest) {
	held, err := r.Held()
	if err != nil {
		c.unreadable(h, name, err)
		return
	}
	for _, to := range slices.Sorted(maps.Keys(held)) {
		if int(to) >= len(c.parts) {
			c.violate("I6", name, "it holds links for partition %d", to)
			continue
		}
		first, waiting := h.man.HeldFrom[to]
		for i := range held[to] {
			q := &held[to][i]
			slot, _ := c.slotOf(q, name)
			if waiting && m.Seq >= first {
				h.totals.Held++
				home := c.homeOf(slot)
				home.flights = append(home.flights, c.hash.Fingerprint(q.URL))
			}
		}
	}
	outside, err := r.Outside()
	if err != nil {
		c.unreadable(h, name, err)
		return
	}
	for i := range outside {
		c.canonical(outside[i].URL, name)
	}
}

// seed is a URL that was given from outside, or asked for.
type seed struct {
	fp    uint64
	slot  partition.Slot
	batch uint32 // index in checker.given
	to    partition.ID
	epoch partition.Epoch // of the map by which it was dealt
}

// readSeeds reads the batches of seeds. Those whose mail is not applied are on
// their way.
func (c *checker) readSeeds() error {
	key := naming.CrawlKey(c.id)
	if n := len(c.crawl.SeedBatches); c.crawl.Published > n {
		c.violate("I5", key, "%d batches of seeds are published, of %d", c.crawl.Published, n)
	}
	c.given = slices.Clone(c.crawl.SeedBatches)
	for i, name := range c.given {
		c.name(name, key)
		data, err := c.object(name, key)
		if err != nil {
			return err
		}
		if data == nil {
			continue
		}
		b, err := blobschema.DecodeSeeds(data)
		if err != nil {
			c.violate("I6", name, "%v", err)
			continue
		}
		if b.Number != uint64(i+1) || naming.Seeds(c.id, data) != name {
			c.violate("I6", name, "it holds batch %d of seeds, and is named as batch %d", b.Number, i+1)
		}
		for j := range b.URLs {
			c.takeSeed(&b.URLs[j], uint32(i), uint64(i+1))
		}
	}
	return nil
}

// takeSeed takes note of a URL of a batch of seeds, which the first map deals.
func (c *checker) takeSeed(q *blobschema.Queued, batch uint32, number uint64) {
	if slot, ok := c.slotOf(q, c.given[batch]); ok {
		c.take(seed{fp: c.hash.Fingerprint(q.URL), slot: slot, batch: batch, to: c.pmap.Owner(slot), epoch: 1}, partition.Intake, number)
	}
}

// take takes note of a URL that a batch of seeds or requests holds: on its way until the
// mail is applied, known or sent on from then on.
func (c *checker) take(s seed, from partition.ID, number uint64) {
	c.seeds = append(c.seeds, s)
	if !c.parts[s.to].isApplied(from, number) {
		home := c.homeOf(s.slot)
		home.flights = append(home.flights, s.fp)
	}
}

// checkSeeds checks that every URL that was given is known or on its way, and was sent to
// who owned its slot.
func (c *checker) checkSeeds() {
	for _, s := range c.seeds {
		if !c.inScope(s.slot) {
			continue
		}
		if owner := c.ownerBy(s.slot, s.epoch); owner != s.to && !c.atlas.unknown {
			c.violate("I3", c.given[s.batch], "a request to partition %d has a URL of slot %d, which is partition %d's by epoch %d", s.to, s.slot, owner, s.epoch)
		}
		c.checked["I3"]++
		c.checked["I7"]++
		home := c.homeOf(s.slot)
		if home.knows(s.fp) {
			continue
		}
		what := "seed"
		if int(s.batch) >= len(c.crawl.SeedBatches) {
			what = "requested URL"
		}
		c.violate("I7", c.given[s.batch], "a %s with fingerprint %016x is not known to partition %d, nor on its way", what, s.fp, home.id)
	}
}

// checkReferences checks that every URL that a partition's commits made known to
// another, or to itself, is known there or on its way. What cannot be read was
// reported when the commits were read first.
func (c *checker) checkReferences(p *part) error {
	if p.man == nil {
		return nil
	}
	missing := 0
	for name := range blobschema.CommitNames(p.man) {
		data, err := c.store.Object(c.ctx, name)
		if ctxErr := c.ctx.Err(); ctxErr != nil {
			return ctxErr
		}
		if err != nil {
			if missing++; missing == maxMissing {
				return nil
			}
			continue
		}
		missing = 0
		if r, err := blobschema.OpenCommit(data); err == nil {
			c.checkLinks(name, r)
			c.checkArrivals(p, name, r)
			c.findOriginals(p, name, r)
		}
	}
	return nil
}

// checkReferencesOf is checkReferences for one commit, without originals.
func (c *checker) checkReferencesOf(p *part, name string) error {
	data, err := c.store.Object(c.ctx, name)
	if err != nil {
		return c.ctx.Err() // reported already
	}
	if r, err := blobschema.OpenCommit(data); err == nil {
		c.checkLinks(name, r)
		c.checkArrivals(p, name, r)
	}
	return nil
}

// checkLinks checks the links followed from a commit's pages.
func (c *checker) checkLinks(name string, r *blobschema.CommitReader) {
	links, err := r.Links()
	if err != nil {
		return // reported already
	}
	for i := range links {
		for _, t := range links[i].Targets {
			if int(t.Slot) >= c.pmap.Slots() {
				c.violate("I2", name, "a link goes to slot %d, of %d", t.Slot, c.pmap.Slots())
				continue
			}
			if !t.Followed || !c.inScope(t.Slot) {
				continue
			}
			c.report.Links++
			c.checked["I7"]++
			if p := c.homeOf(t.Slot); !p.knows(t.Fingerprint) && !c.leaveOut(p, t.Slot, t.Fingerprint) {
				c.violate("I7", name, "a link from %016x to %016x (%q) was followed, and partition %d does not know it", links[i].Source, t.Fingerprint, t.Anchor, p.id)
			}
		}
	}
}

// checkArrivals checks what a commit mailed, or holds, for others.
func (c *checker) checkArrivals(p *part, name string, r *blobschema.CommitReader) {
	lost := func(to partition.ID, q *blobschema.Queued, by partition.Epoch, how string) {
		slot, ok := c.slotOf(q, name)
		if !ok || !c.inScope(slot) {
			return
		}
		c.checked["I3"]++
		c.checked["I7"]++
		if !c.mayMail(p.id, to, slot, by) {
			c.violate("I3", name, "%s was %s partition %d, and is partition %d's", q.URL, how, to, c.ownerBy(slot, by))
		}
		home, fp := c.homeOf(slot), c.hash.Fingerprint(q.URL)
		if home.knows(fp) || q.Flags&(blobschema.FlagSeed|blobschema.FlagAgain) == 0 && c.leaveOut(home, slot, fp) {
			return
		}
		c.violate("I7", name, "%s was %s partition %d, and partition %d does not know it", q.URL, how, to, home.id)
	}
	outbox, err := r.Outbox()
	if err != nil {
		return
	}
	for _, out := range outbox {
		if mail, err := blobschema.DecodeMail(out.Body); err == nil {
			for i := range mail.URLs {
				lost(out.To, &mail.URLs[i], mail.Epoch, "mailed to")
			}
		}
	}
	held, err := r.Held()
	if err != nil {
		return
	}
	for _, to := range slices.Sorted(maps.Keys(held)) {
		for i := range held[to] {
			lost(to, &held[to][i], c.atlas.record.Epoch, "held for")
		}
	}
}
