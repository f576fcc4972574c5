package main

import (
	"fmt"
	"image/color"
	"io"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/nextfree/pace/bench/internal/picture"
)

// drawBars draws the waits, by the contender's name, a plot for each of the queues.
func drawBars(w io.Writer, waits map[string][]time.Duration) error {
	colours := []color.Color{picture.Blue, picture.Sky, picture.Orange, picture.Grey}
	plots := make([]*plot.Plot, len(queues))
	var names []string
	for _, o := range orders {
		names = append(names, strings.Replace(o.name, ", ", ",\n", 1))
	}
	var keys []picture.Key
	for q, n := range queues {
		p := picture.Plot(fmt.Sprintf("%d callers", n), "", "next caller's wait, s")
		plots[q] = p
		for i, c := range contenders {
			of := waits[c.name][q*len(orders):][:len(orders)]
			var values plotter.Values
			labels := plotter.XYLabels{}
			for x, wait := range of {
				values = append(values, wait.Seconds())
				labels.XYs = append(labels.XYs, plotter.XY{X: float64(x), Y: wait.Seconds()})
				labels.Labels = append(labels.Labels, short(wait))
			}
			bars, err := plotter.NewBarChart(values, barWidth)
			if err != nil {
				return err
			}
			bars.Color, bars.LineStyle = colours[i], draw.LineStyle{}
			bars.Offset = barWidth * vg.Length(float64(i)-float64(len(contenders)-1)/2)
			numbers, err := plotter.NewLabels(labels)
			if err != nil {
				return err
			}
			for j := range numbers.TextStyle {
				numbers.TextStyle[j].Font = picture.Sans(8)
				numbers.TextStyle[j].XAlign = draw.XCenter
			}
			numbers.Offset = vg.Point{X: bars.Offset, Y: vg.Points(2)}
			p.Add(bars, numbers)
			if q == 0 {
				keys = append(keys, picture.Key{Name: c.name, Thumb: bars})
			}
		}
		p.NominalX(names...)
		p.X.Tick.Label.Font = picture.Sans(9)
		p.X.Min, p.X.Max, p.Y.Min = -0.5, float64(len(names))-0.5, 0
		p.Y.Max *= 1.08
	}
	return picture.WritePNG(w, picture.Width, 10*vg.Centimeter,
		fmt.Sprintf("Callers queue at %d/s, and all give up: how long the next one waits for its permit", permitsPerSecond),
		[][]picture.Key{keys}, [][]*plot.Plot{plots})
}

// short has room above a bar.
func short(d time.Duration) string {
	if s := d.Seconds(); s < 9.95 {
		return fmt.Sprintf("%.1f", s)
	}
	return fmt.Sprintf("%.0f", d.Seconds())
}

const barWidth = vg.Length(15)
