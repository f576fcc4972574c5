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

// A caller makes a call in one of the ways of a client: a stream that it reads to the end, or until enough pieces have
// come (0: all), or a whole reply. It returns what the client is told that the call used.
type caller func(ctx context.Context, prompt string, most, enough int) (used usage, err error)

// usage is in tokens.
type usage struct{ input, output int64 }

// A way is a provider's API, as its client calls it.
type way struct {
	name     string
	api      server.API
	provider llm.Provider
	http2    bool
	streams  bool
	// input and output say which tokens have limits of their own.
	input, output bool
	keeps         bool // a call is charged its estimate for good
	caller        func(*http.Client) caller
}

func openAI(name string, streams, http2 bool, c func(*http.Client) caller) way {
	return way{name: "openai-go, " + name, api: server.OpenAI, provider: llm.OpenAI(), streams: streams, http2: http2,
		caller: c}
}

func azureOpenAI(name string, streams bool) way {
	return way{name: "openai-go, Azure, " + name, api: server.Azure, provider: llm.AzureOpenAI(), http2: true, keeps: true,
		streams: streams, caller: azureChat(streams)}
}

func anthropicSDK(name string, streams bool) way {
	return way{name: name, api: server.Anthropic, provider: llm.Anthropic(), input: true, output: true, streams: streams,
		caller: anthropicMessages(streams)}
}

func genaiSDK(name string, streams bool) way {
	return way{name: name, api: server.Gemini, provider: llm.Gemini(), input: true, streams: streams,
		caller: geminiContent(streams)}
}

var ways = []way{
	openAI("chat, stream", true, false, openAIChat(true)),
	openAI("chat", false, false, openAIChat(false)),
	openAI("responses, stream", true, false, openAIResponses(true)),
	openAI("responses", false, false, openAIResponses(false)),
	openAI("embeddings", false, false, openAIEmbeddings),
	openAI("HTTP/2, chat, stream", true, true, openAIChat(true)),
	azureOpenAI("chat, stream", true),
	azureOpenAI("chat", false),
	anthropicSDK("anthropic-sdk-go, stream", true),
	anthropicSDK("anthropic-sdk-go", false),
	genaiSDK("genai, stream", true),
	genaiSDK("genai", false),
}

// pieces is what the streams of openai-go and anthropic-sdk-go have in common.
type pieces[P any] interface {
	Next() bool
	Current() P
	Err() error
	Close() error
}

// drain reads a stream until enough pieces have come, and shows each.
func drain[P any](s pieces[P], enough int, show func(P)) error {
	for n := 0; s.Next(); {
		show(s.Current())
		if n++; n == enough {
			return s.Close()
		}
	}
	return errors.Join(s.Err(), s.Close())
}

func openAIClient(c *http.Client) openai.Client {
	return openai.NewClient(option.WithHTTPClient(c), option.WithAPIKey("key"),
		option.WithBaseURL("https://api.openai.com/v1"))
}

func openAIChat(stream bool) func(*http.Client) caller {
	return func(c *http.Client) caller { return chatCaller(openAIClient(c), stream) }
}

func azureChat(stream bool) func(*http.Client) caller {
	return func(c *http.Client) caller {
		return chatCaller(openai.NewClient(option.WithHTTPClient(c), azure.WithAPIKey("key"),
			azure.WithEndpoint("https://mine.openai.azure.com", "2024-10-21")), stream)
	}
}

func chatCaller(client openai.Client, stream bool) caller {
	return func(ctx context.Context, prompt string, most, enough int) (used usage, err error) {
		params := openai.ChatCompletionNewParams{
			Model: "gpt-4o", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)},
			MaxCompletionTokens: openai.Int(int64(most)),
		}
		if !stream {
			whole, err := client.Chat.Completions.New(ctx, params)
			if err != nil {
				return used, err
			}
			return usage{whole.Usage.PromptTokens, whole.Usage.CompletionTokens}, nil
		}
		params.StreamOptions.IncludeUsage = openai.Bool(true)
		err = drain(client.Chat.Completions.NewStreaming(ctx, params), enough, func(p openai.ChatCompletionChunk) {
			used = usage{p.Usage.PromptTokens, p.Usage.CompletionTokens}
		})
		return used, err
	}
}

func openAIResponses(stream bool) func(*http.Client) caller {
	return func(c *http.Client) caller {
		client := openAIClient(c)
		return func(ctx context.Context, prompt string, most, enough int) (used usage, err error) {
			params := responses.ResponseNewParams{
				Model: "gpt-4o", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(prompt)},
				MaxOutputTokens: openai.Int(int64(most)),
			}
			if !stream {
				whole, err := client.Responses.New(ctx, params)
				if err != nil {
					return used, err
				}
				return usage{whole.Usage.InputTokens, whole.Usage.OutputTokens}, nil
			}
			err = drain(client.Responses.NewStreaming(ctx, params), enough, func(p responses.ResponseStreamEventUnion) {
				used = usage{p.Response.Usage.InputTokens, p.Response.Usage.OutputTokens}
			})
			return used, err
		}
	}
}

func openAIEmbeddings(c *http.Client) caller {
	client := openAIClient(c)
	return func(ctx context.Context, prompt string, _, _ int) (usage, error) {
		got, err := client.Embeddings.New(ctx, openai.EmbeddingNewParams{
			Model: openai.EmbeddingModelTextEmbedding3Small,
			Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String(prompt)},
		})
		if err != nil {
			return usage{}, err
		}
		return usage{input: got.Usage.PromptTokens}, nil
	}
}

func anthropicMessages(stream bool) func(*http.Client) caller {
	return func(c *http.Client) caller {
		client := anthropic.NewClient(anthropicoption.WithHTTPClient(c), anthropicoption.WithAPIKey("key"),
			anthropicoption.WithBaseURL("https://api.anthropic.com"))
		return func(ctx context.Context, prompt string, most, enough int) (used usage, err error) {
			params := anthropic.MessageNewParams{
				Model: "claude-sonnet-4-5", MaxTokens: int64(most),
				Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(prompt))},
			}
			if !stream {
				whole, err := client.Messages.New(ctx, params)
				if err != nil {
					return used, err
				}
				return usage{whole.Usage.InputTokens, whole.Usage.OutputTokens}, nil
			}
			var all anthropic.Message
			var failed error
			err = drain(client.Messages.NewStreaming(ctx, params), enough, func(p anthropic.MessageStreamEventUnion) {
				failed = errors.Join(failed, all.Accumulate(p))
			})
			return usage{all.Usage.InputTokens, all.Usage.OutputTokens}, errors.Join(err, failed)
		}
	}
}

func geminiContent(stream bool) func(*http.Client) caller {
	return func(c *http.Client) caller {
		client, failed := genai.NewClient(context.Background(), &genai.ClientConfig{
			APIKey: "key", Backend: genai.BackendGeminiAPI, HTTPClient: c,
			HTTPOptions: genai.HTTPOptions{BaseURL: "https://generativelanguage.googleapis.com"},
		})
		told := func(r *genai.GenerateContentResponse) usage {
			return usage{int64(r.UsageMetadata.PromptTokenCount), int64(r.UsageMetadata.CandidatesTokenCount)}
		}
		return func(ctx context.Context, prompt string, most, enough int) (used usage, err error) {
			if failed != nil {
				return used, failed
			}
			config := &genai.GenerateContentConfig{MaxOutputTokens: int32(most)}
			if !stream {
				whole, err := client.Models.GenerateContent(ctx, "gemini-2.5-flash", genai.Text(prompt), config)
				if err != nil {
					return used, err
				}
				return told(whole), nil
			}
			n := 0
			for piece, err := range client.Models.GenerateContentStream(ctx, "gemini-2.5-flash", genai.Text(prompt), config) {
				if err != nil {
					return used, err
				}
				used = told(piece)
				if n++; n == enough {
					break
				}
			}
			return used, nil
		}
	}
}
