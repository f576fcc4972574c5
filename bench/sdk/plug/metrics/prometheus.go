package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const scrapeInterval = time.Second

// A server is a running Prometheus.
type server struct {
	process *exec.Cmd
	url     string
	folder  string
}

// startPrometheus starts a server that scrapes an address.
func startPrometheus(address string) (*server, error) {
	folder, err := os.MkdirTemp("", "pace-prometheus-")
	if err != nil {
		return nil, err
	}
	s := &server{folder: folder}
	listener, err := net.Listen("tcp", "127.0.0.1:0") // a free port
	if err != nil {
		return nil, err
	}
	port := listener.Addr().String()
	_ = listener.Close()
	s.url = "http://" + port
	config := filepath.Join(folder, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: %v}\n"+
		"scrape_configs: [{job_name: pace, static_configs: [{targets: [%q]}]}]\n", scrapeInterval, address)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	s.process = exec.Command("prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(folder, "data"),
		"--web.listen-address="+port, "--log.level=error")
	s.process.Stderr = os.Stderr
	if err := s.process.Start(); err != nil {
		s.stop()
		return nil, err
	}
	for begin := time.Now(); time.Since(begin) < 30*time.Second; time.Sleep(100 * time.Millisecond) {
		if r, err := http.Get(s.url + "/-/ready"); err == nil {
			_ = r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return s, nil
			}
		}
	}
	s.stop()
	return nil, fmt.Errorf("prometheus is not ready after 30 s")
}

func (s *server) stop() {
	if s.process != nil && s.process.Process != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
	}
	_ = os.RemoveAll(s.folder)
}

// A curve is one answer to a query.
type curve struct {
	name   string
	points []point
}

type point struct{ seconds, value float64 }

// query asks for the curves of a query, their times in seconds since begin.
func (s *server) query(q query, begin, end time.Time) ([]curve, error) {
	expr := strings.NewReplacer(
		"$__rate_interval", "4s", "$limiter", ".*", "$transport", ".*", "$middleware", ".*",
	).Replace(q.expr)
	r, err := http.Get(s.url + "/api/v1/query_range?" + url.Values{
		"query": {expr}, "step": {"0.5"}, "start": {seconds(begin)}, "end": {seconds(end)},
	}.Encode())
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	var answer struct {
		Error string
		Data  struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("%s", answer.Error)
	}
	var curves []curve
	for _, result := range answer.Data.Result {
		c := curve{name: q.legend}
		for label, value := range result.Metric {
			c.name = strings.ReplaceAll(c.name, "{{"+label+"}}", value)
		}
		for _, v := range result.Values {
			at, ok1 := v[0].(float64)
			text, ok2 := v[1].(string)
			value, err := strconv.ParseFloat(text, 64)
			if !ok1 || !ok2 || err != nil {
				return nil, fmt.Errorf("%v is no point", v)
			}
			c.points = append(c.points, point{at - float64(begin.UnixNano())/1e9, value})
		}
		curves = append(curves, c)
	}
	return curves, nil
}

func seconds(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1e3, 'f', 3, 64) }
