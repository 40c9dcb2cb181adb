package schedule

import (
	"fmt"

	"github.com/orbweaver/orbweaver/internal/polite"
)

// Policy ranks URLs and politeness keys. Its methods are pure functions of their arguments: all
// partitions share one value without a lock.
//
// To add a policy, add a line to policies below and a row to TestPolicies. A policy that orders URLs by
// quality works with every source of quality.
type Policy interface {
	// Name is the name in [PolicyByName].
	Name() string
	// URLRank orders the URLs of a key, lower first. It is 1 or more: 0 is reserved for requested
	// URLs. The partition that finds a URL computes it, for [blobschema.Queued].Rank.
	URLRank(c Candidate) uint32
	// Found returns the rank of a pending URL that is found again, from its present rank and the rank of
	// the new find. It is at most the lower of the two, because merges of runs keep the lower rank.
	Found(rank, again uint32) uint32
	// KeyRank orders the ready keys, higher first; equal keys take turns. It is computed when a
	// visit to the key may begin, not for each request.
	KeyRank(h *KeyView) float64
}

// Rated is a [Policy] whose ranks carry qualities.
type Rated interface {
	Policy
	// Quality returns the quality of a rank; it is 1 for requested URLs.
	Quality(rank uint32) float64
	// Adds reports whether the qualities of several finds add up. Then finds of a known URL count too.
	Adds() bool
}

// Candidate is what is known of a URL when it is found.
type Candidate struct {
	Depth       uint16  // links from a seed
	Priority    int8    // from a sitemap, in tenths above its default: -5 to 5
	Relevant    bool    // its link contains a word of its topic
	Fingerprint uint64  // of the URL
	Host        string  // authority of the URL
	Cash        float64 // quality of the page that links to it, divided by the number of that page's links
}

// Waiting is a URL in the queue of a key.
type Waiting struct {
	Rank  uint32
	Depth uint16
}

// KeyView is what a policy sees of a key.
type KeyView struct {
	Pending     int // URLs that are not settled
	Allowed     int // requests that may be under way at once; 0 counts as 1
	Pace        *polite.Pace
	topicQueues []*topicQueue
}

// Best returns the first n URLs that may be requested now, best first, or all if there are fewer. It takes
// time in proportion to n log n, however many URLs wait.
func (h *KeyView) Best(n int) []Waiting {
	if n <= 0 {
		return nil
	}
	var open heap[rung]
	for _, st := range h.topicQueues {
		if len(st.lanes) > 0 {
			open = append(open, rung{st: st})
		}
	}
	open.init()
	out := make([]Waiting, 0, min(n, maxBest))
	for len(out) < n && len(open) > 0 {
		r := open.pop()
		it := r.item()
		out = append(out, Waiting{Rank: it.rank, Depth: it.depth})
		for child := 2*r.pos + 1; child <= 2*r.pos+2; child++ {
			if child < len(r.st.lanes[r.lane].queue) {
				open.push(rung{r.st, r.lane, child})
			}
		}
		if r.pos == 0 { // the lanes are a heap by their best items
			for child := 2*r.lane + 1; child <= 2*r.lane+2 && child < len(r.st.lanes); child++ {
				open.push(rung{r.st, child, 0})
			}
		}
	}
	return out
}

// rung is a place in the queue of a lane of a topic queue.
type rung struct {
	st        *topicQueue
	lane, pos int
}

func (r rung) item() *item {
	l := r.st.lanes[r.lane]
	return &l.pool.items[l.queue[r.pos]]
}

func (r rung) before(o rung) bool { return r.item().before(o.item()) }

func (r rung) moved(int) {}

// policies returns all policies (Cao, Jiang, Singh). Those that use a quality take it from source.
func policies(source Quality) []Policy {
	return []Policy{
		// The order by depth equals that of a queue to which each page appends its links, and it survives unloading
		// a slot. URLs of one depth keep the order of their arrival, and keys take turns: both queues of the paper
		// are first-in, first-out.
		byDepth{"breadth-first", func(*KeyView) float64 { return 0 }},
		// The key with most pages per second of connection time comes first: R = P / T.
		byDepth{"performance", func(h *KeyView) float64 {
			pages, cost := h.Pace.Connection(h.Pending, h.Allowed)
			return float64(pages) / cost.Seconds()
		}},
		// The key with the best URL comes first.
		byQuality{"quality", source, func(h *KeyView) float64 {
			for _, w := range h.Best(1) {
				return rated(w)
			}
			return 0
		}},
		// The key with most quality per second of connection time comes first: C is the sum of the qualities of its
		// best P URLs, divided by T. The next connection to the key brings P URLs and takes the time T.
		byQuality{"capability", source, func(h *KeyView) float64 { return h.capability(rated) }},
	}
}

// byDepth orders URLs by depth.
type byDepth struct {
	name    string
	keyRank func(*KeyView) float64
}

func (p byDepth) Name() string               { return p.name }
func (p byDepth) KeyRank(h *KeyView) float64 { return p.keyRank(h) }

// URLRank is 1 for a seed, and one more for each link from a seed. A relevant URL counts as one
// link nearer.
func (byDepth) URLRank(c Candidate) uint32 {
	rank := 1 + uint32(c.Depth)
	if c.Relevant && rank > 1 {
		rank--
	}
	return rank
}

// Found is the lower rank.
func (byDepth) Found(rank, again uint32) uint32 { return min(rank, again) }

// byQuality orders URLs by their quality.
type byQuality struct {
	name    string
	source  Quality
	keyRank func(*KeyView) float64
}

// relevantFactor multiplies the quality of a relevant URL. It has the effect of three more links to a URL
// with one, or of dividing 1+depth by four.
const relevantFactor = 4

func (p byQuality) Name() string               { return p.name }
func (p byQuality) Adds() bool                 { return p.source.Adds }
func (p byQuality) KeyRank(h *KeyView) float64 { return p.keyRank(h) }

// URLRank falls as quality rises.
func (p byQuality) URLRank(c Candidate) uint32 {
	q := p.source.Of(c)
	if c.Relevant {
		q *= relevantFactor
	}
	return rankOf(q)
}

// Found returns the rank of the sum of both qualities if the source adds, else the lower rank.
func (p byQuality) Found(rank, again uint32) uint32 {
	if !p.Adds() || rank == 0 || again == 0 {
		return min(rank, again)
	}
	return rankOf(qualityOf(rank) + qualityOf(again))
}

// Quality returns the quality of a rank.
func (byQuality) Quality(rank uint32) float64 {
	if rank == 0 {
		return 1
	}
	return qualityOf(rank)
}

func rated(w Waiting) float64 { return byQuality{}.Quality(w.Rank) }

// PolicyNames returns the names that NewPolicy knows.
func PolicyNames() (names []string) {
	for _, p := range policies(Quality{}) {
		names = append(names, p.Name())
	}
	return names
}

// NewPolicy returns the policy of a name; "" is the first, breadth-first. Policies that use a quality
// take it from source; the zero Quality is the one by depth.
func NewPolicy(name string, source Quality) (Policy, error) {
	if source.Of == nil {
		source = sources[0]
	}
	for _, p := range policies(source) {
		if name == p.Name() || name == "" {
			return p, nil
		}
	}
	return nil, fmt.Errorf("no frontier policy is called %q; there are %q", name, PolicyNames())
}

// PolicyByName is like NewPolicy, with the name of a source of quality.
func PolicyByName(policy, quality string) (Policy, error) {
	source, err := QualityByName(quality)
	if err != nil {
		return nil, err
	}
	return NewPolicy(policy, source)
}

// maxBest bounds the URLs that a capability considers.
const maxBest = 100

// capability returns the sum of the qualities of the URLs that the next connection brings, divided by
// the seconds that it is expected to take.
func (h *KeyView) capability(quality func(Waiting) float64) float64 {
	pages, cost := h.Pace.Connection(min(h.Pending, maxBest), h.Allowed)
	sum := 0.0
	for _, w := range h.Best(pages) {
		sum += quality(w)
	}
	return sum / cost.Seconds()
}

// qualities returns the function that scores a URL: by the qualities of the policy, or by depth.
func qualities(p Policy) func(Waiting) float64 {
	if r, ok := p.(Rated); ok {
		return func(w Waiting) float64 { return r.Quality(w.Rank) }
	}
	return func(w Waiting) float64 {
		if w.Rank == 0 {
			return 1
		}
		return ofDepth(Candidate{Depth: w.Depth})
	}
}
