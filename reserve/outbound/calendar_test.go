package outbound

import (
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve/calendar"
)

// A server's quota of 100 an hour, of which another program has used 60 and whose clock is off, is learned from its first
// answer: none of 150 calls is refused, and the whole quota is used.
func TestQuotaByTheCalendar(t *testing.T) {
	for name, per := range map[string]calendar.Period{
		"on the clock": calendar.Every(time.Hour), "from the first call": calendar.FromFirst(time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			refused, used, end := 0, 60, time.Time{}
			handler := func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				now := time.Now()
				if end.IsZero() {
					end = now.Truncate(time.Hour).Add(time.Hour + 90*time.Second) // its clock is 90 s behind
				}
				for !now.Before(end) {
					used, end = 0, end.Add(time.Hour)
				}
				if used == 100 {
					refused++
					w.WriteHeader(http.StatusTooManyRequests)
					return
				}
				used++
				w.Header().Set("X-RateLimit-Limit", "100")
				w.Header().Set("X-RateLimit-Remaining", strconv.Itoa(100-used))
				w.Header().Set("X-RateLimit-Reset", strconv.FormatInt(end.Unix(), 10))
			}
			bubble(t, handler, func(t *testing.T, base *http.Transport) {
				time.Sleep(20 * time.Minute)
				limiter := pace.Must(calendar.New(100, per))
				client := &http.Client{Transport: pace.Must(New(base, limiter))}
				begin := time.Now()
				for i := range 200 {
					if i == 40 {
						require.Less(t, time.Since(begin), time.Second, "what was left")
					}
					status, err := get(client, "http://api/")
					require.NoError(t, err)
					require.Equal(t, http.StatusOK, status, i)
					time.Sleep(10 * time.Millisecond)
				}
				require.Zero(t, refused)
				require.InDelta(t, (time.Hour + 40*time.Minute + 90*time.Second).Seconds(), time.Since(begin).Seconds(), 5)
			})
		})
	}
}
