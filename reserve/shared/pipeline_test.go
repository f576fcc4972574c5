package shared

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared/internal/pipeline"
)

// A fakePipe grants everything, 10 ms after it is asked, and remembers which keys went together.
type fakePipe struct {
	mu     sync.Mutex
	pipes  [][]string
	times  []time.Time // when they were sent
	flying int
	slow   time.Duration
	most   int
	fail   error
	jump   bool // panic in a pipeline
}

func (p *fakePipe) begin(keys ...string) {
	p.mu.Lock()
	p.pipes, p.times = append(p.pipes, keys), append(p.times, time.Now())
	p.flying++
	p.most = max(p.most, p.flying)
	p.mu.Unlock()
	time.Sleep(10*time.Millisecond + p.slow)
	p.mu.Lock()
	p.flying--
	p.mu.Unlock()
}

func (p *fakePipe) answer(arg []byte) ([]byte, error) {
	answer := doubles(nil, float64(time.Now().UnixMicro()), 0, 0, 0, 0, 0)
	requests, _, _ := asked(arg)
	for range requests {
		answer = doubles(answer, 0)
	}
	return answer, p.fail
}

func (p *fakePipe) Eval(_ context.Context, _ *Script, key string, arg []byte) ([]byte, error) {
	p.begin(key)
	return p.answer(arg)
}

func (p *fakePipe) EvalEach(_ context.Context, _, _ string, calls []*pipeline.Call) {
	var keys []string
	for _, c := range calls {
		keys = append(keys, c.Key)
	}
	p.begin(keys...)
	if p.jump {
		panic("jump")
	}
	for _, c := range calls {
		c.Answer, c.Err = p.answer(c.Arg)
	}
}

// many has n callers ask for a key each, one after the other, and returns what they got.
func many(t *testing.T, k *Keyed, n int) (granted, failed, panicked int) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for i := range n {
		all.Go(func() {
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				if recover() != nil {
					panicked++
				}
			}()
			_, err := k.Acquire(context.Background(), fmt.Sprint(i), 1)
			var unavailable *UnavailableError
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				granted++
			case errors.As(err, &unavailable):
				failed++
			default:
				t.Error(err)
			}
		})
		synctest.Wait()
	}
	all.Wait()
	return granted, failed, panicked
}

func piped(t *testing.T, test func(t *testing.T, k *Keyed, p *fakePipe)) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakePipe{}
		k, err := NewKeyed(p, reserve.Must(pace.Bursty(10)), WithTimeout(50*time.Millisecond))
		require.NoError(t, err)
		_, err = k.Acquire(t.Context(), "first", 1) // now the server's clock is known
		require.NoError(t, err)
		p.pipes, p.times, p.most = nil, nil, 0
		defer time.Sleep(time.Second)
		test(t, k, p)
		time.Sleep(time.Second) // until no call is under way
		synctest.Wait()
		g := &k.nodes.single.keeper.(*scriptKeeper).many
		require.Zero(t, g.calls)
		require.Empty(t, g.waiting)
	})
}

// Calls for many keys that wait at the same moment go together, first come, first served, and at
// most so many.
func TestPipes(t *testing.T) {
	piped(t, func(t *testing.T, k *Keyed, p *fakePipe) {
		begin := time.Now()
		granted, _, _ := many(t, k, 600)
		require.Equal(t, 600, granted)
		require.Equal(t, maxCalls, p.most)
		waves := map[time.Duration]map[string]bool{}
		for i, keys := range p.pipes {
			require.LessOrEqual(t, len(keys), maxList)
			at := p.times[i].Sub(begin)
			if waves[at] == nil {
				waves[at] = map[string]bool{}
			}
			for _, key := range keys {
				waves[at][key] = true
			}
		}
		// Two pipes are back at the same moment, so that the next two share the keys as it happens.
		require.Len(t, waves, 3)
		require.Len(t, waves[0], 2)
		require.Len(t, waves[10*time.Millisecond], 2*maxList)
		for i := range 600 {
			wave := 10 * time.Millisecond
			switch {
			case i < 2:
				wave = 0
			case i >= 2+2*maxList:
				wave = 20 * time.Millisecond
			}
			require.True(t, waves[wave][k.Stored(fmt.Sprint(i))], i)
		}
		require.Equal(t, 30*time.Millisecond, time.Since(begin))
	})
}

// A pipe that fails fails for all in it; one whose client panics leaves nobody waiting.
func TestPipesFail(t *testing.T) {
	piped(t, func(t *testing.T, k *Keyed, p *fakePipe) {
		p.fail = errors.New("down")
		granted, failed, _ := many(t, k, 20)
		require.Zero(t, granted)
		require.Equal(t, 20, failed)
		time.Sleep(2 * time.Second)
		p.fail = nil
		_, err := k.Acquire(t.Context(), "again", 1)
		require.NoError(t, err)

		p.jump = true
		granted, failed, panicked := many(t, k, 20)
		require.Equal(t, 20, granted+failed+panicked)
		require.LessOrEqual(t, granted, maxCalls)
		require.GreaterOrEqual(t, panicked, 1)
		require.LessOrEqual(t, panicked, maxCalls, "one caller of each list")
		p.jump = false
		time.Sleep(2 * time.Second)
		_, err = k.Acquire(t.Context(), "and again", 1)
		require.NoError(t, err)
		granted, _, _ = many(t, k, 20)
		require.Equal(t, 20, granted)
	})
}

// Callers with most of the timeout left are gathered like others, and leave at their own time.
func TestShortDeadlinesAreGathered(t *testing.T) {
	piped(t, func(t *testing.T, k *Keyed, p *fakePipe) {
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), k.timeout*3/4)
				defer cancel()
				begin := time.Now()
				_, _ = k.Acquire(ctx, fmt.Sprint(i), 1)
				if took := time.Since(begin); took > k.timeout*3/4 {
					t.Error(took)
				}
			})
		}
		all.Wait()
		require.LessOrEqual(t, len(p.pipes), 4, "two calls alone, and a batch behind each")
	})
}

// Those who wait for a pipe longer than the timeout leave, and hold nobody up.
func TestPipesAreLeft(t *testing.T) {
	piped(t, func(t *testing.T, k *Keyed, p *fakePipe) {
		p.slow = 200 * time.Millisecond
		begin := time.Now()
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				_, err := k.Acquire(context.Background(), fmt.Sprint(i), 1)
				if left := time.Since(begin) == 50*time.Millisecond; left != errors.Is(err, context.DeadlineExceeded) {
					t.Error(i, err, time.Since(begin))
				}
			})
		}
		all.Wait()
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, p.pipes, maxCalls)
	})
}
