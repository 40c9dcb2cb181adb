package frontier

import (
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// Parts of slots are halved by extendible hashing (Fagin, Nievergelt, Pippenger, Strong 1979). The directory of a
// slot maps the first bits of a fingerprint to parts. A part that holds too many URLs is replaced by two parts with
// one more bit. The stored runs do not change: a part only selects the entries to load.

// overflows reports whether n URLs are too many for a part.
func (f *Frontier) overflows(p *part, n int) bool {
	return f.cfg.MaxPart > 0 && n > f.cfg.MaxPart && p.is.Depth < blobschema.MaxPartDepth
}

// watch stops the requests for a part that holds too many URLs. It is halved once everything under way is
// committed. URLs that are found meanwhile are appended to it unexamined.
func (f *Frontier) watch(p *part, now time.Time) {
	if p.Full() || !f.overflows(p, p.resident()) {
		return
	}
	f.full = append(f.full, p)
	f.schedule.Stop(&p.Pool, now)
}

// halve unloads the parts that hold too many URLs and are still, and replaces each by two.
func (f *Frontier) halve() {
	f.full = slices.DeleteFunc(f.full, func(p *part) bool {
		if !p.Full() { // it was unloaded
			return true
		}
		if !f.still(p) {
			return false
		}
		sums, want := f.halves(p), p.want
		f.unload(p)
		p.want = want
		f.split(p, sums)
		f.counts.Halved++
		return true
	})
}

// halves returns the summaries of the halves of a loaded part. Urgent URLs may have been appended to it and be
// in runs only. Nobody knows in which half these are, so both halves count them.
func (f *Frontier) halves(p *part) (sums [2]blobschema.SlotSummary) {
	due, gone := p.FirstDue(false), p.Urgent()
	for _, q := range slices.Concat(p.fresh, p.taken) {
		if q.Urgent() {
			gone--
		}
	}
	for i, half := range p.is.Halves() {
		sum := &sums[i]
		sum.Part = half
		for fp, urgent := range p.Fingerprints {
			if half.Has(fp) {
				sum.Known++
				sum.Pending++
				if urgent {
					sum.Urgent++
					gone--
				}
				sum.Due = due
			}
		}
		for j := range p.marks {
			if half.Has(p.marks[j].fp) {
				sum.Known++
			}
		}
	}
	for i := range sums {
		sums[i].Urgent += uint32(gone)
	}
	return sums
}

// split replaces an unloaded part by two unloaded ones. Its appended entries go to the half of their fingerprint.
// How many of the unexamined entries in runs belong to each half is unknown, so both halves count all of them.
func (f *Frontier) split(p *part, sums [2]blobschema.SlotSummary) (halves [2]*part) {
	f.slots.forget(p, f.schedule)
	f.slots.resident += len(p.taken) + len(p.fresh) // they stay in memory
	f.slots.fresh += len(p.fresh)
	fresh, taken := p.fresh, p.taken
	stored := int(p.unexamined) - len(fresh) - len(taken)
	for i := range sums {
		h := p.slot.put(sums[i].Part)
		h.want, h.replan = p.want, p.replan
		h.Pool.Split(&p.Pool)
		of := func(list []blobschema.Queued) []blobschema.Queued {
			return slices.DeleteFunc(slices.Clone(list), func(q blobschema.Queued) bool { return !h.is.Has(f.cfg.Hash.Fingerprint(q.URL)) })
		}
		h.fresh, h.taken = of(fresh), of(taken)
		sums[i].Unexamined = uint32(len(h.fresh) + len(h.taken) + max(0, stored))
		for _, q := range slices.Concat(h.fresh, h.taken) {
			if q.Urgent() {
				sums[i].Urgent++
			}
		}
		f.slots.unloaded++
		f.slots.know(h, &sums[i], f.schedule)
		halves[i] = h
	}
	return halves
}

// narrow halves a part that is about to be loaded until one half does not hold too many URLs, and returns that half
// with its state. It prefers the half with more urgent URLs.
func (f *Frontier) narrow(p *part, run *blobschema.Run) (*part, *blobschema.Run) {
	for f.overflows(p, len(run.Settled)+len(run.Queued)) {
		var runs [2]*blobschema.Run
		var sums [2]blobschema.SlotSummary
		for i, half := range p.is.Halves() {
			runs[i] = &blobschema.Run{Keys: run.Keys}
			sum := &sums[i]
			sum.Part = half
			for _, e := range run.Settled {
				if half.Has(e.Fingerprint) {
					runs[i].Settled = append(runs[i].Settled, e)
				}
			}
			for _, q := range run.Queued {
				if half.Has(f.cfg.Hash.Fingerprint(q.URL)) {
					runs[i].Queued = append(runs[i].Queued, q)
					if q.Urgent() {
						sum.Urgent++
					}
					sum.Due = max(1, p.due)
				}
			}
			sum.Known, sum.Pending = uint32(len(runs[i].Settled)+len(runs[i].Queued)), uint32(len(runs[i].Queued))
		}
		halves := f.split(p, sums)
		f.counts.Halved++
		i := 0
		if sums[1].Urgent > sums[0].Urgent || sums[0].Pending == 0 {
			i = 1
		}
		p, run = halves[i], runs[i]
		f.examined = true // both halves have new summaries
	}
	return p, run
}
