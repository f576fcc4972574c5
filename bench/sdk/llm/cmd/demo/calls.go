package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/nextfree/pace/bench/internal/demo"
	"github.com/nextfree/pace/bench/sdk/llm/server"
)

// A half is what became of the calls.
type half struct {
	demo.Outcome
	charged int // tokens, by pace
	seen    []server.Record
	counts  server.Counts
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
	client := openai.NewClient(option.WithBaseURL(url), option.WithAPIKey("key"),
		option.WithHTTPClient(&http.Client{Transport: transport}))

	o := demo.Work(ctx, name, goroutines, jobs(), func(ctx context.Context, j job) error { return call(ctx, client, j) })
	return half{Outcome: o, charged: meter.sum()}, whole.Err()
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
	takes := time.Duration(100+j.reply/4) * time.Millisecond
	prompt := server.Prompt(j.prompt, server.Orders{Reply: j.reply, Chunks: 20, Takes: takes})
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

var header = []string{"", ">time", ">answered", ">failed", ">calls sent", ">429s", ">tokens charged", ">tokens used",
	">longest wait"}

// Row is the half's in the table.
func (h half) Row() []string {
	charged := "-"
	if h.Name == demo.Paced {
		charged = fmt.Sprint(h.charged)
	}
	return []string{
		h.Name, h.Time(h.Answered+h.Failed < calls), fmt.Sprint(h.Answered), fmt.Sprint(h.Failed), fmt.Sprint(len(h.seen)),
		fmt.Sprint(h.counts.Refused), charged, fmt.Sprint(h.counts.Prompt + h.counts.Reply),
		fmt.Sprintf("%.1f s", h.Longest.Seconds()),
	}
}
