package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/nextfree/pace/bench/sdk/llm/server"
)

// The names of the halves.
const unpaced, paced = "unpaced", "paced"

// A half is what became of the calls.
type half struct {
	name             string
	took, longest    time.Duration // in all; of one call
	answered, failed int
	charged          int // tokens, by pace
	seen             []server.Record
	counts           server.Counts
}

// makeCalls makes all calls, or those for which there is time.
func makeCalls(ctx context.Context, name, url string) (half, error) {
	whole := ctx
	ctx, stop := context.WithTimeout(ctx, longest)
	defer stop()

	base := &http.Transport{MaxIdleConnsPerHost: goroutines}
	defer base.CloseIdleConnections()
	var meter meter
	transport, err := newTransport(name, base, &meter)
	if err != nil {
		return half{}, err
	}
	client := openai.NewClient(option.WithBaseURL(url), option.WithAPIKey("key"), option.WithHTTPClient(&http.Client{Transport: transport}))

	todo := make(chan job, calls)
	for _, j := range jobs() {
		todo <- j
	}
	close(todo)

	h := half{name: name}
	var mu sync.Mutex // guards h
	var all sync.WaitGroup
	bar := newProgress(name)
	begin := time.Now()
	for range goroutines {
		all.Go(func() {
			for j := range todo {
				if ctx.Err() != nil {
					return
				}
				since := time.Now()
				err := call(ctx, client, j)
				mu.Lock()
				h.longest = max(h.longest, time.Since(since))
				if err == nil {
					h.answered++
				} else {
					h.failed++
				}
				bar.done(h.answered, h.failed)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	h.took = time.Since(begin)
	h.charged = meter.sum()
	bar.end()
	return h, whole.Err()
}

// A job is what a call asks for, in tokens.
type job struct{ prompt, most, reply int }

// jobs returns the same ones each time: prompts of 200 to 2200 tokens, of replies at most 400, most
// of which are shorter.
func jobs() []job {
	r := rand.New(rand.NewPCG(1, 2))
	all := make([]job, calls)
	for i := range all {
		all[i] = job{prompt: 200 + int(2000*r.Float64()*r.Float64()), most: 400, reply: 20 + r.IntN(380)}
	}
	return all
}

// call makes a call, and reads its stream to the end.
func call(ctx context.Context, client openai.Client, j job) error {
	prompt := server.Prompt(j.prompt, server.Orders{Reply: j.reply, Chunks: 20, Takes: time.Duration(100+j.reply/4) * time.Millisecond})
	stream := client.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{
		Model:               "gpt-4o",
		Messages:            []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)},
		MaxCompletionTokens: openai.Int(int64(j.most)),
		StreamOptions:       openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	})
	defer stream.Close()
	for stream.Next() {
	}
	return stream.Err()
}

var header = []string{"", ">time", ">answered", ">failed", ">calls sent", ">429s", ">tokens charged", ">tokens used", ">longest wait"}

func (h half) row() []string {
	took := fmt.Sprintf("%.1f s", h.took.Seconds())
	if h.answered+h.failed < calls {
		took = "stopped after " + took
	}
	charged := "-"
	if h.name == paced {
		charged = fmt.Sprint(h.charged)
	}
	return []string{
		h.name, took, fmt.Sprint(h.answered), fmt.Sprint(h.failed), fmt.Sprint(len(h.seen)), fmt.Sprint(h.counts.Refused),
		charged, fmt.Sprint(h.counts.Used), fmt.Sprintf("%.1f s", h.longest.Seconds()),
	}
}
