package fsck_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// maker makes a crawl by hand. Its commits have any content, and totals, summaries and heads
// that agree with the content.
type maker struct {
	*hand
	crawl blobschema.Crawl
	parts [partitions + 1]*made    // the last one owns no slots at first
	heads [partitions + 1][]string // all heads, oldest first
	moves blobschema.MapRecord
	chart *partition.Map        // of moves
	pins  map[string]netip.Addr // addresses of names, by IP
	now   time.Time
}

// made is one partition of a maker, with the pages of the next commit.
type made struct {
	man   blobschema.Manifest
	state blobschema.Run // joined from all runs
	pages []blobschema.Page
	warc  []byte
	// unexamined counts the URLs appended to slots that have not arrived yet.
	unexamined map[partition.Slot]uint32
}

func newMaker(t testing.TB, settings blobschema.Settings) *maker {
	settings.Scope, settings.Delay = blobschema.ScopeHost, 100*time.Millisecond
	c := blobschema.Crawl{Version: wire.Version, ID: crawlID, HashKey: []byte("0123456789abcdef"), Slots: slots, Partitions: partitions, Settings: settings}
	m := &maker{crawl: c, pins: map[string]netip.Addr{}, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	mem := &memory{records: map[string]string{}, objects: map[string][]byte{}}
	mem.records[naming.ActiveKey] = `{"crawl":"` + crawlID + `"}`
	m.hand = &hand{TB: t, memory: mem}
	m.put(naming.CrawlKey(crawlID), c)
	m.hand = newHand(t, mem)
	for p := range m.parts {
		m.parts[p] = &made{
			man:        blobschema.Manifest{Crawl: crawlID, Partition: partition.ID(p), Fence: 1, Epoch: 1, Delay: settings.Delay},
			unexamined: map[partition.Slot]uint32{},
		}
	}
	m.moves, m.chart = blobschema.MapRecord{Epoch: 1, Partitions: partitions}, m.pmap
	return m
}

func (m *maker) put(key string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		m.Fatal(err)
	}
	m.records[key] = string(b)
}

// host returns the n-th name whose slot a partition owns.
func (m *maker) host(p partition.ID, n int) string {
	for i := 0; ; i++ {
		name := fmt.Sprintf("h%d.example", i)
		if m.pmap.Owner(m.hash.Slot(name)) != p {
			continue
		}
		if n--; n < 0 {
			return name
		}
	}
}

// addr returns the n-th address whose slot a partition owns.
func (m *maker) addr(p partition.ID, n int) netip.Addr {
	for a := netip.MustParseAddr("192.0.2.1"); ; a = a.Next() {
		if m.pmap.Owner(m.hash.Slot("["+a.String()+"]")) != p {
			continue
		}
		if n--; n < 0 {
			return a
		}
	}
}

// queued returns a URL in its slot: the slot of the address, if its name has one.
func (m *maker) queued(url string, gen uint32) blobschema.Queued {
	u, err := weburl.Parse(url)
	if err != nil {
		m.Fatal(err)
	}
	q := blobschema.Queued{URL: url, Key: string(u.Host()), Rank: 1, Generation: gen}
	switch m.crawl.Settings.PartitionBy {
	case blobschema.ByDomain:
		q.Key = u.Host().RegistrableDomain()
	case blobschema.ByIP:
		a, pinned := m.pins[q.Key]
		if !pinned {
			a, _ = netip.ParseAddr(q.Key)
		}
		if a.IsValid() {
			q.Key, q.Flags = "["+a.String()+"]", blobschema.FlagPlaced
		}
	}
	q.Slot = m.hash.Slot(q.Key)
	return q
}

// answer adds a response to the next commit of a partition, or a revisit if of is not nil. Its
// time is a second after that of the last answer.
func (m *maker) answer(p partition.ID, url string, gen uint32, body string, of *blobschema.Page) blobschema.Page {
	mp := m.parts[p]
	m.now = m.now.Add(time.Second)
	pg := blobschema.Page{
		URL: url, Generation: gen, Outcome: blobschema.OutcomeOK, Status: 200, Time: m.now, BodyBytes: int64(len(body)),
		Digest: warc.PayloadDigest([]byte(body)), WARC: naming.WARC(crawlID, p, 1, mp.man.Seq+1, true),
	}
	e := warc.NewEncoder(warc.GzipFast)
	add := func(r warc.Record) {
		var err error
		if mp.warc, _, err = e.Append(mp.warc, &r); err != nil {
			m.Fatal(err)
		}
	}
	if len(mp.warc) == 0 {
		add(*warc.Info(m.now, pg.WARC, warc.InfoFields{Software: "test"}))
	}
	pg.Offset = int64(len(mp.warc))
	q := m.queued(url, gen)
	ip := netip.AddrFrom4([4]byte{192, 0, 2, 200}).String()
	if q.Flags&blobschema.FlagPlaced != 0 {
		ip = q.Key[1 : len(q.Key)-1]
	}
	r := warc.Record{
		Type: warc.TypeResponse, Date: m.now, TargetURI: url, IPAddress: ip, Header: []byte("HTTP/1.1 200 OK\r\n\r\n"),
		Body: []byte(body), Packed: gen%2 == 0,
	}
	if of != nil {
		o, profile, status := of.Payload(), warc.ProfileIdenticalPayload, "200 OK"
		if body == "" {
			pg.Outcome, pg.Status, pg.Digest, pg.BodyBytes = blobschema.OutcomeUnchanged, 304, of.Digest, of.BodyBytes
			profile, status = warc.ProfileNotModified, "304 Not Modified"
		}
		pg.Original = &o
		r = warc.Revisit(m.now, url, ip, profile, pg.Digest, o, []byte("HTTP/1.1 "+status+"\r\n\r\n"))
	}
	add(r)
	pg.Length = int64(len(mp.warc)) - pg.Offset
	mp.pages = append(mp.pages, pg)
	return pg
}

// refuse adds a page record without an answer.
func (m *maker) refuse(p partition.ID, url string, o blobschema.Outcome) {
	m.parts[p].pages = append(m.parts[p].pages, blobschema.Page{URL: url, Outcome: o, Time: m.now})
}

// mail returns the next mail from one partition to another.
func (m *maker) mail(from, to partition.ID, urls ...blobschema.Queued) blobschema.OutMail {
	man := &m.parts[from].man
	man.Sent = maps.Clone(man.Sent)
	if man.Sent == nil {
		man.Sent = map[partition.ID]uint64{}
	}
	man.Sent[to]++
	body, err := blobschema.EncodeMail(blobschema.Mail{Crawl: crawlID, From: from, To: to, Number: man.Sent[to], Epoch: man.Epoch, URLs: urls})
	if err != nil {
		m.Fatal(err)
	}
	return blobschema.OutMail{To: to, Number: man.Sent[to], Body: body}
}

// apply marks all mail up to a number as applied.
func (m *maker) apply(p, from partition.ID, number uint64) {
	man := &m.parts[p].man
	man.Applied = maps.Clone(man.Applied)
	if man.Applied == nil {
		man.Applied = map[partition.ID]blobschema.Marks{}
	}
	man.Applied[from] = blobschema.Marks{Low: number}
}

// seeds adds a batch of seeds to the crawl.
func (m *maker) seeds(urls ...string) {
	b := blobschema.SeedBatch{Number: uint64(len(m.crawl.SeedBatches) + 1)}
	for _, u := range urls {
		b.URLs = append(b.URLs, blobschema.Queued{URL: u, Flags: blobschema.FlagSeed})
	}
	data, err := blobschema.EncodeSeeds(b)
	if err != nil {
		m.Fatal(err)
	}
	name := naming.Seeds(crawlID, data)
	m.objects[name] = data
	m.crawl.SeedBatches = append(m.crawl.SeedBatches, name)
	m.put(naming.CrawlKey(crawlID), m.crawl)
}

// request stores the object of a request and returns its mail.
func (h *hand) request(to partition.ID, number, request uint64, urls ...blobschema.Queued) blobschema.RequestMail {
	data, err := blobschema.EncodeSeeds(blobschema.SeedBatch{Number: request, URLs: urls})
	if err != nil {
		h.Fatal(err)
	}
	name := naming.Request(crawlID, data)
	h.objects[name] = data
	return blobschema.RequestMail{To: to, Number: number, Request: request, Object: name}
}

// commit stores c together with the pages answered and refused since the last commit. It adds
// the settled entries of these pages to the state.
func (m *maker) commit(p partition.ID, c blobschema.Commit) {
	mp := m.parts[p]
	man, t := &mp.man, &mp.man.Totals
	man.Seq++
	man.Time, man.WARCs = m.now, nil
	if c.State == nil {
		c.State = &blobschema.Run{}
	}
	t.Outcomes = maps.Clone(t.Outcomes)
	if t.Outcomes == nil {
		t.Outcomes = map[string]int64{}
	}
	for _, pg := range mp.pages {
		t.Outcomes[pg.Outcome.String()]++
		if pg.Outcome == blobschema.OutcomeOK && pg.Generation == 0 {
			t.Pages++
		}
		if pg.Original != nil {
			t.Revisits++
		}
		s := blobschema.Settled{
			Slot: m.queued(pg.URL, 0).Slot, Fingerprint: m.hash.Fingerprint(pg.URL), Generation: pg.Generation, State: blobschema.Refused,
			Record: blobschema.RecordRef{Partition: p, Seq: uint32(man.Seq)},
		}
		if pg.Outcome.Answered() {
			s.State = blobschema.Fetched
		}
		if pg.Outcome != blobschema.OutcomeScope {
			c.State.Settled = append(c.State.Settled, s)
		}
	}
	for _, s := range c.State.Settled {
		if s.State == blobschema.Forwarded {
			t.Forwarded++
		}
	}
	if len(mp.warc) > 0 {
		man.WARCs = []string{naming.WARC(crawlID, p, 1, man.Seq, true)}
		m.objects[man.WARCs[0]] = mp.warc
		t.Stored += int64(len(mp.warc))
	}
	c.Pages, mp.pages, mp.warc = mp.pages, nil, nil
	if len(c.Outbox) > 0 {
		man.Unsent = append(slices.Clone(man.Unsent), man.Seq)
	}
	mp.state = *blobschema.MergeRuns(m.hash, []*blobschema.Run{&mp.state, c.State})
	man.Slots, t.Known, t.Pending, t.Unexamined = m.summaries(p, nil), 0, 0, 0
	for _, s := range man.Slots {
		t.Known, t.Pending, t.Unexamined = t.Known+int64(s.Known), t.Pending+int64(s.Pending), t.Unexamined+int64(s.Unexamined)
	}
	c.Manifest = *man
	name := naming.Commit(crawlID, p, man.Seq, 1)
	data, stored, err := blobschema.EncodeCommit(&c, name, m.hash)
	if err != nil {
		m.Fatal(err)
	}
	m.objects[name] = data
	mp.man = stored
	mp.man.Commits = []blobschema.CommitRange{{Fence: 1, From: 1, To: man.Seq}}
	m.putHead(p, name, &stored)
}

// putHead writes the head of a partition, which names its last commit.
func (m *maker) putHead(p partition.ID, name string, stored *blobschema.Manifest) {
	head := blobschema.Head{
		Partition: p, Fence: 1, Commit: name, Seq: stored.Seq, Epoch: stored.Epoch, Totals: stored.Totals, Requests: stored.Applied[partition.Requests].Low,
		Sent: make([]uint64, len(m.parts)), Due: m.now, Domains: stored.Domains,
	}
	for to, n := range stored.Sent {
		head.Sent[to] = n
	}
	for _, marks := range stored.Applied {
		head.Applied += marks.Low
	}
	for _, g := range stored.Given {
		if head.Gives == nil {
			head.Gives = map[partition.ID]partition.Epoch{}
		}
		head.Gives[g.To] = max(head.Gives[g.To], g.Epoch)
	}
	holding := m.holding(p)
	for _, mv := range m.moves.Moving {
		for _, s := range mv.Slots {
			switch {
			case mv.Epoch > stored.Epoch:
			case mv.From == p && holding.Holds(s):
				head.Owes++
			case mv.To == p && !holding.Holds(s) && (head.Awaits == 0 || mv.Epoch < head.Awaits):
				head.Awaits = mv.Epoch
			}
		}
	}
	m.put(naming.HeadKey(crawlID, p), head)
	m.heads[p] = append(m.heads[p], m.records[naming.HeadKey(crawlID, p)])
}

// move stores a map of the next epoch, in which slots belong to another partition. No partition
// has read that map yet.
func (m *maker) move(from, to partition.ID, moved ...partition.Slot) partition.Epoch {
	var plan []partition.Move
	for _, s := range moved {
		plan = append(plan, partition.Move{Slot: s, From: from, To: to})
	}
	next, err := m.chart.Apply(plan)
	if err != nil {
		m.Fatal(err)
	}
	name, data, err := blobschema.MapObjectName(crawlID, next)
	if err != nil {
		m.Fatal(err)
	}
	r := &m.moves
	m.objects[name] = data
	m.chart = next
	r.Version++
	r.Epoch, r.Partitions = next.Epoch(), max(r.Partitions, int(to)+1)
	r.Previous, r.Object = append([]string{r.Object}, r.Previous...), name
	r.Moving = append(r.Moving, blobschema.Moving{Epoch: r.Epoch, From: from, To: to, Slots: partition.SlotsOf(moved)})
	m.put(naming.MapKey(crawlID), r)
	return r.Epoch
}

func (m *maker) holding(p partition.ID) *blobschema.Holding {
	return blobschema.NewHolding(p, m.pmap, m.parts[p].man.Moved)
}

// give makes the next commit of a partition hand over the slots that it owes.
func (m *maker) give(p partition.ID) {
	man := &m.parts[p].man
	man.Epoch = m.moves.Epoch
	holding := m.holding(p)
	for _, mv := range m.moves.Moving {
		if mv.From != p || !holding.Holds(mv.Slots[0]) {
			continue
		}
		man.Given = append(slices.Clone(man.Given), blobschema.Handover{
			Epoch: mv.Epoch, To: mv.To, Slots: mv.Slots, Runs: slices.Clone(man.Runs), State: m.summaries(p, mv.Slots),
		})
		holding.Add(blobschema.Moved{Epoch: mv.Epoch, Slots: mv.Slots})
	}
	man.Moved = holding.Moved()
}

// take makes the next commit of a partition take the slots that another has handed over to it.
func (m *maker) take(p, from partition.ID) {
	mp := m.parts[p]
	mp.man.Epoch = m.moves.Epoch
	holding := m.holding(p)
	for _, g := range m.parts[from].man.Given {
		if g.To != p || g.Epoch <= holding.Seen(g.Slots[0]) {
			continue
		}
		holding.Add(blobschema.Moved{Epoch: g.Epoch, Received: true, Slots: g.Slots})
		mp.man.Runs = append(slices.Clone(mp.man.Runs), g.Runs...)
		mp.state = *blobschema.MergeRuns(m.hash, []*blobschema.Run{&mp.state, &m.parts[from].state})
	}
	mp.man.Moved = holding.Moved()
}

// confirm removes the completed moves to a partition from the record of the map.
func (m *maker) confirm(to partition.ID) {
	m.moves.Version++
	m.moves.Moving = slices.DeleteFunc(slices.Clone(m.moves.Moving), func(mv blobschema.Moving) bool { return mv.To == to })
	m.put(naming.MapKey(crawlID), m.moves)
}

// summaries returns the summaries of the slots that a partition holds and of those that have
// not arrived yet. If only is not nil, it returns only those slots.
func (m *maker) summaries(p partition.ID, only partition.Slots) (out []blobschema.SlotSummary) {
	mp, holding := m.parts[p], m.holding(p)
	for _, s := range summaries(&mp.state) {
		n := mp.unexamined[s.Slot]
		switch {
		case only != nil && !only.Has(s.Slot):
			continue
		case holding.Holds(s.Slot):
			s.Known, s.Pending, s.Unexamined = s.Known-n, s.Pending-n, n
		case n > 0:
			s = blobschema.SlotSummary{Slot: s.Slot, Unexamined: n}
		default:
			continue
		}
		out = append(out, s)
	}
	return out
}

func summaries(state *blobschema.Run) (out []blobschema.SlotSummary) {
	sums := map[partition.Slot]blobschema.SlotSummary{}
	count := func(slot partition.Slot, pending uint32) {
		s := sums[slot]
		s.Slot, s.Known, s.Pending = slot, s.Known+1, s.Pending+pending
		if pending > 0 {
			s.Due = 1
		}
		sums[slot] = s
	}
	for _, s := range state.Settled {
		count(s.Slot, 0)
	}
	for _, q := range state.Queued {
		count(q.Slot, 1)
	}
	for _, slot := range slices.Sorted(maps.Keys(sums)) {
		out = append(out, sums[slot])
	}
	return out
}

func (m *maker) pending(qs ...blobschema.Queued) *blobschema.Run {
	return &blobschema.Run{Queued: qs}
}
