package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/nextfree/pace/bench/internal/picture"
)

// A panel of the dashboard, and its curves.
type panel struct {
	title   string
	seconds bool // it shows times
	queries []query
	curves  []curve
}

type query struct{ expr, legend string }

// readDashboard reads a dashboard of Grafana's.
func readDashboard(file string) ([]panel, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var d struct {
		Panels []struct {
			Title       string
			FieldConfig struct{ Defaults struct{ Unit string } }
			Targets     []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(content, &d); err != nil {
		return nil, err
	}
	var panels []panel
	for _, p := range d.Panels {
		one := panel{title: p.Title, seconds: p.FieldConfig.Defaults.Unit == "s"}
		for _, t := range p.Targets {
			one.queries = append(one.queries, query{t.Expr, t.LegendFormat})
		}
		panels = append(panels, one)
	}
	if len(panels) == 0 {
		return nil, fmt.Errorf("%s has no panels", file)
	}
	return panels, nil
}

const columns = 3

// write draws the panels as the dashboard has them, three in a row.
func write(w io.Writer, panels []panel) error {
	var plots [][]*plot.Plot
	for i, p := range panels {
		if i%columns == 0 {
			plots = append(plots, nil)
		}
		one, err := p.plot()
		if err != nil {
			return err
		}
		plots[len(plots)-1] = append(plots[len(plots)-1], one)
	}
	const title = "What Prometheus saw, over seconds: the queries of dashboard.json"
	return picture.WritePNG(w, picture.Width, 20*vg.Centimeter, title, nil, plots)
}

var colours = []color.Color{
	picture.Blue, picture.Red, picture.Green, picture.Orange, picture.Sky, picture.Grey, color.Black,
}

// plot draws the curves, each with its name beside its end.
func (p *panel) plot() (*plot.Plot, error) {
	y := ""
	if p.seconds {
		y = "s"
	}
	one := picture.Plot(p.title, "", y)
	one.Title.TextStyle.Font = picture.Sans(8)
	var names plotter.XYLabels
	var styles []text.Style
	low, top, end := 0., 1e-3, 0.
	for i, c := range p.curves {
		var points plotter.XYs
		for _, at := range c.points {
			if !math.IsNaN(at.value) && !math.IsInf(at.value, 0) {
				points = append(points, plotter.XY{X: at.seconds, Y: at.value})
				low, top, end = min(low, at.value), max(top, at.value), max(end, at.seconds)
			}
		}
		if len(points) == 0 {
			continue
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, err
		}
		colour := colours[i%len(colours)]
		line.LineStyle = draw.LineStyle{Color: colour, Width: vg.Points(1.2)}
		one.Add(line)
		names.XYs, names.Labels = append(names.XYs, points[len(points)-1]), append(names.Labels, c.name)
		styles = append(styles, text.Style{
			Color: colour, Font: picture.Sans(7), YAlign: draw.YCenter, Handler: plot.DefaultTextHandler,
		})
	}
	one.X.Min, one.X.Max, one.Y.Min, one.Y.Max = 0, 1.5*end, low, top+0.05*(top-low)
	spread(names.XYs, 0.075*(one.Y.Max-low))
	dropCommon(names.Labels)
	labels, err := plotter.NewLabels(names)
	if err != nil {
		return nil, err
	}
	labels.TextStyle, labels.Offset = styles, vg.Point{X: vg.Points(3)}
	one.Add(labels)
	return one, nil
}

// spread moves labels up until they are so far apart.
func spread(at plotter.XYs, apart float64) {
	order := make([]int, len(at))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(at[a].Y, at[b].Y) })
	for i := 1; i < len(order); i++ {
		at[order[i]].Y = max(at[order[i]].Y, at[order[i-1]].Y+apart)
	}
}

// dropCommon takes away the words with which all names end.
func dropCommon(names []string) {
	for {
		suffix := ""
		for i, name := range names {
			cut := strings.LastIndexByte(strings.TrimSpace(name), ' ')
			if cut < 0 || i > 0 && name[cut:] != suffix {
				return
			}
			suffix = name[cut:]
		}
		if len(names) == 0 {
			return
		}
		for i := range names {
			names[i] = strings.TrimSuffix(names[i], suffix)
		}
	}
}
