package frontier

import (
	"cmp"
	"maps"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// domain is a registrable domain with units in memory. Those share its turns.
type domain struct {
	name  string
	units int
	turns uint64 // virtual time of the turn given last, plus 1; 0 for none
}

// nextTurn is the virtual start of the domain's next turn: one after its last one, but
// no earlier than now.
func (d *domain) nextTurn(virtual uint64) uint64 {
	start := max(virtual, d.turns)
	d.turns = start + 1
	return start
}

// domain returns the domain of a unit that is about to be made.
func (f *Frontier) domain(key string) *domain {
	name := weburl.Host(key).RegistrableDomain()
	d := f.domains[name]
	if d == nil {
		d = &domain{name: name}
		f.domains[name] = d
	}
	d.units++
	return d
}

// dropDomain is called when a unit leaves memory.
func (f *Frontier) dropDomain(d *domain) {
	if d.units--; d.units == 0 {
		delete(f.domains, d.name)
	}
}

// maxDomainSizes bounds the domains whose URLs are counted.
const maxDomainSizes = 1 << 16

// domainSizes counts the known URLs of registrable domains. When there are too many
// domains the smaller half is forgotten, as in lossy counting (Manku, Motwani): a
// domain's count may be too low, by what it had when it was among the smallest.
type domainSizes map[string]int64

func (d domainSizes) add(name string, n int64) {
	d[name] += n
	if len(d) <= maxDomainSizes {
		return
	}
	names := slices.Collect(maps.Keys(d))
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(d[a], d[b]), cmp.Compare(a, b)) })
	for _, name := range names[:len(names)/2] {
		delete(d, name)
	}
}

// Domains returns the registrable domains with at least so many known URLs here. The
// numbers are approximate: at most 65,536 domains are counted, the largest, and what is
// appended to an unloaded part is not, until that is loaded.
func (f *Frontier) Domains(atLeast int64) map[string]int64 {
	out := map[string]int64{}
	for name, n := range f.sizes {
		if n >= atLeast {
			out[name] = n
		}
	}
	return out
}

// RestoreDomains sets what Domains counts from. It is called once, on an empty frontier.
func (f *Frontier) RestoreDomains(sizes map[string]int64) {
	for name, n := range sizes {
		f.sizes[name] = n
	}
}

// CapDomains says which registrable domains have too many URLs, over all partitions. It
// replaces what was said before. Those of half have half of too many, which is all that URLs from sitemaps
// may use: links found on pages, and redirects, keep the rest.
func (f *Frontier) CapDomains(full, half []string) {
	set := func(names []string) map[string]bool {
		m := make(map[string]bool, len(names))
		for _, name := range names {
			m[name] = true
		}
		return m
	}
	f.domainsFull, f.domainsHalf = set(full), set(half)
}

// share is how much of a cap a URL may use.
func share(limit int64, q *blobschema.Queued) int64 {
	if q.Flags.Listed() {
		return limit / 2
	}
	return limit
}

// exempt reports whether caps do not count for a URL.
func exempt(q *blobschema.Queued) bool {
	return q.Flags&blobschema.FlagSeed != 0 || q.Rank == 0 || q.Generation > 0
}

// domainCapped reports whether a URL is too much for its unit's registrable domain. A
// placed one has passed where its name is.
func (f *Frontier) domainCapped(u *unit, q *blobschema.Queued) bool {
	if f.cfg.MaxDomainURLs <= 0 && len(f.domainsFull)+len(f.domainsHalf) == 0 || exempt(q) || q.Flags&blobschema.FlagPlaced != 0 {
		return false
	}
	name := ""
	if u != nil {
		name = u.domain.name
	} else {
		name = weburl.Host(q.Host).RegistrableDomain()
	}
	return f.domainsFull[name] || q.Flags.Listed() && f.domainsHalf[name] ||
		f.cfg.MaxDomainURLs > 0 && f.sizes[name] >= share(f.cfg.MaxDomainURLs, q)
}

// siteCapped reports whether a URL is too much for its site.
func (f *Frontier) siteCapped(st *site, q *blobschema.Queued) bool {
	return f.cfg.MaxHostURLs > 0 && st.known() >= uint64(share(f.cfg.MaxHostURLs, q)) && !exempt(q)
}

// leaveOut deals with a URL that is over a cap; st is nil if its domain is full. What is in
// a run already cannot be forgotten: it is refused, so that it stays known (I7).
func (f *Frontier) leaveOut(p *part, st *site, u weburl.URL, fp uint64, q *blobschema.Queued, from source) Added {
	f.counts.Capped++
	if st != nil {
		st.capped++
		st.unit.capped++
		f.touchSite(st)
	}
	if from != fromOutside {
		if st == nil {
			st = f.site(f.unit(p.slot, q.Host), u)
		}
		f.counts.Known++
		f.resident++
		f.refusals = append(f.refusals, Refusal{
			URL: u, Generation: q.Generation, Depth: q.Depth, Attempts: q.Attempts,
			Outcome: blobschema.OutcomeScope, Detail: "over the cap on URLs of one host or domain",
		})
		f.addSettled(p, st, fp, q.Generation, blobschema.Refused, q.Former)
	}
	return Capped
}
