package crawl

import (
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/schedule"
)

// sentFilter remembers links already sent to other partitions, exactly, with the depth they
// were sent at. It is bounded: when full, the older half is forgotten, and a link may be
// sent again, which costs bytes and nothing else.
//
// Where the qualities of several finds add up, the owner of a link should be told of each;
// but a message for each find is what the filter is there to save. It keeps what was not
// told, and lets the link through again with all of that when it is at least as much as was
// told before. So the owner knows at least half of what was found, and is told once for
// each time that it doubles.
type sentFilter struct {
	recent[uint64, sentLink]
	limit int
	sums  schedule.Rated // nil: finds do not add up
}

// sentLink is what the owner of a link was told, and what it was not.
type sentLink struct {
	depth        uint16
	told, untold uint32 // ranks; 0: nothing
}

func newSentFilter(limit int, p schedule.Policy) *sentFilter {
	return &sentFilter{limit: limit, sums: summing(p)}
}

// tell takes note of a link that was found. If the owner is to be told, it returns the rank to be sent. A link
// that a sitemap lists is another one than that of a page, for which the owner keeps room.
func (f *sentFilter) tell(l *frontier.Link) (send uint32, news bool) {
	fp, depth, rank := l.Fingerprint, l.Depth, l.Rank
	if l.Flags.Listed() {
		fp = ^fp
	}
	was, known := f.get(fp)
	news = !known || depth < was.depth
	if f.sums == nil || rank == 0 {
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

// recent is a map of bounded size: it forgets what was put longest ago, half of all at once.
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

// put keeps v, and most values at the most, or two.
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
