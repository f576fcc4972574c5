// Package llm paces the calls that a program makes to language models: requests and tokens a minute, for each
// credential and model ([Key]). It is an [http.RoundTripper] for the client of the provider's own SDK.
//
//	transport, err := llm.New(nil, llm.OpenAI(), llm.Limits{RequestsPerMinute: 500, TokensPerMinute: 200_000})
//	...
//	client := openai.NewClient(option.WithHTTPClient(&http.Client{Transport: transport}))
//
// # How a call is paced
//
// A call waits in one line for all of its limits. When it goes, it is charged one request and its expected tokens; when
// its response ends, what the response says. A refused call, and a call answered with a status from 400 to 499, uses no
// tokens. A call that would wait past its deadline fails at once with a *[reserve.WaitError]: see [AnswerRefusals].
//
// A limit is a window of a minute plus 250 ms ([WithMargin]), so no call is refused, whether the provider counts in
// windows or in token buckets that hold a minute's worth ([WithBucket]). A real trace of 8,819 calls against 1,000
// requests and 2,000,000 tokens a minute took 9.20 min; 9.17 min are the optimum.
//
// # Presets
//
//	               limits                       learned  reserved before a call       settled
//	OpenAI         requests, tokens             yes      prompt + max tokens * n      yes
//	Azure OpenAI   requests over 10 s, tokens   yes      the same                     no: the estimate stays charged
//	Anthropic      requests, input, output      yes      prompt; max_tokens           yes
//	Gemini         requests, input (tokens)     no       prompt; maxOutputTokens      yes
//	Bedrock        requests, tokens             no       prompt + maxTokens           yes
//
// Each preset takes all [Limits], and reads the usage of every provider. Where limits are learned, the first call goes
// alone, for ten seconds at most.
//
// # What a call is expected to use
//
// The prompt is estimated from the request's characters: for most of 41 kinds of text within 20 % of OpenAI's
// o200k_base. An image is 1,000 tokens; a PDF, sound and video go by size. The output is the most that the request
// allows: with a max_tokens of 4,096 at most 48 calls are in flight at 200,000 tokens a minute. Without a maximum it is
// the mean of earlier calls, at first 500 tokens; for embeddings, moderations, speech and reranking 0.
//
// The latest fifty calls of a kind correct the estimate. A kind is an endpoint of a key, streamed or not, with or
// without files, with or without a reference to something that the server keeps or fetches. Until a call of its kind
// has ended, twice the estimate is reserved; with a reference, the first call goes alone, for ten seconds at most.
//
// # Responses
//
// The caller gets the same bytes, as soon as they come. JSON, server-sent events and AWS's event streams are read
// beside it, and charged:
//
//	a response that tells no usage, or breaks before    the estimate of its prompt and of its text; if there is no
//	                                                    text, the mean output of its kind
//	a stream that ends with an error                    what it put out; after an overload or a rate limit the key's
//	                                                    calls stop for a second, or as long as it says
//	no response, or a status from 500 on                the estimate, once: see [RefundFailures]
//	a response in the background (OpenAI)               what the GET that asks for it tells
//
// # Limitations
//
// Two to ten programs on one quota have equal shares, use 92 to 98 % of it, and 0 to 6 % of their calls are refused. A
// program that comes late has two thirds of its share after 20 minutes. Models that share one limit need a part of it
// each ([WithModel]).
//
// Days are rolling, not calendar days. Some models of Bedrock count an output token five times, and their usage does
// not say so. A file that is sent as a form costs a request and no tokens. Lists of models, batches, uploads and counts
// of tokens use no limit.
package llm
