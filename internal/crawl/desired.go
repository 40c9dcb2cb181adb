package crawl

import (
	"maps"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
)

// changeDesired adds what any partition has found to the desired state, which all partitions read: hosts that seeds redirected
// to, and domains with too many URLs.
func (k *Tick) changeDesired(t *actor.Task) error {
	change := func(w *blobschema.DesiredState) bool {
		hosts := missingIn(w.Scope, k.foundHosts())
		limit := k.report.Crawl.Settings.MaxDomainURLs
		full, half := missingIn(w.Capped, k.largeDomains(limit)), missingIn(w.HalfCapped, k.largeDomains(limit/2))
		full, half = full[:max(0, min(len(full), maxCapped-len(w.Capped)))], half[:max(0, min(len(half), maxCapped-len(w.HalfCapped)))]
		if len(hosts)+len(full)+len(half) == 0 {
			return false
		}
		w.Version++
		w.Scope, w.Capped, w.HalfCapped = append(w.Scope, hosts...), append(w.Capped, full...), append(w.HalfCapped, half...)
		return true
	}
	return k.setDesired(t, change)
}

// setDesired changes the desired state, if there is anything to change.
func (k *Tick) setDesired(t *actor.Task, change func(w *blobschema.DesiredState) bool) error {
	if w := k.report.Desired; !change(&w) {
		return nil
	}
	return actor.Update(t, naming.DesiredKey(k.report.Crawl.ID), func(w *blobschema.DesiredState) bool {
		changed := change(w)
		k.report.Desired = *w
		return changed
	})
}

// missingIn returns the names that are not in have, each once.
func missingIn(have, names []string) (out []string) {
	for _, n := range names {
		if !slices.Contains(have, n) && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

func (k *Tick) foundHosts() (out []string) {
	for i := range k.report.Heads {
		out = append(out, k.report.Heads[i].Scope...)
	}
	return out
}

// largeDomains returns the registrable domains of which the partitions together know at least limit URLs; none if limit is
// 0.
func (k *Tick) largeDomains(limit int64) (out []string) {
	if limit <= 0 {
		return nil
	}
	sums := map[string]int64{}
	for i := range k.report.Heads {
		for d, n := range k.report.Heads[i].Domains {
			sums[d] += n
		}
	}
	for _, d := range slices.Sorted(maps.Keys(sums)) {
		if sums[d] >= limit {
			out = append(out, d)
		}
	}
	return out
}

// maxCapped bounds the domains in the desired state. A partition applies the limit to the URLs that it knows itself without
// being told.
const maxCapped = 1000
