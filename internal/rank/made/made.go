// Package made generates stored crawls without crawling: records and commits of pages with given links, for tests and
// measurements of index and ranks. It does no I/O.
package made

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// Page is a page, or another answer. The zero Outcome is a page.
type Page struct {
	URL        string // canonical
	Generation uint32
	Outcome    blobschema.Outcome
	Links      []Link
}

// Link is a link of a page.
type Link struct {
	URL      string // canonical
	Text     string
	NoFollow bool
	Outside  bool // out of scope
}

// Crawl is a crawl that grows by commits.
type Crawl struct {
	Record  blobschema.Crawl
	Map     *partition.Map
	hash    partition.Hash
	heads   map[partition.ID]blobschema.Manifest
	written int
}

// Store stores the records and objects of a crawl.
type Store interface {
	Put(name string, data []byte) error
	Record(key string, value []byte) error // creates or replaces
}

// Begin creates the record of a crawl.
func Begin(s Store, id string, slots, partitions int, by blobschema.PartitionBy) (*Crawl, error) {
	c := &Crawl{heads: map[partition.ID]blobschema.Manifest{}}
	key := [16]byte{1, 2, 3, 4, 5}
	c.Record = blobschema.Crawl{
		Version: wire.Version, ID: id, Created: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), HashKey: key[:], Slots: slots, Partitions: partitions,
		Settings: blobschema.Settings{Scope: blobschema.ScopeAny, PartitionBy: by},
	}
	var err error
	if c.hash, err = partition.NewHash(key, slots); err != nil {
		return nil, err
	}
	if c.Map, err = partition.NewMap(slots, partitions); err != nil {
		return nil, err
	}
	return c, c.record(s, naming.CrawlKey(id), c.Record)
}

func (c *Crawl) record(s Store, key string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.Record(key, b)
}

// slot returns the slot of a URL.
func (c *Crawl) slot(u weburl.URL) partition.Slot {
	key, _ := c.Record.Settings.PartitionBy.Key(string(u.Host()))
	return c.hash.Slot(key)
}

// Fingerprint returns the fingerprint of a URL.
func (c *Crawl) Fingerprint(url string) uint64 { return c.hash.Fingerprint(url) }

// Move makes another map current, as if slots had moved and all moves had been confirmed.
func (c *Crawl) Move(s Store, m *partition.Map, partitions int) error {
	name, data, err := blobschema.MapObjectName(c.Record.ID, m)
	if err != nil {
		return err
	}
	if err := s.Put(name, data); err != nil {
		return err
	}
	c.Map = m
	return c.record(s, naming.MapKey(c.Record.ID), blobschema.MapRecord{Version: uint64(m.Epoch()), Epoch: m.Epoch(), Partitions: partitions, Object: name})
}

// Commit adds pages to the partitions that own them, in commits of at most atOnce pages each.
func (c *Crawl) Commit(s Store, pages []Page, atOnce int) error {
	type share struct {
		pages []blobschema.Page
		links []blobschema.PageLinks
	}
	shares := map[partition.ID]*share{}
	flush := func(p partition.ID) error {
		sh := shares[p]
		delete(shares, p)
		return c.commit(s, p, sh.pages, sh.links)
	}
	for i := range pages {
		page, links, p, err := c.page(&pages[i])
		if err != nil {
			return err
		}
		sh := shares[p]
		if sh == nil {
			sh = &share{}
			shares[p] = sh
		}
		sh.pages = append(sh.pages, page)
		if len(links.Targets) > 0 {
			sh.links = append(sh.links, links)
		}
		if len(sh.pages) >= atOnce {
			if err := flush(p); err != nil {
				return err
			}
		}
	}
	for p := range partition.ID(partition.MaxPartitions) {
		if shares[p] != nil {
			if err := flush(p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Crawl) page(p *Page) (page blobschema.Page, links blobschema.PageLinks, owner partition.ID, err error) {
	u, err := weburl.Parse(p.URL)
	if err != nil {
		return page, links, 0, err
	}
	slot := c.slot(u)
	c.written++
	page = blobschema.Page{
		URL: p.URL, Generation: p.Generation, Outcome: p.Outcome, Time: c.Record.Created.Add(time.Duration(c.written) * time.Second), Links: uint32(len(p.Links)),
	}
	if page.Outcome == blobschema.OutcomeNone {
		page.Outcome = blobschema.OutcomeOK
	}
	links = blobschema.PageLinks{Source: c.hash.Fingerprint(p.URL), Slot: slot, Host: string(u.Host())}
	for _, l := range p.Links {
		to, err := weburl.Parse(l.URL)
		if err != nil {
			return page, links, 0, err
		}
		links.Targets = append(links.Targets, blobschema.Target{
			Fingerprint: c.hash.Fingerprint(l.URL), Slot: c.slot(to), Host: string(to.Host()), NoFollow: l.NoFollow, Followed: !l.NoFollow && !l.Outside, Anchor: l.Text,
		})
	}
	return page, links, c.Map.Owner(slot), nil
}

func (c *Crawl) commit(s Store, p partition.ID, pages []blobschema.Page, links []blobschema.PageLinks) error {
	old := c.heads[p]
	man := blobschema.Manifest{
		Crawl: c.Record.ID, Partition: p, Seq: old.Seq + 1, Fence: 1, Epoch: c.Map.Epoch(), Time: pages[len(pages)-1].Time,
	}
	if old.Seq > 0 {
		man.Commits = []blobschema.CommitRange{{Fence: 1, From: 1, To: old.Seq}}
	}
	name := naming.Commit(c.Record.ID, p, man.Seq, man.Fence)
	data, man, err := blobschema.EncodeCommit(&blobschema.Commit{Manifest: man, Pages: pages, Links: links}, name, c.hash)
	if err != nil {
		return err
	}
	if err := s.Put(name, data); err != nil {
		return err
	}
	c.heads[p] = man
	return c.record(s, naming.HeadKey(c.Record.ID, p), blobschema.Head{Partition: p, Fence: 1, Commit: name, Seq: man.Seq, Epoch: man.Epoch})
}

// Sites generates a web of one page per site. The numbers of links from and to a site follow power laws, like those of the
// web (Broder and others 2000: exponents near 2.7 and 2.1). One site in seven has no links.
func Sites(seed uint64, n int) []Page {
	r := rand.New(rand.NewPCG(seed, 2))
	pages := make([]Page, n)
	for i := range pages {
		pages[i].URL = Site(i)
	}
	for i := range pages {
		if r.IntN(7) == 0 {
			continue
		}
		links := min(int(3*math.Pow(1-r.Float64(), -1/1.7)), n/2, 2000)
		for range links {
			// If x is uniform, n x^k has the density of a power law: few sites have most links.
			to := int(float64(n) * math.Pow(r.Float64(), 3))
			pages[i].Links = append(pages[i].Links, Link{URL: Site(to), Text: fmt.Sprintf("site %d", to)})
		}
	}
	return pages
}

// Site returns the URL of a site's page.
func Site(i int) string { return fmt.Sprintf("https://site%d.example/", i) }
