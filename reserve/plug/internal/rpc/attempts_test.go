package rpc_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/plug/internal/rpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func request(t *testing.T) *http.Request { return rpc.Request(t.Context(), "a", "/b.C/D", nil, nil) }

func none() http.Header { return nil }

// An answer is told once, a refusal that comes later as well, and nothing after the end.
func TestAttemptsTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := reserve.Must(pace.NewBursty(10, pace.WithBurst(0)))
		answers := 0
		transport := reserve.Must(outbound.New(nil, limiter, outbound.WithDialect(outbound.Dialect{
			Read: func(http.Header) []outbound.Left { answers++; return nil },
		})))
		attempts := rpc.Attempts{Transport: transport}
		require.NoError(t, attempts.Take(request(t)))
		attempts.Accept(none)
		attempts.Accept(none)
		attempts.End(rpc.Answer{})
		require.Equal(t, 1, answers)
		require.True(t, attempts.Ended())
		attempts.End(rpc.Answer{Refused: true, After: time.Minute})
		attempts.Accept(none)
		require.Equal(t, 1, answers)

		attempts = rpc.Attempts{Transport: transport}
		require.NoError(t, attempts.Take(request(t)))
		attempts.Accept(none)
		attempts.End(rpc.Answer{Refused: true, After: time.Minute})
		require.Equal(t, 3, answers)
		require.Equal(t, time.Minute+100*time.Millisecond, time.Until(limiter.NextFree()))
	})
}

// A turn that comes when all is over gives its place back.
func TestAttemptsEndMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts rpc.Attempts
		transport := reserve.Must(outbound.New(nil, nil, outbound.WithMaxInFlight(1), outbound.WithHooks(outbound.Hooks{
			Waited: func(*http.Request, time.Duration) { attempts.Abandon() }})))
		for range 3 {
			attempts = rpc.Attempts{Transport: transport}
			require.NoError(t, attempts.Take(request(t)))
			require.True(t, attempts.Ended())
		}
	})
}

// Each turn gives its place to the next of the same stream.
func TestAttemptsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := rpc.Attempts{Transport: reserve.Must(outbound.New(nil, nil, outbound.WithMaxInFlight(1)))}
		for range 3 {
			require.NoError(t, attempts.Take(request(t)))
		}
		attempts.Abandon()
	})
}
