package leases_test

import (
	"context"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/internal/redis"
	"github.com/nextfree/pace/reserve/shared/internal/server"
	"github.com/nextfree/pace/warmup"
)

// A wire is a process's line to a real server, in a bubble: each way takes 100 to 300 us of its time.
type wire struct {
	*redis.Client
	script func(*shared.Script) *shared.Script
	calls  atomic.Int64
	down   atomic.Bool
	deaf   atomic.Bool  // its answers are lost
	moody  atomic.Bool  // every second one is
	trip   atomic.Int64 // nanoseconds that each way takes beside
}

// inBubble is the script with the time that its argument ends with. Its keys live for an hour longer, since the
// server's own time goes on meanwhile.
func inBubble(script *shared.Script) *shared.Script {
	source := strings.NewReplacer(
		"redis.call('TIME')", "{0, unpack('<d', arg, #arg - 7)}",
		"'PX', ttl - ttl % 1", "'PX', 3.6e6 + ttl - ttl % 1",
	).Replace(script.Source)
	sum := sha1.Sum([]byte(source))
	return &shared.Script{Source: source, Hash: hex.EncodeToString(sum[:])}
}

func (w *wire) Eval(ctx context.Context, script *shared.Script, key string, arg []byte) ([]byte, error) {
	number := w.calls.Add(1)
	if w.down.Load() {
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	}
	travel := func() { time.Sleep(time.Duration(w.trip.Load()) + time.Duration(100+rand.IntN(200))*time.Microsecond) }
	travel()
	// The server's clock, when the call is there. It runs whatever the caller does.
	arg = binary.LittleEndian.AppendUint64(slices.Clone(arg), math.Float64bits(float64(time.Now().UnixMicro())))
	answer, err := w.Client.Eval(context.WithoutCancel(ctx), w.script(script), key, arg)
	if w.deaf.Load() || w.moody.Load() && number%2 == 0 {
		<-ctx.Done()
	} else {
		travel()
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return answer, err
}

// A process is one of several that share a limiter.
type process struct {
	*shared.Limiter
	*wire
	mu      sync.Mutex
	granted []time.Duration // since the simulation began
}

// A simulation is processes that share a limiter with leases, on a real server, in a bubble's time.
type simulation struct {
	*testing.T
	begin     time.Time
	processes []*process
	callers   sync.WaitGroup
	stop      atomic.Bool
}

// simulate runs a test with n processes.
func simulate(t *testing.T, n int, policy *reserve.Policy, horizon time.Duration, test func(s *simulation), opts ...shared.Option) {
	addr := server.Start(t).Addr
	var fake *shared.Script
	var once sync.Once
	synctest.Test(t, func(t *testing.T) {
		s := &simulation{T: t, begin: time.Now()}
		for range n {
			w := &wire{Client: &redis.Client{Addr: addr}, script: func(script *shared.Script) *shared.Script {
				once.Do(func() { fake = inBubble(script) })
				return fake
			}}
			defer w.Client.Close()
			// A busy machine does not reach the timeout.
			all := append([]shared.Option{shared.WithTimeout(5 * time.Second), shared.WithLease(horizon)}, opts...)
			l, err := shared.New(w, "leased", policy, all...)
			require.NoError(t, err)
			s.processes = append(s.processes, &process{Limiter: l, wire: w})
		}
		defer func() {
			s.stop.Store(true)
			s.callers.Wait()
			time.Sleep(5 * time.Second) // what is left goes back
		}()
		test(s)
	})
}

// long reports whether the long tests run.
func long() bool { return os.Getenv("PACE_QUEUES") != "" }

func (p *process) note(s *simulation, n int) {
	at := time.Since(s.begin)
	p.mu.Lock()
	defer p.mu.Unlock()
	for range n {
		p.granted = append(p.granted, at)
	}
}

// acquire has callers of a process acquire n permits each, again and again.
func (s *simulation) acquire(p *process, callers, n int) {
	for range callers {
		s.callers.Go(func() {
			for !s.stop.Load() {
				if _, err := p.Acquire(context.Background(), n); err != nil {
					s.Error(err)
					return
				}
				p.note(s, n)
			}
		})
	}
}

// all returns when permits were granted, in order.
func (s *simulation) all() (times []time.Duration) {
	for _, p := range s.processes {
		p.mu.Lock()
		times = append(times, p.granted...)
		p.mu.Unlock()
	}
	slices.Sort(times)
	return times
}

// within returns how many were granted in a window.
func within(times []time.Duration, from, to time.Duration) int {
	i, _ := slices.BinarySearch(times, from)
	j, _ := slices.BinarySearch(times, to)
	return j - i
}

// excess returns by how much the grants exceed capacity + rate * t in the worst stretch.
func excess(times []time.Duration, rate, capacity float64) (most float64) {
	lowest := 0.0
	for i, at := range times {
		fluid := float64(i) - rate*at.Seconds()
		lowest = min(lowest, fluid)
		if i == 0 {
			lowest = fluid
		}
		most = max(most, fluid+1-lowest)
	}
	return most - capacity
}

// Processes of unequal demand, with more callers than there are permits: every 100 ms has the
// rate's, and each process its share.
func TestLeasesKeepTheRate(t *testing.T) {
	const rate = 20_000
	for _, horizon := range []time.Duration{100 * time.Millisecond, 20 * time.Millisecond, time.Second} {
		if horizon != 100*time.Millisecond && !long() {
			continue
		}
		simulate(t, 4, reserve.Must(pace.Bursty(rate, pace.WithBurst(0))), horizon, func(s *simulation) {
			callers := []int{4, 8, 16, 32}
			for i, p := range s.processes {
				s.acquire(p, callers[i], 1)
			}
			warm, length := 500*time.Millisecond, 3*time.Second
			if horizon == time.Second { // a lease takes a while
				warm, length = 3*time.Second, 9*time.Second
			}
			time.Sleep(warm + length)
			s.stop.Store(true)
			s.callers.Wait()
			times := s.all()
			for from := warm; from < warm+length; from += 100 * time.Millisecond {
				require.InEpsilon(s, rate/10, within(times, from, from+100*time.Millisecond), 0.01)
			}
			require.LessOrEqual(s, excess(times, rate, 1), 5.0)
			for i, p := range s.processes {
				share := rate * length.Seconds() * float64(callers[i]) / 60
				n := within(p.granted, warm, warm+length)
				s.Logf("horizon %v, %d callers: %d granted, %.3f of its share, %d calls", horizon, callers[i], n, float64(n)/share, p.calls.Load())
				// With leases of a second there are few, and their sizes vary.
				require.InEpsilon(s, share, n, 0.12+0.13*horizon.Seconds())
				require.Less(s, p.calls.Load(), int64(n)/2)
			}
		})
	}
}

// Processes with all kinds of policies, that use less than the rate or come and go: never more than
// what is stored, the rate, and what they use in a horizon. Below the rate nobody waits for long.
func TestLeasesOfFewCallers(t *testing.T) {
	const rate, horizon = 2000.0, 100 * time.Millisecond
	for name, policy := range map[string]*reserve.Policy{
		"bursty":  reserve.Must(pace.Bursty(rate, pace.WithCapacity(500))),
		"upfront": reserve.Must(pace.TokenBucket(rate, 500)),
		"warm-up": reserve.Must(warmup.Policy(rate, 100*time.Millisecond)),
	} {
		simulate(t, 3, policy, horizon, func(s *simulation) {
			var waited, most time.Duration
			var mu sync.Mutex
			for i, p := range s.processes {
				for g := range 4 {
					s.callers.Go(func() {
						random := rand.New(rand.NewPCG(uint64(i), uint64(g)))
						for !s.stop.Load() {
							time.Sleep(time.Duration(random.ExpFloat64() * float64(10*time.Millisecond)))
							w, err := p.Acquire(context.Background(), 1)
							if err != nil {
								s.Error(err)
							}
							p.note(s, 1)
							mu.Lock()
							waited, most = waited+w, max(most, w)
							mu.Unlock()
						}
					})
				}
			}
			time.Sleep(5 * time.Second)
			times := s.all()
			over := excess(times, rate, 501)
			calls := int64(0)
			for _, p := range s.processes {
				calls += p.calls.Load()
			}
			mu.Lock()
			defer mu.Unlock()
			s.Logf("%s: %d granted, %.1f over, %v waited on average, %v at most, %d calls", name, len(times), over, waited/time.Duration(len(times)), most, calls)
			require.LessOrEqual(s, over, 1200*horizon.Seconds())
			require.Less(s, most, horizon)
			require.Less(s, calls, int64(len(times)/5))
			require.InEpsilon(s, 5*1200, len(times), 0.1)
		})
	}
}

// A process that asks for little asks Redis each time, and one that asks for nothing does not ask;
// what it held goes back.
func TestLeasesOfTheIdle(t *testing.T) {
	simulate(t, 2, reserve.Must(pace.Bursty(1000)), 100*time.Millisecond, func(s *simulation) {
		p, other := s.processes[0], s.processes[1]
		for range 20 { // 50/s
			ok, err := p.TryAcquire(s.Context(), 1)
			require.NoError(s, err)
			require.True(s, ok)
			time.Sleep(20 * time.Millisecond)
		}
		require.Equal(s, int64(21), p.calls.Load(), "one for the time")
		for range 500 { // 500/s
			_, err := p.Acquire(s.Context(), 1)
			require.NoError(s, err)
			time.Sleep(2 * time.Millisecond)
		}
		calls := p.calls.Load()
		require.Less(s, calls, int64(60))
		before, err := other.Stored(s.Context())
		require.NoError(s, err)
		here, err := p.Stored(s.Context())
		require.NoError(s, err)
		require.Greater(s, here, before+15, "it counts what it holds")
		time.Sleep(time.Second)
		require.LessOrEqual(s, p.calls.Load(), calls+5)
		calls = p.calls.Load()
		after, err := other.Stored(s.Context())
		require.NoError(s, err)
		require.InDelta(s, 1000, after, 1e-6)
		time.Sleep(time.Minute)
		require.Equal(s, calls, p.calls.Load())
		here, err = p.Stored(s.Context())
		require.NoError(s, err)
		require.InDelta(s, 1000, here, 1e-6, "it holds nothing")
	})
}

// While the store is not full, every permit that a process bought and did not use comes back.
func TestLeasesAreSettled(t *testing.T) {
	simulate(t, 2, reserve.Must(pace.Bursty(200, pace.WithCapacity(1e6))), time.Second, func(s *simulation) {
		p, other := s.processes[0], s.processes[1]
		begin := time.Now()
		used := 0
		var kept reserve.Reservation
		for i := range 1000 {
			if i == 500 {
				var err error
				kept, err = p.Reserve(s.Context(), 100)
				require.NoError(s, err)
			}
			ok, err := p.TryAcquire(s.Context(), 1)
			require.NoError(s, err)
			require.True(s, ok)
			used++
			time.Sleep(time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		missing := func() float64 {
			stored, err := other.Stored(s.Context())
			require.NoError(s, err)
			return 1e6 - stored
		}
		require.InDelta(s, float64(used+100)-200*time.Since(begin).Seconds(), missing(), 2)
		before := missing()
		kept.Settle(40) // its lease is over, so Redis is told
		kept.Cancel()   // does nothing
		require.InDelta(s, before-60, missing(), 2)
		require.Greater(s, before, 400.0)
	})
}

// A process dies with a lease in hand: the others go on, and get all that it does not use any more.
func TestLeaseOfADeadProcess(t *testing.T) {
	const rate = 10_000
	simulate(t, 4, reserve.Must(pace.Bursty(rate, pace.WithBurst(0))), 100*time.Millisecond, func(s *simulation) {
		var dead atomic.Bool
		for i, p := range s.processes {
			if i > 0 {
				s.acquire(p, 10, 1)
				continue
			}
			for range 10 {
				s.callers.Go(func() {
					for !dead.Load() {
						if _, err := p.Acquire(context.Background(), 1); err == nil && !dead.Load() {
							p.note(s, 1)
						}
					}
				})
			}
		}
		time.Sleep(time.Second)
		dead.Store(true)
		s.processes[0].down.Store(true) // nothing comes back from it
		time.Sleep(2 * time.Second)
		times := s.all()
		require.LessOrEqual(s, excess(times, rate, 1), 5.0)
		missing := rate*1.0 - float64(within(times, 800*time.Millisecond, 1800*time.Millisecond))
		s.Logf("%.0f permits were lost", missing)
		require.Less(s, missing, rate*0.1)
		for from := 1300 * time.Millisecond; from < 3*time.Second; from += 100 * time.Millisecond {
			require.InEpsilon(s, rate/10, within(times, from, from+100*time.Millisecond), 0.01)
		}
	})
}

// One process pauses the limiter, resumes it, and changes the rate.
func TestLeasesInAPause(t *testing.T) {
	const rate = 10_000
	simulate(t, 2, reserve.Must(pace.Bursty(rate, pace.WithBurst(0))), 20*time.Millisecond, func(s *simulation) {
		for _, p := range s.processes {
			s.acquire(p, 10, 1)
		}
		time.Sleep(time.Second)
		require.NoError(s, s.processes[0].PauseUntil(s.Context(), time.Now().Add(time.Second)))
		time.Sleep(1500 * time.Millisecond)
		times := s.all()
		require.Less(s, within(times, time.Second+80*time.Millisecond, 2*time.Second), 1)
		require.InEpsilon(s, rate*4/10, within(times, 2100*time.Millisecond, 2500*time.Millisecond), 0.02)

		// Now both: their leases at the old rate are no more.
		for _, p := range s.processes {
			require.NoError(s, p.SetRate(s.Context(), rate/2))
		}
		time.Sleep(time.Second)
		require.InEpsilon(s, rate/2*8/10, within(s.all(), 2700*time.Millisecond, 3500*time.Millisecond), 0.02)
	})
}

// Permits of reservations that are given up are the process's to hand out again.
func TestLeasesComeBackToTheHand(t *testing.T) {
	simulate(t, 1, reserve.Must(pace.Bursty(1000)), time.Second, func(s *simulation) {
		p := s.processes[0]
		for range 100 {
			_, err := p.Acquire(s.Context(), 1)
			require.NoError(s, err)
			time.Sleep(time.Millisecond)
		}
		calls := p.calls.Load()
		for range 2000 {
			r, err := p.Reserve(s.Context(), 10)
			require.NoError(s, err)
			r.Cancel()
			r.Cancel()
		}
		require.LessOrEqual(s, p.calls.Load(), calls+8)
	})
}

// What a process holds goes back before it pauses the limiter.
func TestAPauseOfWhatIsHeld(t *testing.T) {
	simulate(t, 1, reserve.Must(pace.Bursty(1000)), 100*time.Millisecond, func(s *simulation) {
		p := s.processes[0]
		for range 200 { // 500/s
			ok, err := p.TryAcquire(s.Context(), 1)
			require.NoError(s, err)
			require.True(s, ok)
			time.Sleep(2 * time.Millisecond)
		}
		require.NoError(s, p.PauseUntil(s.Context(), time.Now().Add(time.Second)))
		ok, err := p.TryAcquire(s.Context(), 1)
		require.NoError(s, err)
		require.False(s, ok)
		require.NoError(s, p.Resume(s.Context()))
		ok, err = p.TryAcquire(s.Context(), 1)
		require.NoError(s, err)
		require.True(s, ok)
	})
}

// While Redis fails the hand is used up, and then each limiter does what it is to do.
func TestLeasesWithoutRedis(t *testing.T) {
	for name, mode := range map[string]shared.Option{"closed": shared.FailClosed(), "open": shared.FailOpen(), "local": shared.Local(0.5)} {
		simulate(t, 1, reserve.Must(pace.Bursty(1000, pace.WithCapacity(100))), 100*time.Millisecond, func(s *simulation) {
			p := s.processes[0]
			try := func(n int) (granted, failed int) {
				for range n {
					ok, err := p.TryAcquire(s.Context(), 1)
					var unavailable *shared.UnavailableError
					switch {
					case err != nil && errors.As(err, &unavailable):
						failed++
					case ok:
						granted++
					}
					time.Sleep(2 * time.Millisecond)
				}
				return granted, failed
			}
			granted, failed := try(500)
			require.Equal(s, 500, granted+failed)
			require.Zero(s, failed)
			p.down.Store(true)
			begin := time.Now()
			granted, failed = try(500)
			s.Logf("%s: %d granted, %d failed", name, granted, failed)
			require.Less(s, time.Since(begin), 1100*time.Millisecond, "nobody waits for the timeout")
			switch name {
			case "closed":
				require.Greater(s, granted, 10, "what was in the hand")
				require.Less(s, granted, 60)
				require.Equal(s, 500, granted+failed)
			default:
				require.Zero(s, failed)
				require.Greater(s, granted, 450)
			}
			p.down.Store(false)
			time.Sleep(2 * time.Second) // longer than the circuit is open
			granted, failed = try(500)
			require.Equal(s, 500, granted)
			require.Zero(s, failed)
		}, mode)
	}
}

// Callers with too little time are refused at once, as by any limiter, and callers that give up make room.
func TestLeasesOfTheHurried(t *testing.T) {
	const rate = 1000
	simulate(t, 2, reserve.Must(pace.Bursty(rate, pace.WithBurst(0))), 100*time.Millisecond, func(s *simulation) {
		p := s.processes[0]
		s.acquire(p, 50, 1)
		time.Sleep(time.Second)
		begin := time.Now()
		_, err := p.ReserveWithin(s.Context(), 1, 5*time.Millisecond)
		var wait *reserve.WaitError
		require.ErrorAs(s, err, &wait)
		require.Greater(s, wait.Wait, 5*time.Millisecond)
		require.Less(s, time.Since(begin), 5*time.Millisecond)
		ctx, cancel := context.WithTimeout(s.Context(), 10*time.Millisecond)
		_, err = p.Acquire(ctx, 1)
		cancel()
		require.ErrorIs(s, err, context.DeadlineExceeded)
		ok, err := p.TryAcquire(s.Context(), 1)
		require.NoError(s, err)
		require.False(s, ok)

		// 40 reservations are given up: who is behind them goes earlier.
		var all [40]reserve.Reservation
		for i := range all {
			all[i], err = p.Reserve(s.Context(), 1)
			require.NoError(s, err)
		}
		last, err := p.Reserve(s.Context(), 1)
		require.NoError(s, err)
		before := last.Delay()
		for i := range all {
			all[i].Cancel()
			all[i].Cancel()
			require.ErrorIs(s, all[i].Wait(s.Context()), reserve.ErrCancelled)
		}
		require.Less(s, last.Delay(), before-30*time.Millisecond)
		last.Settle(1)
		next, err := p.NextFree(s.Context())
		require.NoError(s, err)
		require.Greater(s, time.Until(next), time.Duration(0))
	})
}

func TestLeaseOptions(t *testing.T) {
	policy := reserve.Must(pace.Bursty(10))
	for _, d := range []time.Duration{0, 19 * time.Millisecond, 1001 * time.Millisecond, -1} {
		_, err := shared.New(&redis.Client{}, "lease", policy, shared.WithLease(d))
		var wrong *reserve.ValueError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, "WithLease", wrong.Name)
	}
	_, err := shared.NewKeyed(&redis.Client{}, policy, shared.WithLease(time.Second))
	require.EqualError(t, err, "shared: WithLease does not apply to limiters of many keys")
}

// Processes whose callers only try share the rate by what they try for, and use all of it.
func TestLeasesOfTriers(t *testing.T) {
	for i, c := range []struct {
		rate    float64
		times   float64 // as many tries as permits
		horizon time.Duration
	}{
		{1000, 4, 100 * time.Millisecond}, {20_000, 2, 100 * time.Millisecond}, {1000, 2, 100 * time.Millisecond},
		{1000, 1.2, 100 * time.Millisecond}, {1000, 4, 20 * time.Millisecond}, {1000, 4, time.Second},
	} {
		if i > 1 && !long() {
			break
		}
		simulate(t, 4, reserve.Must(pace.Bursty(c.rate)), c.horizon, func(s *simulation) {
			warm, length := 8*time.Second, 10*time.Second // at 1.2 times the rate the store is empty after 5 s
			if c.rate == 20_000 && !long() {
				warm, length = 2*time.Second, 4*time.Second
			}
			for i, p := range s.processes {
				s.callers.Go(func() {
					random := rand.New(rand.NewPCG(7, uint64(i)))
					next := time.Now()
					for !s.stop.Load() {
						next = next.Add(time.Duration(random.ExpFloat64() * 4e9 / (c.rate * c.times)))
						time.Sleep(time.Until(next))
						ok, err := p.TryAcquire(context.Background(), 1)
						if err != nil {
							s.Error(err)
						}
						if ok {
							p.note(s, 1)
						}
					}
				})
			}
			time.Sleep(warm + length)
			s.stop.Store(true)
			s.callers.Wait()
			var each []int
			calls := int64(0)
			for _, p := range s.processes {
				calls += p.calls.Load()
				each = append(each, within(p.granted, warm, warm+length))
			}
			all := s.all()
			least, most := math.MaxInt, 0
			for from := warm; from < warm+length; from += 100 * time.Millisecond {
				n := within(all, from, from+100*time.Millisecond)
				least, most = min(least, n), max(most, n)
			}
			used := float64(within(all, warm, warm+length)) / (c.rate * length.Seconds())
			s.Logf("%v/s, horizon %v, tries at %.1f times the rate: granted %v, %.4f of the rate; 100 ms hold %d to %d; %.0f calls/s",
				c.rate, c.horizon, c.times, each, used, least, most, float64(calls)/(warm+length).Seconds())
			require.GreaterOrEqual(s, used, 0.99)
			mean := used * c.rate * length.Seconds() / 4
			for _, n := range each {
				require.InEpsilon(s, mean, n, 0.05)
			}
			if c.rate == 20_000 {
				require.InEpsilon(s, c.rate/10, least, 0.025)
				require.InEpsilon(s, c.rate/10, most, 0.025)
			}
		})
	}
}
