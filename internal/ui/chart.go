package ui

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/internal/view"
)

// chart is a graph over time, drawn as SVG. Its coordinates are stretched to the width of the page, so all texts are
// beside it.
type chart struct {
	Title, Now, Top  string // Now is the last value, Top the largest one of the axis
	From, To, Length string
	Lines            []chartLine
}

type chartLine struct {
	Name, Now, Points string // Points are those of an SVG polyline
	Class             int    // number of a colour
}

// series is a line before it is drawn.
type series struct {
	name   string
	values []float64
}

// Size of a chart in its own units.
const (
	chartWidth  = 600
	chartHeight = 120
)

// draw draws lines whose values are at the same times, in seconds. write writes a value with its unit.
func draw(title string, times []time.Time, write func(float64) string, lines ...series) *chart {
	if len(times) < 2 {
		return nil
	}
	c := &chart{Title: title, From: at(times[0]), To: at(times[len(times)-1]), Length: span(times[len(times)-1].Sub(times[0]))}
	top := 0.0
	for _, l := range lines {
		top = max(top, slices.Max(l.values))
	}
	top = nice(top)
	c.Top = write(top)
	for i, l := range lines {
		var b strings.Builder
		for j, v := range l.values {
			x := chartWidth * float64(times[j].Sub(times[0])) / float64(max(times[len(times)-1].Sub(times[0]), 1))
			fmt.Fprintf(&b, "%.1f,%.1f ", x, chartHeight-chartHeight*v/top)
		}
		c.Lines = append(c.Lines, chartLine{l.name, write(l.values[len(l.values)-1]), strings.TrimSpace(b.String()), i})
	}
	if len(c.Lines) == 1 {
		c.Now = c.Lines[0].Now
	}
	return c
}

// nice rounds up to 1, 2 or 5 times a power of ten.
func nice(v float64) float64 {
	if v <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 5, 10} {
		if v <= f*unit {
			return f * unit
		}
	}
	return v
}

// levels returns a figure at each point.
func levels(points []view.Point, of func(*view.Point) float64) []float64 {
	var out []float64
	for i := range points {
		out = append(out, of(&points[i]))
	}
	return out
}

// rates returns the growth of a figure per second since the previous point; it is not negative.
func rates(points []view.Point, of func(*view.Point) float64) []float64 {
	out := levels(points, of)
	for i := len(out) - 1; i > 0; i-- {
		out[i] = max(0, out[i]-out[i-1]) / max(points[i].Time.Sub(points[i-1].Time).Seconds(), 1e-3)
	}
	if len(out) > 1 {
		out[0] = out[1]
	}
	return out
}

func perSecond(v float64) string      { return figure(v) + "/s" }
func bytesPerSecond(v float64) string { return size(int64(v)) + "/s" }
func whole(v float64) string          { return count(int64(v + 0.5)) }
func dollars(v float64) string {
	if v > 0 && v < 0.01 {
		return fmt.Sprintf("$%.2g", v)
	}
	return fmt.Sprintf("$%.2f", v)
}

// figure writes a number with about two digits.
func figure(v float64) string {
	if v >= 10 || v == math.Trunc(v) {
		return whole(v)
	}
	return fmt.Sprintf("%.2g", v)
}
