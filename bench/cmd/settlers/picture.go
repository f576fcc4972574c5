package main

import (
	"fmt"
	"image/color"
	"io"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/nextfree/pace/bench/internal/picture"
)

// drawBars draws by how many permits each limiter went over its limit, in the loads whose use can't be known beforehand and
// whose store is small.
func drawBars(w io.Writer, results []result) error {
	p := picture.Plot("", "", "permits over the limit, at worst")
	var names []string
	var drawn []result
	for _, r := range results {
		if r.actual.from < r.actual.to && r.saved <= largeStore {
			drawn = append(drawn, r)
			names = append(names, fmt.Sprintf("%d callers reserve %d,\nsettle at %s %s", r.callers, r.reserves, r.settlesAt(), r.after()))
		}
	}
	var keys []picture.Key
	for i, s := range []struct {
		name   string
		colour color.Color
		of     func(result) outcome
	}{
		{"pace: r.Settle(used)", picture.Blue, func(r result) outcome { return r.pace }},
		{"x/time/rate: l.ReserveN(now, used-reserved)", picture.Orange, func(r result) outcome { return r.xtime }},
	} {
		var values plotter.Values
		var labels plotter.XYLabels
		for x, r := range drawn {
			over := r.exceeds(s.of(r))
			values = append(values, over)
			labels.XYs = append(labels.XYs, plotter.XY{X: float64(x), Y: over})
			labels.Labels = append(labels.Labels, whole(over))
		}
		bars, err := plotter.NewBarChart(values, barWidth)
		if err != nil {
			return err
		}
		bars.Color, bars.LineStyle, bars.Offset = s.colour, draw.LineStyle{}, barWidth*(vg.Length(i)-0.5)
		numbers, err := plotter.NewLabels(labels)
		if err != nil {
			return err
		}
		for j := range numbers.TextStyle {
			numbers.TextStyle[j].Font, numbers.TextStyle[j].XAlign = picture.Sans(11), draw.XCenter
		}
		numbers.Offset = vg.Point{X: bars.Offset, Y: vg.Points(3)}
		p.Add(bars, numbers)
		keys = append(keys, picture.Key{Name: s.name, Thumb: bars})
	}
	p.NominalX(names...)
	p.X.Tick.Label.Font = picture.Sans(10)
	p.X.Min, p.X.Max, p.Y.Min = -0.5, float64(len(names))-0.5, 0
	p.Y.Max = max(1, p.Y.Max*1.1)
	return picture.WritePNG(w, picture.Width, 9.5*vg.Centimeter,
		fmt.Sprintf("Permits over a limit of %d a second, where callers reserve more than they use and settle later", permitsPerSecond),
		[][]picture.Key{keys}, [][]*plot.Plot{{p}})
}

// largeStore is one second: with a minute stored, no load goes over the limit.
const largeStore = time.Second

const barWidth = vg.Length(80)
