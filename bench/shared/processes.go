package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// What is asked of processes that share a key: permits a second.
const (
	rate       = 2_000
	leasedRate = 5_000
)

// started are processes that saturate a rate, with so many callers each, and write when each permit was granted.
type started struct {
	all     []*exec.Cmd
	grants  [][]int64
	readers sync.WaitGroup
}

func saturated(addr string, horizon time.Duration, rate int, callers []int, seconds float64) (*started, error) {
	s := &started{grants: make([][]int64, len(callers))}
	for i, n := range callers {
		cmd, out, err := worker(addr, saturate, horizon, rate, n, seconds)
		if err != nil {
			return nil, err
		}
		s.all = append(s.all, cmd)
		s.readers.Go(func() {
			var b [8]byte
			for {
				if _, err := io.ReadFull(out, b[:]); err != nil {
					return
				}
				s.grants[i] = append(s.grants[i], int64(binary.LittleEndian.Uint64(b[:])))
			}
		})
	}
	return s, nil
}

// wait returns all times in their order, and each process's own, when all have ended. One may have been killed.
func (s *started) wait(killed int) (times []int64, err error) {
	s.readers.Wait()
	for i, cmd := range s.all {
		if err := cmd.Wait(); err != nil && i != killed {
			return nil, err
		}
		slices.Sort(s.grants[i])
	}
	times = slices.Concat(s.grants...)
	slices.Sort(times)
	return times, nil
}

// processes starts four processes that share one rate, and says how evenly it is kept.
func processes(addr string, seconds float64) error {
	callers := []int{16, 16, 16, 16}
	s, err := saturated(addr, 0, rate, callers, seconds+1)
	if err != nil {
		return err
	}
	times, err := s.wait(-1)
	if err != nil {
		return err
	}
	var counts []string
	for _, g := range s.grants {
		counts = append(counts, fmt.Sprint(len(g)))
	}
	// All have begun after half a second, and none has ended half a second before the end.
	begin, end := times[0]+int64(time.Second/2), times[len(times)-1]-int64(time.Second/2)
	fmt.Printf("\n%d processes with 16 goroutines each on one key at %d/s: [%s] calls\n", len(callers), rate, strings.Join(counts, " "))
	for _, window := range []time.Duration{100 * time.Millisecond, time.Second} {
		windows("", times, begin, end, window, rate)
	}
	return nil
}
