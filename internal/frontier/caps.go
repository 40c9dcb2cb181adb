package frontier

import (
	"cmp"
	"maps"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// maxDomainSizes bounds the domains whose URLs are counted.
const maxDomainSizes = 1 << 16

// domainSizes counts the known URLs of registrable domains. When there are too many domains, it forgets
// the smaller half, as in lossy counting (Manku, Motwani). So the count of a domain may be too low, by
// its count when it was forgotten.
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

// Domains returns the registrable domains with at least a number of known URLs in this partition. The counts
// are approximate: only the largest domains, at most 65,536, are counted, and URLs that are appended to an
// unloaded part count only once it is loaded.
func (f *Frontier) Domains(atLeast int64) map[string]int64 {
	out := map[string]int64{}
	for name, n := range f.caps.sizes {
		if n >= atLeast {
			out[name] = n
		}
	}
	return out
}

// RestoreDomains sets the counts with which Domains begins. It is called once, on an empty frontier.
func (f *Frontier) RestoreDomains(sizes map[string]int64) {
	maps.Copy(f.caps.sizes, sizes)
}

// share returns the part of a cap that a URL may use: half for URLs from sitemaps.
func share(limit int64, q *blobschema.Queued) int64 {
	if q.Flags.Listed() {
		return limit / 2
	}
	return limit
}

// exempt reports whether a URL is exempt from caps.
func exempt(q *blobschema.Queued) bool {
	return q.Flags&blobschema.FlagSeed != 0 || q.Rank == 0 || q.Generation > 0
}

// caps decides which URLs exceed a cap.
type caps struct {
	host, domain int64 // see Config
	sizes        domainSizes
	full, half   map[string]bool // see CapDomains
}

// CapDomains sets the registrable domains that have reached the cap over all partitions (full), or half of it
// (half). It replaces those of the previous call. URLs from sitemaps may use only half of a cap: the rest is
// for links on pages and redirects.
func (f *Frontier) CapDomains(full, half []string) {
	set := func(names []string) map[string]bool {
		m := make(map[string]bool, len(names))
		for _, name := range names {
			m[name] = true
		}
		return m
	}
	f.caps.full, f.caps.half = set(full), set(half)
}

// domainFull reports whether a URL exceeds the cap of its registrable domain. k is its key; nil if that is not
// in memory. A URL that is placed at an address was checked under its name.
func (c *caps) domainFull(k *schedule.Key, q *blobschema.Queued) bool {
	if c.domain <= 0 && len(c.full)+len(c.half) == 0 || exempt(q) || q.Flags&blobschema.FlagPlaced != 0 {
		return false
	}
	name := ""
	if k != nil {
		name = k.Domain()
	} else {
		name = weburl.Host(q.Key).RegistrableDomain()
	}
	return c.full[name] || q.Flags.Listed() && c.half[name] || c.domain > 0 && c.sizes[name] >= share(c.domain, q)
}

// siteFull reports whether a URL exceeds the cap of its site.
func (c *caps) siteFull(s *schedule.Schedule, k *schedule.Key, u weburl.URL, q *blobschema.Queued) bool {
	return c.host > 0 && s.Known(k, u) >= uint64(share(c.host, q)) && !exempt(q)
}

// leaveOut drops a URL that exceeds a cap; k is nil if its domain is full. A URL that a run holds already is
// refused instead, so that it stays known (I7).
func (f *Frontier) leaveOut(p *part, k *schedule.Key, u weburl.URL, fp uint64, q *blobschema.Queued, from schedule.Source) Added {
	f.counts.Capped++
	if k != nil {
		f.schedule.CountCapped(k, u)
	}
	if from != schedule.Outside {
		if k == nil {
			k = f.schedule.Key(&p.slot.keys, q.Key)
		}
		f.slots.sum.known++
		f.slots.resident++
		f.refuse(u, q, blobschema.OutcomeScope, "over the cap on URLs of one host or domain")
		f.schedule.CountSettled(k, u, 1)
		f.addSettled(p, fp, q.Generation, blobschema.Refused, q.Previous)
	}
	return Capped
}
