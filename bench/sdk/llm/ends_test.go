package llm

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"github.com/nextfree/pace/bench/sdk/llm/server"
	"github.com/nextfree/pace/reserve/outbound/llm"
)

// Callers that close their streams early, or whose contexts end in mid-stream, or whose connections
// break, are charged no less than the server counts, and no call is refused after that.
func TestStreamsThatEndEarly(t *testing.T) {
	log.SetOutput(io.Discard) // genai logs broken connections
	defer log.SetOutput(os.Stderr)
	for _, w := range ways {
		if !w.streams {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			q, l := w.limits(120, 60_000)
			pace(t, w, q, l, func(t *testing.T, b *bench) {
				todo := make(chan int, 300)
				for i := range cap(todo) {
					todo <- i
				}
				close(todo)
				all, work := jobs(300), sync.WaitGroup{}
				for range 16 {
					work.Go(func() {
						for i := range todo {
							b.callPart(t, all[i], i%4)
						}
					})
				}
				work.Wait()
				c := b.server.Counts()
				require.Zero(t, c.Refused)
				require.GreaterOrEqual(t, c.Answered, 225) // all but cancelled calls, some of which still waited
			})
		})
	}
}

// callPart makes a call that ends early, in one of four ways; 0: not.
func (b *bench) callPart(t *testing.T, j job, way int) {
	o := server.Orders{Reply: j.reply, Chunks: 10, Takes: 10 * time.Second}
	ctx, enough := t.Context(), 0
	switch way {
	case 1:
		enough = 4
	case 2:
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Hour) // far enough that pace does not refuse it
		defer cancel()
		// Not at a moment at which the server writes: it would count a chunk that nobody reads.
		time.AfterFunc(5*time.Second+time.Duration(j.prompt)*99_991, cancel)
	case 3:
		o.Breaks = 5
	}
	_, err := b.call(ctx, server.Prompt(j.prompt, o), j.most, enough)
	switch way {
	case 2:
		// It may also have ended while it waited.
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("%+v, cancelled: %v", j, err)
		}
	case 3:
		if j.reply >= 5 && err == nil {
			t.Errorf("%+v, broken: no error", j)
		}
	default:
		if err != nil {
			t.Errorf("%+v: %v", j, err)
		}
	}
}

// With AnswerRefusals, a client whose call can't be made in time is told so at once, in its own
// words, and does not ask again.
func TestRefusalOfPaces(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			q, l := w.limits(1, 60_000)
			if w.keeps {
				q.Requests, l.RequestsPerMinute = 6, 6 // one in 10 s
			}
			pace(t, w, q, l, func(t *testing.T, b *bench) {
				_, err := b.call(t.Context(), server.Prompt(100, server.Orders{}), 100, 0)
				require.NoError(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				begin := time.Now()
				_, err = b.call(ctx, server.Prompt(100, server.Orders{}), 100, 0)
				require.Zero(t, time.Since(begin))
				require.EqualValues(t, 2, b.trips.Load())
				told, message := refused(err)
				require.Equal(t, http.StatusTooManyRequests, told)
				require.Contains(t, message, "pace: a wait of ")
				require.Equal(t, 1, b.server.Counts().Answered)
			}, llm.AnswerRefusals())
		})
	}
}

// refused returns the status and the message that a client's error tells.
func refused(err error) (status int, message string) {
	var o *openai.Error
	var a *anthropic.Error
	var g genai.APIError
	switch {
	case errors.As(err, &o):
		return o.StatusCode, o.Message
	case errors.As(err, &a):
		return a.StatusCode, a.RawJSON()
	case errors.As(err, &g):
		return g.Code, g.Message
	default:
		return 0, ""
	}
}

// Where the user gives no limits they are learned from the first response's headers, if the
// provider sends any.
func TestLimitsLearned(t *testing.T) {
	for _, w := range ways {
		if w.provider == llm.Gemini() {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			q, _ := w.limits(120, 60_000)
			pace(t, w, q, llm.Limits{}, func(t *testing.T, b *bench) {
				took, _ := b.callAll(t, jobs(300), 32)
				c := b.server.Counts()
				require.Zero(t, c.Refused)
				require.Less(t, took, w.atBest(q, c)*11/10+30*time.Second)
			})
		})
	}
}

// A call that is larger than the limit is refused by the server, however often its client asks, and
// stops no other.
func TestTooLarge(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			q, l := w.limits(1000, 20_000)
			pace(t, w, q, l, func(t *testing.T, b *bench) {
				_, err := b.call(t.Context(), server.Prompt(30_000, server.Orders{}), 100, 0)
				status, _ := refused(err)
				require.Equal(t, http.StatusTooManyRequests, status)
				begin := time.Now()
				_, err = b.call(t.Context(), server.Prompt(100, server.Orders{}), 100, 0)
				require.NoError(t, err)
				require.Less(t, time.Since(begin), 65*time.Second)
				synctest.Wait()
				for _, r := range b.server.Records() {
					require.Equal(t, r.Asked > 20_000, r.Refused)
				}
				require.Equal(t, 1, b.server.Counts().Answered)
			})
		})
	}
}
