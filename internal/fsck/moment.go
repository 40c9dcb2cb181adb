package fsck

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/partition"
)

// atlas is the stored map and the places of slots. The home of a slot is the partition that
// holds it or, during a hand-over, the one that is to take it.
type atlas struct {
	record   blobschema.MapRecord                  // of epoch 1 if no record exists
	home     []partition.ID                        // by slot
	moving   map[partition.Slot]*blobschema.Moving // of the record
	handed   map[partition.Slot]*handed            // hand-overs that no receiver has taken
	anyMoved bool                                  // some slot was given or taken, or is to be
}

// handed is a hand-over of a slot, with the partition that gives it.
type handed struct {
	*blobschema.Handover
	from partition.ID
}

// readMoment reads the records and heads of the check. It lists the objects after them, so that
// the list has every object that the heads name. It returns false if a check is not possible.
func (c *checker) readMoment() bool {
	if c.id = c.opt.Crawl; c.id == "" {
		if c.id, c.err = blobschema.ActiveCrawl(c.ctx, c.store); c.err != nil {
			return false
		}
	}
	c.report.Crawl = c.id
	key := naming.CrawlKey(c.id)
	var found bool
	if c.crawl, found = record[blobschema.Crawl](c, key); !found {
		return c.fail(fmt.Errorf("%w with id %q", ErrNoCrawl, c.id))
	}
	if c.crawl.Version != wire.Version {
		return c.fail(fmt.Errorf("crawl %s: %w: %d", c.id, wire.ErrVersion, c.crawl.Version))
	}
	if err := c.readFrozen(); err != nil {
		c.damaged(key, "%v", err)
		return false
	}
	// The record of requests is read twice, so that the heads fit between: the first has every
	// request that was numbered and not applied, the second numbers all that the heads applied.
	c.requests, _ = record[blobschema.Requests](c, naming.RequestsKey(c.id))
	c.readPlaces()
	later, _ := record[blobschema.Requests](c, naming.RequestsKey(c.id))
	c.numbered = later.Sent
	// The desired state may be later than the heads: a domain that has reached its cap stays
	// there, and older ranks of hosts are named until newer ones exist.
	c.desired, _ = record[blobschema.DesiredState](c, naming.DesiredKey(c.id))
	// The record of the crawl names a batch of seeds before its mail is sent, so read after the
	// heads it has every batch that they may have applied.
	if crawl, found := record[blobschema.Crawl](c, key); found {
		c.crawl = crawl
	}
	if c.err != nil || c.bad > 0 {
		return false
	}
	c.indexed = c.crawl.Settings.Index
	for o, err := range c.store.List(c.ctx, c.id+"/") {
		if err != nil {
			return c.fail(fmt.Errorf("list objects: %w", err))
		}
		c.listed[o.Name] = o.Time
		c.indexed = c.indexed || strings.HasPrefix(o.Name, naming.IndexPrefix(c.id))
	}
	for _, p := range c.parts {
		p.sums = c.whole(p, p.man.Slots)
	}
	c.report.Objects, c.report.Partitions = len(c.listed), len(c.parts)
	c.report.Epoch, c.report.Moving = c.atlas.record.Epoch, len(c.atlas.moving)
	return true
}

// fail ends the check, unless a record that cannot be decoded already has.
func (c *checker) fail(err error) bool {
	if c.err == nil && c.bad == 0 {
		c.err = err
	}
	return false
}

// readFrozen reads the fields of the crawl record on which all other checks depend.
func (c *checker) readFrozen() (err error) {
	if c.crawl.ID != c.id {
		return fmt.Errorf("the record is of crawl %q", c.crawl.ID)
	}
	if err := naming.CheckCrawlID(c.id); err != nil {
		return err
	}
	if c.hash, err = c.crawl.Hash(); err != nil {
		return err
	}
	if c.pmap, err = partition.NewMap(c.crawl.Slots, c.crawl.Partitions); err != nil {
		return err
	}
	switch by := c.crawl.Settings.PartitionBy; by {
	case "", blobschema.ByHost, blobschema.ByDomain, blobschema.ByIP:
	default:
		return fmt.Errorf("the crawl is partitioned by %q", by)
	}
	return nil
}

// readPlaces reads the record of the map and all heads, so that they can be compared.
//
// Steps commit meanwhile, so heads are not of one moment. They need not be: a commit that is
// read early shows too little, which looks like mail on its way. Only the places of slots
// must agree: if a giver is read before its commit and the taker after its own, both seem to
// hold the slot. Then all heads are read again. Two equal readings that disagree are damage.
func (c *checker) readPlaces() {
	const tries = 50
	var last []string
	for i := range tries {
		if i > 1 { // the second reading is for a crawl that stands still
			time.Sleep(time.Duration(i) * time.Millisecond)
		}
		before := c.readMap()
		seen := c.readHeads()
		if after := c.readMap(); c.err != nil || c.bad > 0 {
			return
		} else if before.Version != after.Version {
			last = nil
			continue
		}
		c.atlas.record = before
		if len(c.placeSlots()) == 0 || last != nil && slices.Equal(last, seen) {
			return
		}
		last = seen
	}
	c.err = fmt.Errorf("read heads: slots were on the move in each of %d readings", tries)
}

// readMap reads the record of the map, and makes room for all partitions it tells of.
func (c *checker) readMap() blobschema.MapRecord {
	key := naming.MapKey(c.id)
	r, found := record[blobschema.MapRecord](c, key)
	if !found {
		r = blobschema.MapRecord{Epoch: 1, Partitions: c.crawl.Partitions}
	}
	if r.Epoch < 1 || r.Partitions < 0 || r.Partitions > partition.MaxPartitions {
		c.bad++
		c.damaged(key, "its epoch is %d, with %d partitions", r.Epoch, r.Partitions)
		return r
	}
	for p := len(c.parts); p < max(c.crawl.Partitions, r.Partitions); p++ {
		c.parts = append(c.parts, &part{id: partition.ID(p), man: &blobschema.Manifest{}, outside: map[uint64]bool{}, flights: map[uint64]bool{}})
	}
	return r
}

// readHeads reads all heads and the manifests that they name, and returns the names of the commits.
func (c *checker) readHeads() (commits []string) {
	for _, p := range c.parts {
		head, found := record[blobschema.Head](c, naming.HeadKey(c.id, p.id))
		if !found {
			head.Partition = p.id
		}
		if head.Commit != p.head.Commit {
			c.readManifest(p, head.Commit)
		}
		p.head, p.broken = head, p.damage != nil
		p.holding = blobschema.NewHolding(p.id, c.pmap, p.man.Moved)
		commits = append(commits, p.head.Commit)
	}
	return commits
}

// readManifest reads the manifest of a commit that a head names. Its damage is reported when it is
// known that this commit is checked.
func (c *checker) readManifest(p *part, commit string) {
	p.man, p.damage = &blobschema.Manifest{}, nil
	if commit == "" {
		return
	}
	man, err := blobschema.ReadManifest(c.get, commit)
	if err == nil && man.Seq == 0 {
		err = errors.New("its manifest says that it is commit 0")
	}
	if p.damage = err; err == nil {
		p.man = man
	}
}

// placeSlots finds the home of each slot, and says which slots have none, or several.
func (c *checker) placeSlots() (problems []string) {
	a := &c.atlas
	n := c.pmap.Slots()
	a.home, a.handed, a.moving, a.anyMoved = c.pmap.Owners(), map[partition.Slot]*handed{}, map[partition.Slot]*blobschema.Moving{}, false
	owners := make([]int, n)
	for _, p := range c.parts {
		a.anyMoved = a.anyMoved || len(p.man.Moved) > 0
		for _, s := range p.holding.Slots() {
			owners[s]++
			a.home[s] = p.id
		}
	}
	for _, p := range c.parts {
		for i := range p.man.Given {
			g := &p.man.Given[i]
			a.anyMoved = true
			for _, s := range g.Slots {
				if int(g.To) < len(c.parts) && int(s) < n && g.Epoch > c.parts[g.To].holding.Seen(s) {
					owners[s]++
					a.home[s], a.handed[s] = g.To, &handed{g, p.id}
				}
			}
		}
	}
	for i := range a.record.Moving {
		a.anyMoved = true
		for _, s := range a.record.Moving[i].Slots {
			a.moving[s] = &a.record.Moving[i]
		}
	}
	unreadable := c.anyBroken()
	var none, several partition.Slots
	for s, n := range owners {
		if n < 1 && !unreadable {
			none = append(none, partition.Slot(s))
		} else if n > 1 {
			several = append(several, partition.Slot(s))
		}
	}
	if len(none) > 0 {
		problems = append(problems, fmt.Sprintf("no partition holds the slots %.200s, and no hand-over has them", none))
	}
	if len(several) > 0 {
		problems = append(problems, fmt.Sprintf("the slots %.200s are held more than once, hand-overs included", several))
	}
	return problems
}

func (c *checker) anyBroken() bool {
	return slices.ContainsFunc(c.parts, func(p *part) bool { return p.broken })
}

// homeOf returns the home of a slot.
func (c *checker) homeOf(s partition.Slot) *part { return c.parts[c.atlas.home[s]] }

// awaits reports whether a slot is to come to a partition, as its last commit knew.
func (c *checker) awaits(p *part, s partition.Slot) bool {
	m, ok := c.atlas.moving[s]
	return ok && int(s) < c.pmap.Slots() && m.To == p.id && m.Epoch <= p.man.Epoch && !p.holding.Holds(s)
}

// owes reports whether a partition holds a slot that is to go elsewhere, and knew it.
func (c *checker) owes(p *part, s partition.Slot) bool {
	m, ok := c.atlas.moving[s]
	return ok && int(s) < c.pmap.Slots() && m.From == p.id && m.Epoch <= p.man.Epoch && p.holding.Holds(s)
}

// had reports whether a partition may have stored anything of a slot: it holds, held or
// awaits it. Runs keep such entries until they are merged.
func (c *checker) had(p partition.ID, s partition.Slot) bool {
	if int(s) >= c.pmap.Slots() || int(p) >= len(c.parts) {
		return false
	}
	q := c.parts[p]
	return c.pmap.Owner(s) == p || q.holding.Seen(s) > 1 || c.awaits(q, s)
}

// where names the last commit of a partition, or its head if it has no commit.
func (c *checker) where(p *part) string {
	return cmp.Or(p.head.Commit, naming.HeadKey(c.id, p.id))
}

// hasApplied reports whether a partition has applied a mail.
func (p *part) hasApplied(from partition.ID, number uint64) bool {
	m := p.man.Applied[from]
	return number <= m.Low || slices.Contains(m.Above, number)
}
