package fsck

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// openPartition checks the manifest that a head names, and that they agree.
func (c *checker) openPartition(p *part) error {
	key := naming.HeadKey(c.id, p.id)
	h := &p.head
	if h.Partition != p.id {
		c.violate("I4", key, "it is the head of partition %d", h.Partition)
	}
	if h.Commit == "" {
		if h.Seq != 0 {
			c.violate("I4", key, "it names no commit, but says it is the %d-th", h.Seq)
		}
		return nil
	}
	if p.man == nil {
		r, err := c.commit(h.Commit, key)
		if r == nil {
			return err
		}
		c.violate("I6", h.Commit, "%v", c.manifests[h.Commit].err)
		return nil
	}
	m := p.man
	if name := naming.Commit(c.id, p.id, m.Seq, m.Fence); name != h.Commit || h.Seq != m.Seq {
		c.violate("I4", key, "it names %s, the %d-th, whose manifest says it is %s", h.Commit, h.Seq, name)
	}
	if m.Fence > h.Fence {
		c.violate("I4", key, "its fence is %d, that of its commit %d", h.Fence, m.Fence)
	}
	c.checkHead(p, key)
	return nil
}

// checkHead compares what a head copies from its manifest.
func (c *checker) checkHead(p *part, key string) {
	h, m := &p.head, p.man
	if a, b := figures(h.Totals), figures(m.Totals); a != b {
		c.violate("I7", key, "its totals are %s, those of the manifest %s", a, b)
	}
	if n := applied(m); h.Applied != n {
		c.violate("I5", key, "it says %d mails are applied, the manifest's marks say %d", h.Applied, n)
	}
	if n := m.Applied[partition.Requests].Low; h.Requests != n {
		c.violate("I5", key, "it says all requests up to %d are applied, the manifest's marks say %d", h.Requests, n)
	}
	if !maps.Equal(h.Domains, m.Domains) {
		c.violate("I7", key, "its counts of domains are %v, those of the manifest %v", h.Domains, m.Domains)
	}
	for to := range c.parts {
		n := uint64(0)
		if to < len(h.Sent) {
			n = h.Sent[to]
		}
		if s := m.Sent[partition.ID(to)]; n != s {
			c.violate("I5", key, "it says %d mails were sent to partition %d, the manifest %d", n, to, s)
		}
	}
	if h.Epoch != m.Epoch || h.Wish != m.Wish || !slices.Equal(h.Scope, m.NewScope) {
		c.violate("I6", key, "epoch %d, wish %d and new hosts %q are not the manifest's %d, %d and %q", h.Epoch, h.Wish, h.Scope, m.Epoch, m.Wish, m.NewScope)
	}
	if h.Published > h.Seq {
		c.violate("I5", key, "it says the mail of commit %d is sent, and its last commit is %d", h.Published, h.Seq)
	}
	if n := c.fetchable(p); n > 0 && h.Due.IsZero() {
		c.violate("I7", key, "%d URLs are pending and no time is set to ask for them", n)
	}
	c.checkMovesOfHead(p, key)
}

// fetchable counts the URLs that a partition may ask for: those of the slots that it
// holds and need not give away.
func (c *checker) fetchable(p *part) int64 {
	n := p.man.Totals.Pending + p.man.Totals.Unexamined
	for _, s := range p.man.Slots {
		if c.awaits(p, s.Slot) || c.owes(p, s.Slot) {
			n -= int64(s.Pending) + int64(s.Unexamined)
		}
	}
	return n
}

// figures are totals in a form to compare and to show.
func figures(t blobschema.Totals) string {
	if len(t.Outcomes) == 0 {
		t.Outcomes = nil
	}
	b, err := json.Marshal(t)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func applied(m *blobschema.Manifest) (n uint64) {
	for _, marks := range m.Applied {
		n += marks.Low + uint64(len(marks.Above))
	}
	return n
}

// isApplied reports whether a partition has applied a mail.
func (p *part) isApplied(from partition.ID, number uint64) bool {
	if p.man == nil {
		return false
	}
	m := p.man.Applied[from]
	return number <= m.Low || slices.Contains(m.Above, number)
}

// commit opens a commit object. It returns nil, and the violation is reported, if
// that cannot be done.
func (c *checker) commit(name, where string) (*blobschema.CommitReader, error) {
	data, err := c.object(name, where)
	return c.opened(name, data), err
}

// opened opens a commit object that was read; nil data was not, which is reported.
func (c *checker) opened(name string, data []byte) *blobschema.CommitReader {
	if data == nil {
		return nil
	}
	r, err := blobschema.OpenCommit(data)
	if err != nil {
		c.violate("I6", name, "%v", err)
		return nil
	}
	return r
}

// name takes note that something names an object, and reports whether it is the
// only one.
func (c *checker) name(object, by string) bool {
	if c.named[object] != "" {
		return false
	}
	c.named[object] = by
	return true
}

// history is what the commits of a partition add up to.
type history struct {
	*part
	totals blobschema.Totals
	slots  map[partition.Slot]*slotCount // in the runs its manifest names
	then   *blobschema.Holding           // of the commit read last
	some   []string                      // commits that are read, where not all are
	unread bool                          // a WARC object cannot be read: their bytes are not known
	lineage
}

// checkPartitions reads the state and the commits of all partitions, and compares them.
// The pages of a slot may be anywhere once slots have moved, so that all state is needed
// at once; else one partition after another is.
func (c *checker) checkPartitions() error {
	if c.atlas.anyMoved {
		return c.checkGroup(c.parts, "state", "commits")
	}
	for i := range c.parts {
		if err := c.checkGroup(c.parts[i:i+1], "state", "state"); err != nil {
			return err
		}
	}
	return nil
}

// checkGroup checks partitions that have no slots or pages of others.
func (c *checker) checkGroup(group []*part, state, commits string) error {
	all := make([]*history, len(group))
	for i, p := range group {
		c.progress(state, int(p.id))
		all[i] = &history{part: p}
		if err := c.checkState(all[i]); err != nil {
			return err
		}
	}
	for _, p := range group {
		c.joinState(p)
	}
	broken := false
	for _, h := range all {
		c.progress(commits, int(h.id))
		if h.man != nil {
			if err := c.walk(h); err != nil {
				return err
			}
			c.checkMarks(h.part)
		}
		h.done, broken = true, broken || h.broken
	}
	for _, p := range group {
		slices.Sort(p.outside)
		p.broken = broken
		if !broken { // counts and comparisons would only repeat it
			c.checkSettled(p)
		}
		p.state, p.records = nil, nil
	}
	if err := c.checkIndexes(all, broken); err != nil {
		return err
	}
	if !broken {
		for _, h := range all {
			if h.man != nil {
				c.checkTotals(h)
			}
		}
		c.checkForwardedTotals(all)
	}
	return nil
}

// maxMissing is how many commits may be missing in a row before the others are given
// up: the ranges that name them may be wrong.
const maxMissing = 10

// walk reads all commits of a partition in order.
func (c *checker) walk(h *history) error {
	if c.next != nil {
		h.lineage.was = c.opt.State.Partitions[h.id]
	}
	c.checkRanges(h.man, h.head.Commit)
	prev, missing := &blobschema.Manifest{}, 0
	for name := range blobschema.CommitNames(h.man) {
		c.name(name, h.head.Commit)
		data, err := c.object(name, h.head.Commit)
		if err != nil {
			return err
		}
		c.follow(h, name, data)
		r := c.opened(name, data)
		if r == nil {
			h.broken = true
			if missing++; missing == maxMissing {
				return nil
			}
			continue
		}
		missing = 0
		m, err := c.readCommit(h, name, r, prev)
		if err != nil {
			return err
		}
		if m != nil {
			prev = m
		}
	}
	if c.next != nil {
		c.next.Partitions[h.id] = Whole{Seq: h.seq, Lineage: hex.EncodeToString(h.hash[:]), Stored: h.was.Stored + h.read}
	}
	return nil
}

// readCommit checks one commit and collects what it holds. It returns its manifest,
// nil if that cannot be read.
func (c *checker) readCommit(h *history, name string, r *blobschema.CommitReader, prev *blobschema.Manifest) (*blobschema.Manifest, error) {
	c.report.Commits++
	m, err := r.Manifest()
	if err != nil {
		c.unreadable(h, name, err)
		return nil, nil
	}
	c.checkManifest(h.part, name, prev, &m)
	was, is := c.checkMoves(h, name, prev, &m)
	for _, run := range m.Dropped {
		c.dropped[run] = m.Time
	}
	pages, err := r.Pages()
	if err != nil {
		c.unreadable(h, name, err)
	}
	addrs, err := c.checkWARCs(h, name, &m, pages)
	if err != nil {
		return nil, err
	}
	c.checkLinkSources(h, name, r, c.readPages(h, name, &m, pages, addrs, func(s partition.Slot) bool { return was.Holds(s) || is.Holds(s) }))
	c.checkOutbox(h, name, r, prev, &m)
	c.checkHeld(h, name, r, &m)
	c.checkDelta(h, name, r, &m)
	c.checkObserved(name, r)
	return &m, nil
}

// checkRanges checks that the ranges of a manifest name all commits before it.
func (c *checker) checkRanges(m *blobschema.Manifest, name string) {
	next, fence := uint64(1), uint64(0)
	for _, r := range m.Commits {
		if r.From != next {
			c.violate("I4", name, "its commits go from %d to %d: some are left out", next-1, r.From)
		}
		if r.Fence < fence {
			c.violate("I4", name, "commit %d has fence %d, the one before %d", r.From, r.Fence, fence)
		}
		next, fence = r.To+1, r.Fence
	}
	if m.Seq != next {
		c.violate("I4", name, "its commits end with %d, and it is the %d-th", next-1, m.Seq)
	}
	if m.Fence < fence {
		c.violate("I4", name, "its fence is %d, that of the commit before %d", m.Fence, fence)
	}
}

// checkManifest checks a commit's manifest against its name and its predecessor.
func (c *checker) checkManifest(p *part, name string, prev, m *blobschema.Manifest) {
	c.checked["I4"]++
	c.checked["I5"] += int64(len(prev.Applied))
	if m.Crawl != c.id || m.Partition != p.id || naming.Commit(m.Crawl, m.Partition, m.Seq, m.Fence) != name {
		c.violate("I4", name, "its manifest is of crawl %s, partition %d, commit %d, fence %d", m.Crawl, m.Partition, m.Seq, m.Fence)
	}
	if m.Epoch < prev.Epoch || m.Epoch < 1 {
		c.violate("I3", name, "its epoch is %d, that of the commit before %d", m.Epoch, prev.Epoch)
	}
	if m.Seq == prev.Seq+1 && !slices.Equal(m.Commits, follow(prev)) {
		c.violate("I4", name, "the commits before it are %v, and it says %v", follow(prev), m.Commits)
	}
	for _, from := range slices.Sorted(maps.Keys(prev.Applied)) {
		was, is := prev.Applied[from], m.Applied[from]
		shrunk := is.Low < was.Low
		for _, n := range was.Above {
			shrunk = shrunk || n > is.Low && !slices.Contains(is.Above, n)
		}
		if shrunk {
			c.violate("I5", name, "mail from %s was applied up to %v before, and is up to %v", sender(from), was, is)
		}
	}
	for _, to := range slices.Sorted(maps.Keys(prev.Sent)) {
		if m.Sent[to] < prev.Sent[to] {
			c.violate("I5", name, "%d mails to partition %d were sent before, and are %d", prev.Sent[to], to, m.Sent[to])
		}
	}
	for _, seq := range m.Unsent {
		if seq < 1 || seq > m.Seq {
			c.violate("I5", name, "it names the outbox of commit %d", seq)
		}
	}
}

// follow is what the commit after m says of the commits before it.
func follow(m *blobschema.Manifest) []blobschema.CommitRange {
	if m.Seq == 0 {
		return nil
	}
	out := slices.Clone(m.Commits)
	if n := len(out); n > 0 && out[n-1].Fence == m.Fence && out[n-1].To+1 == m.Seq {
		out[n-1].To = m.Seq
		return out
	}
	return append(out, blobschema.CommitRange{Fence: m.Fence, From: m.Seq, To: m.Seq})
}

func sender(p partition.ID) string {
	if p == partition.Intake {
		return "intake"
	}
	return fmt.Sprintf("partition %d", p)
}

// readPages checks page records by themselves, and collects them. addrs are the
// addresses that were asked, as far as they were read; holds says which slots the
// partition held. It returns the slots of the pages, by fingerprint.
func (c *checker) readPages(h *history, name string, m *blobschema.Manifest, pages []blobschema.Page, addrs []netip.Addr, holds func(partition.Slot) bool) map[uint64]partition.Slot {
	slots := make(map[uint64]partition.Slot, len(pages))
	for i := range pages {
		pg := &pages[i]
		c.report.Pages++
		u, ok := c.canonical(pg.URL, name)
		if !ok {
			continue
		}
		c.observe(pg, u.Host(), cmp.Or(c.opt.Delay, m.Delay))
		switch {
		case pg.Outcome == blobschema.OutcomeNone || pg.Outcome == blobschema.OutcomeAborted || strings.HasPrefix(pg.Outcome.String(), "outcome-"):
			c.violate("I7", name, "the outcome of %s is %s: no answer, and no reason for none", pg.URL, pg.Outcome)
		case pg.Outcome.Answered() != (pg.WARC != ""):
			c.violate("I6", name, "the outcome of %s is %s, its WARC object %q", pg.URL, pg.Outcome, pg.WARC)
		}
		c.claim(h, name, m.Seq, pg)
		if pg.Robots {
			h.totals.Robots++ // asked for by the crawler itself: no URL of the frontier
			continue
		}
		fp := c.hash.Fingerprint(pg.URL)
		slot := c.checkPlace(h, name, pg, u, fp, addrs[i])
		c.checked["I2"]++
		c.checked["I3"]++
		if home := c.atlas.home[slot]; !holds(slot) && (pg.Outcome != blobschema.OutcomeScope || !c.had(h.id, slot)) {
			c.violate("I3", name, "the page record of %s, of slot %d, is partition %d's", pg.URL, slot, home)
		}
		slots[fp] = slot
		if c.indexed && c.walks(h.part) {
			h.answers = append(h.answers, c.answerOf(pg, u, fp, m.Seq))
		}
		if c.inScope(slot) || c.walks(h.part) {
			c.count(h, slot, name, m, pg, fp)
		}
	}
	return slots
}

// checkPlace returns the slot of a page. That of a name's page in a crawl by IP is what the
// state says; the address that was asked must have it.
func (c *checker) checkPlace(h *history, name string, pg *blobschema.Page, u weburl.URL, fp uint64, asked netip.Addr) partition.Slot {
	unit, literal := c.unit(u.Host())
	slot := c.hash.Slot(unit)
	if !c.byIP() || literal || pg.Outcome == blobschema.OutcomeScope {
		return slot
	}
	if at, ok := h.slotOf(fp); ok {
		slot = at
	} else if c.atlas.anyMoved {
		for _, p := range c.parts {
			if at, ok := p.slotOf(fp); ok {
				slot = at
				break
			}
		}
	}
	if asked.IsValid() {
		c.pin(u.Host(), asked, name)
		if of := c.hash.Slot(addressUnit(asked)); of != slot && !h.broken {
			c.violate("I2", name, "%s was asked for at %s, of slot %d, and belongs to slot %d", pg.URL, asked, of, slot)
		}
	}
	return slot
}

// slotOf finds the slot that a URL is at home in here, if it is.
func (p *part) slotOf(fp uint64) (slot partition.Slot, found bool) {
	i, _ := slices.BinarySearchFunc(p.state, fp, func(e entry, fp uint64) int { return cmp.Compare(e.fp, fp) })
	for ; i < len(p.state) && p.state[i].fp == fp; i++ {
		if p.state[i].state != blobschema.Forwarded {
			slot, found = p.state[i].slot, true
		}
	}
	return slot, found
}

// count adds a page record to the figures, and keeps what is compared with the state: with
// the home of its slot.
func (c *checker) count(h *history, slot partition.Slot, name string, m *blobschema.Manifest, pg *blobschema.Page, fp uint64) {
	home := c.homeOf(slot)
	h.totals.Outcomes = tally(h.totals.Outcomes, pg.Outcome.String())
	if pg.Outcome == blobschema.OutcomeOK {
		h.pages++
	}
	if pg.Original != nil {
		h.totals.Revisits++
	}
	if pg.Generation > 0 {
		h.again = true
		c.report.Generations++
	}
	s := settled{fp: fp, gen: pg.Generation, state: blobschema.Refused, origin: blobschema.Origin{Partition: h.id, Seq: uint32(m.Seq)}}
	switch {
	case pg.Outcome.Answered():
		s.state = blobschema.Fetched
	case pg.Outcome == blobschema.OutcomeScope:
		s.scope = true
		c.report.OutOfScope++
		home.outside = append(home.outside, fp)
		if pg.Generation != 0 {
			c.violate("I7", name, "%s is out of scope, and its generation is %d", pg.URL, pg.Generation)
		}
	}
	if c.inScope(slot) {
		home.records = append(home.records, s)
	}
}

func tally(m map[string]int64, key string) map[string]int64 {
	if m == nil {
		m = map[string]int64{}
	}
	m[key]++
	return m
}

// unreadable says what is wrong with a commit.
func (c *checker) unreadable(h *history, name string, err error) {
	h.broken = true
	c.violate("I6", name, "%v", err)
}

// checkLinkSources checks that the links of a commit are those of its pages.
func (c *checker) checkLinkSources(h *history, name string, r *blobschema.CommitReader, slots map[uint64]partition.Slot) {
	links, err := r.Links()
	if err != nil {
		c.unreadable(h, name, err)
		return
	}
	for i := range links {
		if slot, ok := slots[links[i].Source]; !ok || slot != links[i].Slot {
			c.violate("I6", name, "links of a page %016x of slot %d, of which it has no record", links[i].Source, links[i].Slot)
		}
	}
}

// checkObserved checks what a commit says that it observed of units.
func (c *checker) checkObserved(name string, r *blobschema.CommitReader) {
	hosts, err := r.Hosts()
	if err != nil {
		c.violate("I6", name, "%v", err)
	}
	for i := range hosts {
		h := &hosts[i]
		c.checked["I1"]++
		c.checked["I2"]++
		if err := c.checkUnit(h.Host); err != nil {
			c.violate("I1", name, "observed host %q: %v", h.Host, err)
		}
		if slot := c.hash.Slot(h.Host); slot != h.Slot {
			c.violate("I2", name, "observed host %s has slot %d, and belongs to %d", h.Host, h.Slot, slot)
		}
	}
}
