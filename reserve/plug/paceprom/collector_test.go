package paceprom

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/watchdog"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/plug/internal/stats"
	"github.com/nextfree/pace/reserve/plug/internal/stats/statstest"
)

var _ prometheus.Collector = (*Collector)(nil)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// series returns what a registry shows, but for histograms.
func series(t *testing.T, c prometheus.Collector) (map[string]float64, uint64, float64) {
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(c))
	families, err := registry.Gather()
	require.NoError(t, err)
	all, count, sum := map[string]float64{}, uint64(0), 0.
	for _, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			name := f.GetName() + "{" + strings.Join(labels, ",") + "}"
			switch {
			case m.Counter != nil:
				all[name] = m.Counter.GetValue()
			case m.Gauge != nil:
				all[name] = m.Gauge.GetValue()
			default:
				count, sum = m.Histogram.GetSampleCount(), m.Histogram.GetSampleSum()
			}
		}
	}
	return all, count, sum
}

func TestCollector(t *testing.T) {
	c := NewCollector()
	statstest.Fill(t, c)
	got, count, sum := series(t, c)
	want := map[string]float64{}
	for name, value := range statstest.Series { // the registry sorts labels
		want[sorted(name)] = value
	}
	require.Equal(t, want, got)
	require.Equal(t, uint64(2), count)
	require.InDelta(t, statstest.WaitSum, sum, 1e-9)
}

// sorted puts the labels of a series in order.
func sorted(name string) string {
	for _, swap := range [][2]string{
		{`transport="github",result="sent"`, `result="sent",transport="github"`},
		{`transport="github",result="not_sent"`, `result="not_sent",transport="github"`},
		{`transport="github",direction="up"`, `direction="up",transport="github"`},
		{`transport="github",direction="down"`, `direction="down",transport="github"`},
		{`tier="global",result="refused"`, `result="refused",tier="global"`},
		{`tier="global",result="would_refuse"`, `result="would_refuse",tier="global"`},
		{`tier="global",result="failed"`, `result="failed",tier="global"`},
	} {
		name = strings.Replace(name, swap[0], swap[1], 1)
	}
	return name
}

// Prometheus's own rules for names, units and help texts.
func TestLint(t *testing.T) {
	c := NewCollector()
	statstest.Fill(t, c)
	problems, err := testutil.CollectAndLint(c)
	require.NoError(t, err)
	require.Empty(t, problems)
	count, err := testutil.GatherAndCount(registered(t, c))
	require.NoError(t, err)
	require.Equal(t, len(statstest.Series)+2, count, "and two histograms")
	require.GreaterOrEqual(t, len(statstest.Series), len(stats.Families), "each is shown")
}

func registered(t *testing.T, c prometheus.Collector) *prometheus.Registry {
	r := prometheus.NewPedanticRegistry()
	require.NoError(t, r.Register(c))
	return r
}

// Sources may come while Prometheus asks, and a rate without limit is a number.
func TestTogether(t *testing.T) {
	watchdog.Start(t)
	c := NewCollector()
	r := registered(t, c)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			require.NoError(t, c.Limiter(fmt.Sprint(i), reserve.Must(pace.NewBursty(math.Inf(1)))))
			_, err := r.Gather()
			require.NoError(t, err)
		})
	}
	all.Wait()
}

func TestBadInput(t *testing.T) { statstest.Refuses(t, NewCollector(), "paceprom") }
