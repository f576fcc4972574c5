package picture

import (
	"image/color"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// LimitLine is the style of what is allowed.
var LimitLine = draw.LineStyle{Color: color.Black, Width: vg.Points(1), Dashes: []vg.Length{vg.Points(4), vg.Points(3)}}

// Limit draws what is allowed, from the beginning to the end.
func Limit(y float64, end time.Duration) *plotter.Line {
	return &plotter.Line{XYs: plotter.XYs{{X: 0, Y: y}, {X: end.Seconds(), Y: y}}, LineStyle: LimitLine}
}

// Grid draws pale lines.
func Grid() *plotter.Grid {
	g := plotter.NewGrid()
	g.Horizontal.Color, g.Vertical.Color = Pale, Pale
	return g
}

// Histogram draws a number for each step of time.
func Histogram(numbers []float64, step time.Duration, c color.Color) *plotter.Histogram {
	h := &plotter.Histogram{FillColor: c, Width: step.Seconds()}
	for i, n := range numbers {
		from := float64(i) * step.Seconds()
		h.Bins = append(h.Bins, plotter.HistogramBin{Min: from, Max: from + step.Seconds(), Weight: n})
	}
	return h
}

// Bars are one series of a bar chart, with a text above each bar.
type Bars struct {
	Values []float64
	Text   func(float64) string
	Size   vg.Length // of the text, in points
	Colour color.Color
	Width  vg.Length
	I, N   int // the number of the series, from 0, and how many there are
}

// Add draws the bars. What it returns is for the legend.
func (b Bars) Add(p *plot.Plot) (*plotter.BarChart, error) {
	bars, err := plotter.NewBarChart(plotter.Values(b.Values), b.Width)
	if err != nil {
		return nil, err
	}
	bars.Color, bars.LineStyle = b.Colour, draw.LineStyle{}
	bars.Offset = b.Width * vg.Length(float64(b.I)-float64(b.N-1)/2)
	var texts plotter.XYLabels
	for x, v := range b.Values {
		texts.XYs, texts.Labels = append(texts.XYs, plotter.XY{X: float64(x), Y: v}), append(texts.Labels, b.Text(v))
	}
	labels, err := plotter.NewLabels(texts)
	if err != nil {
		return nil, err
	}
	for i := range labels.TextStyle {
		labels.TextStyle[i].Font, labels.TextStyle[i].XAlign = Sans(b.Size), draw.XCenter
	}
	labels.Offset = vg.Point{X: bars.Offset, Y: vg.Points(2.5)}
	p.Add(bars, labels)
	return bars, nil
}

// NameBars names groups of bars, and gives each of them as much room.
func NameBars(p *plot.Plot, names []string, points vg.Length) {
	p.NominalX(names...)
	p.X.Tick.Label.Font = Sans(points)
	p.X.Min, p.X.Max, p.Y.Min = -0.5, float64(len(names))-0.5, 0
}
