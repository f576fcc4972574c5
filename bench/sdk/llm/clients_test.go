package llm

import (
	"context"
	"errors"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/azure"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"

	"github.com/nextfree/pace/bench/sdk/llm/server"
	"github.com/nextfree/pace/reserve/outbound/llm"
)

// A caller makes a call in one of the ways of a client: a stream that it reads to the end, or until
// enough has come (0: all), or a whole reply.
type caller func(ctx context.Context, prompt string, most, enough int) error

// A way is a provider's API, as its client calls it.
type way struct {
	name     string
	provider llm.Provider
	http2    bool
	streams  bool
	// input says that tokens of input have a limit of their own.
	input, output bool
	charging      server.Charging
	caller        func(*http.Client) caller
}

var ways = []way{
	{name: "openai-go, chat, stream", provider: llm.OpenAI(), streams: true, caller: openAIChat(true)},
	{name: "openai-go, chat", provider: llm.OpenAI(), caller: openAIChat(false)},
	{name: "openai-go, responses, stream", provider: llm.OpenAI(), streams: true, caller: openAIResponses(true)},
	{name: "openai-go, responses", provider: llm.OpenAI(), caller: openAIResponses(false)},
	{name: "openai-go, embeddings", provider: llm.OpenAI(), caller: openAIEmbeddings},
	{name: "openai-go, HTTP/2, chat, stream", provider: llm.OpenAI(), http2: true, streams: true, caller: openAIChat(true)},
	{name: "openai-go, Azure, chat, stream", provider: llm.AzureOpenAI(), http2: true, streams: true, charging: server.Kept, caller: azureChat(true)},
	{name: "openai-go, Azure, chat", provider: llm.AzureOpenAI(), http2: true, charging: server.Kept, caller: azureChat(false)},
	{name: "anthropic-sdk-go, stream", provider: llm.Anthropic(), streams: true, input: true, output: true, caller: anthropicMessages(true)},
	{name: "anthropic-sdk-go", provider: llm.Anthropic(), input: true, output: true, caller: anthropicMessages(false)},
	{name: "genai, stream", provider: llm.Gemini(), streams: true, input: true, caller: geminiContent(true)},
	{name: "genai", provider: llm.Gemini(), input: true, caller: geminiContent(false)},
}

// pieces is what the streams of openai-go and anthropic-sdk-go have in common.
type pieces interface {
	Next() bool
	Err() error
	Close() error
}

// drain reads a stream until enough has come.
func drain(s pieces, enough int) error {
	for n := 0; s.Next(); {
		if n++; n == enough {
			return s.Close()
		}
	}
	return errors.Join(s.Err(), s.Close())
}

func openAIClient(c *http.Client) openai.Client {
	return openai.NewClient(option.WithHTTPClient(c), option.WithAPIKey("key"), option.WithBaseURL("https://api.openai.com/v1"))
}

func openAIChat(stream bool) func(*http.Client) caller {
	return func(c *http.Client) caller {
		return chatCaller(openAIClient(c), stream)
	}
}

func azureChat(stream bool) func(*http.Client) caller {
	return func(c *http.Client) caller {
		return chatCaller(openai.NewClient(option.WithHTTPClient(c), azure.WithEndpoint("https://mine.openai.azure.com", "2024-10-21"), azure.WithAPIKey("key")), stream)
	}
}

func chatCaller(client openai.Client, stream bool) caller {
	return func(ctx context.Context, prompt string, most, enough int) error {
		params := openai.ChatCompletionNewParams{
			Model: "gpt-4o", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)},
			MaxCompletionTokens: openai.Int(int64(most)),
		}
		if !stream {
			_, err := client.Chat.Completions.New(ctx, params)
			return err
		}
		params.StreamOptions.IncludeUsage = openai.Bool(true)
		return drain(client.Chat.Completions.NewStreaming(ctx, params), enough)
	}
}

func openAIResponses(stream bool) func(*http.Client) caller {
	return func(c *http.Client) caller {
		client := openAIClient(c)
		return func(ctx context.Context, prompt string, most, enough int) error {
			params := responses.ResponseNewParams{
				Model: "gpt-4o", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(prompt)}, MaxOutputTokens: openai.Int(int64(most)),
			}
			if !stream {
				_, err := client.Responses.New(ctx, params)
				return err
			}
			return drain(client.Responses.NewStreaming(ctx, params), enough)
		}
	}
}

func openAIEmbeddings(c *http.Client) caller {
	client := openAIClient(c)
	return func(ctx context.Context, prompt string, _, _ int) error {
		_, err := client.Embeddings.New(ctx, openai.EmbeddingNewParams{
			Model: openai.EmbeddingModelTextEmbedding3Small, Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String(prompt)},
		})
		return err
	}
}

func anthropicMessages(stream bool) func(*http.Client) caller {
	return func(c *http.Client) caller {
		client := anthropic.NewClient(anthropicoption.WithHTTPClient(c), anthropicoption.WithAPIKey("key"), anthropicoption.WithBaseURL("https://api.anthropic.com"))
		return func(ctx context.Context, prompt string, most, enough int) error {
			params := anthropic.MessageNewParams{
				Model: "claude-sonnet-4-5", MaxTokens: int64(most), Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(prompt))},
			}
			if !stream {
				_, err := client.Messages.New(ctx, params)
				return err
			}
			return drain(client.Messages.NewStreaming(ctx, params), enough)
		}
	}
}

func geminiContent(stream bool) func(*http.Client) caller {
	return func(c *http.Client) caller {
		client, err := genai.NewClient(context.Background(), &genai.ClientConfig{
			APIKey: "key", Backend: genai.BackendGeminiAPI, HTTPClient: c, HTTPOptions: genai.HTTPOptions{BaseURL: "https://generativelanguage.googleapis.com"},
		})
		return func(ctx context.Context, prompt string, most, enough int) error {
			if err != nil {
				return err
			}
			config := &genai.GenerateContentConfig{MaxOutputTokens: int32(most)}
			if !stream {
				_, err := client.Models.GenerateContent(ctx, "gemini-2.5-flash", genai.Text(prompt), config)
				return err
			}
			n := 0
			for _, err := range client.Models.GenerateContentStream(ctx, "gemini-2.5-flash", genai.Text(prompt), config) {
				if err != nil {
					return err
				}
				if n++; n == enough {
					return nil
				}
			}
			return nil
		}
	}
}
