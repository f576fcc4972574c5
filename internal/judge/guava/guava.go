// Package guava replays answers of the real Guava RateLimiter, for tests: testdata/README.md says how
// they were recorded, and which differences count as none.
package guava

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/warmup"
)

//go:embed testdata/traces.jsonl
var traces []byte

// A Scenario is a limiter and what happened to it.
type Scenario struct {
	Name            string
	Kind            string // bursty or warmup
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

// A Limiter is one that a scenario is replayed on.
type Limiter interface {
	// Reserve reserves permits if they are ready within maxWait, and returns the wait.
	Reserve(t *testing.T, permits int, maxWait time.Duration) (wait time.Duration, ok bool)
	SetRate(t *testing.T, permitsPerSecond float64)
	Rate() float64
	Stored(t *testing.T) float64
	// Set sets the limiter's clock to a time since the limiter was made.
	Set(micros int64)
}

// Replay replays all scenarios, each as a test of its own.
func Replay(t *testing.T, limiter func(*testing.T, *Scenario) Limiter) {
	scenarios, operations := 0, 0
	lines := bufio.NewScanner(bytes.NewReader(traces))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var s Scenario
		require.NoError(t, json.Unmarshal(lines.Bytes(), &s))
		scenarios++
		operations += len(s.Ops)
		t.Run(s.Name, func(t *testing.T) { s.replay(t, limiter(t, &s)) })
	}
	require.NoError(t, lines.Err())
	require.Equal(t, 150, scenarios)
	require.Equal(t, 7794, operations)
}

// Policy returns the policy of the scenario's limiter.
func (s *Scenario) Policy(opts ...reserve.Option) (*reserve.Policy, error) {
	if s.Kind == "bursty" {
		burst := time.Duration(float64(s.MaxBurstSeconds) * float64(time.Second))
		return pace.Bursty(float64(s.Rate), append(opts, pace.WithBurst(burst))...)
	}
	period := time.Duration(s.WarmupMicros) * time.Microsecond
	return warmup.Policy(float64(s.Rate), period, append(opts, warmup.WithColdFactor(float64(s.ColdFactor)))...)
}

func (s *Scenario) replay(t *testing.T, l Limiter) {
	for i, op := range s.Ops {
		at := fmt.Sprintf("operation %d: %+v", i, op)
		switch op.Op {
		case "advance":
		case "reserve", "acquire":
			wait, ok := l.Reserve(t, op.N, reserve.Forever)
			require.True(t, ok, at)
			s.sameWait(t, op, op.WaitMicros+op.SleptMicros, wait, at)
		case "tryAcquire":
			wait, ok := l.Reserve(t, op.N, Micros(op.TimeoutMicros))
			require.Equal(t, op.Ok, ok, at)
			if ok {
				s.sameWait(t, op, op.SleptMicros, wait, at)
			}
		case "setRate":
			l.SetRate(t, float64(op.Rate))
		case "getRate":
			s.sameRate(t, op, l.Rate(), at)
		default:
			t.Fatal("unknown", at)
		}
		// After an advance and a getRate Guava has not brought its store up to date.
		if op.Op != "advance" && op.Op != "getRate" && !math.IsInf(l.Rate(), 1) {
			allowed := s.DevStored + 1e-12*float64(op.Stored) + 250e-9*l.Rate()
			require.InDelta(t, float64(op.Stored), l.Stored(t), allowed, at)
		}
		l.Set(op.NowMicros)
	}
}

func (s *Scenario) sameWait(t *testing.T, op operation, guava int64, wait time.Duration, at string) {
	allowed := 1000*s.DevMicros + 250
	if s.ExactMicros {
		allowed = 1
	}
	require.InDelta(t, 1000*float64(guava), float64(wait), allowed, at)
	require.NotNil(t, op.IdealWaitNanos, at)
	require.InDelta(t, *op.IdealWaitNanos, float64(wait), 1000, at)
}

func (s *Scenario) sameRate(t *testing.T, op operation, rate float64, at string) {
	require.Equal(t, math.IsInf(float64(op.Rate), 1), math.IsInf(rate, 1), at)
	if !math.IsInf(rate, 1) {
		require.InEpsilon(t, float64(op.Rate), rate, 1e-14, at)
	}
}

// Micros returns so many microseconds, saturated.
func Micros(n int64) time.Duration {
	switch {
	case n > math.MaxInt64/1000:
		return reserve.Forever
	case n < math.MinInt64/1000:
		return -reserve.Forever
	}
	return time.Duration(n) * time.Microsecond
}
