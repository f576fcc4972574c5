package file_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/file"
)

// A wall is the clock of a machine that a test sets.
type wall struct {
	shared.Store
	now *time.Time
}

func (w wall) Update(
	ctx context.Context, key string, f func(time.Time, []byte) ([]byte, time.Duration, error),
) error {
	return w.Store.Update(ctx, key, func(_ time.Time, old []byte) ([]byte, time.Duration, error) { return f(*w.now, old) })
}

// A program is started each minute and makes ten calls each time, of 5,000 a day in Los Angeles: over a reboot, a clock
// that is set back an hour, and both changes of summer time, it makes exactly 5,000 in each day.
func TestAProgramThatIsStartedEachMinute(t *testing.T) {
	zone, err := time.LoadLocation("America/Los_Angeles")
	require.NoError(t, err)
	policy := reserve.Must(calendar.Policy(5000, calendar.Daily(zone, 0)))
	for name, first := range map[string]time.Time{
		"to summer time":   time.Date(2026, 3, 7, 0, 0, 0, 0, zone),
		"from summer time": time.Date(2026, 10, 31, 0, 0, 0, 0, zone),
	} {
		if name == "to summer time" && os.Getenv("PACE_QUEUES") == "" {
			continue // it takes five seconds
		}
		t.Run(name, func(t *testing.T) {
			dir, now := t.TempDir(), first
			granted, starts := map[string]int{}, map[string]int{}
			program := func() {
				store, err := file.Open(dir)
				require.NoError(t, err)
				l, err := shared.NewIn(wall{store, &now}, "api", policy, shared.WithTimeout(time.Minute))
				require.NoError(t, err)
				day := now.In(zone).Format(time.DateOnly)
				starts[day]++
				for range 10 {
					ok, err := l.TryAcquire(t.Context(), 1)
					require.NoError(t, err)
					if ok {
						granted[day]++
					}
				}
			}
			back := first.AddDate(0, 0, 2).Add(6 * time.Hour)
			for last := first.AddDate(0, 0, 3); now.Before(last); now = now.Add(time.Minute) {
				if now.Equal(first.Add(5 * time.Hour)) { // a reboot: nothing runs for three hours
					now = now.Add(3 * time.Hour)
				}
				if now.Equal(back) { // once
					now, back = now.Add(-time.Hour), time.Time{}
				}
				program()
			}
			require.Len(t, granted, 3)
			for day, n := range granted {
				require.Equal(t, 5000, n, day)
			}
			t.Log("started so many times a day: ", starts)
		})
	}
}
