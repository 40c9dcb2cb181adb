package fsck_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/fsck"
	"github.com/orbweaver/orbweaver/partition"
)

// hand changes stored objects and records of a crawl.
type hand struct {
	testing.TB
	*memory
	hash partition.Hash
	pmap *partition.Map
}

func newHand(t testing.TB, m *memory) *hand {
	var c blobschema.Crawl
	if err := json.Unmarshal([]byte(m.records[naming.CrawlKey(crawlID)]), &c); err != nil {
		t.Fatal(err)
	}
	h, err := partition.NewHash([16]byte(c.HashKey), slots)
	if err != nil {
		t.Fatal(err)
	}
	pm, err := partition.NewMap(slots, partitions)
	if err != nil {
		t.Fatal(err)
	}
	return &hand{t, m, h, pm}
}

func edit[T any](h *hand, key string, change func(*T)) {
	h.Helper()
	var v T
	if err := json.Unmarshal([]byte(h.records[key]), &v); err != nil {
		h.Fatal(err)
	}
	change(&v)
	b, err := json.Marshal(v)
	if err != nil {
		h.Fatal(err)
	}
	h.records[key] = string(b)
}

func (h *hand) head(p partition.ID) (head blobschema.Head) {
	edit(h, naming.HeadKey(crawlID, p), func(v *blobschema.Head) { head = *v })
	return head
}

// commit decodes all sections of a commit.
func (h *hand) commit(name string) *blobschema.Commit {
	h.Helper()
	r, err := blobschema.OpenCommit(h.objects[name])
	if err != nil {
		h.Fatal(err)
	}
	c := &blobschema.Commit{}
	errs := make([]error, 7)
	c.Manifest, errs[0] = r.Manifest()
	c.Pages, errs[1] = r.Pages()
	c.Links, errs[2] = r.Links()
	c.Buffered, errs[3] = r.Buffered()
	c.Outbox, errs[4] = r.Outbox()
	c.Outside, errs[5] = r.Outside()
	c.Hosts, errs[6] = r.Hosts()
	for _, err := range errs {
		if err != nil {
			h.Fatal(err)
		}
	}
	data, err := r.Run()
	if err != nil {
		h.Fatal(err)
	}
	if data != nil {
		n := len(c.Manifest.Runs) - 1
		c.State = &blobschema.Run{}
		if err := blobschema.DecodeRun(data, c.Manifest.Runs[n], c.State); err != nil {
			h.Fatal(err)
		}
		c.Manifest.Runs = c.Manifest.Runs[:n] // EncodeCommit names it again
	}
	return c
}

// rewrite changes a commit, and the references of other commits to its run.
func (h *hand) rewrite(name string, change func(*blobschema.Commit)) {
	h.Helper()
	c := h.commit(name)
	change(c)
	data, man, err := blobschema.EncodeCommit(c, name, h.hash)
	if err != nil {
		h.Fatal(err)
	}
	h.objects[name] = data
	if c.State == nil {
		return
	}
	ref := man.Runs[len(man.Runs)-1]
	for _, later := range h.commits() { // the run may be longer or shorter now
		if later == name || h.objects[later] == nil {
			continue
		}
		c := h.commit(later)
		i := slices.IndexFunc(c.Manifest.Runs, func(r blobschema.RunRef) bool { return r.Object == name && r.Length != ref.Length })
		if i < 0 {
			continue
		}
		c.Manifest.Runs[i].Length, c.Manifest.Runs[i].Index = ref.Length, ref.Index
		if h.objects[later], _, err = blobschema.EncodeCommit(c, later, h.hash); err != nil {
			h.Fatal(err)
		}
	}
}

// commits returns the names of the visible commits of all partitions.
func (h *hand) commits() (names []string) {
	for p := range partition.ID(partitions + 1) {
		if h.records[naming.HeadKey(crawlID, p)] == "" {
			continue
		}
		man := h.commit(h.head(p).Commit).Manifest
		for name := range blobschema.CommitNames(&man) {
			names = append(names, name)
		}
	}
	return names
}

// find returns the name and the content of the first commit with a property.
func (h *hand) find(has func(c *blobschema.Commit) bool) (string, *blobschema.Commit) {
	h.Helper()
	for _, name := range h.commits() {
		if c := h.commit(name); has(c) {
			return name, c
		}
	}
	h.Fatal("no commit to tamper with")
	return "", nil
}

// answered returns a commit with a stored page, and the index of that page.
func (h *hand) answered() (name string, i int) {
	name, c := h.find(func(c *blobschema.Commit) bool { return slices.ContainsFunc(c.Pages, kept) })
	return name, slices.IndexFunc(c.Pages, kept)
}

func kept(p blobschema.Page) bool { return p.WARC != "" && !p.Robots }

// page changes the page that answered finds.
func (h *hand) page(change func(*blobschema.Page)) {
	name, i := h.answered()
	h.rewrite(name, func(c *blobschema.Commit) { change(&c.Pages[i]) })
}

// last rewrites the commit that a head names.
func (h *hand) last(p partition.ID, change func(*blobschema.Commit)) {
	h.rewrite(h.head(p).Commit, change)
}

// owned returns a slot of a partition.
func (h *hand) owned(p partition.ID) partition.Slot { return h.pmap.Owned(p)[0] }

// wrong returns a slot of a partition that is not the slot of a host.
func (h *hand) wrong(p partition.ID, host string) partition.Slot {
	owned := h.pmap.Owned(p)
	if owned[0] == h.hash.Slot(host) {
		return owned[1]
	}
	return owned[0]
}

// object returns the name of an object that contains some text.
func (h *hand) object(part string) string {
	for _, name := range slices.Sorted(maps.Keys(h.objects)) {
		if strings.Contains(name, part) {
			return name
		}
	}
	h.Fatalf("no object is called %s", part)
	return ""
}

// flip changes one bit of an object.
func (h *hand) flip(name string, at int) {
	b := slices.Clone(h.objects[name])
	b[at] ^= 1
	h.objects[name] = b
}

var corruptions = []struct {
	name, invariant, says string
	do                    func(h *hand)
}{
	{"page URL", "I1", "not canonical", func(h *hand) {
		h.page(func(p *blobschema.Page) { p.URL = strings.Replace(p.URL, "http://", "HTTP://", 1) })
	}},
	{"URL out of scope", "I1", "is not a URL", func(h *hand) {
		h.last(0, func(c *blobschema.Commit) { c.Outside = append(c.Outside, blobschema.Queued{URL: "ftp://x/"}) })
	}},
	{"URL in mail", "I1", "not canonical", func(h *hand) {
		h.mail(func(m *blobschema.Mail) { m.URLs[0].URL += "#fragment" })
	}},
	{"host state in another slot", "I2", "belongs to", func(h *hand) {
		h.last(0, func(c *blobschema.Commit) {
			c.State = &blobschema.Run{Keys: []blobschema.KeyState{{Slot: h.wrong(0, elsewhere(h, 0)), Key: elsewhere(h, 0)}}}
		})
	}},
	{"pending URL in another slot", "I2", "belongs to", func(h *hand) {
		host := elsewhere(h, 0)
		h.last(0, func(c *blobschema.Commit) {
			c.State = &blobschema.Run{Queued: []blobschema.Queued{{Slot: h.wrong(0, host), Key: host, URL: "http://" + host + "/"}}}
		})
	}},
	{"link to an unknown slot", "I2", "a link goes to slot", func(h *hand) {
		name, _ := h.find(func(c *blobschema.Commit) bool { return len(c.Links) > 0 })
		h.rewrite(name, func(c *blobschema.Commit) {
			c.Links[0].Targets = append(c.Links[0].Targets, blobschema.Target{Slot: slots})
		})
	}},
	{"state of a foreign slot", "I3", "not partition 0's", func(h *hand) {
		h.last(0, func(c *blobschema.Commit) {
			c.State = &blobschema.Run{Settled: []blobschema.Settled{{Slot: h.owned(1), Fingerprint: 1, State: blobschema.Fetched}}}
		})
	}},
	{"page of a foreign slot", "I3", "partition 1's", func(h *hand) {
		h.last(0, func(c *blobschema.Commit) {
			c.Pages = append(c.Pages, blobschema.Page{URL: "http://" + elsewhere(h, 1) + "/", Outcome: blobschema.OutcomeDNS})
		})
	}},
	{"mail for another partition", "I3", "was mailed to partition", func(h *hand) {
		h.mail(func(m *blobschema.Mail) { m.URLs[0].URL = "http://" + elsewhere(h, (m.To+1)%partitions) + "/" })
	}},
	{"epoch goes back", "I3", "its epoch is", func(h *hand) {
		h.last(0, func(c *blobschema.Commit) { c.Manifest.Epoch = 0 })
	}},
	{"head of another partition", "I4", "head of partition", func(h *hand) {
		edit(h, naming.HeadKey(crawlID, 0), func(v *blobschema.Head) { v.Partition = 1 })
	}},
	{"head with an old fence", "I4", "its fence", func(h *hand) {
		edit(h, naming.HeadKey(crawlID, 0), func(v *blobschema.Head) { v.Fence = 0 })
	}},
	{"head with another number", "I4", "whose manifest says", func(h *hand) {
		edit(h, naming.HeadKey(crawlID, 0), func(v *blobschema.Head) { v.Seq++ })
	}},
	{"commit under another name", "I4", "its manifest is of", func(h *hand) {
		names := h.commits()
		h.objects[names[1]] = h.objects[names[0]]
	}},
	{"commit omitted", "I4", "left out", func(h *hand) {
		h.last(0, func(c *blobschema.Commit) { c.Manifest.Commits[0].From++ })
	}},
	{"commit of a stale fence", "I4", "the commit before it", func(h *hand) {
		h.last(0, func(c *blobschema.Commit) { c.Manifest.Commits[len(c.Manifest.Commits)-1].Fence += 10 })
	}},
	{"another past", "I4", "the commits before it are", func(h *hand) {
		names := h.commits()
		h.rewrite(names[2], func(c *blobschema.Commit) { c.Manifest.Commits = nil })
	}},
	{"WARC of two commits", "I4", "as ", func(h *hand) {
		name, i := h.answered()
		warc := h.commit(name).Pages[i].WARC
		h.last(0, func(c *blobschema.Commit) { c.Manifest.WARCs = append(c.Manifest.WARCs, warc) })
	}},
	{"WARC not named", "I4", "no object of this commit", func(h *hand) {
		name, _ := h.answered()
		h.rewrite(name, func(c *blobschema.Commit) { c.Manifest.WARCs = nil })
	}},
	{"WARC of another fence", "I4", "not of its partition and fence", func(h *hand) {
		name, _ := h.answered()
		h.rewrite(name, func(c *blobschema.Commit) {
			c.Manifest.WARCs = append(c.Manifest.WARCs, naming.WARC(crawlID, c.Manifest.Partition, c.Manifest.Fence+1, 1, true))
		})
	}},
	{"run of an unknown commit", "I4", "no visible commit", func(h *hand) {
		h.last(0, func(c *blobschema.Commit) {
			c.Manifest.Runs = append(c.Manifest.Runs, blobschema.RunRef{Object: naming.Commit(crawlID, 0, 1, 99)})
		})
	}},
	{"mail applied and never sent", "I5", "is applied, of which", func(h *hand) {
		h.last(0, func(c *blobschema.Commit) { c.Manifest.Applied[2] = blobschema.Marks{Low: 1000} })
	}},
	{"marks out of order", "I5", "its marks", func(h *hand) {
		h.last(0, func(c *blobschema.Commit) {
			c.Manifest.Applied[partition.Intake] = blobschema.Marks{Low: 1, Above: []uint64{1}}
		})
	}},
	{"marks shrink", "I5", "was applied up to", func(h *hand) {
		h.last(0, func(c *blobschema.Commit) { c.Manifest.Applied = nil })
	}},
	{"mail unsent", "I5", "its mail ends with", func(h *hand) {
		h.last(0, func(c *blobschema.Commit) { c.Manifest.Sent = nil })
	}},
	{"head's count of mail sent", "I6", "mail sent", func(h *hand) {
		edit(h, naming.HeadKey(crawlID, 0), func(v *blobschema.Head) { v.Sent[1] += 3 })
	}},
	{"head's count of mail applied", "I6", "applied mails", func(h *hand) {
		edit(h, naming.HeadKey(crawlID, 0), func(v *blobschema.Head) { v.Applied++ })
	}},
	{"head's published", "I5", "is sent, and its last commit", func(h *hand) {
		edit(h, naming.HeadKey(crawlID, 0), func(v *blobschema.Head) { v.Published = v.Seq + 1 })
	}},
	{"mail misnumbered", "I5", "says it is mail", func(h *hand) { h.mail(func(m *blobschema.Mail) { m.Number += 2 }) }},
	{"outbox misnumbered", "I5", "follows mail", func(h *hand) {
		name, _ := h.find(func(c *blobschema.Commit) bool { return len(c.Outbox) > 0 })
		h.rewrite(name, func(c *blobschema.Commit) {
			m, err := blobschema.DecodeMail(c.Outbox[0].Body)
			if err != nil {
				h.Fatal(err)
			}
			m.Number += 7
			c.Outbox[0].Number = m.Number
			if c.Outbox[0].Body, err = blobschema.EncodeMail(m); err != nil {
				h.Fatal(err)
			}
		})
	}},
	{"outbox not unsent", "I5", "does not name as unsent", func(h *hand) {
		name, _ := h.find(func(c *blobschema.Commit) bool { return len(c.Outbox) > 0 })
		h.rewrite(name, func(c *blobschema.Commit) { c.Manifest.Unsent = nil })
	}},
	{"WARC missing", "I6", "does not exist", func(h *hand) { delete(h.objects, h.object("/warc/")) }},
	{"commit missing", "I6", "does not exist", func(h *hand) { delete(h.objects, h.object("/c0000000002")) }},
	{"last commit missing", "I6", "does not exist", func(h *hand) { delete(h.objects, h.head(2).Commit) }},
	{"merged run missing", "I6", "does not exist", func(h *hand) { delete(h.objects, h.merged()) }},
	{"seeds missing", "I6", "does not exist", func(h *hand) { delete(h.objects, h.object("/seeds/")) }},
	{"commit damaged", "I6", "", func(h *hand) { h.flip(h.object("/c0000000001"), 100) }},
	{"merged run damaged", "I6", "", func(h *hand) { h.flip(h.merged(), 20) }},
	{"seeds damaged", "I6", "", func(h *hand) { h.flip(h.object("/seeds/"), 10) }},
	{"WARC damaged", "I6", "", func(h *hand) { n := h.object("/warc/"); h.flip(n, len(h.objects[n])-30) }},
	{"WARC cut", "I6", "", func(h *hand) { n := h.object("/warc/"); h.objects[n] = h.objects[n][:len(h.objects[n])-1] }},
	{"head garbage", "I6", "cannot be decoded", func(h *hand) { h.records[naming.HeadKey(crawlID, 1)] = "{" }},
	{"crawl without key", "I6", "hash key", func(h *hand) {
		edit(h, naming.CrawlKey(crawlID), func(v *blobschema.Crawl) { v.HashKey = nil })
	}},
	{"head's desired state", "I6", "desired state", func(h *hand) {
		edit(h, naming.HeadKey(crawlID, 0), func(v *blobschema.Head) { v.Desired += 5 })
	}},
	{"record at another offset", "I6", "no response begins at", func(h *hand) { h.page(func(p *blobschema.Page) { p.Offset++ }) }},
	{"record without page", "I6", "has no page record", func(h *hand) {
		name, i := h.answered()
		h.rewrite(name, func(c *blobschema.Commit) { c.Pages = slices.Delete(c.Pages, i, i+1) })
	}},
	{"status", "I6", "status", func(h *hand) { h.page(func(p *blobschema.Page) { p.Status = 299 }) }},
	{"digest", "I6", "digest", func(h *hand) { h.page(func(p *blobschema.Page) { p.Digest = "sha1:AAAA" }) }},
	{"length", "I6", "its length is", func(h *hand) { h.page(func(p *blobschema.Page) { p.Length++ }) }},
	{"body", "I6", "its size of the body", func(h *hand) { h.page(func(p *blobschema.Page) { p.BodyBytes++ }) }},
	{"answer without record", "I6", "its WARC object", func(h *hand) { h.page(func(p *blobschema.Page) { p.WARC = "" }) }},
	{"links of no page", "I6", "no record of that page", func(h *hand) {
		name, _ := h.find(func(c *blobschema.Commit) bool { return len(c.Links) > 0 })
		h.rewrite(name, func(c *blobschema.Commit) { c.Links[0].Source++ })
	}},
	{"page record lost", "I7", "has no page record", func(h *hand) {
		name, i := h.answered()
		h.rewrite(name, func(c *blobschema.Commit) { c.Pages = slices.Delete(c.Pages, i, i+1) })
	}},
	{"state lost", "I7", "no run knows it", func(h *hand) {
		h.last(0, func(c *blobschema.Commit) { c.Manifest.Runs = nil })
	}},
	{"merge lost something", "I7", "merging lost that", func(h *hand) {
		h.last(h.mergedOf(), func(c *blobschema.Commit) {
			c.Manifest.Runs = slices.DeleteFunc(c.Manifest.Runs, func(r blobschema.RunRef) bool { return r.Tier > 0 })
		})
	}},
	{"state of another outcome", "I7", "by the state", func(h *hand) {
		h.page(func(p *blobschema.Page) { p.Outcome, p.WARC = blobschema.OutcomeTLS, "" })
	}},
	{"generation ahead", "I7", "and the state is of", func(h *hand) { h.page(func(p *blobschema.Page) { p.Generation = 1 }) }},
	{"no outcome", "I7", "no reason", func(h *hand) { h.page(func(p *blobschema.Page) { p.Outcome = blobschema.OutcomeAborted }) }},
	{"link lost", "I7", "was followed", func(h *hand) {
		name, _ := h.find(func(c *blobschema.Commit) bool { return len(c.Links) > 0 })
		h.rewrite(name, func(c *blobschema.Commit) {
			c.Links[0].Targets = append(c.Links[0].Targets, blobschema.Target{Fingerprint: 42, Slot: 3, Followed: true})
		})
	}},
	{"mail lost", "I7", "was mailed to", func(h *hand) {
		h.mail(func(m *blobschema.Mail) {
			m.URLs = append(m.URLs, blobschema.Queued{URL: "http://" + elsewhere(h, m.To) + "/lost"})
		})
	}},
	{"buffered link lost", "I7", "was held for", func(h *hand) {
		h.rewrite(h.object("p00000/c0000000001"), func(c *blobschema.Commit) {
			c.Buffered = map[partition.ID][]blobschema.Queued{1: {{URL: "http://" + elsewhere(h, 1) + "/lost"}}}
		})
	}},
	{"seed lost", "I7", "a seed", func(h *hand) {
		data, err := blobschema.EncodeSeeds(blobschema.SeedBatch{Number: 1, URLs: []blobschema.Queued{{URL: "http://" + elsewhere(h, 1) + "/seed"}}})
		if err != nil {
			h.Fatal(err)
		}
		name := naming.Seeds(crawlID, data)
		h.objects[name] = data
		edit(h, naming.CrawlKey(crawlID), func(v *blobschema.Crawl) { v.SeedBatches[0] = name })
	}},
	{"head's totals", "I6", "its totals", func(h *hand) {
		edit(h, naming.HeadKey(crawlID, 0), func(v *blobschema.Head) { v.Totals.Pages++ })
	}},
	{"total of pages", "I7", "total of pages", func(h *hand) { h.totals(func(t *blobschema.Totals) { t.Pages++ }) }},
	{"total of robots.txt", "I7", "recounted totals", func(h *hand) { h.totals(func(t *blobschema.Totals) { t.Robots++ }) }},
	{"total of buffered links", "I7", "recounted totals", func(h *hand) { h.totals(func(t *blobschema.Totals) { t.Buffered++ }) }},
	{"total of bytes", "I7", "recounted totals", func(h *hand) { h.totals(func(t *blobschema.Totals) { t.Stored++ }) }},
	{"totals of outcomes", "I7", "recounted totals", func(h *hand) { h.totals(func(t *blobschema.Totals) { t.Outcomes["dns"]++ }) }},
	{"total of URLs", "I7", "recounted totals", func(h *hand) { h.totals(func(t *blobschema.Totals) { t.Known++ }) }},
	{"summary of a slot", "I7", "its summary says", func(h *hand) {
		h.last(0, func(c *blobschema.Commit) { c.Manifest.Slots[0].Known++ })
	}},
	{"summary missing", "I7", "no summary", func(h *hand) {
		h.last(0, func(c *blobschema.Commit) { c.Manifest.Slots = c.Manifest.Slots[1:] })
	}},
	{"never due", "I7", "no time", func(h *hand) {
		h.last(0, func(c *blobschema.Commit) { c.Manifest.Slots[0].Pending, c.Manifest.Slots[0].Due = 1, 0 })
	}},
	{"page record twice", "I8", "another page record", func(h *hand) {
		name, i := h.answered()
		pg := h.commit(name).Pages[i]
		p, _, _, err := naming.ParseCommit(name)
		if err != nil {
			h.Fatal(err)
		}
		h.last(p, func(c *blobschema.Commit) { c.Pages = append(c.Pages, pg, pg) })
	}},
	{"requested and pending", "I8", "pending still", func(h *hand) {
		host := elsewhere(h, 0)
		u := "http://" + host + "/"
		h.last(0, func(c *blobschema.Commit) {
			c.Pages = append(c.Pages, blobschema.Page{URL: u, Outcome: blobschema.OutcomeDNS})
			c.State = &blobschema.Run{Queued: []blobschema.Queued{{Slot: h.hash.Slot(host), Key: host, URL: u}}}
		})
	}},
	{"host requested too soon", "I9", "after the request before", func(h *hand) {
		name, i := h.answered()
		pg := h.commit(name).Pages[i]
		h.rewrite(name, func(c *blobschema.Commit) {
			pg.URL, pg.Time = pg.URL+"again", pg.Time.Add(time.Millisecond)
			c.Pages = append(c.Pages, pg)
		})
	}},
	{"more than granted", "limit", "was granted", func(h *hand) {
		h.limit(1000, map[partition.ID]int64{0: 1000})
	}},
	{"limit exceeded", "limit", "of a limit of", func(h *hand) {
		h.limit(10, map[partition.ID]int64{0: 1000, 1: 1000, 2: 1000, 3: 1000})
	}},
	{"no grants", "limit", "no record", func(h *hand) {
		edit(h, naming.CrawlKey(crawlID), func(v *blobschema.Crawl) { v.Settings.MaxPages = 5 })
		delete(h.records, naming.GrantsKey(crawlID))
	}},
}

func (h *hand) totals(change func(*blobschema.Totals)) {
	h.last(0, func(c *blobschema.Commit) { change(&c.Manifest.Totals) })
}

func (h *hand) limit(pages int64, granted map[partition.ID]int64) {
	edit(h, naming.CrawlKey(crawlID), func(v *blobschema.Crawl) { v.Settings.MaxPages = pages })
	b, err := json.Marshal(blobschema.Grants{Limit: pages, Granted: granted})
	if err != nil {
		h.Fatal(err)
	}
	h.records[naming.GrantsKey(crawlID)] = string(b)
}

// mail changes the first mail of the crawl.
func (h *hand) mail(change func(*blobschema.Mail)) {
	name, _ := h.find(func(c *blobschema.Commit) bool { return len(c.Outbox) > 0 })
	h.rewrite(name, func(c *blobschema.Commit) {
		m, err := blobschema.DecodeMail(c.Outbox[0].Body)
		if err != nil {
			h.Fatal(err)
		}
		change(&m)
		if c.Outbox[0].Body, err = blobschema.EncodeMail(m); err != nil {
			h.Fatal(err)
		}
	})
}

// mergedOf returns a partition with a merged run.
func (h *hand) mergedOf() partition.ID {
	for p := range partition.ID(partitions) {
		for _, r := range h.commit(h.head(p).Commit).Manifest.Runs {
			if r.Tier > 0 {
				return p
			}
		}
	}
	h.Fatal("no run was merged")
	return 0
}

func (h *hand) merged() string {
	for _, r := range h.commit(h.head(h.mergedOf()).Commit).Manifest.Runs {
		if r.Tier > 0 {
			return r.Object
		}
	}
	return ""
}

// elsewhere returns a host of a partition that no crawl has seen.
func elsewhere(h *hand, p partition.ID) string {
	for name := "x.example"; ; name = "x" + name {
		if h.pmap.Owner(h.hash.Slot(name)) == p {
			return name
		}
	}
}

// TestFindsCorruption checks that each damage to a complete crawl is found.
func TestFindsCorruption(t *testing.T) {
	whole := mustCrawl(t, crawled)
	for _, tt := range corruptions {
		t.Run(tt.name, func(t *testing.T) {
			m := whole.clone()
			tt.do(newHand(t, m))
			rep := check(t, m, fsck.Options{MaxViolations: 10_000})
			for _, v := range rep.Violations {
				if v.Invariant == tt.invariant && strings.Contains(v.What, tt.says) {
					return
				}
			}
			t.Errorf("no violation of %s says %q; found %d: %v", tt.invariant, tt.says, rep.Found, rep.Violations)
		})
	}
}

// TestFindsBitRot checks that flipped bits are found in objects with checksums.
func TestFindsBitRot(t *testing.T) {
	h := newHand(t, mustCrawl(t, crawled))
	rng := rand.New(rand.NewPCG(1, 2))
	names := append(h.commits(), h.merged(), h.object("/seeds/"))
	for range 150 {
		name := names[rng.IntN(len(names))]
		at := rng.IntN(len(h.objects[name]))
		h.flip(name, at)
		if rep := check(t, h.memory, fsck.Options{Quick: true}); rep.Clean() {
			t.Errorf("a flipped bit at %d of %s is not found", at, name)
		}
		h.flip(name, at)
	}
}

// FuzzDamage checks that a check ends, and finds the damage, if an object has a changed byte or
// is cut. It uses a crawl by the engine, and crawls made by hand with rare content.
func FuzzDamage(f *testing.F) {
	searched := indexed(f)
	_, man := searched.index(0)
	delete(searched.objects, man.Dropped[0].Object) // no check reads it
	wholes := []*memory{mustCrawl(f, crawled), recrawled(f).memory, moved(f).memory, searched.memory, finished(f).memory}
	for _, whole := range wholes {
		if rep := check(f, whole, fsck.Options{}); !rep.Clean() {
			f.Fatalf("undamaged crawl: %v", rep.Violations)
		}
	}
	f.Add(uint(0), uint(10), byte(1), uint(0))
	f.Add(uint(7), uint(200), byte(0x80), uint(50))
	f.Fuzz(func(t *testing.T, object, at uint, change byte, cut uint) {
		whole := wholes[object%uint(len(wholes))]
		m := whole.clone()
		names := slices.Sorted(maps.Keys(m.objects))
		name := names[object/uint(len(wholes))%uint(len(names))]
		b := slices.Clone(m.objects[name])
		if len(b) == 0 {
			return
		}
		b[at%uint(len(b))] ^= change
		b = b[:len(b)-int(cut%uint(len(b)))]
		m.objects[name] = b
		rep := check(t, m, fsck.Options{Quick: true, MaxViolations: 5})
		if len(b) == len(whole.objects[name]) && change == 0 != rep.Clean() && !strings.Contains(name, "/warc/") && !strings.Contains(name, "/cdxj/") {
			t.Errorf("%s changed by %x at %d: %v", name, change, at, rep.Violations)
		}
	})
}

// FuzzRecords checks that a check ends if a record contains any text.
func FuzzRecords(f *testing.F) {
	whole := moved(f).memory
	for _, more := range []*memory{indexed(f).memory, ranked(f).memory} { // the sum is no clean crawl
		maps.Copy(whole.objects, more.objects)
		for key, value := range more.records {
			if whole.records[key] == "" {
				whole.records[key] = value
			}
		}
	}
	keys := slices.Sorted(maps.Keys(whole.records))
	for i, key := range keys {
		f.Add(uint(i), whole.records[key])
	}
	f.Add(uint(slices.Index(keys, naming.MapKey(crawlID))), `{"epoch":4,"partitions":4095,"moving":[{"epoch":2,"from":77,"to":5000,"slots":"0-65535"}],"former":["",""]}`)
	f.Fuzz(func(t *testing.T, key uint, value string) {
		m := whole.clone()
		m.records[keys[key%uint(len(keys))]] = value
		if _, err := fsck.Check(t.Context(), m, fsck.Options{MaxViolations: 5}); err != nil && t.Context().Err() != nil {
			t.Error(err)
		}
	})
}
