package experiment

import (
	"bytes"
	"image/color"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Plot is a diagram of lines, see docs/adr/0023-plots.md.
type Plot struct {
	Name   string // suffix of its file name, after the name of the report
	Title  string
	X, Y   string // labels of the axes
	LogX   bool   // to the base 2; values that are not positive are left out
	LogY   bool   // to the base 10; likewise
	Series []Series
}

// Series is one line.
type Series struct {
	Name   string
	X, Y   []float64
	Dashed bool // published, not measured
	Color  int  // index into colors; lines that belong together have the same one
}

// colors are the Okabe-Ito palette (Color Universal Design, 2008), which most people with
// a color vision deficiency can tell apart.
var colors = []color.RGBA{
	{R: 0x00, G: 0x72, B: 0xb2, A: 0xff}, {R: 0xd5, G: 0x5e, B: 0x00, A: 0xff}, {R: 0x00, G: 0x9e, B: 0x73, A: 0xff},
	{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff}, {R: 0xe6, G: 0x9f, B: 0x00, A: 0xff}, {R: 0x56, G: 0xb4, B: 0xe9, A: 0xff},
	{A: 0xff},
}

const (
	plotWidth, plotHeight = 560 * vg.Length(1), 300 * vg.Length(1) // in points
	plotMargin            = 8 * vg.Length(1)

	// maxDots bounds the points of a line that are drawn as dots. More would touch each
	// other and make the file several times as large.
	maxDots = 30
)

// SVG draws the plot. The same plot always gives the same bytes.
func (p *Plot) SVG() ([]byte, error) {
	g := plot.New()
	g.Title.Text, g.X.Label.Text, g.Y.Label.Text = p.Title, p.X, p.Y
	for _, style := range []*text.Style{
		&g.Title.TextStyle, &g.X.Label.TextStyle, &g.Y.Label.TextStyle, &g.X.Tick.Label, &g.Y.Tick.Label, &g.Legend.TextStyle,
	} {
		style.Font.Variant, style.Font.Size = "Sans", 10
	}
	if !p.LogX {
		g.X.Min = 0
	}
	if !p.LogY {
		g.Y.Min = 0
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color = nil
	g.Add(grid)
	legend := g.Legend
	for i := range p.Series {
		if err := p.addSeries(g, &legend, &p.Series[i]); err != nil {
			return nil, err
		}
	}
	if p.LogX {
		makeLog(&g.X, 2)
	}
	if p.LogY {
		makeLog(&g.Y, 10)
	}
	return render(g, &legend)
}

func (p *Plot) addSeries(g *plot.Plot, legend *plot.Legend, s *Series) error {
	var points plotter.XYs
	for i := range min(len(s.X), len(s.Y)) {
		if drawable(s.X[i], p.LogX) && drawable(s.Y[i], p.LogY) {
			points = append(points, plotter.XY{X: s.X[i], Y: s.Y[i]})
		}
	}
	if len(points) == 0 {
		return nil
	}
	line, dots, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.Color, line.Width = colors[s.Color%len(colors)], 1.2
	if s.Dashed {
		line.Dashes = []vg.Length{4, 3}
	}
	dots.Color, dots.Radius, dots.Shape = line.Color, 1.8, draw.CircleGlyph{}
	g.Add(line)
	if len(points) <= maxDots {
		g.Add(dots)
	}
	legend.Add(s.Name, line)
	return nil
}

func drawable(v float64, log bool) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (!log || v > 0)
}

// makeLog makes an axis logarithmic. It extends the axis to powers of base and puts a tick
// at each of them.
func makeLog(a *plot.Axis, base float64) {
	lo, hi := 0.0, 1.0
	if a.Min <= a.Max {
		lo, hi = math.Floor(math.Log(a.Min)/math.Log(base)), math.Ceil(math.Log(a.Max)/math.Log(base))
		hi = max(hi, lo+1)
	}
	var ticks plot.ConstantTicks
	for e := lo; e <= hi; e++ {
		v := math.Pow(base, e)
		ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'g', 6, 64)})
	}
	a.Min, a.Max, a.Scale, a.Tick.Marker = math.Pow(base, lo), math.Pow(base, hi), plot.LogScale{}, ticks
}

// render draws the plot, with its legend at the right of it.
func render(g *plot.Plot, legend *plot.Legend) ([]byte, error) {
	svg := vgsvg.New(plotWidth, plotHeight)
	c := draw.New(svg)
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	c = draw.Crop(c, plotMargin, -plotMargin, plotMargin, -plotMargin)
	legend.Top, legend.Left, legend.Padding = true, true, 2
	width := legend.Rectangle(c).Size().X*5/4 + plotMargin // a reader's font may be wider
	g.Draw(draw.Crop(c, 0, -width, 0, 0))
	legend.Draw(draw.Crop(c, c.Size().X-width+plotMargin, 0, 0, -2*plotMargin))
	var b bytes.Buffer
	if _, err := svg.WriteTo(&b); err != nil {
		return nil, err
	}
	// Arial has the widths of Liberation Sans, which few readers have.
	return bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,sans-serif;")), nil
}

// pairs returns the points (x, y) as a series sorted by x.
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
