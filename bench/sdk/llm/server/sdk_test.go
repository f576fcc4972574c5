package server_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/azure"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"github.com/nextfree/pace/bench/sdk/llm/internal/memory"
	"github.com/nextfree/pace/bench/sdk/llm/server"
)

// serve runs a test in simulated time, with a server that allows so much.
func serve(t *testing.T, q server.Quota, http2 bool, test func(t *testing.T, s *server.Server, client *http.Client)) {
	synctest.Test(t, func(t *testing.T) {
		s := server.New(q)
		base, stop := memory.Server(s, http2)
		defer stop()
		test(t, s, &http.Client{Transport: base})
	})
}

var (
	free   = server.Quota{Requests: 1_000_000, Tokens: 1_000_000}
	prompt = server.Prompt(100, server.Orders{Reply: 40, Chunks: 5, Takes: time.Second, Cached: 30})
)

func chat(stream bool) openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{
		Model: "gpt-4o", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)}, MaxCompletionTokens: openai.Int(60),
	}
	if stream {
		p.StreamOptions.IncludeUsage = openai.Bool(true)
	}
	return p
}

func requireCharged(t *testing.T, s *server.Server, calls, each int) {
	t.Helper()
	c := s.Counts()
	require.Equal(t, calls, c.Answered)
	require.Equal(t, calls*each, c.Tokens)
	require.Zero(t, c.Refused)
}

func TestOpenAI(t *testing.T) {
	serve(t, free, false, func(t *testing.T, s *server.Server, hc *http.Client) {
		client := openai.NewClient(option.WithHTTPClient(hc), option.WithBaseURL("https://api.openai.com/v1"), option.WithAPIKey("key"))
		whole, err := client.Chat.Completions.New(t.Context(), chat(false))
		require.NoError(t, err)
		require.Len(t, whole.Choices[0].Message.Content, 160)
		require.EqualValues(t, 140, whole.Usage.TotalTokens)
		require.EqualValues(t, 30, whole.Usage.PromptTokensDetails.CachedTokens)

		begin := time.Now()
		stream := client.Chat.Completions.NewStreaming(t.Context(), chat(true))
		var all openai.ChatCompletionAccumulator
		for stream.Next() {
			require.True(t, all.AddChunk(stream.Current()))
		}
		require.NoError(t, stream.Err())
		require.Equal(t, time.Second, time.Since(begin))
		require.Len(t, all.Choices[0].Message.Content, 160)
		require.EqualValues(t, 140, all.Usage.TotalTokens)
		requireCharged(t, s, 2, 140)
	})
}

func TestOpenAIResponses(t *testing.T) {
	serve(t, free, false, func(t *testing.T, s *server.Server, hc *http.Client) {
		client := openai.NewClient(option.WithHTTPClient(hc), option.WithBaseURL("https://api.openai.com/v1"), option.WithAPIKey("key"))
		params := responses.ResponseNewParams{
			Model: "gpt-4o", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(prompt)}, MaxOutputTokens: openai.Int(60),
		}
		whole, err := client.Responses.New(t.Context(), params)
		require.NoError(t, err)
		require.Len(t, whole.OutputText(), 160)
		require.EqualValues(t, 140, whole.Usage.TotalTokens)

		stream := client.Responses.NewStreaming(t.Context(), params)
		var text string
		var last responses.Response
		for stream.Next() {
			text += stream.Current().AsResponseOutputTextDelta().Delta
			last = stream.Current().Response
		}
		require.NoError(t, stream.Err())
		require.Len(t, text, 160)
		require.EqualValues(t, 140, last.Usage.TotalTokens)
		requireCharged(t, s, 2, 140)
	})
}

func TestOpenAIEmbeddings(t *testing.T) {
	serve(t, free, false, func(t *testing.T, s *server.Server, hc *http.Client) {
		client := openai.NewClient(option.WithHTTPClient(hc), option.WithBaseURL("https://api.openai.com/v1"), option.WithAPIKey("key"))
		got, err := client.Embeddings.New(t.Context(), openai.EmbeddingNewParams{
			Model: openai.EmbeddingModelTextEmbedding3Small,
			Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{server.Prompt(50, server.Orders{}), server.Prompt(30, server.Orders{})}},
		})
		require.NoError(t, err)
		require.Len(t, got.Data, 2)
		require.EqualValues(t, 80, got.Usage.TotalTokens)
		require.Equal(t, 80, s.Counts().Tokens)
	})
}

func TestAzure(t *testing.T) {
	serve(t, free, true, func(t *testing.T, s *server.Server, hc *http.Client) {
		client := openai.NewClient(option.WithHTTPClient(hc), azure.WithEndpoint("https://mine.openai.azure.com", "2024-10-21"), azure.WithAPIKey("key"))
		var response *http.Response
		whole, err := client.Chat.Completions.New(t.Context(), chat(false), option.WithResponseInto(&response))
		require.NoError(t, err)
		require.EqualValues(t, 140, whole.Usage.TotalTokens)
		require.Equal(t, "/openai/deployments/gpt-4o/chat/completions", response.Request.URL.Path)
		require.Equal(t, 2, response.ProtoMajor)
		require.Equal(t, "60", response.Header.Get("X-Ratelimit-Reset-Tokens"))

		stream := client.Chat.Completions.NewStreaming(t.Context(), chat(true))
		var all openai.ChatCompletionAccumulator
		for stream.Next() {
			require.True(t, all.AddChunk(stream.Current()))
		}
		require.NoError(t, stream.Err())
		require.EqualValues(t, 140, all.Usage.TotalTokens)
		requireCharged(t, s, 2, 140)
	})
}

func TestAnthropic(t *testing.T) {
	serve(t, free, false, func(t *testing.T, s *server.Server, hc *http.Client) {
		client := anthropic.NewClient(anthropicoption.WithHTTPClient(hc), anthropicoption.WithBaseURL("https://api.anthropic.com"), anthropicoption.WithAPIKey("key"))
		params := anthropic.MessageNewParams{
			Model: "claude-sonnet-4-5", MaxTokens: 60, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(prompt))},
		}
		whole, err := client.Messages.New(t.Context(), params)
		require.NoError(t, err)
		require.Len(t, whole.Content[0].Text, 160)
		require.EqualValues(t, 70, whole.Usage.InputTokens)
		require.EqualValues(t, 40, whole.Usage.OutputTokens)

		stream := client.Messages.NewStreaming(t.Context(), params)
		var all anthropic.Message
		for stream.Next() {
			require.NoError(t, all.Accumulate(stream.Current()))
		}
		require.NoError(t, stream.Err())
		require.Len(t, all.Content[0].Text, 160)
		require.EqualValues(t, 70, all.Usage.InputTokens)
		require.EqualValues(t, 40, all.Usage.OutputTokens)
		requireCharged(t, s, 2, 110) // 30 were cached
	})
}

func TestGemini(t *testing.T) {
	serve(t, free, false, func(t *testing.T, s *server.Server, hc *http.Client) {
		client, err := genai.NewClient(t.Context(), &genai.ClientConfig{
			APIKey: "key", Backend: genai.BackendGeminiAPI, HTTPClient: hc, HTTPOptions: genai.HTTPOptions{BaseURL: "https://generativelanguage.googleapis.com"},
		})
		require.NoError(t, err)
		config := &genai.GenerateContentConfig{MaxOutputTokens: 60}
		whole, err := client.Models.GenerateContent(t.Context(), "gemini-2.5-flash", genai.Text(prompt), config)
		require.NoError(t, err)
		require.Len(t, whole.Text(), 160)
		require.EqualValues(t, 140, whole.UsageMetadata.TotalTokenCount)

		var text string
		var last *genai.GenerateContentResponse
		for piece, err := range client.Models.GenerateContentStream(t.Context(), "gemini-2.5-flash", genai.Text(prompt), config) {
			require.NoError(t, err)
			text += piece.Text()
			last = piece
		}
		require.Len(t, text, 160)
		require.EqualValues(t, 140, last.UsageMetadata.TotalTokenCount)
		requireCharged(t, s, 2, 140)
	})
}

// The SDKs read how long to stay away, ask again, and give up after two retries.
func TestRefusals(t *testing.T) {
	one := server.Quota{Requests: 1, Window: time.Minute}
	serve(t, one, false, func(t *testing.T, s *server.Server, hc *http.Client) {
		client := openai.NewClient(option.WithHTTPClient(hc), option.WithBaseURL("https://api.openai.com/v1"), option.WithAPIKey("key"))
		begin := time.Now()
		for range 2 {
			_, err := client.Chat.Completions.New(t.Context(), chat(false))
			require.NoError(t, err)
		}
		require.GreaterOrEqual(t, time.Since(begin), time.Minute)
		require.Equal(t, 1, s.Counts().Refused)
	})
	serve(t, server.Quota{Tokens: 50}, false, func(t *testing.T, s *server.Server, hc *http.Client) {
		client := openai.NewClient(option.WithHTTPClient(hc), option.WithBaseURL("https://api.openai.com/v1"), option.WithAPIKey("key"))
		_, err := client.Chat.Completions.New(t.Context(), chat(false))
		var refused *openai.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, "rate_limit_exceeded", refused.Code)
		require.Equal(t, 3, s.Counts().Larger)
	})
	serve(t, one, false, func(t *testing.T, s *server.Server, hc *http.Client) {
		client := anthropic.NewClient(anthropicoption.WithHTTPClient(hc), anthropicoption.WithBaseURL("https://api.anthropic.com"), anthropicoption.WithAPIKey("key"))
		for range 2 {
			_, err := client.Messages.New(t.Context(), anthropic.MessageNewParams{
				Model: "claude-sonnet-4-5", MaxTokens: 60, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(prompt))},
			})
			require.NoError(t, err)
		}
		require.Equal(t, 1, s.Counts().Refused)
	})
	serve(t, one, false, func(t *testing.T, s *server.Server, hc *http.Client) {
		client, err := genai.NewClient(t.Context(), &genai.ClientConfig{
			APIKey: "key", Backend: genai.BackendGeminiAPI, HTTPClient: hc, HTTPOptions: genai.HTTPOptions{BaseURL: "https://generativelanguage.googleapis.com"},
		})
		require.NoError(t, err)
		_, err = client.Models.GenerateContent(t.Context(), "gemini-2.5-flash", genai.Text(prompt), nil)
		require.NoError(t, err)
		_, err = client.Models.GenerateContent(t.Context(), "gemini-2.5-flash", genai.Text(prompt), nil)
		var refused genai.APIError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, "RESOURCE_EXHAUSTED", refused.Status)
		require.Equal(t, "59s", refused.Details[2]["retryDelay"])
	})
}

// A client that goes away in mid-stream is charged for what it got.
func TestClientGoesAway(t *testing.T) {
	serve(t, free, false, func(t *testing.T, s *server.Server, hc *http.Client) {
		client := openai.NewClient(option.WithHTTPClient(hc), option.WithBaseURL("https://api.openai.com/v1"), option.WithAPIKey("key"))
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		stream := client.Chat.Completions.NewStreaming(ctx, chat(true))
		for stream.Next() {
		}
		require.ErrorIs(t, stream.Err(), context.DeadlineExceeded)
		synctest.Wait()
		require.Equal(t, 100+16, s.Counts().Tokens) // two of five pieces
	})
}
