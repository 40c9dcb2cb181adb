package experiment

import (
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/lab/measure"
)

// queue holds what the omniscient order knows about a server.
type queue struct {
	pages  []int // sorted by quality per second, the best first
	worth  map[int]float64
	served int           // requests over the open connection; 0: no connection is open
	free   time.Duration // time from which it is not connected
	batch  int           // number of pages of the best next visit
	gain   float64       // its quality per second
}

func (q *queue) add(page int, worth float64) {
	if q.worth == nil {
		q.worth = map[int]float64{}
	}
	q.pages, q.worth[page] = append(q.pages, page), worth
}

func (q *queue) sort() {
	slices.SortStableFunc(q.pages, func(a, b int) int {
		switch {
		case q.worth[a] > q.worth[b]:
			return -1
		case q.worth[a] < q.worth[b]:
			return 1
		}
		return 0
	})
}

// opening returns the time until the first page can be requested.
func (q *queue) opening(s measure.Server) time.Duration {
	if q.served > 0 {
		return 0
	}
	return s.Connect + s.Close
}

// plan finds the best next visit. Pages are sorted by falling quality per second, so one more page is worthwhile while it
// raises the quality per second of the visit.
func (q *queue) plan(s measure.Server, quality []float64, took []time.Duration) {
	sum, cost := 0.0, q.opening(s).Seconds()
	q.batch, q.gain = 0, 0
	for i, p := range q.pages {
		if i >= s.PerConnection-q.served {
			break
		}
		sum += quality[p]
		cost += took[p].Seconds()
		if sum/cost < q.gain {
			break
		}
		q.batch, q.gain = i+1, sum/cost
	}
}

func earliest(times []time.Duration) (at int) {
	for i, t := range times {
		if t < times[at] {
			at = i
		}
	}
	return at
}
