package ui

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
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
	layout := "2006-01-02 15:04"
	if times[len(times)-1].Sub(times[0]) < 24*time.Hour {
		layout = "15:04:05"
	}
	c := &chart{Title: title, From: times[0].UTC().Format(layout), To: times[len(times)-1].UTC().Format(layout), Length: span(times[len(times)-1].Sub(times[0]))}
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
func levels(points []point, of func(*point) float64) []float64 {
	var out []float64
	for i := range points {
		out = append(out, of(&points[i]))
	}
	return out
}

// window is the number of points over which rates are measured, so that single commits make no peaks.
const window = 8

// rates returns the growth of a figure per second, over the last points; it is not negative.
func rates(points []point, of func(*point) float64) []float64 {
	sums := levels(points, of)
	out := make([]float64, len(sums))
	for i := range out {
		from := min(max(0, i-window), len(out)-2)
		to := max(i, from+1)
		out[i] = max(0, sums[to]-sums[from]) / max(points[to].Time.Sub(points[from].Time).Seconds(), 1e-3)
	}
	return out
}

func perSecond(v float64) string      { return figure(v) + "/s" }
func bytesPerSecond(v float64) string { return humanize.Bytes(uint64(max(v, 0))) + "/s" }
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
