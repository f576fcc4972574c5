package shared_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
)

// A store that is slower than a caller has time bounds all the same what a process grants alone: by its last answer,
// also where the process still owes for its grants.
func TestTheAnswerOfASlowStoreCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, policy := shared.Memory(), reserve.Must(pace.Bursty(100, pace.WithCapacity(10)))
		slow := &distant{Store: memory, there: 100 * time.Millisecond, back: 100 * time.Millisecond}
		l := reserve.Must(shared.NewIn(slow, "api", policy, shared.Local(.01)))
		other := reserve.Must(shared.NewIn(memory, "api", policy))
		hurried := func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			return l.Wait(ctx) == nil
		}
		take := func(n int) {
			_, err := other.Reserve(t.Context(), n)
			require.NoError(t, err)
			_, err = l.Stored(t.Context())
			require.NoError(t, err)
		}
		take(1)
		require.True(t, hurried())
		require.False(t, hurried(), "its share is a permit a second")
		take(410)
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 3 * time.Millisecond)
				for begin := time.Now(); time.Since(begin) < 3*time.Second; {
					require.False(t, hurried(), "nothing is free for four seconds")
				}
			})
		}
		all.Wait()
		time.Sleep(time.Second)
		require.True(t, hurried())
		time.Sleep(10 * time.Second)
	})
}
