package matrix

import (
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/window"
)

// A Neighbour is one of several programs that call the same server.
type Neighbour struct {
	Client Client
	From   time.Duration // when it begins
	Until  time.Duration // when it ends; 0: with the others
	Slots  int           // goroutines that call
}

// A Sharing is what became of several programs.
type Sharing struct {
	Used    float64   // of the server's rate
	Shares  []float64 // of each program, of all that was accepted
	Least   []float64 // the least share of each, in any 30 s
	Wasted  []float64 // of each, refused of all of its calls
	Longest float64   // call of any, in seconds
}

const whose = "X-Test-Process"

// Together has several programs call a server for a time, as fast as they are let. What is before warm
// does not count.
func Together(k Kind, programs []Neighbour, s Setting, warm, until time.Duration) Sharing {
	out := Sharing{Shares: make([]float64, len(programs)), Least: make([]float64, len(programs)), Wasted: make([]float64, len(programs))}
	accepted := make([][]time.Duration, len(programs))
	seen, refused := make([]float64, len(programs)), make([]float64, len(programs))
	count := func(i int, at time.Duration, status int) {
		switch {
		case at < warm || at >= until:
			return
		case status == http.StatusOK:
			accepted[i] = append(accepted[i], at)
		default:
			refused[i]++
		}
		seen[i]++
	}
	out.Longest = callers(k, programs, s, warm, until, count)
	sum := 0.
	for i := range programs {
		sum += float64(len(accepted[i]))
	}
	out.Used = sum / s.Rate / (until - warm).Seconds()
	for i := range programs {
		out.Shares[i] = float64(len(accepted[i])) / sum
		out.Wasted[i] = refused[i] / max(1, seen[i])
		out.Least[i] = math.Inf(1)
	}
	for from := warm; from+30*time.Second <= until; from += time.Second {
		n, whole := make([]float64, len(programs)), 0.
		for i := range programs {
			for _, at := range accepted[i] {
				if at >= from && at < from+30*time.Second {
					n[i]++
					whole++
				}
			}
		}
		for i := range n {
			out.Least[i] = min(out.Least[i], n[i]/max(1, whole))
		}
	}
	return out
}

// callers has programs call a server until a time. It tells count of each call that reaches the server, and returns how
// many seconds the longest one took that began after warm.
func callers(k Kind, programs []Neighbour, s Setting, warm, until time.Duration, count func(i int, at time.Duration, status int)) (longest float64) {
	begin := time.Now()
	inner := k.New(begin, s)
	server := &server{random: rand.New(rand.NewPCG(s.Seed, 1)), latency: s.Latency, begin: begin, undated: k.Undated}
	server.judge = judge(func(now time.Time, r *http.Request, h http.Header) (time.Duration, int, string) {
		takes, status, body := inner.Answer(now, r, h)
		i, _ := strconv.Atoi(r.Header.Get(whose))
		count(i, now.Sub(begin), status) // the server's lock is held
		return takes, status, body
	})
	var mu sync.Mutex
	var all sync.WaitGroup
	for i, p := range programs {
		client := p.Client.New(named{server, strconv.Itoa(i)}, k, s)
		end := begin.Add(until)
		if p.Until > 0 {
			end = begin.Add(p.Until)
		}
		for range p.Slots {
			all.Go(func() {
				<-time.After(p.From)
				for time.Now().Before(end) {
					since := time.Now()
					if call(client, k, 0, end.Add(time.Second)) && since.Sub(begin) > warm {
						mu.Lock()
						longest = max(longest, time.Since(since).Seconds())
						mu.Unlock()
					}
				}
			})
		}
	}
	all.Wait()
	return longest
}

// named says whose calls they are.
type named struct {
	base http.RoundTripper
	who  string
}

func (n named) RoundTrip(r *http.Request) (*http.Response, error) {
	own := r.Clone(r.Context())
	own.Header.Set(whose, n.who)
	return n.base.RoundTrip(own)
}

// greedy sends at the rate whatever happens, and sends what was refused again after a second, four times.
var greedy = Client{Name: "greedy", New: func(base http.RoundTripper, k Kind, s Setting) *http.Client {
	return &http.Client{Transport: &insistent{base: base, every: time.Duration(float64(time.Second) / s.Rate)}}
}}

type insistent struct {
	base  http.RoundTripper
	every time.Duration
	mu    sync.Mutex
	next  time.Time
}

func (g *insistent) RoundTrip(r *http.Request) (response *http.Response, err error) {
	for try := range 5 {
		if try > 0 {
			response.Body.Close()
			<-time.After(time.Second << (try - 1))
		}
		g.mu.Lock()
		now := time.Now()
		if g.next.Before(now) {
			g.next = now
		}
		wait := g.next.Sub(now)
		g.next = g.next.Add(g.every)
		g.mu.Unlock()
		<-time.After(wait)
		if response, err = g.base.RoundTrip(r); err != nil || response.StatusCode == http.StatusOK {
			break
		}
	}
	return response, err
}

// A window that knows the limit shares it with a neighbour that takes half. Before, the adapted window grew longer and
// held back what the server had long forgotten: its share was 4 %, and 43 % of its calls were refused.
func TestAdaptiveWindow(t *testing.T) {
	windowed := Client{Name: "window", New: func(base http.RoundTripper, _ Kind, s Setting) *http.Client {
		by := reserve.Must(window.New(int(s.Rate*s.Window.Seconds()), s.Window))
		return &http.Client{Transport: reserve.Must(outbound.New(base, by, outbound.Adaptive(), outbound.WithRetries(100)))}
	}}
	half := Client{Name: "half", New: func(base http.RoundTripper, k Kind, s Setting) *http.Client {
		s.Rate /= 2
		return greedy.New(base, k, s)
	}}
	k := Kind{Name: "sliding log, Retry-After", New: newLog, Ideal: evenIdeal}
	synctest.Test(t, func(t *testing.T) {
		programs := []Neighbour{{Client: windowed, Slots: 16}, {Client: half, Slots: 16}}
		o := Together(k, programs, At(10, 1), time.Minute, 5*time.Minute)
		require.Greater(t, o.Used, 0.85)
		require.Greater(t, o.Shares[0], 0.4)
		require.Less(t, o.Wasted[0], 0.03)
		require.Less(t, o.Longest, 30.)
	})
}
