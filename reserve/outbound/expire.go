package outbound

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/reserve"
)

// An ExpiredError reports a request that was not sent, because what its caller had signed would have expired first. Its
// permits went back. The caller can sign it again and ask again, or sign below this transport.
type ExpiredError struct {
	Expires time.Time // when the request had to be sent
	Err     error     // the *reserve.WaitError with its wait; nil: the time passed while it waited
}

func (e *ExpiredError) Error() string {
	ends := e.Expires.UTC().Format(time.RFC3339)
	text := "outbound: the request's signature ends at " + ends + ", before it could be sent"
	if e.Err != nil {
		text += fmt.Sprintf(": %v", e.Err)
	}
	return text
}

// Unwrap returns Err.
func (e *ExpiredError) Unwrap() error { return e.Err }

// A signature says until when a server takes it.
type signature struct {
	at    string // the header or the parameter of the address that has its time
	life  string // that has its life in units; "": none
	unit  time.Duration
	lasts time.Duration // if life does not say; 0, and no life: at is its end
}

// headerSignatures are of AWS (SigV4), Azure, Alibaba, Huawei and Tencent Cloud, OKX, Coinbase, KuCoin, Bybit, Bitvavo
// and BitMEX.
var headerSignatures = []signature{
	{at: "X-Amz-Date", lasts: 5 * time.Minute}, {at: "X-Ms-Date", lasts: 15 * time.Minute},
	{at: "X-Acs-Date", lasts: 15 * time.Minute}, {at: "X-Sdk-Date", lasts: 15 * time.Minute},
	{at: "X-Tc-Timestamp", lasts: 5 * time.Minute}, {at: "Ok-Access-Timestamp", lasts: 30 * time.Second},
	{at: "Cb-Access-Timestamp", lasts: 30 * time.Second}, {at: "Kc-Api-Timestamp", lasts: 5 * time.Second},
	{at: "X-Bapi-Timestamp", life: "X-Bapi-Recv-Window", unit: time.Millisecond, lasts: 5 * time.Second},
	{at: "Bitvavo-Access-Timestamp", life: "Bitvavo-Access-Window", unit: time.Millisecond, lasts: 10 * time.Second},
	{at: "Api-Expires"},
}

// querySignatures are of addresses that AWS, Google Cloud Storage, Azure and CloudFront have signed, and Binance's.
var querySignatures = []signature{
	{at: "X-Amz-Date", life: "X-Amz-Expires", unit: time.Second},
	{at: "X-Goog-Date", life: "X-Goog-Expires", unit: time.Second},
	{at: "timestamp", life: "recvWindow", unit: time.Millisecond},
	{at: "se"}, {at: "Expires"},
}

const (
	signatureTime = "20060102T150405Z"
	// inTime is the part of a signature's life in which a call must be sent, to arrive within it.
	inTime = 0.98
)

// expiry returns when the signature of a request that comes now ends; zero: it has none.
func expiry(r *http.Request, clock clockwork.Clock) time.Time {
	for name, v := range r.Header {
		if of := name[strings.LastIndexByte(name, '-')+1:]; of != "Date" && of != "Timestamp" && of != "Expires" {
			continue
		}
		for i := range headerSignatures {
			if s := &headerSignatures[i]; s.at == name && len(v) > 0 {
				return s.ends(v[0], r.Header.Get(s.life), clock.Now())
			}
		}
	}
	if !strings.Contains(r.URL.RawQuery, "ignature=") && !strings.Contains(r.URL.RawQuery, "sig=") {
		return time.Time{}
	}
	query := r.URL.Query()
	for i := range querySignatures {
		s := &querySignatures[i]
		if at := query.Get(s.at); at != "" {
			return s.ends(at, query.Get(s.life), clock.Now())
		}
	}
	return time.Time{}
}

// ends returns when a signature ends. One of the future, or one that has ended, is by another clock than ours: it
// counts from now.
func (s *signature) ends(at, life string, now time.Time) time.Time {
	t, ok := signedAt(at)
	if !ok {
		return time.Time{}
	}
	lasts := s.lasts
	if n, err := strconv.ParseInt(life, 10, 32); err == nil {
		lasts = time.Duration(n) * s.unit
	} else if lasts == 0 {
		if s.life != "" || t.Before(now) {
			return time.Time{}
		}
		t, lasts = now, t.Sub(now)
	}
	if age := now.Sub(t); age < 0 || age >= lasts {
		t = now
	}
	return t.Add(time.Duration(inTime * float64(lasts)))
}

// signedAt reads a point in time, as text or in seconds or milliseconds since 1970.
func signedAt(v string) (time.Time, bool) {
	if n, err := strconv.ParseFloat(v, 64); err == nil && n > 1e9 && n < 1e13 {
		if n < 1e12 {
			n *= 1000
		}
		return time.UnixMilli(int64(n)).UTC(), true
	}
	for _, form := range []string{signatureTime, time.RFC3339, http.TimeFormat} {
		if t, err := time.Parse(form, v); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
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
