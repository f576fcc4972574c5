package main

import (
	"context"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"

	"github.com/nextfree/pace/reserve/outbound/llm"
)

// A way is how a client makes a call. It returns what the client is told that it has used.
type way struct {
	name     string
	provider llm.Provider
	call     func(url string, c *http.Client) func(ctx context.Context, prompt string) (usage, error)
}

var ways = []way{
	{"openai-go, chat", llm.OpenAI(), openAIChat(false)},
	{"openai-go, chat, stream", llm.OpenAI(), openAIChat(true)},
	{"openai-go, responses, stream", llm.OpenAI(), openAIResponses},
	{"anthropic-sdk-go", llm.Anthropic(), anthropicMessages(false)},
	{"anthropic-sdk-go, stream", llm.Anthropic(), anthropicMessages(true)},
	{"genai, stream", llm.Gemini(), geminiContent},
}

func openAIChat(stream bool) func(string, *http.Client) func(context.Context, string) (usage, error) {
	return func(url string, c *http.Client) func(context.Context, string) (usage, error) {
		client := openai.NewClient(option.WithHTTPClient(c), option.WithBaseURL(url+"/v1"), option.WithAPIKey("key"))
		return func(ctx context.Context, prompt string) (u usage, err error) {
			params := openai.ChatCompletionNewParams{Model: "gpt-4o", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)}}
			if !stream {
				whole, err := client.Chat.Completions.New(ctx, params)
				if err != nil {
					return u, err
				}
				return usage{int(whole.Usage.PromptTokens), int(whole.Usage.CompletionTokens)}, nil
			}
			params.StreamOptions.IncludeUsage = openai.Bool(true)
			s := client.Chat.Completions.NewStreaming(ctx, params)
			defer s.Close()
			for s.Next() {
				if told := s.Current().Usage; told.TotalTokens > 0 {
					u = usage{int(told.PromptTokens), int(told.CompletionTokens)}
				}
			}
			return u, s.Err()
		}
	}
}

func openAIResponses(url string, c *http.Client) func(context.Context, string) (usage, error) {
	client := openai.NewClient(option.WithHTTPClient(c), option.WithBaseURL(url+"/v1"), option.WithAPIKey("key"))
	return func(ctx context.Context, prompt string) (u usage, err error) {
		s := client.Responses.NewStreaming(ctx, responses.ResponseNewParams{
			Model: "gpt-4o", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(prompt)},
		})
		defer s.Close()
		for s.Next() {
			if told := s.Current().Response.Usage; told.TotalTokens > 0 {
				u = usage{int(told.InputTokens), int(told.OutputTokens)}
			}
		}
		return u, s.Err()
	}
}

func anthropicMessages(stream bool) func(string, *http.Client) func(context.Context, string) (usage, error) {
	return func(url string, c *http.Client) func(context.Context, string) (usage, error) {
		client := anthropic.NewClient(anthropicoption.WithHTTPClient(c), anthropicoption.WithBaseURL(url), anthropicoption.WithAPIKey("key"))
		return func(ctx context.Context, prompt string) (u usage, err error) {
			params := anthropic.MessageNewParams{
				Model: "claude-sonnet-4-5", MaxTokens: 1000, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(prompt))},
			}
			if !stream {
				whole, err := client.Messages.New(ctx, params)
				if err != nil {
					return u, err
				}
				return usage{int(whole.Usage.InputTokens), int(whole.Usage.OutputTokens)}, nil
			}
			s := client.Messages.NewStreaming(ctx, params)
			defer s.Close()
			var all anthropic.Message
			for s.Next() {
				if err := all.Accumulate(s.Current()); err != nil {
					return u, err
				}
			}
			return usage{int(all.Usage.InputTokens), int(all.Usage.OutputTokens)}, s.Err()
		}
	}
}

func geminiContent(url string, c *http.Client) func(context.Context, string) (usage, error) {
	client, err := genai.NewClient(context.Background(), &genai.ClientConfig{
		APIKey: "key", Backend: genai.BackendGeminiAPI, HTTPClient: c, HTTPOptions: genai.HTTPOptions{BaseURL: url},
	})
	return func(ctx context.Context, prompt string) (u usage, _ error) {
		if err != nil {
			return u, err
		}
		for piece, err := range client.Models.GenerateContentStream(ctx, "gemini-2.5-flash", genai.Text(prompt), nil) {
			if err != nil {
				return u, err
			}
			if told := piece.UsageMetadata; told != nil {
				u = usage{int(told.PromptTokenCount), int(told.CandidatesTokenCount)}
			}
		}
		return u, nil
	}
}
