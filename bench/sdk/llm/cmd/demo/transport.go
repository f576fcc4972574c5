package main

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/bench/internal/demo"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/outbound/llm"
	"github.com/nextfree/pace/reserve/window"
)

// margin is by how much windows are longer than the server's.
const margin = 100 * time.Millisecond

// newTransport returns that of a half. All that pace changes is in here.
func newTransport(name string, base http.RoundTripper, m *meter) (http.RoundTripper, error) {
	if name == demo.Unpaced {
		return base, nil
	}
	limits := llm.Limits{RequestsPerMinute: requests, TokensPerMinute: tokens}
	return llm.New(base, llm.OpenAI(), limits,
		llm.WithOutbound(outbound.WithHooks(outbound.Hooks{Settled: m.settled})),
		// A program that calls OpenAI leaves this out: the library's own limiters are of a minute.
		// These are of the server's window, and a little more, so that a call that comes late or
		// early is not refused for it.
		llm.WithLimiters(func(limit string, _ llm.Key) reserve.Reserver {
			n := map[string]int{"requests": requests, "tokens": tokens}[limit]
			if n == 0 {
				return nil
			}
			return reserve.Must(window.New(n, minute+margin))
		}))
}

// A meter sums up what calls were charged in the end, in tokens.
type meter struct{ tokens atomic.Int64 }

func (m *meter) settled(_ *http.Request, limit string, _, used int) {
	if limit == "tokens" {
		m.tokens.Add(int64(used))
	}
}

func (m *meter) sum() int { return int(m.tokens.Load()) }
