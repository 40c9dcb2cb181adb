package schedule

import (
	"math"

	"github.com/orbweaver/orbweaver/blobschema"
)

func sqrt(x float64) float64 { return math.Sqrt(x) } // exact everywhere, by IEEE 754

// Bounds of thresholds.
const (
	leastThreshold = 1e-7 // all intervals are ShortestInterval below it
	mostThreshold  = 1e7
)

// gain is the strength of SteerThreshold's correction. Half the threshold usually means half as many revisits again,
// but only after an interval has passed. With a gain above about 1 the number of revisits oscillates.
const gain = 1

// mostSteer bounds one correction.
const mostSteer = 2

// FirstThreshold returns the threshold at which a number of pages that were never revisited have perHour revisits per
// hour in total.
func FirstThreshold(pages, perHour float64) float64 {
	if !(pages > 0 && perHour > 0) {
		return leastThreshold
	}
	gap := clamp(pages/perHour, ShortestInterval.Hours(), LongestInterval.Hours())
	return clamp(of(blobschema.Change{}).worth(gap), leastThreshold, mostThreshold)
}

// SteerThreshold returns the next threshold after a period with excess revisits more than the budget (negative: fewer), for
// a number of pages. The length of the period does not matter: the corrections of two periods in a row equal
// the correction of both together. SteerThreshold controls the total number of revisits, not their rate, and needs no
// smoothing.
func SteerThreshold(threshold, pages, excess float64) float64 {
	by := exp(clamp(gain*excess/max(1, pages), -1, 1))
	return clamp(threshold*clamp(by, 1.0/mostSteer, mostSteer), leastThreshold, mostThreshold)
}
