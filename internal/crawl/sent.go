package crawl

import (
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/schedule"
)

// sentFilter remembers exactly which links were sent to other partitions, with their depth. It is bounded: when it is full
// it forgets the older half, and a link may be sent again, which costs bytes and nothing else.
//
// Some policies add up the qualities of several finds of a URL, so the owner of a link should hear of each find. But a
// message for each find is what the filter saves. The filter adds up what it has not sent and sends the link again when
// that sum is at least what was sent before. So the owner knows at least half of what was found, and hears of it once each
// time the sum doubles.
type sentFilter struct {
	recent[uint64, sentLink]
	limit int
	sums  schedule.Rated // nil: finds do not add up
}

// sentLink is what was sent to the owner of a link, and what was not.
type sentLink struct {
	depth        uint16
	told, untold uint32 // ranks sent and not sent; 0: nothing
}

func newSentFilter(limit int, p schedule.Policy) *sentFilter {
	return &sentFilter{limit: limit, sums: summing(p)}
}

// add records a found link. If it must be sent to the owner, add returns true and the rank to send. A link in a sitemap is
// distinct from the same link on a page, because the owner reserves room for links from pages. So is a requisite, because a
// link makes it a page.
func (f *sentFilter) add(l *frontier.Link) (send uint32, news bool) {
	fp, depth, rank := l.Fingerprint, l.Depth, l.Rank
	switch {
	case l.Flags.Listed():
		fp = ^fp
	case l.Flags.Requisite():
		fp ^= 1 << 63
	}
	was, known := f.get(fp)
	news = !known || depth < was.depth
	if f.sums == nil || rank == 0 || l.Flags.Requisite() {
		if !news {
			return 0, false
		}
		f.put(fp, sentLink{depth: depth}, f.limit)
		return rank, true
	}
	if was.untold != 0 {
		rank = f.sums.Found(rank, was.untold)
	}
	switch {
	case known && !news && f.sums.Quality(rank) < f.sums.Quality(was.told):
		was.untold = rank
	case known && was.told != 0:
		was = sentLink{depth: min(depth, was.depth), told: f.sums.Found(was.told, rank)}
		news = true
	default:
		was, news = sentLink{depth: depth, told: rank}, true
	}
	f.put(fp, was, f.limit)
	return rank, news
}

// recent is a map of bounded size. When it is full it forgets the older half at once.
type recent[K comparable, V any] struct {
	young, old map[K]V
}

func (r *recent[K, V]) get(k K) (V, bool) {
	v, ok := r.young[k]
	if !ok {
		v, ok = r.old[k]
	}
	return v, ok
}

// put stores v. The map holds at most `most` values, or two if that is more.
func (r *recent[K, V]) put(k K, v V, most int) {
	if r.young == nil || len(r.young) >= most/2 {
		if _, ok := r.young[k]; !ok {
			r.old, r.young = r.young, make(map[K]V, len(r.young))
		}
	}
	r.young[k] = v
}

func (r *recent[K, V]) forget(k K) {
	delete(r.young, k)
	delete(r.old, k)
}
