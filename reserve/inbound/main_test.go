package inbound_test

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const s = time.Second

// In a bubble the limiters use the real clock, which is the bubble's.
func bubble(t *testing.T, test func(t *testing.T)) { t.Helper(); synctest.Test(t, test) }

// bucket is a classic token bucket that starts full.
func bucket(perSecond, permits float64, opts ...reserve.Option) *reserve.Policy {
	return reserve.Must(pace.Bursty(perSecond, append(opts, pace.WithCapacity(permits), reserve.WithStored(permits), reserve.PayUpfront())...))
}

// user is the key function of tests.
func user(r *http.Request) (string, error) {
	if name := r.Header.Get("User"); name != "" {
		return name, nil
	}
	return "", inbound.ErrSkip
}

var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) })

func build(t *testing.T, tiers []inbound.Tier, opts ...inbound.Option) *inbound.Middleware {
	t.Helper()
	m, err := inbound.New(tiers, opts...)
	require.NoError(t, err)
	return m
}

func get(user, path string) *http.Request {
	r := httptest.NewRequest("GET", path, nil)
	if user != "" {
		r.Header.Set("User", user)
	}
	return r
}

// do sends a request through a handler.
func do(h http.Handler, r *http.Request) *http.Response {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func status(h http.Handler, r *http.Request) int { return do(h, r).StatusCode }

type problem struct {
	Type     string
	Title    string
	Status   int
	Detail   string
	Violated []string `json:"violated-policies"`
}

func problemOf(t *testing.T, res *http.Response) (p problem) {
	t.Helper()
	require.Equal(t, "application/problem+json", res.Header.Get("Content-Type"))
	require.NoError(t, json.NewDecoder(res.Body).Decode(&p))
	require.Equal(t, res.StatusCode, p.Status)
	return p
}

var inf = math.Inf(1)

// heap returns the bytes in use, after a collection.
func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// counts are a middleware's Stats without the histogram.
func counts(m *inbound.Middleware) inbound.Stats {
	s := m.Stats()
	s.Waits = inbound.Histogram{}
	return s
}

// byFunc finds each key's limiter.
type byFunc[K comparable] func(K) (reserve.Reserver, error)

func (f byFunc[K]) For(key K) reserve.Reserver {
	by, err := f(key)
	if err != nil {
		return reserverOf(func(context.Context) error { return err })
	}
	return by
}
