package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/goredis"
)

// What the processes of a measurement do.
const (
	decide   = "decide"   // TryAcquire in a loop, at a rate that is never reached: prints how many decisions it made
	saturate = "saturate" // Acquire in a loop: writes when each permit was granted, at once
)

// leases measures processes that lease: decisions a second at a rate that is never reached, and then, at one that
// is, how evenly and how fairly it is kept, also when one of them is killed.
func leases(addr string, horizon time.Duration, seconds float64) error {
	fmt.Printf("\nWithLease(%v), 4 processes on one key\n", horizon)
	if err := leasedDecisions(addr, horizon, seconds); err != nil {
		return err
	}
	return leasedRates(addr, horizon, 2*seconds)
}

// worker starts a process that shares a rate; with a horizon, it leases.
func worker(addr, what string, horizon time.Duration, rate, goroutines int, seconds float64) (*exec.Cmd, io.Reader, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(self, "-worker", addr, "-does", what, "-lease", horizon.String(), "-rate", strconv.Itoa(rate),
		"-goroutines", strconv.Itoa(goroutines), "-seconds", strconv.FormatFloat(seconds, 'f', -1, 64))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	return cmd, out, cmd.Start()
}

func leasedDecisions(addr string, horizon time.Duration, seconds float64) error {
	c := connect(addr)
	defer c.Close()
	calls, cpu := scripts(c), serverCPU(c)
	var all []*exec.Cmd
	var outputs []io.Reader
	for range 4 {
		cmd, out, err := worker(addr, decide, horizon, unreached, 4, seconds)
		if err != nil {
			return err
		}
		all, outputs = append(all, cmd), append(outputs, out)
	}
	sum := 0.0
	for i, out := range outputs {
		text, err := io.ReadAll(out)
		if err != nil {
			return err
		}
		if err := all[i].Wait(); err != nil {
			return err
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
		if err != nil {
			return err
		}
		sum += n
	}
	calls, cpu = scripts(c)-calls, serverCPU(c)-cpu
	fmt.Printf("  a rate that is never reached: %.2f million grants/s, %.0f calls/s, Redis CPU %.1f ns a grant\n",
		sum/1e6, float64(calls)/seconds, float64(cpu.Nanoseconds())/(sum*seconds))
	return nil
}

// scripts returns how many scripts the server has run.
func scripts(c *redis.Client) int {
	info, err := c.Info(context.Background(), "commandstats").Result()
	if err != nil {
		fatal(err)
	}
	for line := range strings.Lines(info) {
		if text, ok := strings.CutPrefix(line, "cmdstat_evalsha:calls="); ok {
			n, err := strconv.Atoi(text[:strings.IndexByte(text, ',')])
			if err != nil {
				fatal(err)
			}
			return n
		}
	}
	return 0
}

// leasedRates has processes with 8, 16, 24 and 32 callers saturate a rate. The last one is killed in the middle.
func leasedRates(addr string, horizon time.Duration, seconds float64) error {
	callers := []int{8, 16, 24, 32}
	s, err := saturated(addr, horizon, leasedRate, callers, seconds)
	if err != nil {
		return err
	}
	time.Sleep(time.Duration(seconds / 2 * float64(time.Second)))
	killed := time.Now().UnixNano()
	if err := s.all[3].Process.Kill(); err != nil {
		return err
	}
	times, err := s.wait(3)
	if err != nil {
		return err
	}
	begin := times[0] + int64(time.Second/2)
	end := times[len(times)-1] - int64(time.Second/4)
	fmt.Printf("  saturated at %d/s by 8, 16, 24 and 32 callers; the last process is killed in the middle\n", leasedRate)
	windows("before it dies: ", times, begin, killed, 100*time.Millisecond, leasedRate)
	windows("after it died: ", times, killed+int64(horizon), end, 100*time.Millisecond, leasedRate)
	fmt.Printf("    lost when it died: %.0f permits; over capacity + rate * t: at most %.0f permits\n",
		float64(leasedRate)*0.5-float64(count(times, killed-int64(time.Second/10), killed+int64(4*time.Second/10))), excess(times, leasedRate))
	sum, each := 0, 0
	for i, n := range callers {
		sum, each = sum+count(s.grants[i], begin, killed), each+n
	}
	fmt.Print("    of its fair share each process got")
	for i, n := range callers {
		fmt.Printf(" %.3f", float64(count(s.grants[i], begin, killed))*float64(each)/float64(n)/float64(sum))
	}
	fmt.Println()
	return nil
}

// count returns how many of the times are in a window.
func count(times []int64, from, to int64) int {
	i, _ := slices.BinarySearch(times, from)
	j, _ := slices.BinarySearch(times, to)
	return j - i
}

// windows says how evenly a rate is kept.
func windows(when string, times []int64, begin, end int64, window time.Duration, rate float64) {
	var counts []int
	for from := begin; from+int64(window) <= end; from += int64(window) {
		counts = append(counts, count(times, from, from+int64(window)))
	}
	if len(counts) == 0 {
		return
	}
	sum, off := 0, 0
	ideal := rate * window.Seconds()
	for _, n := range counts {
		sum += n
		if math.Abs(float64(n)-ideal) > ideal/100 {
			off++
		}
	}
	of := func(n float64) float64 { return 100 * (n/ideal - 1) }
	fmt.Printf("    %sover %v mean %+.3f %%, least %+.2f %%, most %+.2f %%; %d of %d more than 1 %% off\n", when, window,
		of(float64(sum)/float64(len(counts))), of(float64(slices.Min(counts))), of(float64(slices.Max(counts))), off, len(counts))
}

// excess returns by how many permits any stretch t has more than 1 + rate * t.
func excess(times []int64, rate float64) (most float64) {
	lowest := math.Inf(1)
	for i, at := range times {
		level := float64(i) - rate*float64(at-times[0])/1e9
		lowest = min(lowest, level)
		most = max(most, level-lowest)
	}
	return most
}

// work is what one of the processes does.
func work(addr, what string, horizon time.Duration, rate float64, goroutines int, seconds float64) {
	c := connect(addr)
	defer c.Close()
	policy := reserve.Must(pace.Bursty(rate, pace.WithBurst(0)))
	if what == decide {
		policy = reserve.Must(pace.Bursty(rate))
	}
	options := []shared.Option{shared.WithTimeout(time.Second)}
	if horizon > 0 {
		options = append(options, shared.WithLease(horizon))
	}
	l := reserve.Must(shared.New(goredis.Client(c), what+" "+horizon.String(), policy, options...))
	ctx := context.Background()
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	var granted atomic.Int64
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			var b [8]byte
			for n := int64(0); ; n++ {
				if (what == saturate || n%100 == 0) && !time.Now().Before(end) {
					granted.Add(n)
					return
				}
				if what == decide {
					if ok, err := l.TryAcquire(ctx, 1); !ok || err != nil {
						fatal("not granted: ", err)
					}
					continue
				}
				if _, err := l.Acquire(ctx, 1); err != nil {
					fatal(err)
				}
				binary.LittleEndian.PutUint64(b[:], uint64(time.Now().UnixNano()))
				if _, err := os.Stdout.Write(b[:]); err != nil {
					fatal(err)
				}
			}
		})
	}
	wg.Wait()
	if what == decide {
		fmt.Println(float64(granted.Load()) / seconds)
	}
}
