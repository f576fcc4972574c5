package window_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
)

// All methods of a reservation may be called at the same time, Begin and End too.
func TestUseAtTheSameTime(t *testing.T) {
	l := reserve.Must(window.New(10, time.Minute))
	r, err := l.Reserve(ctx, 3)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for _, f := range []func(){func() { limit.Begin(&r) }, func() { limit.End(&r) }, func() { r.Settle(2) }} {
		wg.Go(f)
		wg.Go(func() { assert.Equal(t, 3, r.Permits()) })
	}
	wg.Wait()
	require.Equal(t, 8., l.Stored())
}
