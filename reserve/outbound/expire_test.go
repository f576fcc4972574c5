package outbound

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
)

// Until when a request must be sent.
func TestExpiry(t *testing.T) {
	stamp := func(age time.Duration) string { return received.Add(-age).Format(signatureTime) }
	const presigned = "http://s3/x?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Date=%s&X-Amz-Expires=%s&X-Amz-Signature=0"
	for _, c := range []struct {
		name, url, header string
		want              time.Duration // from now; 0: it has none
	}{
		{"no signature", "http://a/", "", 0},
		{"AWS", "http://a/", "X-Amz-Date: " + stamp(0), 294 * time.Second},
		{"AWS, a minute ago", "http://a/", "X-Amz-Date: " + stamp(time.Minute), 234 * time.Second},
		{"AWS, by a clock that is behind", "http://a/", "X-Amz-Date: " + stamp(time.Hour), 294 * time.Second},
		{"AWS, by a clock that is ahead", "http://a/", "X-Amz-Date: " + stamp(-time.Hour), 294 * time.Second},
		{"AWS, malformed", "http://a/", "X-Amz-Date: yesterday", 0},
		{"presigned", fmt.Sprintf(presigned, stamp(0), "60"), "", 58800 * time.Millisecond},
		{"presigned, long ago", fmt.Sprintf(presigned, stamp(time.Hour), "7200"), "", 3456 * time.Second},
		{"Google", fmt.Sprintf("http://gs/x?X-Goog-Date=%s&X-Goog-Expires=100&X-Goog-Signature=0", stamp(0)), "", 98 * time.Second},
		{"another's", "http://a/x?Start-Date=20261121T120000Z", "", 0},
		{"another's that is signed", "http://a/x?Start-Date=20261121T120000Z&signature=0", "", 0},
		{"Azure's address", "http://a/x?sv=2024&se=2026-11-21T12:01:40Z&sig=0", "", 98 * time.Second},
		{"Azure's address, long ago", "http://a/x?sv=2024&se=2026-11-20T12:01:40Z&sig=0", "", 0},
		{"CloudFront", "http://a/x?Expires=1795262500&Signature=0&Key-Pair-Id=1", "", 98 * time.Second},
		{"a parameter without a signature", "http://a/x?Expires=1795262500", "", 0},
		{"Binance", "http://a/x?timestamp=1795262400000&recvWindow=5000&signature=0", "", 4900 * time.Millisecond},
		{"a time that says nothing of an end", "http://a/x?timestamp=1795262500000&signature=0", "", 0},
		{"presigned, without a life", "http://s3/x?X-Amz-Date=20261121T120000Z&X-Amz-Signature=0", "", 0},
		{"Binance, a second ago", "http://a/x?timestamp=1795262399000&recvWindow=10000&signature=0", "", 8800 * time.Millisecond},
		{"Azure", "http://a/", "X-Ms-Date: Sat, 21 Nov 2026 12:00:00 GMT", 882 * time.Second},
		{"Alibaba Cloud", "http://a/", "X-Acs-Date: 2026-11-21T12:00:00Z", 882 * time.Second},
		{"Huawei Cloud", "http://a/", "X-Sdk-Date: 20261121T120000Z", 882 * time.Second},
		{"Tencent Cloud", "http://a/", "X-TC-Timestamp: 1795262400", 294 * time.Second},
		{"OKX", "http://a/", "OK-ACCESS-TIMESTAMP: 2026-11-21T12:00:00.000Z", 29400 * time.Millisecond},
		{"Coinbase", "http://a/", "CB-ACCESS-TIMESTAMP: 1795262400.5", 29400 * time.Millisecond},
		{"KuCoin", "http://a/", "KC-API-TIMESTAMP: 1795262400000", 4900 * time.Millisecond},
		{"Bitvavo", "http://a/", "Bitvavo-Access-Timestamp: 1795262400000", 9800 * time.Millisecond},
		{"BitMEX", "http://a/", "api-expires: 1795262460", 58800 * time.Millisecond},
		{"BitMEX, long ago", "http://a/", "api-expires: 1795262340", 0},
		{"Bybit", "http://a/", "X-BAPI-TIMESTAMP: 1795262400000", 4900 * time.Millisecond},
	} {
		r := httptest.NewRequest(http.MethodGet, c.url, nil)
		if name, value, ok := strings.Cut(c.header, ": "); ok {
			r.Header.Set(name, value)
		}
		want := received.Add(c.want)
		if c.want == 0 {
			want = time.Time{}
		}
		require.Equal(t, want, expiry(r, clockwork.NewFakeClockAt(received)), c.name)
	}
}

// signed makes a request that was signed now, and lives 5 minutes.
func signed(ctx context.Context) *http.Request {
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://a/", nil)
	r.Header.Set("X-Amz-Date", time.Now().UTC().Format(signatureTime))
	return r
}

// A request that can't be sent before its signature ends is told so: at once where the wait is known, at that time
// otherwise.
func TestSignatureEnds(t *testing.T) {
	const begin = 294 * time.Second
	for _, c := range []struct {
		name  string
		by    func() reserve.Reserver
		opts  []Option
		stop  time.Duration // that the first call brings
		after time.Duration // when the second is told
	}{
		{"a rate", func() reserve.Reserver { return reserve.Must(pace.NewBursty(1./600, pace.WithBurst(0))) }, nil, 0, 0},
		{"a stop", func() reserve.Reserver { return reserve.Must(pace.NewBursty(100)) }, []Option{WithMaxRetryAfter(time.Hour)}, 400 * time.Second, 0},
		{"a stop of what has no rate", func() reserve.Reserver { return nil }, []Option{WithMaxRetryAfter(time.Hour)}, 400 * time.Second, 0},
		{"classes", func() reserve.Reserver { return reserve.Must(pace.NewBursty(1./600, pace.WithBurst(0))) }, []Option{WithClasses(nil, fair.Class{Name: "all"})}, 0, 0},
		{"a foreign limiter", func() reserve.Reserver { return notPausable{reserve.Must(pace.NewBursty(1./600, pace.WithBurst(0)))} }, nil, 0, 0},
		{"a place", func() reserve.Reserver { return nil }, []Option{WithMaxInFlight(1)}, 0, begin},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base := tripper(func(*http.Request) (*http.Response, error) {
					if c.stop > 0 {
						return says(429, "", "Retry-After", fmt.Sprint(c.stop.Seconds())), nil
					}
					return says(200, ""), nil
				})
				transport := reserve.Must(New(base, c.by(), c.opts...))
				first, err := transport.RoundTrip(signed(t.Context()))
				require.NoError(t, err)
				begin := time.Now()
				_, err = transport.RoundTrip(signed(t.Context()))
				var expired *ExpiredError
				require.ErrorAs(t, err, &expired)
				require.ErrorContains(t, err, "signature ends at 2000-01-01T00:04:54Z")
				require.InDelta(t, c.after, time.Since(begin), float64(time.Second))
				var wait *reserve.WaitError
				require.Equal(t, c.after == 0, errors.As(err, &wait))

				hurried, cancel := context.WithTimeout(t.Context(), time.Minute) // the request's own deadline is what it was
				defer cancel()
				_, err = transport.RoundTrip(signed(hurried))
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.False(t, errors.As(err, &expired) && expired.Err == nil)
				require.NoError(t, first.Body.Close())
			})
		})
	}
}

// A stop that comes while a signed request waits tells it at once; a refused one is not sent again after its end.
func TestSignatureEndsInAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		base := tripper(func(*http.Request) (*http.Response, error) {
			if n++; n == 1 {
				pass(time.Second)
			}
			return says(429, "", "Retry-After", "400"), nil
		})
		transport := reserve.Must(New(base, reserve.Must(pace.NewBursty(.1, pace.WithBurst(0))), WithRetries(1), WithMaxRetryAfter(time.Hour)))
		begin := time.Now()
		told := make(chan error)
		refused := make(chan *http.Response)
		go func() { r, _ := transport.RoundTrip(signed(t.Context())); refused <- r }()
		synctest.Wait()
		go func() { _, err := transport.RoundTrip(signed(t.Context())); told <- err }()
		require.Equal(t, 429, (<-refused).StatusCode, "there is no time for a retry")
		var expired *ExpiredError
		require.ErrorAs(t, <-told, &expired)
		require.Equal(t, time.Second, time.Since(begin))
		require.Equal(t, 1, n)
	})
}

// A limit of one's own: Binance takes a request for 5 s.
func TestWithExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		life := WithExpiry(func(*http.Request) time.Time { return time.Now().Add(5 * time.Second) })
		base := tripper(func(*http.Request) (*http.Response, error) { return says(200, ""), nil })
		transport := reserve.Must(New(base, reserve.Must(pace.NewBursty(.5, pace.WithBurst(0))), life))
		statuses := make(chan error, 10)
		for range 10 {
			go func() {
				_, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "http://a/", nil))
				statuses <- err
			}()
		}
		went := 0
		for range 10 {
			if err := <-statuses; err == nil {
				went++
			}
		}
		require.Equal(t, 3, went)
		_, err := New(nil, nil, WithExpiry(nil))
		require.ErrorContains(t, err, "WithExpiry")
	})
}
