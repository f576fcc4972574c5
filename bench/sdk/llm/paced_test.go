package llm

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/bench/sdk/llm/server"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound/llm"
	"github.com/nextfree/pace/reserve/window"
)

// A bench is a server and a client that is paced, in simulated time.
type bench struct {
	server *server.Server
	call   caller
	trips  atomic.Int64 // calls of the paced transport
}

// A roundTripper is a function as an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// pace runs a test with a client that is paced.
func pace(t *testing.T, w way, q server.Quota, l llm.Limits, test func(t *testing.T, b *bench), opts ...llm.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q.Bucket = q.Bucket || strings.Contains(w.name, "anthropic") // its API has buckets, and its preset says so
		b := &bench{server: server.New(w.api, q)}
		base, stop := serve(b.server, w.http2)
		defer stop()
		transport, err := llm.New(base, w.provider, l, opts...)
		require.NoError(t, err)
		b.call = w.caller(&http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			b.trips.Add(1)
			return transport.RoundTrip(r)
		})})
		test(t, b)
	})
}

// limits returns what the server allows, in the way's terms, and the same as the user says it.
func (w way) limits(requests, tokens int) (q server.Quota, l llm.Limits) {
	q.Requests, l.RequestsPerMinute = requests, requests
	switch {
	case w.output:
		q.InputTokens, q.OutputTokens = tokens*3/4, tokens/4
		l.InputTokensPerMinute, l.OutputTokensPerMinute = q.InputTokens, q.OutputTokens
	case w.input:
		q.InputTokens, l.InputTokensPerMinute = tokens, tokens
	default:
		q.Tokens, l.TokensPerMinute = tokens, tokens
	}
	return q, l
}

// A job is what a call asks for.
type job struct{ prompt, most, reply int }

// jobs returns prompts of 50 to 1000 tokens, with replies of at most 200 to 400.
func jobs(n int) []job {
	r := rand.New(rand.NewPCG(3, 4))
	all := make([]job, n)
	for i := range all {
		most := 200 + r.IntN(200)
		all[i] = job{prompt: 50 + r.IntN(950), most: most, reply: 1 + r.IntN(most)}
	}
	return all
}

func (j job) text() string {
	return server.Prompt(j.prompt, server.Orders{Reply: j.reply, Takes: time.Duration(100+10*j.reply) * time.Millisecond})
}

// callAll makes all calls, from some goroutines. It returns how long that took, and what the clients were told.
func (b *bench) callAll(t *testing.T, jobs []job, goroutines int) (took time.Duration, told usage) {
	t.Helper()
	var mu sync.Mutex // guards told
	begin := time.Now()
	todo := make(chan job, len(jobs))
	for _, j := range jobs {
		todo <- j
	}
	close(todo)
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for j := range todo {
				used, err := b.call(t.Context(), j.text(), j.most, 0)
				if err != nil {
					t.Errorf("%+v: %v", j, err)
				}
				mu.Lock()
				told.input, told.output = told.input+used.input, told.output+used.output
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return time.Since(begin), told
}

// No call is refused, and what the server allows is used, whether it counts exactly or has buckets.
func TestNoRefusal(t *testing.T) {
	for _, w := range ways {
		for _, bucket := range []bool{false, true} {
			t.Run(w.name+map[bool]string{false: "", true: ", bucket"}[bucket], func(t *testing.T) {
				q, l := w.limits(120, 60_000)
				q.Bucket = bucket
				pace(t, w, q, l, func(t *testing.T, b *bench) {
					took, _ := b.callAll(t, jobs(500), 32)
					c := b.server.Counts()
					require.Equal(t, 500, c.Answered)
					require.Zero(t, c.Refused)
					slower := time.Duration(113)
					if strings.Contains(w.name, "Azure") { // it counts estimates, and never what was used
						slower = 118
					}
					require.Less(t, took, w.atBest(q, c)*slower/100+10*time.Second)
				})
			})
		}
	}
}

// atBest returns how long the calls must take at least: windows of a minute, all of them full but
// the last, which takes no time. A bucket may be quicker in the first.
func (w way) atBest(q server.Quota, c server.Counts) time.Duration {
	tokens := c.Prompt + c.Reply
	if w.keeps {
		tokens = c.Asked
	}
	longest := 0
	for _, l := range []struct{ limit, used int }{
		{q.Requests, c.Answered}, {q.Tokens, tokens}, {q.InputTokens, c.Prompt}, {q.OutputTokens, c.Reply},
	} {
		if l.limit > 0 {
			longest = max(longest, (l.used-1)/l.limit)
		}
	}
	return time.Duration(longest) * time.Minute
}

// A ledger has a limiter for each limit that forgets nothing, and tells what it holds.
type ledger struct {
	mu  sync.Mutex
	all map[string]*reserve.Limiter
}

const whole = 1 << 30

func (l *ledger) limiter(limit string, _ llm.Key) reserve.Reserver {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all[limit] == nil {
		l.all[limit] = reserve.Must(window.New(whole, 1000*time.Hour))
	}
	return l.all[limit]
}

func (l *ledger) held(limit string) int { return whole - int(l.all[limit].Stored()) }

// What pace has charged in the end is what the server has counted, and what the clients were told.
func TestChargedIsUsed(t *testing.T) {
	for _, w := range ways {
		if w.keeps {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			n := 300
			if w.name == ways[0].name {
				n = 10_000
			}
			l := &ledger{all: map[string]*reserve.Limiter{}}
			all := llm.Limits{
				RequestsPerMinute: whole, TokensPerMinute: whole, InputTokensPerMinute: whole, OutputTokensPerMinute: whole,
			}
			pace(t, w, server.Quota{}, all, func(t *testing.T, b *bench) {
				_, told := b.callAll(t, jobs(n), 64)
				synctest.Wait()
				c := b.server.Counts()
				require.Equal(t, usage{int64(c.Prompt), int64(c.Reply)}, told)
				require.Equal(t, n, l.held("requests"))
				require.Equal(t, c.Prompt+c.Reply, l.held("tokens"))
				require.Equal(t, c.Prompt, l.held("input-tokens"))
				require.Equal(t, c.Reply, l.held("output-tokens"))
			}, llm.WithLimiters(l.limiter))
		})
	}
}
