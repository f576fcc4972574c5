// Package matrix runs pace's outbound transport against kinds of servers that limit in different ways,
// in simulated time: each kind, at several rates, called by clients that know the rate, have it too
// high, or do not know it. A cell takes milliseconds, or at 500 calls a second a few hundred of them.
//
// Simulated time is that of a testing/synctest bubble: [Run] must be called in one.
package matrix

import (
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A Setting is what a cell of the matrix varies.
type Setting struct {
	Rate       float64       // calls per second that the server allows
	Burst      float64       // calls that a token bucket allows at once
	Window     time.Duration // of servers that count in windows
	Latency    [2]time.Duration
	Goroutines int
	Calls      int
	Seed       uint64
}

// At returns the ordinary setting at a rate: for 20 s at 5/s, for 12 s at more.
func At(rate float64, seed uint64) Setting {
	s := Setting{
		Rate:       rate,
		Burst:      max(2, rate/5),
		Window:     2 * time.Second,
		Latency:    [2]time.Duration{5 * time.Millisecond, 20 * time.Millisecond},
		Goroutines: 64,
		Calls:      int(rate * 12),
		Seed:       seed,
	}
	if rate < 10 {
		s.Calls = int(rate * 20)
	}
	return s
}

// An Outcome is what became of a cell.
type Outcome struct {
	Took    float64 // in units of the ideal time
	Seconds float64
	Lost    float64 // seconds beyond the ideal
	Refused int     // calls that the server saw
	Wasted  float64 // refused calls, as a share of all that the server saw
	Longest float64 // call, in seconds
	Median  float64 // call, in seconds
	Done    int     // calls that were answered
	Failed  int     // times that a call came back without its answer
	Calls   int
	Peak    int     // the most calls that the server saw in 50 ms after the first second
	Herd    float64 // Peak, in units of what 50 ms of the rate would be, at least 1
}

// Finished reports whether all calls were answered.
func (o Outcome) Finished() bool { return o.Done == o.Calls }

// A Judge is a server's limit: it answers a call that has reached it.
type Judge interface {
	// Answer returns how long the server takes, and the answer then: header is its to fill in.
	Answer(now time.Time, r *http.Request, header http.Header) (takes time.Duration, status int, body string)
}

// limit is how long a cell may take, in units of the ideal time.
const limit = 12

// Run has a client make the calls of a setting to a kind of server.
func Run(k Kind, c Client, s Setting) Outcome {
	begin := time.Now()
	server := &server{judge: k.New(begin, s), random: rand.New(rand.NewPCG(s.Seed, 1)), latency: s.Latency, begin: begin, undated: k.Undated}
	ideal := k.Ideal(s)
	client := c.New(server, k, s)
	end := begin.Add(time.Duration(limit * float64(ideal)))
	todo := make(chan int, s.Calls)
	for i := range s.Calls {
		todo <- i
	}
	close(todo)
	var mu sync.Mutex
	var calls []float64
	var last time.Time
	failed := 0
	var all sync.WaitGroup
	for range s.Goroutines {
		all.Go(func() {
			for i := range todo {
				since := time.Now()
				for time.Now().Before(end) {
					if call(client, k, i, end) {
						mu.Lock()
						calls = append(calls, time.Since(since).Seconds())
						last = time.Now()
						mu.Unlock()
						break
					}
					mu.Lock()
					failed++
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	o := Outcome{Calls: s.Calls, Done: len(calls), Failed: failed}
	o.Seconds = last.Sub(begin).Seconds()
	o.Took, o.Lost = o.Seconds/ideal.Seconds(), o.Seconds-ideal.Seconds()
	server.mu.Lock()
	defer server.mu.Unlock()
	o.Refused = server.refused
	o.Wasted = float64(server.refused) / float64(max(1, len(server.seen)))
	if len(calls) > 0 {
		slices.Sort(calls)
		o.Longest, o.Median = calls[len(calls)-1], calls[len(calls)/2]
	}
	o.Peak = server.crowd()
	o.Herd = float64(o.Peak) / max(1, 0.05*s.Rate)
	return o
}

// call makes a call, and reports whether it was answered. One that comes back without an answer waits a
// little, so that a client that gives up at once ends.
func call(c *http.Client, k Kind, i int, end time.Time) bool {
	r, err := http.NewRequest(http.MethodGet, "http://api.example.com/", nil)
	if err != nil {
		panic(err)
	}
	k.dress(r, i)
	c = &http.Client{Transport: c.Transport, Timeout: time.Until(end)}
	response, err := c.Do(r)
	if err != nil {
		<-time.After(50 * time.Millisecond)
		return false
	}
	io.Copy(io.Discard, response.Body)
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		<-time.After(50 * time.Millisecond)
		return false
	}
	return true
}

// server is the network and the server behind it, as a round tripper.
type server struct {
	judge   Judge
	latency [2]time.Duration
	begin   time.Time
	undated bool

	mu      sync.Mutex
	random  *rand.Rand
	seen    []time.Duration
	refused int
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := s.pass(r, s.way()); err != nil {
		return nil, err
	}
	header := http.Header{}
	s.mu.Lock()
	now := time.Now()
	s.seen = append(s.seen, now.Sub(s.begin))
	takes, status, body := s.judge.Answer(now, r, header)
	if status != http.StatusOK {
		s.refused++
	}
	s.mu.Unlock()
	if !s.undated {
		header.Set("Date", now.Add(takes).UTC().Truncate(time.Second).Format(http.TimeFormat))
	}
	if err := s.pass(r, takes+s.way()); err != nil {
		return nil, err
	}
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}, nil
}

// way returns how long it is from the client to the server, or back.
func (s *server) way() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latency[0]/2 + time.Duration(s.random.Int64N(1+int64(s.latency[1]-s.latency[0])/2))
}

func (s *server) pass(r *http.Request, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-r.Context().Done():
		return r.Context().Err()
	}
}

// crowd returns the most calls in any 50 ms after the first second.
func (s *server) crowd() (most int) {
	first := 0
	for i, at := range s.seen {
		for at-s.seen[first] >= 50*time.Millisecond {
			first++
		}
		if s.seen[first] > time.Second {
			most = max(most, i-first+1)
		}
	}
	return most
}

// Median runs a cell so many times, each in a bubble of its own with other latencies and at another moment. It returns
// the outcome that took the median of the times.
func Median(t *testing.T, k Kind, c Client, s Setting, runs int) Outcome {
	outcomes := make([]Outcome, runs)
	for i := range outcomes {
		s.Seed = uint64(i + 1)
		synctest.Test(t, func(*testing.T) {
			// A bubble begins in the year 2000, when numbers of seconds since 1970 had nine digits.
			<-time.After(time.Until(day) + time.Duration(i)*137*time.Millisecond)
			outcomes[i] = Run(k, c, s)
		})
	}
	slices.SortFunc(outcomes, func(a, b Outcome) int { return int(1e6 * (a.Took - b.Took)) })
	return outcomes[runs/2]
}

var day = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
