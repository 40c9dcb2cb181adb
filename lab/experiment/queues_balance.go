package experiment

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/partition"
)

// mostQueues is the largest number of queues of one host.
const mostQueues = 64

// urlKind is a form of the URLs of a portal.
type urlKind struct {
	name string
	url  func(i int) string
}

// urlKinds returns forms of URLs that portals use. web has one host.
func urlKinds(web *simweb.Web) []urlKind {
	const site = "https://www.portal.example"
	words := []string{"autumn", "budget", "city", "derby", "election", "film", "garden", "harbour", "island", "jazz"}
	word := func(i int) string { return words[i%len(words)] }
	return []urlKind{
		{"generated", func(i int) string { return web.URL(0, i%web.Pages()) }},
		{"ids", func(i int) string { return fmt.Sprintf("%s/article?id=%d", site, 1_000_000+i) }},
		{"ids in 64s", func(i int) string { return fmt.Sprintf("%s/item/%d", site, 64*i) }},
		{"dates", func(i int) string {
			return fmt.Sprintf("%s/%d/%02d/%02d/%d.shtml", site, 2015+i%11, 1+i/11%12, 1+i/132%28, i)
		}},
		{"lists", func(i int) string {
			return fmt.Sprintf("%s/list.php?cat=%d&page=%d&sort=new", site, i/500, i%500)
		}},
		{"words", func(i int) string {
			return site + "/" + word(i) + "/" + word(i/10) + "-" + word(i/100) + "-" + word(i/1000) + "-" + strconv.Itoa(i/10_000) + ".html"
		}},
		{"hex names", func(i int) string {
			return fmt.Sprintf("%s/p/%016x.html", site, (uint64(i)+1)*0x9e3779b97f4a7c15)
		}},
	}
}

// dealer deals URLs to queues.
type dealer struct {
	name   string
	hash   func(url string) uint64
	reduce func(h uint64, k int) int
}

// dealers returns the published hashes with the published remainder, the crawl's own hash, and the published hashes as the
// frontier uses them.
func dealers(own partition.Hash) []dealer {
	remainder := func(h uint64, k int) int { return int(h % uint64(k)) }
	reduce := func(h uint64, k int) int { return schedule.Reduce(uint32(h), k) }
	short := func(by blobschema.QueueBy) func(string) uint64 {
		return func(url string) uint64 { return uint64(schedule.HashString(by, url)) }
	}
	bkdr, elf, sdbm := short(blobschema.QueueByBKDR), short(blobschema.QueueByELF), short(blobschema.QueueBySDBM)
	return []dealer{
		{"BKDR mod k", bkdr, remainder}, {"ELF mod k", elf, remainder}, {"SDBM mod k", sdbm, remainder}, {"SipHash mod k", own.Fingerprint, remainder},
		{"BKDR, all bits", bkdr, reduce}, {"ELF, all bits", elf, reduce}, {"SDBM, all bits", sdbm, reduce},
	}
}

// spread measures how unevenly URLs are distributed to queues.
type spread struct {
	deviation float64 // coefficient of variation
	fullest   float64 // longest queue, relative to the mean
}

func spreadOf(counts []int) spread {
	total, squares, most := 0, 0.0, 0
	for _, n := range counts {
		total += n
		squares += float64(n) * float64(n)
		most = max(most, n)
	}
	if total == 0 {
		return spread{}
	}
	mean := float64(total) / float64(len(counts))
	return spread{math.Sqrt(max(0, squares/float64(len(counts))-mean*mean)) / mean, float64(most) / mean}
}

// spreads returns the spread of n URLs, by number of queues, from 0 on.
func (d *dealer) spreads(k urlKind, n int) []spread {
	hashes := make([]uint64, n)
	for i := range hashes {
		hashes[i] = d.hash(k.url(i))
	}
	out := make([]spread, mostQueues+1)
	for q := 1; q <= mostQueues; q++ {
		counts := make([]int, q)
		for _, h := range hashes {
			counts[d.reduce(h, q)]++
		}
		out[q] = spreadOf(counts)
	}
	return out
}

// evenEnough is the length of the longest queue, relative to the mean, above which a dealer counts as uneven. If 100,000 URLs
// are dealt to 64 queues at random, the longest queue has about 1.06 times the mean.
const evenEnough = 1.1

// dealSection reports on the hashes alone.
func dealSection(seed uint64, web *simweb.Web, n int) (Section, error) {
	key := [16]byte{15: byte(seed)}
	own, err := partition.NewHash(key, partition.DefaultSlots)
	if err != nil {
		return Section{}, err
	}
	kinds, all := urlKinds(web), dealers(own)
	if n < 50_000 { // too few: chance dominates
		kinds = kinds[:2]
	}
	found := make([][][]spread, len(all)) // by dealer, kind and number of queues
	var jobs []func() error
	for i := range all {
		found[i] = make([][]spread, len(kinds))
		for j := range kinds {
			jobs = append(jobs, func() error { found[i][j] = all[i].spreads(kinds[j], n); return nil })
		}
	}
	if err := parallel(jobs); err != nil {
		return Section{}, err
	}
	columns := func(first string) []string {
		out := []string{first}
		for _, d := range all {
			out = append(out, d.name)
		}
		return out
	}
	byKind := Table{Name: "deal-urls", Caption: fmt.Sprintf("The fullest queue by the mean, for the worst of 2 to %d queues, by kind of URL", mostQueues), Columns: columns("URLs")}
	for j, k := range kinds {
		row := []any{k.name}
		for i := range all {
			row = append(row, worst(found[i][j][2:], spread.full))
		}
		byKind.Rows = append(byKind.Rows, row)
	}
	byNumber := Table{Name: "deal-queues", Caption: "The same for the worst kind of URL, by number of queues", Columns: columns("queues")}
	variation := Table{Name: "deal-variation", Caption: "Coefficient of variation of the queues' lengths, for the worst kind of URL", Columns: columns("queues")}
	plot := Plot{Name: "deal", Title: "The fullest queue, of the worst kind of URL", X: "queues", Y: "by the mean", LogX: true, LogY: true}
	for i, d := range all {
		s := Series{Name: d.name, Color: i % 4, Dashed: i >= 4}
		for q := 2; q <= mostQueues; q++ {
			s.X, s.Y = append(s.X, float64(q)), append(s.Y, worst(at(found[i], q), spread.full))
		}
		plot.Series = append(plot.Series, s)
	}
	for _, q := range []int{2, 3, 4, 5, 7, 8, 12, 16, 22, 26, 31, 32, 33, 44, 48, 52, 63, 64} {
		a, b := []any{q}, []any{q}
		for i := range all {
			a, b = append(a, worst(at(found[i], q), spread.full)), append(b, worst(at(found[i], q), spread.varied))
		}
		byNumber.Rows, variation.Rows = append(byNumber.Rows, a), append(variation.Rows, b)
	}
	sec := Section{
		Title: "How evenly URLs are distributed", Text: fmt.Sprintf(dealText, grouped(n), mostQueues),
		Tables: []Table{byKind, byNumber, variation}, Plots: []Plot{plot},
	}
	sec.Breaks = "`schedule.Reduce` returns the remainder of the hash."
	limit := evenEnough + 6*math.Sqrt(mostQueues/float64(n))
	for i, d := range all {
		if i >= 4 {
			w := 0.0
			for j := range kinds {
				w = max(w, worst(found[i][j][2:], spread.full))
			}
			sec.Checks = append(sec.Checks, Check{
				What: fmt.Sprintf("%s: the fullest of up to %d queues has at most %.2f times the mean, whatever the URLs", d.name, mostQueues, limit), OK: w <= limit,
			})
		}
	}
	return sec, nil
}

func (s spread) full() float64   { return s.fullest }
func (s spread) varied() float64 { return s.deviation }

// at returns the spreads of all kinds for a number of queues.
func at(byKind [][]spread, queues int) (out []spread) {
	for _, s := range byKind {
		out = append(out, s[queues])
	}
	return out
}

func worst(all []spread, figure func(spread) float64) float64 {
	values := make([]float64, len(all))
	for i, s := range all {
		values[i] = figure(s)
	}
	return slices.Max(values)
}

const dealText = `The paper compares BKDRHash, ELFHash and SDBMHash, and chooses BKDR. Here %[1]s URLs of several kinds found on portals
are distributed over 2 to %[2]d queues by the remainder, as published, and by the hash that the crawl already has (SipHash with the crawl's
key). The fullest queue becomes empty last. So its length divided by the mean shows how much longer the host takes.

None of the three works with every remainder. The lowest four bits of ELF are those of the last letter, so with 2, 4, 8 or 16 queues all URLs that end
with ".html" are in one queue. SDBM multiplies by 65,599, which is -1 modulo 64, so only the difference of
two sums of letters remains: it is uneven from 16 queues on. BKDR, the best of them, is even with a power of two; but 131 is 1 modulo 26 and 52, and -1 modulo 22, 33 and 44, where numbers in
URLs leave little more than the sums of their digits. So the frontier does not use a remainder, but the upper
bits of a product ("all bits"). Then all three are as even as chance, for any number of queues.`
