// Command metrics has a real Prometheus server scrape pace's metrics while limiters are at work,
// asks it the queries of the Grafana dashboard (reserve/plug/paceprom/dashboard.json), and draws
// the answers.
//
// It needs the program prometheus, of Debian's package of that name. The exit status is 1 if a
// panel has nothing to show.
package main

import (
	"flag"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/nextfree/pace/bench/internal/picture"
	"github.com/nextfree/pace/reserve/plug/paceprom"
)

func main() {
	out := flag.String("out", "out/metrics.png", "the picture")
	file := flag.String("dashboard", "../../reserve/plug/paceprom/dashboard.json", "the dashboard")
	d := flag.Duration("time", 40*time.Second, "for how long the limiters work, at least 10 s")
	flag.Parse()
	if flag.NArg() > 0 || *d < 10*time.Second {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*out, *file, *d); err != nil {
		fmt.Fprintln(os.Stderr, "metrics:", err)
		os.Exit(1)
	}
}

func run(out, file string, d time.Duration) error {
	panels, err := readDashboard(file)
	if err != nil {
		return err
	}
	drawing, err := picture.Create(out)
	if err != nil {
		return err
	}
	defer drawing.Close()

	metrics, registry := paceprom.NewCollector(), prometheus.NewRegistry()
	registry.MustRegister(metrics)
	exporter := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer exporter.Close()
	server, err := startPrometheus(exporter.Listener.Addr().String())
	if err != nil {
		return err
	}
	defer server.stop()

	begin := time.Now()
	if err := work(metrics, d); err != nil {
		return err
	}
	time.Sleep(2 * scrapeInterval) // the last one is seen
	empty := 0
	for i := range panels {
		p := &panels[i]
		for _, q := range p.queries {
			curves, err := server.query(q, begin, time.Now())
			if err != nil {
				return fmt.Errorf("%s: %w", q.expr, err)
			}
			p.curves = append(p.curves, curves...)
		}
		fmt.Printf("%-55s %d curves\n", p.title, len(p.curves))
		if len(p.curves) == 0 {
			empty++
		}
	}
	if err := drawing.Save(func(w io.Writer) error { return write(w, panels) }); err != nil {
		return err
	}
	if empty > 0 {
		return fmt.Errorf("%d panels have nothing to show", empty)
	}
	return nil
}
