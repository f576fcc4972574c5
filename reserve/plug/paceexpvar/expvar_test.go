package paceexpvar

import (
	"encoding/json"
	"maps"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/plug/internal/stats/statstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestVar(t *testing.T) {
	v := New()
	require.Equal(t, "{}", v.String())
	statstest.Fill(t, v)
	want := maps.Clone(statstest.Series)
	want[`pace_outbound_wait_seconds_count{transport="github"}`] = 2
	want[`pace_outbound_wait_seconds_sum{transport="github"}`] = statstest.WaitSum
	for bound, n := range map[string]float64{
		"0.005": 0, "0.01": 0, "0.025": 1, "0.05": 1, "0.1": 1, "0.25": 1, "0.5": 1, "1": 1, "2.5": 1, "5": 1, "10": 2,
		"30": 2, "60": 2, "120": 2, "300": 2, "600": 2,
	} {
		want[`pace_outbound_wait_seconds_bucket{transport="github",le="`+bound+`"}`] = n
	}
	for _, series := range []string{"count", "sum"} { // no request has waited in a queue
		want[`pace_inbound_wait_seconds_`+series+`{middleware="api"}`] = 0
	}
	for _, bound := range []string{"0.001", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10", "30", "60"} {
		want[`pace_inbound_wait_seconds_bucket{middleware="api",le="`+bound+`"}`] = 0
	}
	var got map[string]float64
	require.NoError(t, json.Unmarshal([]byte(v.String()), &got))
	require.Equal(t, want, got)
}

// A rate without limit is no number in JSON.
func TestInfinite(t *testing.T) {
	v := New()
	require.NoError(t, v.Limiter("all", reserve.Must(pace.NewBursty(math.Inf(1)))))
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(v.String()), &got))
	require.Equal(t, "+Inf", got[`pace_limiter_rate_permits_per_second{limiter="all"}`])
}

func TestBadInput(t *testing.T) { statstest.Refuses(t, New(), "paceexpvar") }
