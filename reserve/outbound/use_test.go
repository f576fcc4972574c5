package outbound_test

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/window"
)

// A window counts a call until its length after the answer, or after the error: the server may have counted it then.
func TestWindowCountsFromTheAnswer(t *testing.T) {
	for name, fails := range map[string]bool{"an answer": false, "an error": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var at []time.Duration
				begin := time.Now()
				base := tripper(func(r *http.Request) (*http.Response, error) {
					at = append(at, time.Since(begin))
					time.Sleep(150 * time.Millisecond)
					if fails {
						return nil, errors.New("broken")
					}
					return &http.Response{StatusCode: 200, Body: http.NoBody, Header: http.Header{}}, nil
				})
				tr := reserve.Must(outbound.New(base, reserve.Must(window.New(1, time.Second))))
				for range 3 {
					r, _ := http.NewRequest(http.MethodGet, "http://a.test/", nil)
					_, err := tr.RoundTrip(r)
					require.Equal(t, fails, err != nil)
				}
				require.Equal(t, []time.Duration{0, 1150 * time.Millisecond, 2300 * time.Millisecond}, at)
			})
		})
	}
}

// A call that is out at midnight is counted on both days.
func TestCalendarCountsAtTheEdge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour - 50*time.Millisecond)))
		base := tripper(func(r *http.Request) (*http.Response, error) {
			time.Sleep(100 * time.Millisecond)
			return &http.Response{StatusCode: 200, Body: http.NoBody, Header: http.Header{}}, nil
		})
		l := reserve.Must(calendar.New(10, calendar.Every(time.Hour)))
		tr := reserve.Must(outbound.New(base, l))
		r, _ := http.NewRequest(http.MethodGet, "http://a.test/", nil)
		_, err := tr.RoundTrip(r)
		require.NoError(t, err)
		require.Equal(t, 9., l.Stored())
	})
}
