package experiment

import (
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/lab/measure"
)

// queue is what the omniscient order knows of a server.
type queue struct {
	pages  []int // best first: by quality per second
	worth  map[int]float64
	served int           // over the connection that is open; 0: none is
	free   time.Duration // when it is not connected
	batch  int           // pages of the best next visit
	gain   float64       // quality a second of that
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

// opening is what it takes until the first page can be requested.
func (q *queue) opening(s measure.Server) time.Duration {
	if q.served > 0 {
		return 0
	}
	return s.Connect + s.Close
}

// plan finds the best next visit. Pages come by falling quality per second, so one more is worth
// it as long as it raises that of all.
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
