package paceaws

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/pacetest"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/window"
)

var _ aws.RetryerV2 = (*Retryer)(nil)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A service answers attempts, and notes when they came.
type service struct {
	answer func(attempt int) (status int, code string, header http.Header)

	mu   sync.Mutex
	came []time.Time
}

func (s *service) Do(*http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.came = append(s.came, time.Now())
	status, code, header := s.answer(len(s.came))
	s.mu.Unlock()
	body := "{}"
	if code != "" {
		body = `{"__type":"com.amazonaws.dynamodb.v20120810#` + code + `","message":"no"}`
	}
	r := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
	for name := range header {
		r.Header.Set(name, header.Get(name))
	}
	return r, nil
}

func fine(int) (int, string, http.Header) { return http.StatusOK, "", nil }

const tooMuch = "ProvisionedThroughputExceededException"

// client returns a client of the service's with that retryer.
func client(s *service, r aws.Retryer) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", Retryer: r, HTTPClient: s, BaseEndpoint: aws.String("http://localhost"),
		DisableValidateResponseChecksum: true, EnableAcceptEncodingGzip: false,
	})
}

func call(ctx context.Context, c *dynamodb.Client) error {
	_, err := c.ListTables(ctx, nil)
	return err
}

func newRetryer(t *testing.T, by reserve.Reserver, opts ...Option) *Retryer {
	r, err := New(nil, by, opts...)
	require.NoError(t, err)
	return r
}

// Retries take permits as first attempts do.
func TestEveryAttemptIsPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{answer: func(attempt int) (int, string, http.Header) {
			if attempt%3 != 0 {
				return http.StatusBadRequest, tooMuch, nil
			}
			return fine(attempt)
		}}
		c := client(s, newRetryer(t, reserve.Must(pace.NewBursty(5, pace.WithBurst(0)))))
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { _ = call(t.Context(), c) })
		}
		all.Wait()
		require.GreaterOrEqual(t, len(s.came), 15, "some were tried again")
		for i := range s.came[1:] {
			require.GreaterOrEqual(t, s.came[i+1].Sub(s.came[i]), 200*time.Millisecond)
		}
	})
}

// What the service says stops all calls. For a time that is too long, and without one, it stops none.
func TestRetryAfter(t *testing.T) {
	for _, test := range []struct {
		name, value string
		stop        time.Duration
	}{
		{"Retry-After", "3", 3 * time.Second},
		{"Retry-After", "0.5", 500 * time.Millisecond},
		{"Retry-After", "Sat, 01 Jan 2000 00:00:07 GMT", 7 * time.Second}, // the bubble begins at 0:00
		{"Retry-After", "Fri, 31 Dec 1999 00:00:07 GMT", 0},
		{"X-Amz-Retry-After", "1500", 1500 * time.Millisecond},
		{"Retry-After", "86400", 10 * time.Second},
		{"Retry-After", "1e300", 10 * time.Second},
		{"Retry-After", "soon", 0},
		{"Retry-After", "-1", 0},
		{"Retry-After", "NaN", 0},
		{"X-Amz-Retry-After", "9223372036854775807", 10 * time.Second},
		{"X-Other", "5", 0},
	} {
		t.Run(test.name+" "+test.value, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &service{answer: func(int) (int, string, http.Header) {
					return http.StatusBadRequest, tooMuch, http.Header{test.name: {test.value}}
				}}
				once := retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts = 1 })
				r, err := New(once, reserve.Must(pace.NewBursty(1e6)), WithMaxRetryAfter(10*time.Second))
				require.NoError(t, err)
				require.Error(t, call(t.Context(), client(s, r)))
				begin := time.Now()
				s.answer = fine
				require.NoError(t, call(t.Context(), client(s, r)))
				require.WithinDuration(t, begin.Add(test.stop), s.came[1], 2*time.Microsecond)
			})
		})
	}
}

// The SDK tells only GetRetryToken of a retry's error, in its mode of 2026.
func TestGetRetryTokenListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{answer: func(int) (int, string, http.Header) {
			return http.StatusTooManyRequests, "Unknown", http.Header{"Retry-After": {"3"}}
		}}
		err := call(t.Context(), client(s, aws.NopRetryer{}))
		require.Error(t, err)
		limiter := reserve.Must(pace.NewBursty(1e6))
		_, _ = newRetryer(t, limiter).GetRetryToken(t.Context(), err)
		require.Equal(t, 3*time.Second, time.Until(limiter.NextFree()))
	})
}

// A deadline that can't be met ends the call at once, without an attempt, and gives nothing to wait
// for to others.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{answer: fine}
		limiter := reserve.Must(pace.NewBursty(1, pace.WithBurst(0)))
		c := client(s, newRetryer(t, limiter))
		require.NoError(t, call(t.Context(), c))
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		var late *reserve.WaitError
		require.ErrorAs(t, call(ctx, c), &late)
		require.ErrorIs(t, call(ctx, c), context.DeadlineExceeded)
		require.Zero(t, time.Since(begin))
		require.Len(t, s.came, 1)

		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		require.ErrorIs(t, call(ctx, c), context.Canceled)
		require.NoError(t, call(t.Context(), c))
		require.Equal(t, time.Second, time.Since(begin))
	})
}

// A service that accepts 20/s, and a ceiling of 100/s.
func TestAdaptive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		theirs := reserve.Must(pace.NewTokenBucket(20, 5))
		refused := 0
		s := &service{answer: func(attempt int) (int, string, http.Header) {
			if theirs.Allow() {
				return fine(attempt)
			}
			refused++
			return http.StatusBadRequest, tooMuch, nil
		}}
		limiter := reserve.Must(pace.NewBursty(100, pace.WithBurst(0)))
		c := client(s, newRetryer(t, limiter, Adaptive()))
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
		defer cancel()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for late := new(reserve.WaitError); ctx.Err() == nil && !errors.As(call(ctx, c), &late); {
				}
			})
		}
		all.Wait()
		accepted := len(s.came) - refused
		t.Logf("%d accepted of 1205 at most, %d refused; now %.1f/s", accepted, refused, limiter.Rate())
		require.Greater(t, accepted, 1000)
		require.Less(t, refused, 120)
	})
}

// A service's other errors, and no answer at all, cut nothing.
func TestOtherErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := reserve.Must(pace.NewBursty(100))
		r := newRetryer(t, limiter, Adaptive())
		s := &service{answer: func(int) (int, string, http.Header) {
			return http.StatusBadRequest, "ResourceNotFoundException", nil
		}}
		for range 20 {
			require.Error(t, call(t.Context(), client(s, r)))
		}
		token, err := r.GetAttemptToken(t.Context())
		require.NoError(t, err)
		require.NoError(t, token(errors.New("the network")))
		require.Equal(t, 100., limiter.Rate())
		s.answer = func(int) (int, string, http.Header) { return http.StatusBadRequest, tooMuch, nil }
		require.Error(t, call(t.Context(), client(s, r)))
		low := limiter.Rate()
		require.Less(t, low, 100.)
		s.answer = func(int) (int, string, http.Header) { return http.StatusBadRequest, "ResourceNotFoundException", nil }
		for range 300 {
			require.Error(t, call(t.Context(), client(s, r)))
		}
		require.Greater(t, limiter.Rate(), low, "an answer is an answer")
	})
}

type failing struct{ aws.RetryerV2 }

var errInner = errors.New("inner")

func (failing) GetAttemptToken(context.Context) (func(error) error, error) { return nil, errInner }

// An inner retryer that has no token for an attempt costs no permit; a limiter that fails is the
// call's own error.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := reserve.Must(pace.NewTokenBucket(1, 1))
		r, err := New(failing{retry.NewStandard()}, limiter)
		require.NoError(t, err)
		_, err = r.GetAttemptToken(t.Context())
		require.ErrorIs(t, err, errInner)
		require.True(t, limiter.Allow())

		s := &service{answer: fine}
		require.ErrorIs(t, call(t.Context(), client(s, newRetryer(t, broken{}))), errDown)
		require.Empty(t, s.came)
	})
	for _, by := range []reserve.Reserver{nil, (*reserve.Limiter)(nil)} {
		_, err := New(nil, by)
		require.EqualError(t, err, "paceaws: the limiter is <nil>; want a limiter")
	}
	_, err := New(nil, broken{}, nil)
	require.EqualError(t, err, "paceaws: an option is <nil>; want one that is not nil")
	_, err = New(nil, broken{}, Adaptive())
	require.ErrorContains(t, err, "one with Rate and Retime")
	_, err = New(nil, reserve.Must(pace.NewBursty(math.Inf(1))), Adaptive())
	require.ErrorContains(t, err, "a finite one")
}

// slow is an inner retryer whose token takes a while, as that of retry.AdaptiveMode does.
type slow struct {
	aws.RetryerV2
	until    time.Time
	released []error
}

func (s *slow) GetAttemptToken(context.Context) (func(error) error, error) {
	time.Sleep(time.Until(s.until))
	return func(err error) error { s.released = append(s.released, err); return nil }, nil
}

// Attempts that the inner retryer held up do not go together afterwards, and a token of its for
// which there is no permit is given back.
func TestInnerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &slow{RetryerV2: retry.NewStandard(), until: time.Now().Add(3 * time.Second)}
		r, err := New(inner, reserve.Must(pace.NewBursty(1, pace.WithBurst(0))))
		require.NoError(t, err)
		var went pacetest.Times
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				_, err := r.GetAttemptToken(t.Context())
				require.NoError(t, err)
				went.Note()
			})
		}
		all.Wait()
		pacetest.NeverMoreThan(t, 1, time.Second, went.All())

		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err = r.GetAttemptToken(ctx)
		var late *reserve.WaitError
		require.ErrorAs(t, err, &late)
		require.Equal(t, []error{err}, inner.released)
	})
}

type broken struct{}

var errDown = errors.New("down")

func (broken) ReserveWithin(context.Context, int, time.Duration) (reserve.Reservation, error) {
	return reserve.Reservation{}, errDown
}

// A window keeps its promise wherever it stands: the service counts an attempt at some moment between its sending and
// its answer, and its window begins with the first.
func TestWindow(t *testing.T) {
	ten := reserve.Must(window.Policy(10, time.Second))
	for name, by := range map[string]func() reserve.Reserver{
		"alone": func() reserve.Reserver { return ten.Limiter() },
		"of a key": func() reserve.Reserver {
			return keyed.New(func(string) (*reserve.Policy, error) { return ten, nil }).For("a")
		},
		"in a store": func() reserve.Reserver { return reserve.Must(shared.NewIn(shared.Memory(), "a", ten)) },
		"in an All": func() reserve.Reserver {
			return reserve.All(ten.Limiter(), reserve.Must(pace.NewBursty(1000)))
		},
		"behind a queue": func() reserve.Reserver {
			return reserve.Must(fair.New(ten.Limiter(), []fair.Class{{Name: "a"}}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(1, 2))
				refused, counted, ends := 0, 0, time.Time{}
				var mu sync.Mutex
				delay := func() {
					mu.Lock()
					d := time.Duration(2+random.IntN(30)) * time.Millisecond
					mu.Unlock()
					time.Sleep(d)
				}
				s := &service{answer: func(int) (int, string, http.Header) {
					if now := time.Now(); now.After(ends) {
						counted, ends = 0, now.Add(time.Second)
					}
					if counted++; counted > 10 {
						refused++
						return http.StatusBadRequest, tooMuch, nil
					}
					return fine(0)
				}}
				c := client(s, newRetryer(t, by()))
				c = dynamodb.New(c.Options(), func(o *dynamodb.Options) { o.HTTPClient = delayed{s, delay} })
				var all sync.WaitGroup
				for range 11 {
					all.Go(func() {
						for range 10 {
							if err := call(t.Context(), c); err != nil {
								t.Error(err)
							}
						}
					})
				}
				all.Wait()
				require.Zero(t, refused)
			})
		})
	}
}

// A delayed service takes a while to get a request, and to answer it.
type delayed struct {
	*service
	delay func()
}

func (d delayed) Do(r *http.Request) (*http.Response, error) {
	d.delay()
	defer d.delay()
	return d.service.Do(r)
}
