package fresh

import (
	"math"

	"github.com/orbweaver/orbweaver/blobschema"
)

func sqrt(x float64) float64 { return math.Sqrt(x) } // exact everywhere, by IEEE 754

// Bounds of thresholds.
const (
	leastThreshold = 1e-7 // below it all intervals are Shortest
	mostThreshold  = 1e7
)

// gain is how strongly Steer answers. Halving the threshold makes looks more frequent by half as
// a rule, but shows only after an interval; above about 1 the number of looks swings.
const gain = 1

// mostSteer bounds one answer, whatever was counted.
const mostSteer = 2

// First is the threshold for so many pages of which nothing is known but what their hosts let
// expect, so that there are perHour looks at all of them in an hour.
func First(prior blobschema.Change, pages, perHour float64) float64 {
	if !(pages > 0 && perHour > 0) {
		return leastThreshold
	}
	gap := clamp(pages/perHour, Shortest.Hours(), Longest.Hours())
	return clamp(of(prior).worth(gap), leastThreshold, mostThreshold)
}

// Steer is the threshold after a time in which there were so many looks more than wanted (less
// than 0: fewer), at that many pages. The time does not matter: its answers to two times in a row come to the
// same as that to both. (So the sum of all looks is steered, not their rate, and needs no
// smoothing.)
func Steer(threshold, pages, excess float64) float64 {
	by := exp(clamp(gain*excess/max(1, pages), -1, 1))
	return clamp(threshold*clamp(by, 1.0/mostSteer, mostSteer), leastThreshold, mostThreshold)
}
