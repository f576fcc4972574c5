package wake

import (
	"context"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// closeAll ends a test's own pool, which no program ever needs to.
func (p *alarms) closeAll(t *testing.T) {
	for _, a := range p.idle {
		require.NoError(t, a.file.Close())
	}
}

func descriptors(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

func requireSlept(t *testing.T, p *alarms, d time.Duration) {
	t.Helper()
	start := time.Now()
	p.sleep(t.Context(), start, d, new(Sleeper).fresh())
	require.GreaterOrEqual(t, time.Since(start), d)
}

func TestAlarmsAreReused(t *testing.T) {
	p := newAlarms(4, newAlarm)
	defer p.closeAll(t)
	before := descriptors(t)
	for range 50 {
		requireSlept(t, p, 50*time.Microsecond)
	}
	require.Equal(t, before+1, descriptors(t), "one sleeper at a time needs one descriptor")
	require.Len(t, p.idle, 1)
}

func TestAlarmSleepsAlone(t *testing.T) {
	a, err := newAlarm()
	require.NoError(t, err)
	defer a.file.Close()
	for _, d := range []time.Duration{1, time.Microsecond, 30 * time.Microsecond, 100 * time.Microsecond, 3 * time.Millisecond} {
		start := time.Now()
		a.sleep(start, d, nil)
		require.GreaterOrEqual(t, time.Since(start), d)
	}
}

// The two things that wake: each alone must do.
func TestEitherTimerWakes(t *testing.T) {
	a, err := newAlarm()
	require.NoError(t, err)
	defer a.file.Close()
	const d = time.Millisecond

	start := time.Now()
	a.start, a.d = start, d
	require.NoError(t, a.conn.Read(a.step), "the descriptor wakes, no deadline is set")
	require.GreaterOrEqual(t, time.Since(start), d)

	a.step = func(uintptr) bool { return false } // the descriptor is never set: the deadline wakes
	start = time.Now()
	a.sleep(start, d, nil)
	require.GreaterOrEqual(t, time.Since(start), d)
}

// However a Wake meets the sleeper: before it, or while it sets its timers, or sleeps. One that
// is missed hangs the test.
func TestWakeInterruptsTheLastStretch(t *testing.T) {
	a, err := newAlarm()
	require.NoError(t, err)
	defer a.file.Close()
	s := new(Sleeper)
	for range 2_000 {
		s.Reset()
		s.last.use(a)
		var sleeper sync.WaitGroup
		sleeper.Go(func() { a.sleep(time.Now(), time.Hour, s.woken) })
		s.Wake()
		sleeper.Wait()
		s.last.use(nil)
	}
	// One that sleeps no more does not wake the next user of the alarm.
	start := time.Now()
	require.NoError(t, a.file.SetReadDeadline(start.Add(time.Millisecond)))
	s.Wake()
	_ = a.conn.Read(func(uintptr) bool { return false }) // until the deadline
	require.GreaterOrEqual(t, time.Since(start), time.Millisecond)
}

func TestFullPool(t *testing.T) {
	p := newAlarms(2, newAlarm)
	defer p.closeAll(t)
	first, second := p.get(time.Now()), p.get(time.Now())
	require.NotNil(t, first)
	require.NotNil(t, second)
	require.Nil(t, p.get(time.Now()))

	before := descriptors(t)
	requireSlept(t, p, 100*time.Microsecond)
	requireSlept(t, p, 2*time.Millisecond)
	require.Equal(t, before, descriptors(t), "a plain timer, then")

	p.put(first)
	p.put(second)
	require.Same(t, second, p.get(time.Now()))
	p.put(second)
}

func TestFullPoolIsStillCancelled(t *testing.T) {
	p := newAlarms(0, newAlarm)
	ctx, cancel := context.WithCancel(context.Background())
	var sleeper sync.WaitGroup
	sleeper.Go(func() { p.sleep(ctx, time.Now(), time.Hour, new(Sleeper).fresh()) })
	cancel()
	sleeper.Wait()
}

func TestCancelledBeforeItsLastStretchTakesNoAlarm(t *testing.T) {
	p := newAlarms(1, func() (*alarm, error) {
		t.Error("asked for an alarm")
		return nil, syscall.EMFILE
	})
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	p.sleep(cancelled, time.Now(), lastStretch, new(Sleeper).fresh())
	p.sleep(context.Background(), time.Now(), lastStretch, woken())
}

func TestStormOnASmallPool(t *testing.T) {
	p := newAlarms(8, newAlarm)
	defer p.closeAll(t)
	due := time.Now().Add(10 * time.Millisecond)
	var all sync.WaitGroup
	for range 2_000 {
		all.Go(func() {
			now := time.Now()
			p.sleep(context.Background(), now, due.Sub(now), new(Sleeper).fresh())
			if left := time.Until(due); left > 0 {
				t.Errorf("woken %v before its time", left)
			}
		})
	}
	all.Wait()
	require.Equal(t, 8, p.left+len(p.idle), "every alarm is back")
}

func TestRefusedDescriptorIsAskedForAgainAfterASecond(t *testing.T) {
	for _, refusal := range []error{syscall.EMFILE, syscall.ENFILE, syscall.EPERM, syscall.ENOSYS} {
		t.Run(refusal.Error(), func(t *testing.T) {
			asked, refused := 0, true
			p := newAlarms(1, func() (*alarm, error) {
				asked++
				if refused {
					return nil, refusal
				}
				return newAlarm()
			})
			defer p.closeAll(t)
			now := time.Now()
			for range 1000 {
				require.Nil(t, p.get(now))
			}
			require.Nil(t, p.get(now.Add(retryAfter-1)))
			require.Equal(t, 1, asked)
			require.Nil(t, p.get(now.Add(retryAfter)))
			require.Equal(t, 2, asked)

			requireSlept(t, p, 100*time.Microsecond)
			requireSlept(t, p, 2*time.Millisecond)

			refused = false
			a := p.get(now.Add(time.Hour))
			require.NotNil(t, a, "a refusal takes no place in the pool")
			p.put(a)
		})
	}
}

// The real refusal: a process that may open no more files.
func TestOutOfDescriptors(t *testing.T) {
	var old syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old))
	none := old
	none.Cur = 1 // 0 to 2 are open, so there is nothing under it
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
	defer func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old)) }()

	_, err := newAlarm()
	require.ErrorIs(t, err, syscall.EMFILE)
	p := newAlarms(4, newAlarm)
	requireSlept(t, p, 100*time.Microsecond)
	requireSlept(t, p, 2*time.Millisecond)
	require.Equal(t, 4, p.left)
}

func TestCancelledWaitsLeaveNoDescriptor(t *testing.T) {
	cancelWaits(1_000) // opens what it may
	before := descriptors(t)
	require.LessOrEqual(t, len(sharedAlarms.idle), maxAlarms)
	open := len(sharedAlarms.idle)

	cancelWaits(10_000)
	require.Equal(t, maxAlarms, sharedAlarms.left+len(sharedAlarms.idle), "every alarm is back")
	require.Equal(t, before+len(sharedAlarms.idle)-open, descriptors(t), "none but the pool's")
}

func TestAlarmAllocatesNothing(t *testing.T) {
	s := new(Sleeper).fresh()
	for _, d := range []time.Duration{5 * time.Microsecond, 100 * time.Microsecond} {
		require.Zero(t, testing.AllocsPerRun(100, func() { s.Sleep(context.Background(), d) }), d)
	}
}

// The last stretch is slept on an alarm: it was set to this sleep, and the time had
// come when it let go. And what can't be measured without real time: a cancelled
// context is not seen during the last stretch, and to look at the clock all the while burns CPU.
func TestLastStretchIsSleptOnAnAlarm(t *testing.T) {
	require.Less(t, lastStretch, 2*time.Millisecond, "the promise for a context that ends")
	require.LessOrEqual(t, shortest, 10*time.Microsecond, "what parking costs")

	slept := 0
	p := newAlarms(1, func() (*alarm, error) {
		a, err := newAlarm()
		if err == nil {
			step := a.step
			a.step = func(fd uintptr) bool { slept++; return step(fd) }
		}
		return a, err
	})
	p.sleep(t.Context(), time.Now(), 300*time.Microsecond, new(Sleeper).fresh())
	require.GreaterOrEqual(t, slept, 1, "the alarm was waited for")
	require.Len(t, p.idle, 1)
	require.Equal(t, 300*time.Microsecond, p.idle[0].d)
	p.sleep(t.Context(), time.Now(), lastStretch+time.Millisecond, new(Sleeper).fresh())
	require.GreaterOrEqual(t, slept, 2, "after the timer, too")
	require.NoError(t, p.idle[0].file.Close())
}
