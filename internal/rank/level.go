package rank

import (
	"math"

	"github.com/orbweaver/orbweaver/blobschema/ranks"
)

// level is a partition's share of one of the two graphs during the iteration.
type level struct {
	*ranks.Level
	x      []float64 // ranks; until they start, those of the previous job: 0 for new nodes
	weight []float64 // of personalisation; nil: all nodes are equal
	nodes  float64   // number of nodes of all partitions
	sum    float64   // of all weights of all partitions
	give   []float64 // rank that the nodes give to each target
	past   []float64 // residuals, by round
	done   bool      // it has settled
	next   []float64 // scratch
}

// newLevels returns the levels of a layout: pages, then hosts.
func newLevels(l *ranks.Layout) levels { return levels{{Level: &l.Pages}, {Level: &l.Hosts}} }

// size returns the number of nodes here.
func (l *level) size() int { return len(l.OutFirst) - 1 }

// share returns the share of a node in the personalisation.
func (l *level) share(i int) float64 {
	if l.weight == nil {
		return 1 / l.nodes
	}
	return l.weight[i] / l.sum
}

// start makes the first ranks from the previous ones, scaled by the sums of all partitions.
func (l *level) start(known, fresh float64) {
	total := known + fresh/l.sum
	for i, x := range l.x {
		if x == 0 {
			x = l.share(i)
		}
		l.x[i] = x / total
	}
}

// send computes the rank that the nodes give, and returns the sum of the ranks of nodes without links.
func (l *level) send() (dangling float64) {
	if l.give == nil {
		l.give = make([]float64, l.Targets[len(l.Targets)-1])
	}
	clear(l.give)
	first := l.OutFirst[0]
	for i, x := range l.x {
		end := l.OutFirst[i+1]
		if first == end {
			dangling += x
			continue
		}
		each := x / float64(end-first)
		for _, t := range l.Out[first:end] {
			l.give[t] += each
		}
		first = end
	}
	return dangling
}

// receive computes the next ranks from the gifts of all partitions, in their order, and returns the sum of changes.
func (l *level) receive(gifts [][]float64, dangling, damping float64) (residual float64) {
	if l.next == nil {
		l.next = make([]float64, len(l.x))
	}
	clear(l.next)
	for q, gift := range gifts {
		to := l.In[l.InFirst[q]:l.InFirst[q+1]]
		for k, v := range gift {
			l.next[to[k]] += v
		}
	}
	rest := damping*dangling + (1 - damping)
	for i, sum := range l.next {
		x := damping*sum + rest*l.share(i)
		residual += math.Abs(x - l.x[i])
		l.next[i] = x
	}
	l.x, l.next = l.next, l.x
	return residual
}

// part returns the rank given to the targets of a partition.
func (l *level) part(q int) []float64 {
	if l.done {
		return nil
	}
	return l.give[l.Targets[q]:l.Targets[q+1]]
}

// fits reports whether a partition gave as many numbers as it has targets here.
func (l *level) fits(q int, gift []float64) bool {
	return l.done || len(gift) == int(l.InFirst[q+1]-l.InFirst[q])
}
