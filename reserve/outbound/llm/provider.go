package llm

import (
	"net/http"
	"time"
)

// Provider says how a provider of language models counts, and where it tells its limits. [New] refuses the zero
// Provider.
type Provider struct{ *preset }

type preset struct {
	credential func(*http.Request) []string // finds whose quota a request uses
	settles    bool
	tells      []kind
	// 0: a minute.
	window time.Duration
	bucket time.Duration // see WithBucket
	// refusesLarge: a call above a limit is refused whenever it comes.
	refusesLarge bool
	refusal      string // its body, as a format for the message
	amazon       string // the X-Amzn-Errortype of it
}

// OpenAI is the API of OpenAI, and of servers that speak nearly so: Mistral, Cohere, Ollama, Groq, OpenRouter, vLLM.
// OpenAI does not document that it settles: see [WithSettling]. Streams need [AskForUsage]. The quota is that of the
// Authorization, OpenAI-Organization and OpenAI-Project headers and the model.
func OpenAI() Provider { return Provider{&openAI} }

var openAI = preset{
	credential: byHeaders("Authorization", "Openai-Organization", "Openai-Project"),
	settles:    true, refusesLarge: true,
	tells:   []kind{requests, tokens},
	refusal: `{"error":{"message":%s,"type":"requests","param":null,"code":"rate_limit_exceeded"}}`,
}

// AzureOpenAI is OpenAI's API at Azure, which documents that it gives nothing back. Azure may count requests over 1 s
// instead of 10: see [WithRequestWindow]. The quota is that of the host, the api-key header and the deployment; access
// tokens, which change every hour, do not count.
func AzureOpenAI() Provider { return Provider{&azure} }

var azure = preset{
	credential: byHeaders("Api-Key"), window: 10 * time.Second,
	refusesLarge: openAI.refusesLarge, tells: openAI.tells, refusal: openAI.refusal,
}

// Anthropic is Anthropic's Messages API. Input read from a cache is not charged ([CacheReadsCount]), input written to
// it is. The quota is that of the x-api-key or Authorization header and the model. Limits are token buckets, as
// Anthropic documents: [WithBucket](0) makes windows of them. Claude on Vertex AI and Bedrock is paced by the model in
// the address.
func Anthropic() Provider { return Provider{&anthropic} }

var anthropic = preset{
	credential: byHeaders("X-Api-Key", "Authorization"),
	settles:    true, bucket: time.Minute, tells: []kind{requests, inputTokens, outputTokens},
	refusal: `{"type":"error","error":{"type":"rate_limit_error","message":%s}}`,
}

// Gemini is Google's API of the Gemini models, at the Gemini API or Vertex AI. Its tokens a minute are
// [Limits].InputTokensPerMinute. No header tells a limit. The quota is that of the model and the x-goog-api-key header
// or the address's key; at Vertex AI of the model, the project and the location.
func Gemini() Provider { return Provider{&gemini} }

var gemini = preset{
	credential: geminiCredential, settles: true,
	refusal: `{"error":{"code":429,"message":%s,"status":"RESOURCE_EXHAUSTED"}}`,
}

// Bedrock is AWS's runtime API for models: Converse and InvokeModel, with their streams. Input read from a cache is
// given back when a call ends. No header tells a limit. The quota is that of the host, the access key and the model; a
// temporary access key, which changes every hour, does not count.
func Bedrock() Provider { return Provider{&bedrock} }

var bedrock = preset{
	credential: bedrockCredential, settles: true,
	refusal: `{"message":%s}`,
	amazon:  "ServiceQuotaExceededException", // AWS's SDKs ask again after a ThrottlingException
}
