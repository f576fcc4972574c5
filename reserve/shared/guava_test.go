package shared_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/internal/redis"
	"github.com/nextfree/pace/warmup"
)

// The real Guava's answers, and the differences that count as none: testdata/guava/README.md.
type scenario struct {
	Name            string
	Kind            string
	Rate            number
	MaxBurstSeconds number
	WarmupMicros    int64
	ColdFactor      number
	ExactMicros     bool
	DevMicros       float64
	DevStored       float64
	Ops             []operation
}

type operation struct {
	Op             string
	N              int
	TimeoutMicros  int64
	WaitMicros     int64
	SleptMicros    int64
	IdealWaitNanos *float64
	Ok             bool
	Rate           number
	Stored         number
	NowMicros      int64
}

// number is a JSON number, or one of the strings that stand for those JSON lacks.
type number float64

func (n *number) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case `"inf"`:
		*n = number(math.Inf(1))
	case `"-inf"`:
		*n = number(math.Inf(-1))
	case `"nan"`:
		*n = number(math.NaN())
	default:
		return json.Unmarshal(b, (*float64)(n))
	}
	return nil
}

func TestGuava(t *testing.T) {
	eachServer(t, func(t *testing.T, c *redis.Client) {
		f, err := os.Open("../../testdata/guava/traces.jsonl")
		require.NoError(t, err)
		defer f.Close()
		scenarios, operations := 0, 0
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<24)
		for lines.Scan() {
			var s scenario
			require.NoError(t, json.Unmarshal(lines.Bytes(), &s))
			scenarios++
			operations += len(s.Ops)
			t.Run(s.Name, func(t *testing.T) { s.replay(t, c) })
		}
		require.NoError(t, lines.Err())
		require.Equal(t, 150, scenarios)
		require.Equal(t, 7794, operations)
		t.Logf("%d scenarios, %d operations", scenarios, operations)
	})
}

func (s scenario) policy() (*reserve.Policy, error) {
	if s.Kind == "bursty" {
		return pace.Bursty(float64(s.Rate), pace.WithBurst(time.Duration(float64(s.MaxBurstSeconds)*float64(time.Second))))
	}
	return warmup.Policy(float64(s.Rate), time.Duration(s.WarmupMicros)*time.Microsecond, warmup.WithColdFactor(float64(s.ColdFactor)))
}

func (s scenario) replay(t *testing.T, c *redis.Client) {
	p, err := s.policy()
	require.NoError(t, err)
	var micros int64
	l := newShared(t, c, s.Name, p, shared.FakeTime(&micros))
	if s.Kind == "bursty" { // Guava's begins with nothing
		_, err := c.Do(t.Context(), "SET", l.Key(), l.Empty(0))
		require.NoError(t, err)
	}
	for i, op := range s.Ops {
		at := fmt.Sprintf("operation %d: %+v", i, op)
		switch op.Op {
		case "advance":
		case "reserve", "acquire":
			sale, err := l.Sell(op.N, math.MaxInt64)
			require.NoError(t, err, at)
			s.sameWait(t, op, op.WaitMicros+op.SleptMicros, sale.Wait, at)
		case "tryAcquire":
			sale, err := l.Sell(op.N, nanos(op.TimeoutMicros))
			require.NoError(t, err, at)
			require.Equal(t, op.Ok, sale.Granted, at)
			if op.Ok {
				s.sameWait(t, op, op.SleptMicros, sale.Wait, at)
			}
		case "setRate":
			require.NoError(t, l.SetRate(t.Context(), float64(op.Rate)), at)
		case "getRate":
			if !math.IsInf(float64(op.Rate), 1) {
				require.InEpsilon(t, float64(op.Rate), l.Rate(), 1e-14, at)
			}
			require.Equal(t, math.IsInf(float64(op.Rate), 1), math.IsInf(l.Rate(), 1), at)
		default:
			t.Fatal("unknown", at)
		}
		if op.Op != "advance" && op.Op != "getRate" && !math.IsInf(l.Rate(), 1) {
			stored, err := l.Stored(t.Context())
			require.NoError(t, err)
			require.InDelta(t, float64(op.Stored), stored, s.DevStored+1e-12*float64(op.Stored)+250e-9*l.Rate(), at)
		}
		micros = op.NowMicros
	}
}

func (s scenario) sameWait(t *testing.T, op operation, guava int64, wait int64, at string) {
	allowed := 1000*s.DevMicros + 250
	if s.ExactMicros {
		allowed = 1
	}
	require.InDelta(t, 1000*float64(guava), float64(wait), allowed, at)
	require.NotNil(t, op.IdealWaitNanos, at)
	require.InDelta(t, *op.IdealWaitNanos, float64(wait), 1000, at)
}

// nanos returns a time-out in nanoseconds, saturated; a negative one is 0.
func nanos(micros int64) int64 {
	if micros > math.MaxInt64/1000 {
		return math.MaxInt64
	}
	return max(0, micros) * 1000
}
