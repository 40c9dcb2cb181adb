package fsck

import (
	"errors"
	"fmt"
	"maps"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/partition"
)

// openRequests reads the record of requests twice, before the heads are and after. Of
// what is numbered at first, all that the heads have not applied is in it; all that
// they have applied is numbered in the second. Mail that was numbered between is
// perhaps in neither, for a later head may have applied it already.
func (c *checker) openRequests(heads func() error) error {
	key := naming.RequestsKey(c.id)
	before, _, err := record[blobschema.Requests](c, key)
	if err != nil {
		return err
	}
	if err := heads(); err != nil {
		return err
	}
	after, _, err := record[blobschema.Requests](c, key)
	if err != nil {
		return err
	}
	type number struct {
		to partition.ID
		n  uint64
	}
	in := map[number]blobschema.RequestMail{}
	for _, m := range after.Outbox {
		in[number{m.To, m.Number}] = m
	}
	for _, m := range before.Outbox {
		if same, ok := in[number{m.To, m.Number}]; !ok {
			after.Outbox = append(after.Outbox, m)
		} else if same != m {
			c.violate("I6", key, "request %d to partition %d is %s, and was %s", m.Number, m.To, same.Object, m.Object)
		}
	}
	for to, n := range before.Sent {
		if after.Sent[to] < n {
			c.violate("I5", key, "%d requests to partition %d were numbered, and are %d", n, to, after.Sent[to])
		}
	}
	c.requests, c.numbered = after, before.Sent
	return nil
}

// readRequests reads the mail that was made of requests from outside and is not known
// to be applied. Each mail that is numbered is applied, or kept to be sent again.
func (c *checker) readRequests() error {
	key := naming.RequestsKey(c.id)
	waiting := map[partition.ID]map[uint64]bool{}
	for _, m := range c.requests.Outbox {
		c.name(m.Object, key)
		late := m.Number > c.numbered[m.To]
		if late && (int(m.To) >= len(c.parts) || m.Epoch > c.atlas.record.Epoch) {
			continue // by a map that is newer than the one to check
		}
		if int(m.To) >= len(c.parts) || m.Number < 1 || m.Number > c.requests.Sent[m.To] {
			c.violate("I5", key, "request %d to partition %d, to which %d are numbered", m.Number, m.To, c.requests.Sent[m.To])
			continue
		}
		if waiting[m.To] == nil {
			waiting[m.To] = map[uint64]bool{}
		}
		if waiting[m.To][m.Number] {
			c.violate("I5", key, "request %d to partition %d is there twice", m.Number, m.To)
		}
		waiting[m.To][m.Number] = true
		if err := c.readRequest(m); err != nil {
			return err
		}
	}
	for to := range partition.ID(len(c.parts)) {
		c.report.Requests += int64(c.requests.Sent[to])
		c.checkWaiting(c.parts[to], waiting[to])
	}
	for to := range maps.Keys(c.requests.Sent) {
		if int(to) >= len(c.parts) && c.numbered[to] > 0 {
			c.violate("I5", key, "requests to partition %d, of %d", to, len(c.parts))
		}
	}
	c.onPurpose = c.onPurpose || c.report.Requests > 0 || c.crawl.Settings.RecrawlPerHour > 0
	return nil
}

// readRequest reads the URLs of one mail.
func (c *checker) readRequest(m blobschema.RequestMail) error {
	data, err := c.object(m.Object, naming.RequestsKey(c.id))
	if data == nil {
		return err
	}
	b, err := blobschema.DecodeSeeds(data)
	if err != nil {
		c.violate("I6", m.Object, "%v", err)
		return nil
	}
	if b.Number != m.Request || naming.Request(c.id, data) != m.Object {
		c.violate("I6", m.Object, "it holds request %016x and is named as %016x", b.Number, m.Request)
	}
	c.given = append(c.given, m.Object)
	if m.Epoch > c.atlas.record.Epoch {
		c.violate("I3", naming.RequestsKey(c.id), "request %d to partition %d was dealt by a map of epoch %d, of %d", m.Number, m.To, m.Epoch, c.atlas.record.Epoch)
	}
	for i := range b.URLs {
		q := &b.URLs[i]
		if slot, ok := c.slotOf(q, m.Object); ok {
			c.take(seed{fp: c.hash.Fingerprint(q.URL), slot: slot, batch: uint32(len(c.given) - 1), to: m.To, epoch: max(1, m.Epoch)}, partition.Requests, m.Number)
		}
	}
	return nil
}

// checkWaiting checks that no request is forgotten before it is applied.
func (c *checker) checkWaiting(p *part, waiting map[uint64]bool) {
	numbered := c.numbered[p.id]
	var m blobschema.Marks
	switch {
	case p.man != nil:
		m = p.man.Applied[partition.Requests]
	case p.broken:
		return
	}
	if numbered <= m.Low {
		return
	}
	there := uint64(0)
	for _, n := range m.Above {
		if n <= numbered && !waiting[n] {
			there++
		}
	}
	for n := range waiting {
		if n > m.Low && n <= numbered {
			there++
		}
	}
	if want := numbered - m.Low; there < want {
		c.violate("I7", naming.RequestsKey(c.id), "of %d requests to partition %d above number %d, %d are neither applied nor kept", want, p.id, m.Low, want-there)
	}
}

// openWish reads whether some domain has reached its cap, and the ranks of hosts. Such domains only
// become more; former ranks stay until newer ones are wanted.
func (c *checker) openWish() error {
	w, _, err := record[blobschema.Wish](c, naming.WishKey(c.id))
	if err != nil && !errors.Is(err, errUnusable) {
		return fmt.Errorf("wish: %w", err)
	}
	c.domainsCapped, c.hostRanks = len(w.Capped) > 0, w.HostRanks
	return nil
}
