package fsck

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/partition"
)

// i7 checks that no known URL is lost. Every seed, followed link, request and mailed URL is
// known at the home of its slot, is on its way there, or was left out for a cap. A settled
// URL has a page record that says how, in the commit that its origin names, and the other
// way round. A forwarded URL is known at an address. No merge of runs and no move of a slot
// lost anything, and all counts are right.
func i7(v *judge, fact any) {
	switch f := fact.(type) {
	case moment:
		for _, p := range v.parts {
			if p.man != nil {
				v.headTotals(p)
			}
			v.requestsKept(p)
		}
	case *block:
		for _, s := range f.settled {
			if s.State == blobschema.Forwarded && !v.byIP() {
				v.violate(f.object, "the URL %016x of slot %d was forwarded, in a crawl that is not by IP", s.Fingerprint, s.Slot)
			}
		}
	case *commit:
		v.outcomes(f)
		v.deltaKept(f)
	case *links:
		for i := range f.list {
			for _, t := range f.list[i].Targets {
				if t.Followed && int(t.Slot) < v.pmap.Slots() {
					v.report.Links++
					v.miss(f.commit, missing{fp: t.Fingerprint, slot: uint16(t.Slot), to: uint16(v.atlas.home[t.Slot])})
				}
			}
		}
	case *letter:
		way := mailed
		if f.held {
			way = held
		}
		for i := range f.urls {
			if a := &f.urls[i]; a.err == nil {
				strict := a.flags&(blobschema.FlagSeed|blobschema.FlagAgain) != 0
				v.miss(f.commit, missing{fp: a.fp, slot: uint16(a.slot), to: uint16(f.to), way: way, strict: strict})
			}
		}
	case *group:
		for _, p := range f.parts {
			v.Checked += int64(len(p.state))
			if f.broken || p.man == nil && len(p.state)+len(p.records) == 0 {
				continue
			}
			for state, records := range p.urls() {
				v.settledAsSaid(p, state, records)
			}
			v.totals(p)
		}
		if !f.broken {
			v.forwardedTotal(f)
		}
	case end:
		v.pageTotals()
		v.givenKnown()
		v.missingExplained()
		v.forwardedKnown()
	}
}

// headTotals compares the fields that a head copies from its manifest, and the totals of the manifest with its slots.
func (v *judge) headTotals(p *part) {
	key, h, m := naming.HeadKey(v.id, p.id), &p.head, p.man
	a, b := figures(h.Totals), figures(m.Totals)
	v.must(a == b, key, "its totals are %s, those of the manifest %s", a, b)
	v.must(maps.Equal(h.Domains, m.Domains), key, "its counts of domains are %v, those of the manifest %v", h.Domains, m.Domains)
	fetchable := int64(0)
	for _, s := range p.sums {
		awaits := v.awaits(p, s.Slot)
		if !awaits && !v.owes(p, s.Slot) {
			fetchable += int64(s.Pending) + int64(s.Unexamined)
		}
		v.must(!awaits || s.Known+s.Pending == 0, h.Commit, "slot %d is still to come, and its summary says %d known URLs, %d of them pending",
			s.Slot, s.Known, s.Pending)
	}
	v.must(fetchable == 0 || !h.Due.IsZero(), key, "%d URLs are pending and no time is set to ask for them", fetchable)
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

// requestsKept checks that each request that was numbered before the heads were read is
// applied, or kept to be sent again.
func (v *judge) requestsKept(p *part) {
	if p.damage != nil {
		return
	}
	var m blobschema.Marks
	if p.man != nil {
		m = p.man.Applied[partition.Requests]
	}
	numbered, there := v.requests.Sent[p.id], map[uint64]bool{}
	for _, n := range m.Above {
		there[n] = true
	}
	for _, r := range v.requests.Outbox {
		if r.To == p.id && r.Number > m.Low {
			there[r.Number] = true
		}
	}
	maps.DeleteFunc(there, func(n uint64, _ bool) bool { return n > numbered })
	want, have := numbered-min(numbered, m.Low), uint64(len(there))
	v.must(have >= want, naming.RequestsKey(v.id),
		"of %d requests to partition %d above number %d, %d are neither applied nor kept", want, p.id, m.Low, want-min(want, have))
}

// outcomes checks that page records match the outcomes of their URLs.
func (v *judge) outcomes(f *commit) {
	for i := range f.pages {
		pg := &f.pages[i]
		if o := pg.Outcome; o == blobschema.OutcomeNone || o == blobschema.OutcomeAborted || strings.HasPrefix(o.String(), "outcome-") {
			v.violate(f.name, "the outcome of %s is %s: no answer, and no reason for none", pg.URL, o)
		} else if o == blobschema.OutcomeScope && pg.Generation != 0 {
			v.violate(f.name, "%s is out of scope, and its generation is %d", pg.URL, pg.Generation)
		}
	}
}

// missing is a URL of a commit that the state does not have.
type missing struct {
	fp     uint64
	seq    uint32 // of the commit
	by     uint16 // its partition
	slot   uint16
	to     uint16 // receiver of mail
	way    uint8
	strict bool // a cap is no reason
}

// The ways in which a URL is made known.
const (
	linked uint8 = iota
	held
	mailed
)

var ways = [...]string{linked: "followed from a link to", held: "held for", mailed: "mailed to"}

func (a missing) compare(b missing) int {
	return cmp.Or(cmp.Compare(a.fp, b.fp), cmp.Compare(a.slot, b.slot), compareBool(a.strict, b.strict), cmp.Compare(b.way, a.way))
}

func (a missing) same(b missing) bool { return a.fp == b.fp && a.slot == b.slot }

// miss notes a URL of a commit that the state does not have. At the end of the pass it is known
// which URLs are on their way, and which a cap may have left out.
func (v *judge) miss(f *commit, m missing) {
	v.Checked++
	if home := v.homeOf(partition.Slot(m.slot)); home.broken || home.has(m.fp) {
		return
	}
	if len(v.missing) == cap(v.missing) { // pages of a trap link to the same URLs
		v.compactMissing()
		v.missing = slices.Grow(v.missing, len(v.missing)+1)
	}
	m.by, m.seq = uint16(f.id), uint32(f.m.Seq)
	v.missing = append(v.missing, m)
}

// compactMissing keeps one of each URL.
func (v *judge) compactMissing() {
	slices.SortStableFunc(v.missing, missing.compare)
	v.missing = slices.CompactFunc(v.missing, missing.same)
}

// missingExplained checks that each URL that no run has is on its way, or was left out for a
// cap. At most as many were left out as each partition has counted, or, if slots have moved,
// all partitions together.
func (v *judge) missingExplained() {
	v.compactMissing()
	leftOut, all := map[*part]int64{}, int64(0)
	for _, m := range v.missing {
		home := v.homeOf(partition.Slot(m.slot))
		if home.knows(m.fp) {
			continue
		}
		if !m.strict && v.mayLeaveOut(home, partition.Slot(m.slot)) {
			leftOut[home]++
			all++
			continue
		}
		v.violate(v.commitOf(partition.ID(m.by), uint64(m.seq)),
			"the URL %016x of slot %d was %s partition %d, and partition %d does not know it",
			m.fp, m.slot, ways[m.way], m.to, home.id)
	}
	for _, p := range v.parts {
		v.report.Capped += capped(p)
		n := leftOut[p]
		v.must(v.atlas.anyMoved || n <= capped(p), v.where(p), "%d URLs that it was told of are not known, and it has left out %d", n, capped(p))
	}
	v.must(!v.atlas.anyMoved || all <= v.report.Capped, v.id,
		"%d URLs that partitions were told of are not known, and they have left out %d", all, v.report.Capped)
}

// fullSlot is the number of URLs in a slot above which a frontier may leave out more, whatever
// the caps, because the text of its pending URLs takes too much memory.
const fullSlot = 1 << 18

// mayLeaveOut reports whether a cap may be why the home of a slot does not know a URL. No
// record says which host and domain the URL has. So the slot, or a partition that had it,
// must be as full as the cap allows, and the partition must have counted what it left out.
func (v *judge) mayLeaveOut(p *part, slot partition.Slot) bool {
	s, sums, n := &v.crawl.Settings, p.sums, int64(0)
	if h := v.atlas.handed[slot]; h != nil {
		sums = h.State
	}
	for _, sum := range equal(sums, func(s *blobschema.SlotSummary) int { return cmp.Compare(s.Slot, slot) }) {
		n += int64(sum.Known) + int64(sum.Unexamined)
	}
	inSlot := n >= fullSlot || s.MaxHostURLs > 0 && n >= s.MaxHostURLs/2 // URLs from sitemaps may use half
	return slices.ContainsFunc(v.parts, func(q *part) bool {
		if capped(q) == 0 || !v.had(q.id, slot) {
			return false
		}
		t := &q.man.Totals
		return inSlot || s.MaxDomainURLs > 0 && (len(v.wish.Capped) > 0 || v.atlas.anyMoved || t.Known+t.Unexamined >= s.MaxDomainURLs/2)
	})
}

// capped is how many URLs a partition has left out.
func capped(p *part) int64 {
	if p.man == nil {
		return 0
	}
	return p.man.Totals.Capped
}

// deltaKept checks that no merge of runs and no move of a slot has lost what a commit added to
// the state.
func (v *judge) deltaKept(f *commit) {
	runs := f.m.Runs
	named := func(ref blobschema.RunRef) bool { return ref.Object == f.name }
	if f.delta == nil || len(runs) == 0 || f.broken || !v.atlas.anyMoved && slices.ContainsFunc(f.man.Runs, named) {
		return // it is part of the state as it is
	}
	if err := v.readRun(f.delta, runs[len(runs)-1], false, func(e entry, slot partition.Slot) {
		if !v.had(f.id, slot) {
			return // reported
		}
		home := v.homeOf(slot)
		i, ok := slices.BinarySearchFunc(home.state, e, entry.compare)
		if !home.broken && (!ok || e.beats(home.state[i])) {
			v.violate(f.name, "the URL %016x of slot %d is %s, generation %d; merging lost that", e.fp, slot, e.state, e.gen)
		}
	}); err != nil {
		v.damaged(f.name, "%v", err)
	}
}

// settledAsSaid compares the state of a URL with its page records. In a crawl by IP a partition
// may have both the slot of the URL and the slot that forwarded it.
func (v *judge) settledAsSaid(p *part, state []entry, records []settled) {
	var home, sent *entry
	for i := range state {
		e := &state[i]
		if e.state != blobschema.Forwarded {
			home = cmp.Or(home, e)
			continue
		}
		sent = e
		v.must(e.origin == (blobschema.Origin{}), v.where(p),
			"the origin of %016x is commit %d of partition %d, and it was forwarded", e.fp, e.origin.Seq, e.origin.Partition)
	}
	if home != nil {
		v.compare(p, home, records)
		return
	}
	for _, r := range records {
		switch {
		case r.scope:
		case sent == nil:
			v.violate(v.recordAt(r), "%s has a page record, and no run knows it", v.urlBy(r))
		case r.gen >= sent.gen: // else of a generation when its name had no address yet
			v.violate(v.recordAt(r), "%s has a page record of generation %d, and was forwarded in generation %d", v.urlBy(r), r.gen, sent.gen)
		}
	}
}

// compare compares the state of a URL with its page records, which are sorted by generation.
// Some generations may have none: a request that a crash undid while the URL was
// requested again is not repeated.
func (v *judge) compare(p *part, e *entry, records []settled) {
	pending := e.state == blobschema.Pending
	settles, named := false, pending && e.origin == (blobschema.Origin{}) // it may name none, if that is not known
	for _, r := range records {
		switch {
		case r.gen > e.gen:
			v.violate(v.recordAt(r), "%s has a page record of generation %d, and the state is of %d", v.urlBy(r), r.gen, e.gen)
		case r.gen < e.gen:
			named = named || pending && r.origin == e.origin
		case !pending && (!r.scope || r.state == e.state):
			settles = true
			named = named || r.origin == e.origin
			if r.state != e.state {
				v.violate(v.recordAt(r), "%s is %s by its page record, and %s by the state", v.urlBy(r), r.state, e.state)
			}
		}
	}
	o, where := e.origin, v.where(p)
	switch {
	case !pending && !settles:
		v.violate(where, "the URL %016x of slot %d is %s, generation %d, and has no page record", e.fp, e.slot, e.state, e.gen)
	case named:
	case pending:
		v.violate(where,
			"the URL %016x of slot %d is pending in generation %d, and its previous record is in commit %d of partition %d, where there is none",
			e.fp, e.slot, e.gen, o.Seq, o.Partition)
	default:
		v.violate(where, "the origin of %s, commit %d of partition %d, is not the commit with its record of generation %d",
			v.urlBy(records[0]), o.Seq, o.Partition, e.gen)
	}
}

// recordAt names the commit of a page record.
func (v *judge) recordAt(r settled) string {
	return v.commitOf(r.origin.Partition, uint64(r.origin.Seq))
}

// totals recounts the totals of a manifest and of its slots.
func (v *judge) totals(p *part) {
	for _, s := range p.summaries {
		v.summed(p, s)
	}
	if p.man == nil {
		return
	}
	says, is := p.man.Totals, p.man.Totals
	is.Robots, is.Held, is.Revisits, is.Outcomes = p.counted.Robots, p.counted.Held, p.counted.Revisits, p.counted.Outcomes
	if !p.unread {
		is.Stored = p.counted.Stored
	}
	is.Known, is.Pending, is.Unexamined = 0, 0, 0
	for _, s := range p.sums {
		is.Known, is.Pending, is.Unexamined = is.Known+int64(s.Known), is.Pending+int64(s.Pending), is.Unexamined+int64(s.Unexamined)
	}
	v.must(figures(says) == figures(is), p.head.Commit, "its totals are %s, and counted again %s", figures(says), figures(is))
}

// summed compares the summaries of slots with the runs. Entries appended to a slot that was
// not loaded are counted apart, and some of them may be known already.
func (v *judge) summed(p *part, of summaries) {
	where := p.head.Commit
	for _, s := range of.sums {
		if int(s.Slot) >= len(of.of) || !of.of[s.Slot] {
			continue
		}
		n := of.counts[s.Slot]
		if n == nil {
			n = &slotCount{}
		}
		delete(of.counts, s.Slot)
		k, pending, u := int64(s.Known), int64(s.Pending), int64(s.Unexamined)
		v.must(n.known >= k && n.known <= k+u && n.pending >= pending && n.pending <= pending+u, where,
			"slot %d has %d known URLs, %d of them pending; its summary says %d and %d, and %d to examine",
			s.Slot, n.known, n.pending, k, pending, u)
		v.must(pending == 0 || s.Due != 0, where, "slot %d has %d pending URLs and no time to ask for them", s.Slot, pending)
	}
	for _, s := range slices.Sorted(maps.Keys(of.counts)) {
		v.violate(where, "slot %d has %d known URLs and no summary", s, of.counts[s].known)
	}
}

// forwardedTotal counts forwarded URLs over all partitions of a group, because the slot that
// forwarded one may have moved since.
func (v *judge) forwardedTotal(f *group) {
	var total, urls, generations int64
	for _, p := range f.parts {
		if p.man != nil {
			total += p.man.Totals.Forwarded
		}
		urls += int64(len(p.forwarded))
		generations += p.sentOn
	}
	v.must(total >= urls && total <= generations, v.where(f.parts[0]),
		"its total of forwarded URLs is %d, and there are %d, of %d generations", total, urls, generations)
}

// pageTotals checks the totals of pages, which limits count. Pages that were requested on
// purpose are not in them, and no record says which these are: where there may be any, the
// total is only an upper bound.
func (v *judge) pageTotals() {
	whole := !v.anyBroken()
	for _, p := range v.parts {
		if p.man != nil && !p.broken {
			n := p.man.Totals.Pages
			exact := whole && !v.onPurpose && !p.again
			v.must(n == p.okPages || n < p.okPages && !exact, p.head.Commit, "its total of pages is %d, and there are %d", n, p.okPages)
		}
	}
}

// givenKnown checks that every URL that was given from outside is known or on its way.
func (v *judge) givenKnown() {
	for _, g := range v.given {
		what, home := "seed", v.homeOf(g.slot)
		if int(g.batch) >= len(v.crawl.SeedBatches) {
			what = "requested URL"
		}
		v.must(home.knows(g.fp), v.batches[g.batch],
			"a %s with fingerprint %016x is not known to partition %d, nor on its way", what, g.fp, home.id)
	}
}

// forwardedKnown checks, in a crawl by IP, that what a name's slot sent on is known to the
// slot of an address, or on its way. Only its own slot could tell from which other slot a
// cap may have kept it.
func (v *judge) forwardedKnown() {
	if !v.byIP() || v.anyBroken() || v.report.Capped > 0 {
		return
	}
	all := v.allKnown()
	for _, p := range v.parts {
		for _, fp := range p.forwarded {
			if !has(all, fp) && !slices.ContainsFunc(v.parts, func(q *part) bool { return has(q.flights, fp) }) {
				v.violate(v.where(p), "the URL %016x was forwarded, and no partition knows it at an address", fp)
			}
		}
	}
}
