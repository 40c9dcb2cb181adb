package fsck_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/fsck"
	"github.com/orbweaver/orbweaver/partition"
)

var body = strings.Repeat("the same text again ", 100)

// recrawled is a crawl whose pages were requested again. Some are unchanged, pending or refused,
// and one has the payload of another.
func recrawled(t testing.TB) *maker {
	m := newMaker(t, blobschema.Settings{})
	a, b := "http://"+m.host(0, 0)+"/", "http://"+m.host(1, 0)+"/"
	m.seeds(a, b)

	first := m.answer(0, a, 0, body, nil)
	m.answer(0, a+"copy", 0, body, &first)
	m.apply(0, partition.Intake, 1)
	m.commit(0, blobschema.Commit{
		State: m.pending(m.queued(a+"2", 0)),
		Links: []blobschema.PageLinks{{Source: m.hash.Fingerprint(a), Slot: m.queued(a, 0).Slot, Targets: []blobschema.Target{
			{Fingerprint: m.hash.Fingerprint(a + "2"), Slot: m.queued(a, 0).Slot, Followed: true},
			{Fingerprint: m.hash.Fingerprint(b + "b"), Slot: m.queued(b, 0).Slot, Followed: true},
		}}},
		Outbox: []blobschema.OutMail{m.mail(0, 1, blobschema.Queued{URL: b + "b"})},
	})

	m.answer(0, a, 1, "", &first)
	m.refuse(0, a+"outside", blobschema.OutcomeScope)
	m.refuse(0, a+"outside", blobschema.OutcomeScope)
	again := m.queued(a+"copy", 1)
	again.Rank, again.Previous = 0, blobschema.RecordRef{Partition: 0, Seq: 1}
	m.apply(0, partition.Requests, 1)
	m.commit(0, blobschema.Commit{
		State:  m.pending(again),
		Outbox: []blobschema.OutMail{m.mail(0, 0, blobschema.Queued{URL: a + "2", Flags: blobschema.FlagAgain})},
	})

	m.answer(0, a, 2, body, &first)
	m.answer(0, a+"late", 0, body, nil)
	m.commit(0, blobschema.Commit{})

	m.answer(1, b, 0, body, nil)
	m.refuse(1, b+"b", blobschema.OutcomeRobots)
	m.apply(1, partition.Intake, 1)
	m.apply(1, 0, 1)
	m.apply(1, partition.Requests, 1)
	m.commit(1, blobschema.Commit{})

	m.put(naming.RequestsKey(crawlID), blobschema.Requests{
		Sent: map[partition.ID]uint64{0: 2, 1: 1},
		Outbox: []blobschema.RequestMail{
			m.request(0, 2, 77, blobschema.Queued{URL: a + "new", Flags: blobschema.FlagAgain}),
			m.request(1, 1, 78, blobschema.Queued{URL: b, Flags: blobschema.FlagAgain}),
		},
	})
	m.objects[naming.Request(crawlID, []byte("applied and forgotten"))] = nil
	return m
}

// byDomain is a crawl by domain of two names in one domain.
func byDomain(t testing.TB) *maker {
	m := newMaker(t, blobschema.Settings{PartitionBy: blobschema.ByDomain})
	d := m.host(0, 0)
	m.seeds("http://a."+d+"/", "http://b."+d+"/")
	m.answer(0, "http://a."+d+"/", 0, body, nil)
	m.answer(0, "http://b."+d+"/", 0, body, nil)
	m.apply(0, partition.Intake, 1)
	slot := m.hash.Slot(d)
	run := m.pending(m.queued("http://a."+d+"/2", 0))
	run.Keys = []blobschema.KeyState{{Slot: slot, Key: d}, {Slot: slot, Key: d + " a." + d}}
	m.commit(0, blobschema.Commit{State: run, Hosts: []blobschema.HostObservation{{Host: d, Slot: slot}}})
	return m
}

// byIP is a crawl by IP of two names with one address, one of them in the partition of the
// address, a name without an address, and an address without a name.
func byIP(t testing.TB) *maker {
	m := newMaker(t, blobschema.Settings{PartitionBy: blobschema.ByIP})
	n0, n1, none := m.host(0, 0), m.host(1, 0), m.host(0, 1)
	addr, bare := m.addr(1, 0), m.addr(2, 0)
	a, b, c, d := "http://"+n0+"/", "http://"+n1+"/", "http://"+none+"/", "http://"+bare.String()+"/"
	m.seeds(a, b, c, d)
	forwarded := func(url string) blobschema.Settled {
		q := m.queued(url, 0) // in the slot of the name, which has no address yet
		return blobschema.Settled{Slot: q.Slot, Fingerprint: m.hash.Fingerprint(url), State: blobschema.Forwarded}
	}

	run := &blobschema.Run{Settled: []blobschema.Settled{forwarded(a), forwarded(a + "2")}}
	other := &blobschema.Run{Settled: []blobschema.Settled{forwarded(b)}}
	m.pins[n0], m.pins[n1] = addr, addr
	run.Keys = []blobschema.KeyState{{Slot: m.hash.Slot(n0), Key: n0}}
	m.refuse(0, c, blobschema.OutcomeDNS)
	m.apply(0, partition.Intake, 1)
	m.commit(0, blobschema.Commit{State: run, Outbox: []blobschema.OutMail{m.mail(0, 1, m.queued(a, 0), m.queued(a+"2", 0))}})

	key := "[" + addr.String() + "]"
	other.Queued = []blobschema.Queued{m.queued(a+"2", 0)}
	other.Keys = []blobschema.KeyState{{Slot: m.hash.Slot(key), Key: key}, {Slot: m.hash.Slot(key), Key: key + " " + n0}}
	m.answer(1, a, 0, body, nil)
	m.answer(1, b, 0, body, nil)
	m.apply(1, partition.Intake, 1)
	m.apply(1, 0, 1)
	m.commit(1, blobschema.Commit{State: other, Links: []blobschema.PageLinks{{
		Source: m.hash.Fingerprint(a), Slot: m.hash.Slot(key), Targets: []blobschema.Target{
			{Fingerprint: m.hash.Fingerprint(a + "2"), Slot: m.hash.Slot(n0), Followed: true},
		},
	}}})

	m.answer(2, d, 0, body, nil)
	m.apply(2, partition.Intake, 1)
	m.commit(2, blobschema.Commit{})
	return m
}

// capped is a crawl with a cap on the URLs of a host. One URL was left out when its link was
// found, another when the slot was loaded.
func capped(t testing.TB) *maker {
	m := newMaker(t, blobschema.Settings{MaxHostURLs: 2})
	a := "http://" + m.host(0, 0) + "/"
	m.seeds(a)
	m.answer(0, a, 0, body, nil)
	m.refuse(0, a+"late", blobschema.OutcomeScope)
	slot := m.queued(a, 0).Slot
	m.apply(0, partition.Intake, 1)
	m.parts[0].man.Totals.Capped = 2
	m.commit(0, blobschema.Commit{
		State: &blobschema.Run{
			Queued: []blobschema.Queued{m.queued(a+"2", 0)},
			Settled: []blobschema.Settled{{
				Slot: slot, Fingerprint: m.hash.Fingerprint(a + "late"), State: blobschema.Refused, Record: blobschema.RecordRef{Seq: 1},
			}},
		},
		Links: []blobschema.PageLinks{{Source: m.hash.Fingerprint(a), Slot: slot, Targets: []blobschema.Target{
			{Fingerprint: m.hash.Fingerprint(a + "3"), Slot: slot, Followed: true},
			{Fingerprint: m.hash.Fingerprint(a + "3"), Slot: slot, Followed: true},
			{Fingerprint: m.hash.Fingerprint(a + "late"), Slot: slot, Followed: true},
		}}},
	})
	return m
}

func TestCleanByHand(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(testing.TB) *maker
		want fsck.Report
	}{
		{"recrawled", recrawled, fsck.Report{Pages: 9, URLs: 6, Pending: 2, InFlight: 2, Links: 2, Generations: 2, Revisits: 3, OutOfScope: 2, Requests: 3}},
		{"by domain", byDomain, fsck.Report{Pages: 2, URLs: 3, Pending: 1}},
		{"by IP", byIP, fsck.Report{Pages: 4, URLs: 5, Pending: 1, Forwarded: 3, Links: 1}},
		{"moved", moved, fsck.Report{Pages: 7, URLs: 10, Pending: 4, InFlight: 3, Links: 6, Requests: 1, Generations: 1, Revisits: 1, Moving: 2}},
		{"capped", capped, fsck.Report{Pages: 2, URLs: 3, Pending: 1, Links: 3, OutOfScope: 1, Capped: 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := tt.make(t)
			rep := check(t, m.memory, fsck.Options{})
			for _, v := range rep.Violations {
				t.Error(v)
			}
			tt.want.Crawl, tt.want.Partitions, tt.want.Objects, tt.want.Commits = crawlID, m.moves.Partitions, len(m.objects), len(m.commits())
			tt.want.Epoch = m.moves.Epoch
			tt.want.WARCs, tt.want.WARCsRead = rep.WARCs, rep.WARCs
			for _, i := range rep.Invariants {
				if i.Checked == 0 && i.Invariant != "limit" && i.Invariant != "I9" || i.Violations != 0 {
					t.Errorf("%+v", i)
				}
			}
			if rep.Read.Objects < int64(len(m.commits())) || rep.Read.Bytes == 0 || rep.Read.Records == 0 || rep.Checks != 1 {
				t.Errorf("read %+v in %d checks", rep.Read, rep.Checks)
			}
			tt.want.Read, tt.want.Checks, tt.want.Invariants = rep.Read, 1, rep.Invariants
			if d := cmp.Diff(tt.want, rep); d != "" {
				t.Errorf("report (-want +got):\n%s", d)
			}
			if few := check(t, m.memory, fsck.Options{Quick: true}); !few.Clean() {
				t.Errorf("with few WARC objects: %v", few.Violations)
			}
		})
	}
}

// pageAt changes a page record of partition 0.
func (h *hand) pageAt(seq uint64, url string, change func(*blobschema.Page)) {
	h.Helper()
	h.rewrite(naming.Commit(crawlID, 0, seq, 1), func(c *blobschema.Commit) {
		i := slices.IndexFunc(c.Pages, func(p blobschema.Page) bool { return strings.HasSuffix(p.URL, url) })
		if i < 0 {
			h.Fatalf("commit %d has no page %s", seq, url)
		}
		change(&c.Pages[i])
	})
}

func (h *hand) requests(change func(*blobschema.Requests)) {
	edit(h, naming.RequestsKey(crawlID), change)
}

// state changes the run of the last commit of a partition.
func (h *hand) state(p partition.ID, change func(*blobschema.Run)) {
	h.last(p, func(c *blobschema.Commit) { change(c.State) })
}

// renameHost drops all host states except the first and gives that one another key.
func (h *hand) renameHost(p partition.ID, to string) {
	h.state(p, func(r *blobschema.Run) {
		r.Keys = r.Keys[:1]
		r.Keys[0].Key = to
	})
}

// corruption is damage to a crawl made by hand, and the violation expected.
type corruption struct {
	name            string
	make            func(testing.TB) *maker
	invariant, says string
	do              func(m *maker)
}

var madeCorruptions = []corruption{
	{"record in another commit", recrawled, "I7", "is not the commit with its record", func(m *maker) {
		m.state(0, func(r *blobschema.Run) { r.Settled[0].Record.Seq = 1 })
	}},
	{"record in another partition", recrawled, "I7", "is not the commit with its record", func(m *maker) {
		m.state(1, func(r *blobschema.Run) { r.Settled[0].Record.Partition = 2 })
	}},
	{"previous record in another commit", recrawled, "I7", "is not the commit with its record", func(m *maker) {
		m.rewrite(naming.Commit(crawlID, 0, 2, 1), func(c *blobschema.Commit) { c.State.Queued[0].Previous.Seq = 2 })
	}},
	{"settled twice in one generation", recrawled, "I6", "has a URL twice", func(m *maker) {
		m.state(0, func(r *blobschema.Run) { r.Settled = append(r.Settled, r.Settled[0]) })
	}},
	{"record of a generation lost", recrawled, "I7", "has no page record", func(m *maker) {
		m.pageAt(3, "/", func(p *blobschema.Page) { p.Generation = 1 })
	}},
	{"generation twice", recrawled, "I8", "another page record of generation 1", func(m *maker) {
		m.pageAt(3, "/", func(p *blobschema.Page) { p.Generation = 1 })
	}},
	{"pending in a settled generation", recrawled, "I8", "pending still", func(m *maker) {
		m.rewrite(naming.Commit(crawlID, 0, 3, 1), func(c *blobschema.Commit) {
			p := c.Pages[0]
			p.URL, p.Generation = p.URL+"copy", 1
			c.Pages = append(c.Pages, p)
		})
	}},
	{"out of scope in a later generation", recrawled, "I7", "its generation is 1", func(m *maker) {
		m.pageAt(2, "outside", func(p *blobschema.Page) { p.Generation = 1 })
	}},

	{"original without page record", recrawled, "I6", "a response that has no page record", func(m *maker) {
		m.pageAt(1, "copy", func(p *blobschema.Page) { p.Original.Offset++ })
	}},
	{"original is a revisit", recrawled, "I6", "a response that has no page record", func(m *maker) {
		m.pageAt(3, "/", func(p *blobschema.Page) {
			r := m.own(2).Pages[0]
			p.Original.WARC, p.Original.Offset = r.WARC, r.Offset
		})
	}},
	{"original in a later commit", recrawled, "I6", "in the later commit 3", func(m *maker) {
		m.pageAt(1, "copy", func(p *blobschema.Page) {
			o := m.own(3).Pages[1].Payload()
			p.Original = &o
		})
	}},
	{"original of another time", recrawled, "I6", "disagrees about its original", func(m *maker) {
		m.pageAt(1, "copy", func(p *blobschema.Page) { p.Original.Time = p.Original.Time.Add(time.Hour) })
	}},
	{"original of another length", recrawled, "I6", "disagrees about its original", func(m *maker) {
		m.pageAt(1, "copy", func(p *blobschema.Page) { p.Original.Length++ })
	}},
	{"revisit of another payload", recrawled, "I6", "its digest", func(m *maker) {
		m.pageAt(1, "copy", func(p *blobschema.Page) { p.Digest = warc.PayloadDigest(nil) })
	}},
	{"revisit of another original", recrawled, "I6", "its original is", func(m *maker) {
		m.pageAt(1, "copy", func(p *blobschema.Page) { p.Original.URL += "x" })
	}},
	{"revisit of another kind", recrawled, "I6", "its profile is", func(m *maker) {
		m.pageAt(2, "/", func(p *blobschema.Page) { p.Outcome = blobschema.OutcomeOK })
	}},
	{"revisit without original", recrawled, "I6", "its type is revisit", func(m *maker) {
		m.pageAt(3, "/", func(p *blobschema.Page) { p.Original = nil })
	}},
	{"response with an original", recrawled, "I6", "its type is response", func(m *maker) {
		m.pageAt(3, "late", func(p *blobschema.Page) { p.Original = m.own(3).Pages[0].Original })
	}},
	{"unchanged without original", recrawled, "I6", "since what is not said", func(m *maker) {
		m.pageAt(2, "/", func(p *blobschema.Page) { p.Original = nil })
	}},
	{"original of a refusal", recrawled, "I6", "no WARC object", func(m *maker) {
		m.pageAt(2, "outside", func(p *blobschema.Page) { p.Original = m.own(1).Pages[1].Original })
	}},
	{"total of revisits", recrawled, "I7", "recounted totals", func(m *maker) { m.totals(func(t *blobschema.Totals) { t.Revisits++ }) }},
	{"too many pages", recrawled, "I7", "total of pages", func(m *maker) { m.totals(func(t *blobschema.Totals) { t.Pages += 10 }) }},

	{"request applied and not numbered", recrawled, "I5", "of which 0 were sent", func(m *maker) {
		m.requests(func(r *blobschema.Requests) { r.Sent = map[partition.ID]uint64{0: 2} })
	}},
	{"request above its number", recrawled, "I5", "are numbered", func(m *maker) {
		m.requests(func(r *blobschema.Requests) { r.Sent[0] = 1 })
	}},
	{"request twice", recrawled, "I5", "there twice", func(m *maker) {
		m.requests(func(r *blobschema.Requests) { r.Outbox = append(r.Outbox, r.Outbox[0]) })
	}},
	{"requests to an unknown partition", recrawled, "I5", "of 4", func(m *maker) {
		m.requests(func(r *blobschema.Requests) { r.Sent[9] = 1 })
	}},
	{"request forgotten", recrawled, "I7", "are applied or kept", func(m *maker) {
		m.requests(func(r *blobschema.Requests) { r.Outbox = r.Outbox[1:] })
	}},
	{"request missing", recrawled, "I6", "does not exist", func(m *maker) {
		m.requests(func(r *blobschema.Requests) { delete(m.objects, r.Outbox[0].Object) })
	}},
	{"request damaged", recrawled, "I6", "damaged", func(m *maker) {
		m.requests(func(r *blobschema.Requests) { m.flip(r.Outbox[0].Object, 8) })
	}},
	{"request under another name", recrawled, "I6", "its number and name", func(m *maker) {
		m.requests(func(r *blobschema.Requests) { m.objects[r.Outbox[0].Object] = m.objects[r.Outbox[1].Object] })
	}},
	{"request of another partition", recrawled, "I3", "was requested from partition 0", func(m *maker) {
		m.requests(func(r *blobschema.Requests) {
			r.Outbox[0] = m.request(0, 2, 77, blobschema.Queued{URL: "http://" + m.host(3, 0) + "/"})
		})
	}},
	{"request lost", recrawled, "I7", "a requested URL", func(m *maker) {
		m.requests(func(r *blobschema.Requests) {
			r.Outbox[1] = m.request(1, 1, 78, blobschema.Queued{URL: "http://" + m.host(1, 0) + "/lost", Flags: blobschema.FlagAgain})
		})
	}},
	{"requests garbage", recrawled, "I6", "cannot be decoded", func(m *maker) { m.records[naming.RequestsKey(crawlID)] = "[" }},
	{"head's requests", recrawled, "I6", "last applied request", func(m *maker) {
		edit(m.hand, naming.HeadKey(crawlID, 0), func(h *blobschema.Head) { h.Requests++ })
	}},
	{"head's domains", recrawled, "I6", "counts of domains", func(m *maker) {
		edit(m.hand, naming.HeadKey(crawlID, 0), func(h *blobschema.Head) { h.Domains = map[string]int64{"x.example": 1} })
	}},
	{"own mail applied before it was sent", recrawled, "I5", "mail 2 from partition 0 is applied, of which 1", func(m *maker) {
		m.last(0, func(c *blobschema.Commit) { c.Manifest.Applied[0] = blobschema.Marks{Low: 2} })
	}},
	{"own mail lost", recrawled, "I7", "was mailed to", func(m *maker) {
		m.last(0, func(c *blobschema.Commit) {
			c.Manifest.Applied[0] = blobschema.Marks{Low: 2}
			c.Manifest.Sent[0]++
			mail := blobschema.Mail{Crawl: crawlID, Number: 2, Epoch: 1, URLs: []blobschema.Queued{{URL: "http://" + m.host(0, 0) + "/lost", Flags: blobschema.FlagAgain}}}
			b, err := blobschema.EncodeMail(mail)
			if err != nil {
				m.Fatal(err)
			}
			c.Outbox = append(c.Outbox, blobschema.OutMail{To: 0, Number: 2, Body: b})
		})
	}},
	{"placed, by host", recrawled, "I2", "is placed at", func(m *maker) {
		m.state(0, func(r *blobschema.Run) {
			q := m.queued("http://"+m.host(0, 0)+"/placed", 0)
			q.Key, q.Flags = "[192.0.2.1]", blobschema.FlagPlaced
			r.Queued = append(r.Queued, q)
		})
	}},
	{"forwarded, by host", recrawled, "I7", "not by IP", func(m *maker) {
		m.state(0, func(r *blobschema.Run) { r.Settled[0].State = blobschema.Forwarded })
	}},
	{"site, by host", recrawled, "I1", "belongs to the politeness key", func(m *maker) {
		m.state(0, func(r *blobschema.Run) {
			host := m.host(0, 0)
			r.Keys = []blobschema.KeyState{{Slot: m.hash.Slot(host), Key: host + " a." + host}}
		})
	}},
	{"unknown way of partitioning", recrawled, "I6", "is partitioned by", func(m *maker) {
		edit(m.hand, naming.CrawlKey(crawlID), func(c *blobschema.Crawl) { c.Settings.PartitionBy = "moon" })
	}},

	{"domain requested too soon", byDomain, "I9", "after the request before", func(m *maker) {
		m.last(0, func(c *blobschema.Commit) { c.Pages[1].Time = c.Pages[0].Time.Add(time.Millisecond) })
	}},
	{"pending with its host as key, by domain", byDomain, "I2", "belongs to", func(m *maker) {
		m.state(0, func(r *blobschema.Run) { r.Queued[0].Key = "a." + r.Queued[0].Key })
	}},
	{"key is a host, by domain", byDomain, "I1", "belongs to the politeness key", func(m *maker) { m.renameHost(0, "a."+m.host(0, 0)) }},
	{"site of another domain", byDomain, "I1", "belongs to the politeness key", func(m *maker) { m.renameHost(0, m.host(0, 0)+" a."+m.host(1, 0)) }},
	{"site not canonical", byDomain, "I1", "is not canonical", func(m *maker) { m.renameHost(0, m.host(0, 0)+" A."+m.host(0, 0)) }},
	{"key as its own site", byDomain, "I1", "belongs to the politeness key", func(m *maker) { m.renameHost(0, m.host(0, 0)+" "+m.host(0, 0)) }},
	{"observed in another slot", byDomain, "I2", "observed host", func(m *maker) {
		m.last(0, func(c *blobschema.Commit) { c.Hosts[0].Slot++ })
	}},
	{"observed host, by domain", byDomain, "I1", "observed host", func(m *maker) {
		m.last(0, func(c *blobschema.Commit) { c.Hosts[0].Host = "a." + c.Hosts[0].Host })
	}},

	{"address requested too soon", byIP, "I9", "after the request before", func(m *maker) {
		m.last(1, func(c *blobschema.Commit) { c.Pages[1].Time = c.Pages[0].Time.Add(time.Millisecond) })
	}},
	{"pending at another address", byIP, "I2", "has the address", func(m *maker) {
		m.state(1, func(r *blobschema.Run) {
			a := "[" + m.addr(1, 1).String() + "]"
			r.Queued[0].Key, r.Queued[0].Slot = a, m.hash.Slot(a)
		})
	}},
	{"pending without an address", byIP, "I2", "is no address of it", func(m *maker) {
		m.state(1, func(r *blobschema.Run) { r.Queued[0].Key = m.host(1, 3) })
	}},
	{"mailed to another address", byIP, "I2", "has the address", func(m *maker) {
		m.lastMail(0, func(mail *blobschema.Mail) { mail.URLs[0].Key = "[" + m.addr(1, 1).String() + "]" })
	}},
	{"mailed to another's address", byIP, "I3", "was mailed to partition 1", func(m *maker) {
		m.lastMail(0, func(mail *blobschema.Mail) { mail.URLs[0].Key = "[" + m.addr(3, 0).String() + "]" })
	}},
	{"requested at an address of another slot", byIP, "I2", "was requested at", func(m *maker) {
		m.state(1, func(r *blobschema.Run) {
			slot := m.owned(1)
			for i := range r.Settled {
				if slot == r.Settled[i].Slot {
					slot = m.pmap.Owned(1)[1]
				}
			}
			for i := range r.Settled {
				if r.Settled[i].State == blobschema.Fetched {
					r.Settled[i].Slot = slot
				}
			}
		})
	}},
	{"links of another slot, by IP", byIP, "I6", "no record of that page", func(m *maker) {
		m.last(1, func(c *blobschema.Commit) { c.Links[0].Slot = m.hash.Slot(m.host(0, 0)) })
	}},
	{"placement lost", byIP, "I7", "no partition knows it at an address", func(m *maker) {
		m.state(1, func(r *blobschema.Run) { r.Queued = nil })
	}},
	{"at two addresses", byIP, "I8", "known in two slots", func(m *maker) {
		m.last(2, func(c *blobschema.Commit) {
			q := m.queued("http://"+m.host(0, 0)+"/2", 0)
			q.Key = "[" + m.addr(2, 0).String() + "]"
			q.Slot = m.hash.Slot(q.Key)
			c.State.Queued = append(c.State.Queued, q)
		})
	}},
	{"in two slots of a partition", byIP, "I8", "known in two slots", func(m *maker) {
		m.state(1, func(r *blobschema.Run) {
			q := r.Queued[0]
			q.Key = "[" + m.addr(1, 1).String() + "]"
			q.Slot = m.hash.Slot(q.Key)
			r.Queued = append(r.Queued, q)
		})
	}},
	{"forwarded with a record", byIP, "I7", "was forwarded in generation 0", func(m *maker) {
		m.last(0, func(c *blobschema.Commit) {
			c.Pages = append(c.Pages, blobschema.Page{URL: "http://" + m.host(0, 0) + "/", Outcome: blobschema.OutcomeDNS})
		})
	}},
	{"forwarded with a record reference", byIP, "I7", "and it was forwarded", func(m *maker) {
		m.state(0, func(r *blobschema.Run) {
			i := slices.IndexFunc(r.Settled, func(s blobschema.Settled) bool { return s.State == blobschema.Forwarded })
			r.Settled[i].Record.Seq = 1
		})
	}},
	{"total of forwarded URLs", byIP, "I7", "total of forwarded", func(m *maker) { m.totals(func(t *blobschema.Totals) { t.Forwarded = 0 }) }},
	{"total of forwarded URLs too high", byIP, "I7", "total of forwarded", func(m *maker) { m.totals(func(t *blobschema.Totals) { t.Forwarded++ }) }},
	{"key is an address without brackets", byIP, "I1", "belongs to the politeness key", func(m *maker) { m.renameHost(1, m.addr(1, 0).String()) }},
	{"key is an address that is not canonical", byIP, "I1", "not canonical", func(m *maker) { m.renameHost(1, "[::ffff:"+m.addr(1, 0).String()+"]") }},
	{"site of a name", byIP, "I1", "belongs to the politeness key", func(m *maker) { m.renameHost(0, m.host(0, 0)+" "+m.host(0, 1)) }},
	{"site of another address", byIP, "I1", "belongs to the politeness key", func(m *maker) {
		m.renameHost(1, "["+m.addr(1, 0).String()+"] "+m.addr(1, 1).String())
	}},

	{"left out and not counted", capped, "I7", "was followed", func(m *maker) { m.totals(func(t *blobschema.Totals) { t.Capped = 0 }) }},
	{"left out below the cap", capped, "I7", "was followed", func(m *maker) {
		edit(m.hand, naming.CrawlKey(crawlID), func(c *blobschema.Crawl) { c.Settings.MaxHostURLs = 10 })
	}},
	{"left out below the cap of a domain", capped, "I7", "was followed", func(m *maker) {
		edit(m.hand, naming.CrawlKey(crawlID), func(c *blobschema.Crawl) {
			c.Settings.MaxHostURLs, c.Settings.MaxDomainURLs = 0, 10
		})
	}},
	{"more left out than counted", capped, "I7", "has left out 2", func(m *maker) {
		m.last(0, func(c *blobschema.Commit) {
			t := &c.Links[0].Targets
			for fp := range uint64(5) {
				*t = append(*t, blobschema.Target{Fingerprint: fp, Slot: (*t)[0].Slot, Followed: true})
			}
		})
	}},
	{"left out late without a record", capped, "I7", "has no page record", func(m *maker) {
		m.last(0, func(c *blobschema.Commit) { c.Pages = c.Pages[:1] })
	}},
	{"left out late, record in another commit", capped, "I7", "is not the commit with its record", func(m *maker) {
		m.state(0, func(r *blobschema.Run) {
			for i := range r.Settled {
				r.Settled[i].Record.Seq = 2
			}
		})
	}},
}

// own decodes a commit of partition 0.
func (m *maker) own(seq uint64) *blobschema.Commit {
	return m.hand.commit(naming.Commit(crawlID, 0, seq, 1))
}

// lastMail changes the first mail that the last commit of a partition sends.
func (m *maker) lastMail(p partition.ID, change func(*blobschema.Mail)) {
	m.last(p, func(c *blobschema.Commit) {
		mail, err := blobschema.DecodeMail(c.Outbox[0].Body)
		if err != nil {
			m.Fatal(err)
		}
		change(&mail)
		if c.Outbox[0].Body, err = blobschema.EncodeMail(mail); err != nil {
			m.Fatal(err)
		}
	})
}

// TestFindsCorruptionByHand checks that each damage to a crawl made by hand is found.
func TestFindsCorruptionByHand(t *testing.T) {
	for _, tt := range slices.Concat(madeCorruptions, movedCorruptions, indexCorruptions, rankCorruptions) {
		t.Run(tt.name, func(t *testing.T) {
			m := tt.make(t)
			tt.do(m)
			rep := check(t, m.memory, fsck.Options{})
			for _, v := range rep.Violations {
				if v.Invariant == tt.invariant && strings.Contains(v.What, tt.says) {
					return
				}
			}
			t.Errorf("no violation of %s says %q; found %d: %v", tt.invariant, tt.says, rep.Found, rep.Violations)
		})
	}
}

// TestDomainCap checks that URLs of a capped domain may be left out, even if the partition knows
// few URLs of the domain.
func TestDomainCap(t *testing.T) {
	m := capped(t)
	edit(m.hand, naming.CrawlKey(crawlID), func(c *blobschema.Crawl) { c.Settings.MaxHostURLs, c.Settings.MaxDomainURLs = 0, 10 })
	m.put(naming.DesiredKey(crawlID), blobschema.DesiredState{Version: 1, Capped: []string{m.host(0, 0)}})
	if rep := check(t, m.memory, fsck.Options{}); !rep.Clean() {
		t.Errorf("found %v", rep.Violations)
	}
}

// TestSettledTwice checks that one commit may settle a URL in two generations.
func TestSettledTwice(t *testing.T) {
	m := recrawled(t)
	a := "http://" + m.host(0, 0) + "/"
	m.answer(0, a, 3, body+"new", nil)
	m.answer(0, a, 4, body+"newer", nil)
	m.commit(0, blobschema.Commit{})
	if rep := check(t, m.memory, fsck.Options{}); !rep.Clean() || rep.Generations != 4 {
		t.Errorf("found %v in %+v", rep.Violations, rep)
	}
}

// TestFewerPages checks that the total of pages may be less than the number of page records,
// because requested pages do not count.
func TestFewerPages(t *testing.T) {
	m := recrawled(t)
	edit(m.hand, naming.HeadKey(crawlID, 0), func(h *blobschema.Head) { h.Totals.Pages-- })
	m.totals(func(t *blobschema.Totals) { t.Pages-- })
	if rep := check(t, m.memory, fsck.Options{}); !rep.Clean() {
		t.Errorf("found %v", rep.Violations)
	}
}
