package outbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/nextfree/pace/reserve"
)

// An ExpiredError reports a request that was not sent, because what its caller had signed would have expired first. Its
// permits went back. The caller can sign it again and ask again, or sign below this transport.
type ExpiredError struct {
	Expires time.Time // when the request had to be sent
	Err     error     // the *reserve.WaitError with its wait; nil: the time passed while it waited
}

func (e *ExpiredError) Error() string {
	text := "outbound: the request's signature ends at " + e.Expires.UTC().Format(time.RFC3339) + ", before it could be sent"
	if e.Err != nil {
		text += fmt.Sprintf(": %v", e.Err)
	}
	return text
}

// Unwrap returns Err.
func (e *ExpiredError) Unwrap() error { return e.Err }

// A signature says until when a server takes it.
type signature struct {
	header, query string // that has its time
	life          string // the parameter with its seconds; "": 5 min
}

// signatures of AWS (SigV4; presigned) and Google Cloud Storage.
var signatures = []signature{
	{header: "X-Amz-Date"},
	{query: "X-Amz-Date", life: "X-Amz-Expires"},
	{query: "X-Goog-Date", life: "X-Goog-Expires"},
}

const (
	signatureTime = "20060102T150405Z"
	signatureLife = 5 * time.Minute
	// inTime is the part of a signature's life in which a call must be sent, to arrive within it.
	inTime = 0.98
)

// expiry returns when the signature of a request that comes now ends; zero: it has none. A signature of the future, or
// one that has ended, is by another clock than ours: it counts from now.
func expiry(r *http.Request, now time.Time) time.Time {
	signed := strings.Contains(r.URL.RawQuery, "-Date=")
	if !signed && len(r.Header["X-Amz-Date"]) == 0 { // fast path
		return time.Time{}
	}
	query := r.URL.Query()
	for _, s := range signatures {
		at, err := time.Parse(signatureTime, cmp.Or(r.Header.Get(s.header), query.Get(s.query)))
		if err != nil {
			continue
		}
		life := signatureLife
		if s.life != "" {
			seconds, _ := strconv.ParseInt(query.Get(s.life), 10, 32)
			life = time.Duration(seconds) * time.Second
		}
		if age := now.Sub(at); age < 0 || age >= life {
			at = now
		}
		return at.Add(time.Duration(inTime * float64(life)))
	}
	return time.Time{}
}

// waiting returns the context of a call's waits, which ends with its signature.
func (c *call) waiting() (ctx context.Context, end func()) {
	ctx = c.request.Context()
	if c.expires.IsZero() {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	timer := c.t.watch.AfterFunc(c.expires.Sub(c.t.now()), func() { cancel(&ExpiredError{Expires: c.expires}) })
	return expiring{ctx, c.expires}, func() { timer.Stop(); cancel(nil) }
}

// expiring is a context with a deadline by the transport's clock.
type expiring struct {
	context.Context
	at time.Time
}

func (e expiring) Deadline() (time.Time, bool) {
	if at, ok := e.Context.Deadline(); ok && at.Before(e.at) {
		return at, true
	}
	return e.at, true
}

// expired makes an ExpiredError of a wait that the signature's end made too long.
func (c *call) expired(err error) error {
	var wait *reserve.WaitError
	if c.expires.IsZero() || !errors.As(err, &wait) || wait.Cause == nil {
		return err
	}
	if at, ok := c.request.Context().Deadline(); ok && at.Before(c.expires) {
		return err
	}
	return &ExpiredError{Expires: c.expires, Err: err}
}
