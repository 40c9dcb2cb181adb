package schedule

// BreadthFirst asks for URLs in the order of their depth and lets politeness keys take turns: both
// queues of the paper are first-in, first-out (Cao, Jiang, Singh). The order by depth is that of a queue
// into which each page's links are put as it comes, and unlike that it is kept when a slot is
// loaded again; URLs of one depth go in the order in which they came.
type BreadthFirst struct{ byDepth }

// Name is "breadth-first".
func (BreadthFirst) Name() string { return "breadth-first" }

// KeyRank is the same for every politeness key.
func (BreadthFirst) KeyRank(*KeyView) float64 { return 0 }

// byDepth orders URLs first-in, first-out.
type byDepth struct{}

// URLRank is 1 for a seed, and one more for each link from there. A relevant URL counts as
// one link nearer.
func (byDepth) URLRank(c Candidate) uint32 {
	rank := 1 + uint32(c.Depth)
	if c.Relevant && rank > 1 {
		rank--
	}
	return rank
}

// Found is the lower rank.
func (byDepth) Found(rank, again uint32) uint32 { return min(rank, again) }
