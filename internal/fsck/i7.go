package fsck

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/partition"
)

// i7 checks that no known URL is lost. Every seed, followed link, request and mailed URL is
// known at the home of its slot, is on its way there, or was left out for a cap. A settled
// URL has a page record that says how, in the commit that its record reference names, and the
// other way round. A forwarded URL is known at an address. No merge of runs and no move of a slot
// lost anything, and all counts are right.
func i7(v *judge, fact any) {
	switch f := fact.(type) {
	case *part:
		if f.man.Seq > 0 {
			v.fetchable(f)
		}
		v.requestsKept(f)
	case *counts:
		if !f.broken {
			v.summed(f)
		}
	case *block:
		for _, s := range f.Settled {
			if s.State == blobschema.Forwarded && !v.byIP() {
				v.violate(f.object, "the URL %016x of slot %d was forwarded, in a crawl that is not by IP", s.Fingerprint, s.Slot)
			}
		}
	case *commit:
		v.deltaKept(f)
		for i := range f.links {
			for _, t := range f.links[i].Targets {
				if t.Followed && int(t.Slot) < v.pmap.Slots() {
					v.report.Links++
					v.miss(f, lost{t.Fingerprint, t.Slot}, madeKnown{to: v.atlas.home[t.Slot]})
				}
			}
		}
	case *page:
		v.outcome(f)
		if f.home != nil && !f.home.broken {
			v.settledAsSaid(f)
		}
	case *letter:
		way := mailed
		if f.buffered {
			way = buffered
		}
		for i := range f.urls {
			if a := &f.urls[i]; a.err == nil {
				strict := a.flags&(blobschema.FlagSeed|blobschema.FlagAgain) != 0
				v.miss(f.commit, lost{a.fp, a.slot}, madeKnown{to: f.to, way: way, strict: strict})
			}
		}
	case *batch:
		what := "requested URL"
		if f.seeds > 0 {
			what = "seed"
		}
		for i := range f.urls {
			if a := &f.urls[i]; a.err == nil {
				home := v.homeOf(a.slot)
				v.must(home.knows(a.fp), f.object, "a %s with fingerprint %016x is not known to partition %d, nor on its way", what, a.fp, home.id)
			}
		}
	case end:
		for _, p := range v.parts {
			if v.Checked += int64(len(p.state)); !p.broken {
				v.recordsKept(p)
				v.totals(p)
			}
		}
		v.missingExplained()
		v.forwardedKnown()
	}
}

// fetchable checks that a partition with URLs to fetch has a time for that, and that it knows none of a slot to come.
func (v *judge) fetchable(p *part) {
	key, h := naming.HeadKey(v.id, p.id), &p.head
	fetchable := int64(0)
	for _, s := range p.sums {
		awaits := v.awaits(p, s.Slot)
		if !awaits && !v.owes(p, s.Slot) {
			fetchable += int64(s.Pending) + int64(s.Unexamined)
		}
		v.must(!awaits || s.Known+s.Pending == 0, h.Commit, "slot %d is still to come, and its summary says %d known URLs, %d of them pending",
			s.Slot, s.Known, s.Pending)
	}
	v.must(fetchable == 0 || !h.Due.IsZero(), key, "%d URLs are pending and no time is set to fetch them", fetchable)
}

// requestsKept checks that each request that was numbered before the heads were read is
// applied, or kept to be sent again.
func (v *judge) requestsKept(p *part) {
	if p.damage != nil {
		return
	}
	m := p.man.Applied[partition.Requests]
	numbered, there := v.requests.Sent[p.id], slices.Clone(m.Above)
	for _, r := range v.requests.Outbox {
		if r.To == p.id {
			there = append(there, r.Number)
		}
	}
	slices.Sort(there)
	there = slices.DeleteFunc(slices.Compact(there), func(n uint64) bool { return n <= m.Low || n > numbered })
	want, have := numbered-min(numbered, m.Low), uint64(len(there))
	v.must(have >= want, naming.RequestsKey(v.id), "of %d requests to partition %d above number %d, only %d are applied or kept", want, p.id, m.Low, have)
}

// outcome checks that a page record has an answer, or a reason for none.
func (v *judge) outcome(pg *page) {
	if o := pg.Outcome; o == blobschema.OutcomeNone || o == blobschema.OutcomeAborted || strings.HasPrefix(o.String(), "outcome-") {
		v.violate(pg.in.name, "the outcome of %s is %s: no answer, and no reason for none", pg.URL, o)
	} else if pg.outside() && pg.Generation != 0 {
		v.violate(pg.in.name, "%s is out of scope, and its generation is %d", pg.URL, pg.Generation)
	}
}

// lost is a URL that the state does not have.
type lost struct {
	fp   uint64
	slot partition.Slot
}

func (a lost) compare(b lost) int {
	return cmp.Or(cmp.Compare(a.fp, b.fp), cmp.Compare(a.slot, b.slot))
}

// madeKnown is how a commit made a URL known.
type madeKnown struct {
	by     blobschema.RecordRef
	to     partition.ID // receiver of mail
	way    uint8
	strict bool // a cap is no reason
}

// The ways in which a URL is made known.
const (
	linked uint8 = iota
	buffered
	mailed
)

var ways = [...]string{linked: "followed from a link to", buffered: "held for", mailed: "mailed to"}

// miss notes a URL of a commit that the state does not have. At the end of the pass it is known
// which URLs are on their way, and which a cap may have left out.
func (v *judge) miss(f *commit, url lost, m madeKnown) {
	v.Checked++
	if home := v.homeOf(url.slot); home.broken || len(home.entries(url.fp)) > 0 {
		return
	}
	m.by = f.record()
	if old, ok := v.missing[url]; !ok || m.strict && !old.strict || m.strict == old.strict && m.way > old.way {
		v.missing[url] = m
	}
}

// missingExplained checks that each URL that no run has is on its way, or was left out for a
// cap. At most as many were left out as each partition has counted, or, if slots have moved,
// all partitions together.
func (v *judge) missingExplained() {
	leftOut, all := map[*part]int64{}, int64(0)
	for _, url := range slices.SortedFunc(maps.Keys(v.missing), lost.compare) {
		m, home := v.missing[url], v.homeOf(url.slot)
		if home.knows(url.fp) {
			continue
		}
		if !m.strict && v.mayLeaveOut(home, url.slot) {
			leftOut[home]++
			all++
			continue
		}
		v.violate(v.commitAt(m.by),
			"the URL %016x of slot %d was %s partition %d, and partition %d does not know it", url.fp, url.slot, ways[m.way], m.to, home.id)
	}
	for _, p := range v.parts {
		n, capped := leftOut[p], p.man.Totals.Capped
		v.report.Capped += capped
		v.must(v.atlas.anyMoved || n <= capped, v.where(p), "it does not know %d URLs that it should know, and has left out %d", n, capped)
	}
	v.must(!v.atlas.anyMoved || all <= v.report.Capped, v.id,
		"partitions do not know %d URLs that they should know, and have left out %d", all, v.report.Capped)
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
		t := &q.man.Totals
		return t.Capped > 0 && v.had(q.id, slot) && (inSlot || s.MaxDomainURLs > 0 &&
			(len(v.desired.Capped) > 0 || v.atlas.anyMoved || t.Known+t.Unexamined >= s.MaxDomainURLs/2))
	})
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
		if !home.broken && (!ok || e.version(home.state[i]) > 0) {
			v.violate(f.name, "the URL %016x of slot %d is %s, generation %d; merging lost that", e.fp, slot, e.state, e.gen)
		}
	}); err != nil {
		v.damaged(f.name, "%v", err)
	}
}

// settledAsSaid compares a page record with the state of its URL. Some generations may have no
// record: a request that a crash undid while the URL was requested again is not repeated.
func (v *judge) settledAsSaid(pg *page) {
	where, e, state := pg.in.name, pg.known, blobschema.Refused
	if pg.Outcome.Answered() {
		state = blobschema.Fetched
	}
	switch {
	case e == nil && pg.outside():
	case e == nil && pg.sent == nil:
		v.violate(where, "%s has a page record, and no run knows it", pg.URL)
	case e == nil && pg.Generation >= pg.sent.gen: // else of a generation when its name had no address yet
		v.violate(where, "%s has a page record of generation %d, and was forwarded in generation %d", pg.URL, pg.Generation, pg.sent.gen)
	case e == nil:
	case pg.Generation > e.gen:
		v.violate(where, "%s has a page record of generation %d, and the state is of %d", pg.URL, pg.Generation, e.gen)
	case pg.Generation < e.gen:
		e.named = e.named || e.state == blobschema.Pending && pg.in.record() == e.record
	case e.state != blobschema.Pending && (!pg.outside() || state == e.state):
		e.settled, e.named = true, e.named || pg.in.record() == e.record
		if state != e.state {
			v.violate(where, "%s is %s by its page record, and %s by the state", pg.URL, state, e.state)
		}
	}
}

// recordsKept checks that settled URLs have a page record, in the commit that their record
// reference names. The reference of a pending URL names the record of the previous generation,
// or none if that is unknown.
func (v *judge) recordsKept(p *part) {
	where := v.where(p)
	for _, e := range p.state {
		o := e.record
		none, pending := o == blobschema.RecordRef{}, e.state == blobschema.Pending
		switch {
		case e.state == blobschema.Forwarded:
			v.must(none, where, "the origin of %016x is commit %d of partition %d, and it was forwarded", e.fp, o.Seq, o.Partition)
		case !pending && !e.settled:
			v.violate(where, "the URL %016x of slot %d is %s, generation %d, and has no page record", e.fp, e.slot, e.state, e.gen)
		case !e.named && !(pending && none):
			v.violate(where, "the origin of the URL %016x of slot %d, commit %d of partition %d, is not the commit with its record; it is %s in generation %d",
				e.fp, e.slot, o.Seq, o.Partition, e.state, e.gen)
		}
	}
}

// totals recounts the totals of a manifest. Pages that were requested are not in
// the total of pages, which limits count, and no record says which these are: where there may
// be any, the total is only an upper bound.
func (v *judge) totals(p *part) {
	says, is := p.man.Totals, p.man.Totals
	is.Robots, is.Buffered, is.Revisits, is.Outcomes = p.counted.Robots, p.counted.Buffered, p.counted.Revisits, p.counted.Outcomes
	if !p.unread {
		is.Stored = p.counted.Stored
	}
	is.Known, is.Pending, is.Unexamined = 0, 0, 0
	for _, s := range p.sums {
		is.Known, is.Pending, is.Unexamined = is.Known+int64(s.Known), is.Pending+int64(s.Pending), is.Unexamined+int64(s.Unexamined)
	}
	where := p.head.Commit
	v.same(where, "recounted totals", says, is)
	exact := !v.anyBroken() && !v.requested && !p.again
	for _, n := range []struct {
		of       string
		says, is int64
	}{{"pages", says.Pages, p.okPages}, {"requisites", says.Requisites, p.okRequisites}} {
		v.must(n.says == n.is || n.says < n.is && !exact, where, "its total of %s is %d, and there are %d", n.of, n.says, n.is)
	}
}

// summed compares the summaries of slots with the runs. Entries appended to a slot that was
// not loaded are counted apart, and some of them may be known already.
func (v *judge) summed(f *counts) {
	where := f.head.Commit
	for _, s := range f.sums {
		if int(s.Slot) >= len(f.of) || !f.of[s.Slot] {
			continue
		}
		n := f.counts[s.Slot]
		delete(f.counts, s.Slot)
		k, pending, u := int64(s.Known), int64(s.Pending), int64(s.Unexamined)
		v.must(n.known >= k && n.known <= k+u && n.pending >= pending && n.pending <= pending+u, where,
			"slot %d has %d known URLs, %d of them pending; its summary says %d and %d, and %d to examine",
			s.Slot, n.known, n.pending, k, pending, u)
		v.must(pending == 0 || s.Due != 0, where, "slot %d has %d pending URLs and no time to fetch them", s.Slot, pending)
	}
	for _, s := range slices.Sorted(maps.Keys(f.counts)) {
		v.violate(where, "slot %d has %d known URLs and no summary", s, f.counts[s].known)
	}
}

// forwardedKnown checks, in a crawl by IP, that what a name's slot sent on is known to the
// slot of an address, or on its way, unless a cap may have kept it: only the slot of the
// address could tell. Forwarded URLs are counted over all partitions, because the slot that
// forwarded one may have moved since.
func (v *judge) forwardedKnown() {
	if v.anyBroken() {
		return
	}
	all := v.allKnown()
	var total, urls, generations int64
	for _, p := range v.parts {
		total += p.man.Totals.Forwarded
		for _, e := range p.state {
			if e.state != blobschema.Forwarded {
				continue
			}
			urls, generations = urls+1, generations+int64(e.gen)+1
			_, known := slices.BinarySearch(all, e.fp)
			flies := func(q *part) bool { return q.flights[e.fp] }
			if v.byIP() && v.report.Capped == 0 && !known && !slices.ContainsFunc(v.parts, flies) {
				v.violate(v.where(p), "the URL %016x was forwarded, and no partition knows it at an address", e.fp)
			}
		}
	}
	v.must(total >= urls && total <= generations, v.id,
		"the total of forwarded URLs is %d, and there are %d, of %d generations", total, urls, generations)
}
