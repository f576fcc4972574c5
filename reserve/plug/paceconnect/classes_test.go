package paceconnect_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/pacetest"
)

// The class of a call, and of a stream, is that of its context.
func TestClassesByContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := pacetest.Client(t, (&service{}).handler())
		option := paced(t, evenly(1), outbound.WithClasses(nil, fair.Class{Name: "people", Priority: 1}, fair.Class{Name: "batch"}))
		calls, streams := client(base, unary, option), client(base, upload, option)
		begin := time.Now()
		var all sync.WaitGroup
		var mu sync.Mutex
		var done []string
		ask := func(class string, f func(context.Context) error) {
			all.Go(func() {
				require.NoError(t, f(fair.With(t.Context(), class, "")))
				mu.Lock()
				defer mu.Unlock()
				done = append(done, fmt.Sprint(class, " ", time.Since(begin).Round(time.Millisecond)))
			})
			synctest.Wait()
		}
		one := func(ctx context.Context) error { return call(ctx, calls) }
		stream := func(ctx context.Context) error {
			s := streams.CallClientStream(ctx)
			if err := s.Send(&text{}); err != nil {
				return err
			}
			_, err := s.CloseAndReceive()
			return err
		}
		ask("batch", one)
		ask("batch", one)
		ask("batch", stream)
		ask("people", stream)
		ask("people", one)
		all.Wait()
		require.Equal(t, []string{"batch 0s", "people 1s", "people 2s", "batch 3s", "batch 4s"}, done)
	})
}
