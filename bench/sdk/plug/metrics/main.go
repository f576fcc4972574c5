// Command metrics has a real Prometheus server scrape pace's metrics while limiters are at work,
// asks it the queries of the Grafana dashboard (reserve/plug/paceprom/dashboard.json), and draws
// the answers.
//
// It needs the program prometheus, of Debian's package of that name. The exit status is 1 if a
// panel has nothing to show.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/nextfree/pace/bench/internal/command"
	"github.com/nextfree/pace/reserve/plug/paceprom"
)

func main() {
	out := flag.String("out", "out/metrics.png", "the picture's file")
	file := flag.String("dashboard", "../../reserve/plug/paceprom/dashboard.json", "the dashboard")
	d := flag.Duration("time", 40*time.Second, "for how long the limiters work, at least 10 s")
	command.Main("metrics", func() string {
		if *d < 10*time.Second {
			return "-time must be at least 10 s"
		}
		return ""
	}, func(context.Context) error {
		return command.Draw(os.Stdout, *out, func() (func(io.Writer) error, error) {
			panels, err := fill(*file, *d)
			return func(w io.Writer) error { return write(w, panels) }, err
		})
	})
}

// fill returns the panels of a dashboard with their curves, after limiters have worked for a time.
func fill(dashboard string, d time.Duration) ([]panel, error) {
	panels, err := readDashboard(dashboard)
	if err != nil {
		return nil, err
	}
	metrics, registry := paceprom.NewCollector(), prometheus.NewRegistry()
	registry.MustRegister(metrics)
	exporter := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer exporter.Close()
	server, err := startPrometheus(exporter.Listener.Addr().String())
	if err != nil {
		return nil, err
	}
	defer server.stop()

	begin := time.Now()
	if err := work(metrics, d); err != nil {
		return nil, err
	}
	time.Sleep(2 * scrapeInterval) // the last one is seen
	for i := range panels {
		p := &panels[i]
		for _, q := range p.queries {
			curves, err := server.query(q, begin, time.Now())
			if err != nil {
				return nil, fmt.Errorf("%s: %w", q.expr, err)
			}
			p.curves = append(p.curves, curves...)
		}
		fmt.Printf("%-55s %d curves\n", p.title, len(p.curves))
		if len(p.curves) == 0 {
			return nil, fmt.Errorf("the panel %q has nothing to show", p.title)
		}
	}
	return panels, nil
}
