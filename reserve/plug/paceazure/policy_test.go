package paceazure

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
)

var _ policy.Policy = (*Policy)(nil)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A service answers requests, and notes when they came and with what.
type service struct {
	answer func(attempt int) (int, http.Header, error)
	came   []time.Duration
	bodies []string
	begin  time.Time
	mu     sync.Mutex
}

func (s *service) Do(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.came = append(s.came, time.Since(s.begin))
	body := ""
	if r.Body != nil {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = string(b)
	}
	s.bodies = append(s.bodies, body)
	status, header, err := s.answer(len(s.came))
	if err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	for name := range header {
		w.Header().Set(name, header.Get(name))
	}
	w.WriteHeader(status)
	return w.Result(), nil
}

func fine(int) (int, http.Header, error) { return http.StatusOK, nil, nil }

// do sends a request through the SDK's pipeline.
func do(t *testing.T, ctx context.Context, s *service, p policy.Policy, body string) (*http.Response, error) {
	pipeline := runtime.NewPipeline("test", "v0", runtime.PipelineOptions{}, &policy.ClientOptions{
		Transport: s, PerRetryPolicies: []policy.Policy{p}, Retry: policy.RetryOptions{RetryDelay: time.Millisecond},
	})
	r, err := runtime.NewRequest(ctx, http.MethodPut, "http://service/")
	require.NoError(t, err)
	if body != "" {
		require.NoError(t, r.SetBody(streaming.NopCloser(strings.NewReader(body)), "text/plain"))
	}
	return pipeline.Do(r)
}

func newPolicy(t *testing.T, by reserve.Reserver, opts ...outbound.Option) *Policy {
	p, err := New(by, opts...)
	require.NoError(t, err)
	return p
}

// Each attempt takes a permit, has its body, and the SDK's retry waits for what the server says.
func TestEveryAttemptIsPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{begin: time.Now(), answer: func(attempt int) (int, http.Header, error) {
			switch attempt {
			case 1:
				return http.StatusServiceUnavailable, nil, nil
			case 2:
				return http.StatusTooManyRequests, http.Header{"X-Ms-Retry-After-Ms": {"3000"}}, nil
			}
			return fine(attempt)
		}}
		p := newPolicy(t, reserve.Must(pace.NewBursty(1, pace.WithBurst(0))))
		response, err := do(t, t.Context(), s, p, "body")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, response.StatusCode)
		require.Equal(t, []string{"body", "body", "body"}, s.bodies)
		_, err = do(t, t.Context(), s, p, "")
		require.NoError(t, err)
		require.Equal(t, []time.Duration{0, time.Second}, s.came[:2])
		require.GreaterOrEqual(t, s.came[2], 4*time.Second)
		require.GreaterOrEqual(t, s.came[3], s.came[2]+time.Second)
	})
}

// What one request hears from the server stops the others.
func TestRefusalStopsEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{begin: time.Now(), answer: func(attempt int) (int, http.Header, error) {
			if attempt == 1 {
				return http.StatusTooManyRequests, http.Header{"Retry-After": {"2"}}, nil
			}
			return fine(attempt)
		}}
		p := newPolicy(t, reserve.Must(pace.NewBursty(1e6)))
		go func() { _, _ = do(t, t.Context(), s, p, "") }()
		synctest.Wait()
		_, err := do(t, t.Context(), s, p, "")
		require.NoError(t, err)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, s.came, 3)
		require.GreaterOrEqual(t, s.came[1], 2*time.Second)
	})
}

// A deadline that can't be met ends the request at once: the SDK does not try it again.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{begin: time.Now(), answer: fine}
		p := newPolicy(t, reserve.Must(pace.NewBursty(1, pace.WithBurst(0))))
		_, err := do(t, t.Context(), s, p, "")
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		_, err = do(t, ctx, s, p, "body")
		var late *reserve.WaitError
		require.ErrorAs(t, err, &late)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "paceazure: pace: a wait of 1s")
		require.Zero(t, time.Since(s.begin))
		require.Len(t, s.came, 1)
	})
}

var errNetwork = errors.New("network")

// An error behind the policy is the SDK's to try again.
func TestNetworkErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{begin: time.Now(), answer: func(attempt int) (int, http.Header, error) {
			if attempt < 3 {
				return 0, nil, errNetwork
			}
			return fine(attempt)
		}}
		_, err := do(t, t.Context(), s, newPolicy(t, reserve.Must(pace.NewBursty(1, pace.WithBurst(0)))), "body")
		require.NoError(t, err)
		require.Equal(t, []time.Duration{0, time.Second, 2 * time.Second}, s.came)
	})
}

// The transport's own retries have the body from its beginning.
func TestRetriesOfTheTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{begin: time.Now(), answer: func(attempt int) (int, http.Header, error) {
			if attempt == 1 {
				return http.StatusTooManyRequests, http.Header{"Retry-After": {"2"}}, nil
			}
			return fine(attempt)
		}}
		p := newPolicy(t, reserve.Must(pace.NewBursty(1e6)), outbound.WithRetries(1))
		r, err := runtime.NewRequest(t.Context(), http.MethodPut, "http://service/")
		require.NoError(t, err)
		require.NoError(t, r.SetBody(streaming.NopCloser(strings.NewReader("body")), "text/plain"))
		r.Raw().GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("body")), nil }
		pipeline := runtime.NewPipeline("test", "v0", runtime.PipelineOptions{}, &policy.ClientOptions{
			Transport: s, PerRetryPolicies: []policy.Policy{p}, Retry: policy.RetryOptions{MaxRetries: -1},
		})
		response, err := pipeline.Do(r)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, response.StatusCode)
		require.Equal(t, []string{"body", "body"}, s.bodies)
	})
}

type broken struct{}

func (broken) ReserveWithin(context.Context, int, time.Duration) (reserve.Reservation, error) {
	return reserve.Reservation{}, errNetwork
}

func TestBadInput(t *testing.T) {
	for _, by := range []reserve.Reserver{nil, (*reserve.Limiter)(nil)} {
		_, err := New(by)
		require.EqualError(t, err, "paceazure: the limiter is <nil>; want a limiter")
	}
	s := &service{answer: fine}
	_, err := do(t, t.Context(), s, newPolicy(t, broken{}), "")
	require.ErrorIs(t, err, errNetwork)

	var value *reserve.ValueError
	_, err = New(nil, outbound.WithMaxInFlight(0))
	require.ErrorAs(t, err, &value)
	none := outbound.PerKey(outbound.Host, func(string) reserve.Reserver { return nil })
	_, err = do(t, t.Context(), s, newPolicy(t, nil, none), "")
	require.ErrorAs(t, err, &value)
	require.Empty(t, s.came)

	unpaced := newPolicy(t, nil, outbound.WithLimit(outbound.Limit{
		Limiter: broken{}, Cost: func(*http.Request) int { return 0 },
	}))
	_, err = do(t, t.Context(), s, unpaced, "")
	require.NoError(t, err, "a request that costs nothing is not paced")

	panics := newPolicy(t, nil, outbound.PerKey(
		func(*http.Request) string { panic("key") }, func(string) reserve.Reserver { return broken{} },
	))
	require.PanicsWithValue(t, "key", func() { _, _ = do(t, t.Context(), s, panics, "") })
}
