package pace_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/warmup"
)

// What the real Guava answers, and what counts as the same: testdata/guava/README.md.
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
	Micros         int64
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
	f, err := os.Open("testdata/guava/traces.jsonl")
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
		t.Run(s.Name, s.replay)
	}
	require.NoError(t, lines.Err())
	require.Equal(t, 150, scenarios)
	require.Equal(t, 7794, operations)
	t.Logf("%d scenarios, %d operations", scenarios, operations)
}

func (s scenario) limiter(t *testing.T, clock clockwork.Clock) *reserve.Limiter {
	if s.Kind == "bursty" {
		l, err := pace.NewBursty(float64(s.Rate), reserve.WithClock(clock),
			pace.WithBurst(time.Duration(float64(s.MaxBurstSeconds)*float64(time.Second))))
		require.NoError(t, err)
		return l
	}
	l, err := warmup.New(float64(s.Rate), time.Duration(s.WarmupMicros)*time.Microsecond,
		reserve.WithClock(clock), warmup.WithColdFactor(float64(s.ColdFactor)))
	require.NoError(t, err)
	return l
}

func (s scenario) replay(t *testing.T) {
	clock := clockwork.NewFakeClock()
	begin := clock.Now()
	l := s.limiter(t, clock)
	for i, op := range s.Ops {
		at := fmt.Sprintf("operation %d: %+v", i, op)
		ctx := t.Context()
		switch op.Op {
		case "advance":
		case "reserve", "acquire":
			r, err := l.Reserve(ctx, op.N)
			require.NoError(t, err, at)
			s.sameWait(t, op, op.WaitMicros+op.SleptMicros, r.Delay(), at)
		case "tryAcquire":
			r, err := l.ReserveWithin(ctx, op.N, micros(op.TimeoutMicros))
			require.Equal(t, op.Ok, err == nil, at)
			if op.Ok {
				s.sameWait(t, op, op.SleptMicros, r.Delay(), at)
			} else {
				require.IsType(t, &reserve.WaitError{}, err, at)
			}
		case "setRate":
			require.NoError(t, l.SetRate(float64(op.Rate)), at)
		case "getRate":
			if !math.IsInf(float64(op.Rate), 1) {
				require.InEpsilon(t, float64(op.Rate), l.Rate(), 1e-14, at)
			}
			require.Equal(t, math.IsInf(float64(op.Rate), 1), math.IsInf(l.Rate(), 1), at)
		default:
			t.Fatal("unknown", at)
		}
		if op.Op != "advance" && op.Op != "getRate" { // after these Guava has not brought its store up to date
			s.sameStored(t, op, l, at)
		}
		clock.Advance(begin.Add(micros(op.NowMicros)).Sub(clock.Now()))
	}
}

func (s scenario) sameWait(t *testing.T, op operation, guava int64, wait time.Duration, at string) {
	allowed := 1000*s.DevMicros + 250
	if s.ExactMicros {
		allowed = 1
	}
	require.InDelta(t, 1000*float64(guava), float64(wait), allowed, at)
	require.NotNil(t, op.IdealWaitNanos, at)
	require.InDelta(t, *op.IdealWaitNanos, float64(wait), 1000, at)
}

func (s scenario) sameStored(t *testing.T, op operation, l *reserve.Limiter, at string) {
	if math.IsInf(l.Rate(), 1) {
		return
	}
	require.InDelta(t, float64(op.Stored), l.Stored(), s.DevStored+1e-12*float64(op.Stored)+250e-9*l.Rate(), at)
}

// micros returns a duration, saturated.
func micros(n int64) time.Duration {
	switch {
	case n > math.MaxInt64/1000:
		return reserve.Forever
	case n < math.MinInt64/1000:
		return -reserve.Forever
	}
	return time.Duration(n) * time.Microsecond
}
