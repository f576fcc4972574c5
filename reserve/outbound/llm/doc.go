// Package llm paces the calls that a program makes to language models: requests and tokens a
// minute, for each credential and model, by an *http.Client that the provider's own SDK is given.
//
// With OpenAI's (github.com/openai/openai-go/v3):
//
//	transport, err := llm.New(nil, llm.OpenAI(), llm.Limits{RequestsPerMinute: 500, TokensPerMinute: 200_000})
//	...
//	client := openai.NewClient(option.WithHTTPClient(&http.Client{Transport: transport}))
//
// with Anthropic's (github.com/anthropics/anthropic-sdk-go):
//
//	transport, err := llm.New(nil, llm.Anthropic(), llm.Limits{RequestsPerMinute: 1000, InputTokensPerMinute: 450_000, OutputTokensPerMinute: 90_000})
//	...
//	client := anthropic.NewClient(option.WithHTTPClient(&http.Client{Transport: transport}))
//
// and with Google's (google.golang.org/genai):
//
//	transport, err := llm.New(nil, llm.Gemini(), llm.Limits{RequestsPerMinute: 150, InputTokensPerMinute: 2_000_000, RequestsPerDay: 10_000})
//	...
//	client, err := genai.NewClient(ctx, &genai.ClientConfig{HTTPClient: &http.Client{Transport: transport}})
//
// Limits of OpenAI, Azure and Anthropic need not be given: the first call goes alone then, for ten
// seconds at most, and its response tells them. Calls that the SDK makes again wait in line like all others.
//
// # What it does
//
// A call waits in one line in front of all of its limits, and is charged to all of them at the
// moment it goes: one request, and what it is estimated to use. When its response ends (at its end,
// when it is closed, fails, or its context ends) each limit is settled at what the response says
// was used. If that is less, those who wait go earlier. A response that says nothing keeps its
// estimate. A refused call has used no tokens, nor has one that the provider rejected (status 400
// to 499).
//
// Each limit is a window of a minute plus a margin of 250 ms, for what is late on its way
// ([WithMargin]): no stretch of 60.25 s holds more than the limit. So there is no burst beyond the limit, whether the provider
// counts in windows or with a token bucket. A real trace of 8,819 calls against 1,000 requests and
// 2,000,000 tokens in any minute took 9.20 min, where 9.17 min are the optimum, and none was
// refused; nor with estimates that were half or twice what they should be.
//
// A call that would wait past its deadline fails at once, with a *[reserve.WaitError]; see
// [AnswerRefusals]. A call that is larger than a limit goes when that is full. When the provider
// refuses one all the same, and says for how long, the calls of that key wait until then.
//
// # Presets
//
//	               limits                       learned  held for a call, from its body    read from the response                 settled
//	OpenAI         requests, tokens             yes      prompt + max tokens * n, best_of  usage, response.usage                  yes
//	Azure OpenAI   requests over 10 s, tokens   yes      the same                          nothing                                no: kept
//	Anthropic      requests, input, output      yes      prompt; max_tokens                usage, message_start, message_delta    yes
//	Gemini         requests, input (tokens)     no       prompt; maxOutputTokens           usageMetadata, the last one            yes
//	Bedrock        requests, tokens             no       prompt + maxTokens                usage, metrics, token count headers    yes
//
// All of [Limits] may be given for each of them. Input that was read from a cache costs nothing at
// Anthropic and Bedrock; at OpenAI and Gemini it counts like other input.
//
// # Estimates
//
// A prompt is the text in the request's body, at four bytes to a token (a blob, such as an image,
// is 1,000), corrected by what the last fifty calls of its key or so came to, and by how much they
// differed. Until one has ended it counts twice. Output is the most that the request allows, since
// that is what providers hold; if it allows any, it is what others have put out, at first 500
// tokens. Where the provider keeps what it estimated, nothing is corrected. [WithEstimate] puts a
// function in place of all that.
//
// So a max_tokens that is far too high costs speed while the call is on its way: at 200,000 tokens
// a minute and a max_tokens of 4,096, at most 48 calls are on their way.
//
// # Streams
//
// The caller gets the same bytes, as soon as they come. Server-sent events, JSON (also as a list,
// or one document after another) and AWS's event streams are read beside it; lines and events of
// more than 1 MiB are passed on and not read. OpenAI tells the usage of a stream only if the
// request has stream_options.include_usage. Where the caller has set Accept-Encoding itself, the
// body is not decoded and the estimate stays; http.Transport's own compression is no matter. A
// stream whose caller goes away keeps the last usage that was seen: of Anthropic that is its input
// and the output told so far. A usage that can't be right (negative, more than 16,777,216 tokens,
// in a broken event) is not heeded, but counted: [Transport.Ignored].
//
// # Keys
//
// The limits hold for each host, credential and model. Of a credential nothing is kept but a part
// of its SHA-256. There are at most 1,024 keys at a time ([WithMaxKeys]), whatever models are asked
// for. For many machines that use one quota see [WithLimiters].
//
// # Limits of the thing
//
// Other programs that use the same quota are seen only by the refusals that they cause. Models that
// share one limit (Anthropic's families) are limited each by itself: give each its part by
// [WithModel]. Fixed windows, such as a day that begins at midnight, are taken for rolling ones,
// which is never too much. Tokens that a provider counts and its usage does not say (Bedrock's output
// at five times its number, for some models) are not known. An audio or a file that is sent as a form
// costs a request and no tokens.
package llm
