// Command demo shows what pace does for calls to a language model. It starts a server on this
// machine that speaks as OpenAI does and limits requests and tokens in any 2 s, as OpenAI does in a
// minute; then 32 goroutines make 200 streamed calls to it with openai-go, first unpaced, with the
// retries that openai-go makes itself, and then paced by pace. It ends by itself in under 60
// seconds with a table and a picture.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/nextfree/pace/bench/internal/command"
	"github.com/nextfree/pace/bench/internal/demo"
	"github.com/nextfree/pace/bench/sdk/llm/server"
)

const (
	calls      = 200
	goroutines = 32
	// A half is stopped after this, so that the demo ends in any case.
	longest = 40 * time.Second
)

// What the server allows in any window, which is 2 s here so that the demo does not take minutes.
const (
	minute   = 2 * time.Second
	requests = 15
	tokens   = 14_000
)

func main() {
	addr, out := demo.Flags()
	command.Main("demo", nil, func(ctx context.Context) error { return theDemo().Run(ctx, *addr, *out) })
}

func theDemo() demo.Demo[*server.Server, half] {
	return demo.Demo[*server.Server, half]{
		Server: func() *server.Server {
			return server.New(server.OpenAI, server.Quota{Requests: requests, Tokens: tokens, Minute: minute})
		},
		Intro: func(url string) string {
			return fmt.Sprintf(`%s speaks as OpenAI does, and allows %d requests and %d tokens in any %v.
%d goroutines make %d streamed calls with openai-go, which tries a call that is refused up to twice again.
`, url, requests, tokens, minute, goroutines, calls)
		},
		Half: func(ctx context.Context, name, url string, s *server.Server) (half, error) {
			h, err := makeCalls(ctx, name, url+"/v1")
			h.seen, h.counts = s.Records(), s.Counts()
			return h, err
		},
		Header: header,
		Outro: fmt.Sprintf("Tokens are those of prompts and replies: charged by pace, and used by the server's count. "+
			"At best it takes %.1f s.", atBest().Seconds()),
		Draw: draw,
	}
}

// atBest is the time that all calls take if what the server allows is used as soon as it can be,
// and replies take no time.
func atBest() time.Duration {
	all := 0
	for _, j := range jobs() {
		all += j.prompt + min(j.reply, j.most)
	}
	return max(time.Duration(calls-requests)*minute/requests, time.Duration(all-tokens)*minute/tokens)
}
