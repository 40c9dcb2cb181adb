package crawl

import "github.com/orbweaver/orbweaver/internal/frontier"

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
	young, old map[uint64]sentLink
	limit      int
	sums       frontier.Rated // nil: finds do not add up
}

// sentLink is what the owner of a link was told, and what it was not.
type sentLink struct {
	depth        uint16
	told, untold uint32 // ranks; 0: nothing
}

func newSentFilter(limit int, p frontier.Policy) *sentFilter {
	return &sentFilter{young: map[uint64]sentLink{}, limit: limit, sums: summing(p)}
}

// tell takes note of a link that was found at a depth, with a rank. If the owner is to be told,
// it returns the rank to be sent.
func (f *sentFilter) tell(fp uint64, depth uint16, rank uint32) (send uint32, news bool) {
	l, isYoung := f.young[fp]
	known := isYoung
	if !known {
		l, known = f.old[fp]
	}
	news = !known || depth < l.depth
	if f.sums == nil || rank == 0 {
		if !news {
			return 0, false
		}
		f.put(fp, sentLink{depth: depth}, isYoung)
		return rank, true
	}
	if l.untold != 0 {
		rank = f.sums.Found(rank, l.untold)
	}
	switch {
	case known && !news && f.sums.Quality(rank) < f.sums.Quality(l.told):
		l.untold = rank
	case known && l.told != 0:
		l = sentLink{depth: min(depth, l.depth), told: f.sums.Found(l.told, rank)}
		news = true
	default:
		l, news = sentLink{depth: depth, told: rank}, true
	}
	f.put(fp, l, isYoung)
	return rank, news
}

func (f *sentFilter) put(fp uint64, l sentLink, isYoung bool) {
	if !isYoung && len(f.young) >= f.limit/2 {
		f.old, f.young = f.young, make(map[uint64]sentLink, f.limit/2)
	}
	f.young[fp] = l
}
