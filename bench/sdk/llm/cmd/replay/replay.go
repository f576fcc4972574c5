package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/nextfree/pace/bench/sdk/llm/internal/memory"
	"github.com/nextfree/pace/bench/sdk/llm/server"
)

// An outcome is what became of a trace.
type outcome struct {
	last   time.Duration // when the last call that was answered arrived at the server
	failed int
	counts server.Counts
}

// replay has a client make the calls of a trace, each at its time, in simulated time.
func replay(t *testing.T, c client, calls []call, requests, tokens int) (o outcome, err error) {
	synctest.Test(t, func(*testing.T) {
		s := server.New(server.Quota{Requests: requests, Tokens: tokens, Charging: server.Foreseen})
		base, stop := memory.Server(s, false)
		defer stop()
		var transport http.RoundTripper
		if transport, err = c.wrap(shaken(base, c.jitter), requests, tokens); err != nil {
			return
		}
		client := openai.NewClient(option.WithHTTPClient(&http.Client{Transport: transport}), option.WithAPIKey("key"), option.WithBaseURL("https://api.openai.com/v1"))
		begin := time.Now()
		var all sync.WaitGroup
		var mu sync.Mutex // guards o.failed
		for _, c := range calls {
			time.Sleep(c.at - time.Since(begin))
			all.Go(func() {
				if err := c.make(client); err != nil {
					mu.Lock()
					o.failed++
					mu.Unlock()
				}
			})
		}
		all.Wait()
		o.counts = s.Counts()
		for _, r := range s.Records() {
			if r.Refused == "" {
				o.last = max(o.last, r.At.Sub(begin))
			}
		}
	})
	return o, err
}

// make makes a call. It takes 0.2 s, and 20 ms for each token of the reply.
func (c call) make(client openai.Client) error {
	_, err := client.Chat.Completions.New(context.Background(), openai.ChatCompletionNewParams{
		Model:    "gpt-4o",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(c.text())},
	}, option.WithHeader(sizeHeader, fmt.Sprint(c.prompt, " ", c.reply)))
	return err
}

func (c call) text() string {
	return server.Prompt(c.prompt, server.Orders{Reply: c.reply, Takes: 200*time.Millisecond + time.Duration(c.reply)*20*time.Millisecond})
}
