package paceaws

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"

	"github.com/nextfree/pace/internal/isnil"
	"github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/reserve"
)

// A Retryer is an aws.RetryerV2 around another one that makes each attempt wait for a permit. It comes from [New]. All
// methods may be called at the same time, by many clients.
type Retryer struct {
	aws.RetryerV2
	settings
	by     limit.Limit
	finder *finder // nil: not adaptive
}

// An Option changes one setting of [New].
type Option func(*settings) error

type settings struct {
	longest  time.Duration
	adaptive bool
}

// WithMaxRetryAfter sets for how long a service can stop the limiter at a time. Negative counts as 0. Default: 5
// minutes.
func WithMaxRetryAfter(d time.Duration) Option {
	return func(s *settings) error { s.longest = max(0, d); return nil }
}

// Adaptive finds the rate that the service accepts, as outbound.Adaptive does: throttling errors cut the limiter's
// rate, and what is accepted raises it, never above the rate that the limiter has now. That must be finite. The limiter
// must have Rate and Retime, and is for this retryer alone.
func Adaptive() Option { return func(s *settings) error { s.adaptive = true; return nil } }

// New returns a retryer around inner (nil: retry.NewStandard()) whose attempts each take one permit of by. Give each
// service, region or account a limiter and a retryer.
//
// A by that can be paused (*[reserve.Limiter], package keyed's, a shared one for all its processes) is stopped when a
// throttling error says for how long: Retry-After, or x-amz-retry-after. It returns a *[reserve.ValueError] if by is
// nil, or does not fit [Adaptive].
func New(inner aws.RetryerV2, by reserve.Reserver, opts ...Option) (*Retryer, error) {
	if isnil.Value(by) {
		return nil, &reserve.ValueError{Package: "paceaws", Name: "the limiter", Value: nil, Want: "a limiter"}
	}
	if inner == nil {
		inner = retry.NewStandard()
	}
	r := &Retryer{RetryerV2: inner, settings: settings{longest: 5 * time.Minute}, by: limit.Of(by)}
	for _, opt := range opts {
		if opt == nil {
			return nil, &reserve.ValueError{Package: "paceaws", Name: "an option", Value: nil, Want: "one that is not nil"}
		}
		if err := opt(&r.settings); err != nil {
			return nil, err
		}
	}
	if !r.adaptive {
		return r, nil
	}
	var err error
	r.finder, err = newFinder(r.by, by)
	return r, err
}

// GetAttemptToken waits for a permit. If that would come after the context's deadline, it returns a
// *[reserve.WaitError] at once, which the SDK does not retry. A context that ends while it waits gives the permit back,
// and the inner retryer's token.
func (r *Retryer) GetAttemptToken(ctx context.Context) (func(error) error, error) {
	release, err := r.RetryerV2.GetAttemptToken(ctx) // before the permit, so that its waits make no bursts
	if err != nil {
		return nil, err
	}
	held, err := r.by.ReserveWithin(ctx, 1, reserve.Forever)
	if err == nil {
		err = held.Wait(ctx)
	}
	if err != nil {
		_ = release(err) // the attempt's error is told, as the SDK does
		return nil, err
	}
	limit.Begin(&held)
	sent := time.Now()
	r.finder.sent(sent)
	return func(err error) error {
		limit.End(&held) // a window counts the attempt until now
		r.hear(sent, err)
		return release(err)
	}, nil
}

// GetRetryToken is the inner retryer's. It gets every error that is tried again.
func (r *Retryer) GetRetryToken(ctx context.Context, err error) (func(error) error, error) {
	r.pause(time.Now(), err)
	return r.RetryerV2.GetRetryToken(ctx, err)
}

func (r *Retryer) hear(sent time.Time, err error) {
	now := time.Now()
	switch wait, throttled := r.pause(now, err); {
	case throttled:
		r.finder.refused(now, sent, now.Add(wait))
	case err == nil || answered(err):
		r.finder.accepted(now, sent)
	}
}

func (r *Retryer) pause(now time.Time, err error) (wait time.Duration, throttled bool) {
	if !isThrottle(err) {
		return 0, false
	}
	if wait = min(retryAfter(now, err), r.longest); wait > 0 {
		r.by.Stop(now.Add(wait))
	}
	return wait, true
}
