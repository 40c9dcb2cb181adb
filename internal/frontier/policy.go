package frontier

import (
	"fmt"
	"time"

	"github.com/orbweaver/orbweaver/internal/polite"
)

// Policy ranks the two queues. It must be a pure function of its arguments.
type Policy interface {
	// Name is what PolicyByName finds it by.
	Name() string
	// URLRank orders the URLs of a unit, lower first. It is 1 or more: 0 is kept for what
	// is asked for on purpose. Who finds a URL works it out, for [blobschema.Queued].Rank.
	URLRank(c Candidate) uint32
	// HostRank orders the units that are ready, higher first; equals take turns. It is
	// worked out when a visit to the unit may begin, not for each request of it.
	HostRank(h *HostView) float64
	// Found is the rank of a URL that was found once more while it waits, by its rank so far
	// and that of the new finding. It is no higher than either.
	Found(rank, again uint32) uint32
}

// Candidate is what is known of a URL when it is found.
type Candidate struct {
	Depth    uint16 // links from a seed
	Priority int8   // what a sitemap says, in tenths from its default: -5 to 5
}

// Waiting is a URL in the queue of a unit.
type Waiting struct {
	Rank  uint32
	Depth uint16
}

// HostView is what a policy may know of a unit.
type HostView struct {
	Pending int // URLs that are not settled
	Pace    *polite.Pace
	stands  []*stand
}

// Best returns the n URLs that would be asked for first, best first; fewer if fewer
// may be asked for. It takes time in proportion to n log n, however many wait.
func (h *HostView) Best(n int) []Waiting {
	return best(h.stands, n)
}

// policies are those that have a name.
func policies() []Policy { return []Policy{BreadthFirst{}, Capability{}} }

// PolicyByName returns a policy: "breadth-first", which "" stands for too, or
// "capability".
func PolicyByName(name string) (Policy, error) {
	var names []string
	for _, p := range policies() {
		if name == p.Name() || name == "" {
			return p, nil
		}
		names = append(names, p.Name())
	}
	return nil, fmt.Errorf("no frontier policy is called %q; there are %q", name, names)
}

// BreadthFirst asks for URLs in the order of their depth and lets units take turns.
type BreadthFirst struct{}

// Name is "breadth-first".
func (BreadthFirst) Name() string { return "breadth-first" }

// URLRank is 1 for a seed, and one more for each link from there.
func (BreadthFirst) URLRank(c Candidate) uint32 { return 1 + uint32(c.Depth) }

// Found is the lower of the two.
func (BreadthFirst) Found(rank, again uint32) uint32 { return min(rank, again) }

// HostRank is the same for every unit.
func (BreadthFirst) HostRank(*HostView) float64 { return 0 }

// Capability asks first where most quality is to be had per second of connection time
// (PAPERS C: Cao, Jiang, Singh), and there for the best URLs.
type Capability struct{}

// Name is "capability".
func (Capability) Name() string { return "capability" }

// The quality of a URL is (6 + priority) / 11 / (1 + depth): between 0 and 1, which the
// seed of highest priority has. A rank is the inverse of a quality in units small enough
// to tell all priorities apart.
const (
	bestRank = 60 // of quality 1
	priority = 6  // added to a priority, so that it counts from 1 to 11
)

// URLRank falls as quality rises.
func (Capability) URLRank(c Candidate) uint32 {
	p := uint64(min(max(int(c.Priority), -5), 5) + priority)
	return uint32((bestRank*11*(1+uint64(c.Depth)) + p/2) / p)
}

// Found is the lower of the two.
func (Capability) Found(rank, again uint32) uint32 { return min(rank, again) }

// HostRank is the unit's capability: the sum of the qualities of the URLs that one
// connection will bring, for each second that it is expected to take.
func (Capability) HostRank(h *HostView) float64 { return h.capability(qualityOfRank) }

// qualityOfRank undoes URLRank of Capability; what is asked for on purpose is of the
// highest.
func qualityOfRank(w Waiting) float64 { return bestRank / float64(max(w.Rank, bestRank)) }

// qualityOfDepth is that of a URL of which no priority is known.
func qualityOfDepth(w Waiting) float64 {
	if w.Rank == 0 {
		return 1
	}
	return priority / 11.0 / (1 + float64(w.Depth))
}

// maxBest bounds how many URLs are looked at for a capability.
const maxBest = 100

func (h *HostView) capability(quality func(Waiting) float64) float64 {
	pages, cost := h.Pace.Connection(min(h.Pending, maxBest))
	sum := 0.0
	for _, w := range h.Best(pages) {
		sum += quality(w)
	}
	return sum / max(cost, time.Millisecond).Seconds()
}

// best walks the queues of some stands from their tops, in order.
func best(stands []*stand, n int) []Waiting {
	if n <= 0 {
		return nil
	}
	// rung is a place in a lane's queue.
	type rung struct {
		st        *stand
		lane, pos int
	}
	item := func(c rung) *item {
		l := c.st.lanes[c.lane]
		return &l.part.items[l.queue[c.pos]]
	}
	var open []rung // a heap
	push := func(c rung) {
		open = append(open, c)
		for at := len(open) - 1; at > 0; {
			parent := (at - 1) / 2
			if !item(open[at]).less(item(open[parent])) {
				break
			}
			open[at], open[parent] = open[parent], open[at]
			at = parent
		}
	}
	pop := func() rung {
		c, last := open[0], len(open)-1
		open[0] = open[last]
		open = open[:last]
		for at := 0; ; {
			child := 2*at + 1
			if child >= last {
				return c
			}
			if child+1 < last && item(open[child+1]).less(item(open[child])) {
				child++
			}
			if !item(open[child]).less(item(open[at])) {
				return c
			}
			open[at], open[child] = open[child], open[at]
			at = child
		}
	}
	for _, st := range stands {
		if len(st.lanes) > 0 {
			push(rung{st: st})
		}
	}
	out := make([]Waiting, 0, min(n, maxBest))
	for len(out) < n && len(open) > 0 {
		c := pop()
		it := item(c)
		out = append(out, Waiting{Rank: it.rank, Depth: it.depth})
		for child := 2*c.pos + 1; child <= 2*c.pos+2; child++ {
			if child < len(c.st.lanes[c.lane].queue) {
				push(rung{c.st, c.lane, child})
			}
		}
		if c.pos == 0 { // the lanes are a heap by their tops
			for child := 2*c.lane + 1; child <= 2*c.lane+2 && child < len(c.st.lanes); child++ {
				push(rung{c.st, child, 0})
			}
		}
	}
	return out
}
