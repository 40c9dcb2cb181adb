package experiment

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Plot is a diagram of lines over numbers: see docs/adr/0023-plots.md.
type Plot struct {
	Name   string // of its file, after that of the report
	Title  string
	X, Y   string // what the axes are
	LogX   bool   // to the base 2
	LogY   bool   // to the base 10; values that are not positive are left out
	Series []Series
}

// Series is one line.
type Series struct {
	Name   string
	X, Y   []float64
	Dashed bool // published, not measured
	Color  int  // an index; lines that belong together have the same
}

// The shape of a plot, in pixels.
const (
	plotWidth, plotHeight     = 720, 400
	plotLeft, plotRight       = 70, 190 // the legend is on the right
	plotTop, plotBottom       = 36, 50
	plotInnerW, plotInnerH    = plotWidth - plotLeft - plotRight, plotHeight - plotTop - plotBottom
	legendLine, legendPatch   = 17, 22
	tickLength, labelDistance = 4, 8
)

// colors can be told apart by most people who do not see all of them (Okabe, Ito: Color
// Universal Design, 2008).
var colors = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"}

// axis maps numbers to pixels.
type axis struct {
	log      float64 // base, 0 for none
	lo, hi   float64 // after the logarithm
	from, to float64 // pixels
	ticks    []float64
}

func newAxis(values []float64, base, from, to float64) *axis {
	a := &axis{log: base, from: from, to: to, lo: math.Inf(1), hi: math.Inf(-1)}
	for _, v := range values {
		if a.has(v) {
			a.lo, a.hi = min(a.lo, a.scale(v)), max(a.hi, a.scale(v))
		}
	}
	if a.lo > a.hi {
		a.lo, a.hi = 0, 1
	}
	if base != 0 {
		a.lo, a.hi = math.Floor(a.lo), math.Ceil(a.hi)
		if a.lo == a.hi {
			a.hi++
		}
		for e := a.lo; e <= a.hi; e++ {
			a.ticks = append(a.ticks, math.Pow(base, e))
		}
		return a
	}
	a.lo = min(a.lo, 0)
	if a.lo == a.hi {
		a.hi++
	}
	step := niceStep((a.hi - a.lo) / 5)
	a.hi = math.Ceil(a.hi/step-1e-9) * step
	for i := math.Ceil(a.lo / step); i*step <= a.hi+step/1e6; i++ {
		a.ticks = append(a.ticks, i*step)
	}
	return a
}

// niceStep is 1, 2 or 5 times a power of ten, and at least least.
func niceStep(least float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(least)))
	for _, m := range []float64{1, 2, 5} {
		if m*unit >= least*(1-1e-9) {
			return m * unit
		}
	}
	return 10 * unit
}

// has reports whether a value has a place on the axis.
func (a *axis) has(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (a.log == 0 || v > 0)
}

func (a *axis) scale(v float64) float64 {
	if a.log == 0 {
		return v
	}
	return math.Log(v) / math.Log(a.log)
}

func (a *axis) pixel(v float64) float64 {
	return a.from + (a.scale(v)-a.lo)/(a.hi-a.lo)*(a.to-a.from)
}

// px is a coordinate with as many digits as show.
func px(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// SVG draws the plot. It needs no fonts but the reader's own.
func (p *Plot) SVG() []byte {
	var xs, ys []float64
	for _, s := range p.Series {
		xs, ys = append(xs, s.X...), append(ys, s.Y...)
	}
	base := func(log bool, b float64) float64 {
		if log {
			return b
		}
		return 0
	}
	x := newAxis(xs, base(p.LogX, 2), plotLeft, plotLeft+plotInnerW)
	y := newAxis(ys, base(p.LogY, 10), plotTop+plotInnerH, plotTop)
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", plotWidth, plotHeight)
	writeText(&b, plotLeft+plotInnerW/2, 20, "middle", "", p.Title)
	p.drawAxes(&b, x, y)
	for i, s := range p.Series {
		s.draw(&b, x, y)
		s.legend(&b, i)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func (p *Plot) drawAxes(b *bytes.Buffer, x, y *axis) {
	const right, bottom = plotLeft + plotInnerW, plotTop + plotInnerH
	for _, v := range x.ticks {
		at := px(x.pixel(v))
		fmt.Fprintf(b, `<path d="M%s %dV%d" stroke="#888"/>`+"\n", at, bottom, bottom+tickLength)
		writeText(b, x.pixel(v), bottom+2*labelDistance+tickLength, "middle", "", label(v))
	}
	for _, v := range y.ticks {
		at := px(y.pixel(v))
		fmt.Fprintf(b, `<path d="M%d %sH%d" stroke="#ddd"/>`+"\n", plotLeft, at, right)
		writeText(b, plotLeft-labelDistance, y.pixel(v)+4, "end", "", label(v))
	}
	fmt.Fprintf(b, `<path d="M%d %dV%dH%d" fill="none" stroke="#888"/>`+"\n", plotLeft, plotTop, bottom, right)
	writeText(b, plotLeft+plotInnerW/2, plotHeight-10, "middle", "", p.X)
	writeText(b, 0, 0, "middle", fmt.Sprintf(` transform="translate(16 %d) rotate(-90)"`, plotTop+plotInnerH/2), p.Y)
}

// label is a number as short as it can be.
func label(v float64) string {
	if v != 0 && (math.Abs(v) < 1e-3 || math.Abs(v) >= 1e7) {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	return strconv.FormatFloat(math.Round(v*1e9)/1e9, 'f', -1, 64)
}

func (s *Series) color() string { return colors[s.Color%len(colors)] }

func (s *Series) dashes() string {
	if s.Dashed {
		return ` stroke-dasharray="5 4"`
	}
	return ""
}

func (s *Series) draw(b *bytes.Buffer, x, y *axis) {
	var path, dots bytes.Buffer
	pen := byte('M')
	for i := range min(len(s.X), len(s.Y)) {
		if !x.has(s.X[i]) || !y.has(s.Y[i]) {
			pen = 'M'
			continue
		}
		h, v := px(x.pixel(s.X[i])), px(y.pixel(s.Y[i]))
		fmt.Fprintf(&path, "%c%s %s", pen, h, v)
		fmt.Fprintf(&dots, `<circle cx="%s" cy="%s" r="2.5" fill="%s"/>`+"\n", h, v, s.color())
		pen = 'L'
	}
	if path.Len() > 0 {
		fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="1.5"%s/>`+"\n", path.Bytes(), s.color(), s.dashes())
		b.Write(dots.Bytes())
	}
}

func (s *Series) legend(b *bytes.Buffer, i int) {
	const at = plotLeft + plotInnerW + 14
	line := plotTop + legendLine*i + 6
	fmt.Fprintf(b, `<path d="M%d %dh%d" stroke="%s" stroke-width="1.5"%s/>`+"\n", at, line, legendPatch, s.color(), s.dashes())
	writeText(b, at+legendPatch+6, float64(line)+4, "start", "", s.Name)
}

func writeText(b *bytes.Buffer, x, y float64, anchor, more, s string) {
	fmt.Fprintf(b, `<text x="%s" y="%s" text-anchor="%s"%s>`, px(x), px(y), anchor, more)
	_ = xml.EscapeText(b, []byte(s)) // a buffer takes all
	b.WriteString("</text>\n")
}

// pairs is the series of (x, y), sorted by x.
func pairs(name string, color int, dashed bool, xy map[int]float64) Series {
	s := Series{Name: name, Color: color, Dashed: dashed}
	var xs []int
	for x := range xy {
		xs = append(xs, x)
	}
	slices.Sort(xs)
	for _, x := range xs {
		s.X, s.Y = append(s.X, float64(x)), append(s.Y, xy[x])
	}
	return s
}
