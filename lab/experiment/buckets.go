package experiment

import (
	"fmt"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/partition"
)

// The bound on the URLs of a bucket in the comparison.
const bucketURLs = 1 << 12

// buckets is a store of URLs by fingerprint whose buckets grow in number.
type buckets struct {
	name  string
	split func(all [][]uint64, full int) (next [][]uint64, moved int) // called when a bucket is full
	of    func(fp uint64) int
}

// growth is what it took to store many URLs.
type growth struct {
	buckets, splits, moved, most int
	fill                         float64 // mean, of the bound
}

// grow stores URLs one by one.
func (b *buckets) grow(fps []uint64) (g growth) {
	all := [][]uint64{nil}
	for _, fp := range fps {
		i := b.of(fp)
		for len(all[i]) >= bucketURLs {
			next, moved := b.split(all, i)
			all, g.splits, g.moved, g.most = next, g.splits+1, g.moved+moved, max(g.most, moved)
			i = b.of(fp)
		}
		all[i] = append(all[i], fp)
	}
	g.buckets, g.fill = len(all), float64(len(fps))/float64(len(all)*bucketURLs)
	return g
}

// plain returns buckets by the remainder of the fingerprint. larger returns their next number.
func plain(name string, larger func(n int) int) *buckets {
	n := 1
	of := func(fp uint64) int { return int(fp % uint64(n)) }
	return &buckets{name: name, of: of, split: func(all [][]uint64, _ int) ([][]uint64, int) {
		n = larger(n)
		next, moved := make([][]uint64, n), 0
		for i, list := range all {
			for _, fp := range list {
				j := of(fp)
				if next[j] = append(next[j], fp); j != i {
					moved++
				}
			}
		}
		return next, moved
	}}
}

// extendible returns buckets that are the parts of a slot: only the full one is halved.
func extendible() *buckets {
	parts := []blobschema.Part{{}}
	of := func(fp uint64) int { return slices.IndexFunc(parts, func(p blobschema.Part) bool { return p.Has(fp) }) }
	return &buckets{name: "extendible", of: of, split: func(all [][]uint64, full int) ([][]uint64, int) {
		halves := parts[full].Halves()
		parts = append(parts, halves[1])
		parts[full] = halves[0]
		var stay, leave []uint64
		for _, fp := range all[full] {
			if halves[0].Has(fp) {
				stay = append(stay, fp)
			} else {
				leave = append(leave, fp)
			}
		}
		all[full] = stay
		return append(all, leave), len(leave)
	}}
}

// bucketSection compares extendible hashing with plain hashing.
func bucketSection(seed uint64, urls int) (Section, error) {
	hash, err := partition.NewHash([16]byte{15: byte(seed)}, partition.DefaultSlots)
	if err != nil {
		return Section{}, err
	}
	fps := make([]uint64, urls)
	for i := range fps {
		fps[i] = hash.Fingerprint(fmt.Sprintf("https://www.portal.example/article?id=%d", i))
	}
	sec := Section{Title: "Buckets that split one by one", Text: fmt.Sprintf(bucketText, grouped(urls), grouped(bucketURLs))}
	tab := Table{Name: "buckets", Caption: "Growth of one store of URLs", Columns: []string{"hashing", "buckets", "changes", "URLs moved, of all", "most at once", "mean fill"}}
	var all []growth
	for _, b := range []*buckets{
		extendible(),
		plain("plain, twice the buckets", func(n int) int { return 2 * n }),
		plain("plain, one bucket more", func(n int) int { return n + 1 }),
	} {
		g := b.grow(fps)
		all = append(all, g)
		tab.Rows = append(tab.Rows, []any{b.name, g.buckets, g.splits, float64(g.moved) / float64(urls), g.most, g.fill})
	}
	sec.Tables = []Table{tab}
	sec.Checks = []Check{
		{What: "extendible: no change moves more URLs than a bucket has", OK: all[0].most <= bucketURLs},
		{What: "plain: some change moves a quarter of all URLs or more", OK: 4*all[1].most >= urls && 4*all[2].most >= urls},
		{What: "extendible: in all, at most a tenth more moves than with twice the buckets", OK: 10*all[0].moved <= 11*all[1].moved},
	}
	return sec, nil
}

const bucketText = `The paper keeps its URLs in buckets that split one by one (extendible hashing). Here %s URLs of one host go into buckets of at most %s, by the
crawler's own fingerprints and parts of slots (` + "`blobschema/slot.go:Part`" + `), and into plain hash tables, which change the number of buckets for all URLs at
once: to twice as many, or to one more, when a bucket is full. A URL that moves to another bucket must be read and written.`
