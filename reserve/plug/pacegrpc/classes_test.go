package pacegrpc_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/outbound"
)

// The class of a call is that of its context.
func TestClassesByContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{unary: func(context.Context, int) error { return nil }}
		limiter := reserve.Must(pace.NewBursty(1, pace.WithBurst(0)))
		client := connect(t, s, nil, paced(t, limiter, outbound.WithClasses(nil,
			fair.Class{Name: "people", Priority: 1}, fair.Class{Name: "batch"}))...)
		begin := time.Now()
		var all sync.WaitGroup
		var mu sync.Mutex
		var done []string
		call := func(class string) {
			all.Go(func() {
				_, err := client.UnaryCall(fair.With(t.Context(), class, ""), &testpb.SimpleRequest{})
				require.NoError(t, err)
				mu.Lock()
				defer mu.Unlock()
				done = append(done, fmt.Sprint(class, " ", time.Since(begin).Round(time.Millisecond)))
			})
			synctest.Wait()
		}
		call("batch")
		call("batch")
		call("batch")
		call("people")
		all.Wait()
		require.Equal(t, []string{"batch 0s", "people 1s", "batch 2s", "batch 3s"}, done)
	})
}
