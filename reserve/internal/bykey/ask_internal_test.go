package bykey

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/engine"
)

// A caller that has waited for another one's answer does not use it if the key is refreshed between
// the answer and its own turn.
func TestAnAnswerThatIsOldWhenItIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, now := reserve.Must(pace.Bursty(1)), reserve.Must(pace.Bursty(2))
		k := New(Settings[string]{Policy: func(string) (*reserve.Policy, error) { return now, nil }, MaxKeys: 100})
		s, _ := k.shardOf("a")
		a := &ask[string]{key: "a", asking: &k.asking, policy: (*engine.Policy)(before)}
		k.asking.Add(1)
		s.asks = append(s.asks, a)
		var all sync.WaitGroup
		all.Go(func() { k.TryAcquire("a", 1) })
		synctest.Wait() // it waits for a's answer

		s.mu.Lock()
		a.round = s.round
		s.forget(a)
		s.round++ // as Forget does
		s.mu.Unlock()
		all.Wait()
		require.Equal(t, 2.0, k.For("a").(interface{ Rate() float64 }).Rate())
	})
}
