// Package llm paces the calls that a program makes to language models: requests and tokens a minute, for each
// credential and model. It is an [http.RoundTripper] for the client that the provider's own SDK uses.
//
//	transport, err := llm.New(nil, llm.OpenAI(), llm.Limits{RequestsPerMinute: 500, TokensPerMinute: 200_000})
//	...
//	client := openai.NewClient(option.WithHTTPClient(&http.Client{Transport: transport}))
//
// [New] shows the same for Anthropic's and Google's SDKs. Limits of OpenAI, Azure and Anthropic need not be given: the
// first call goes alone, for ten seconds at most, and its response tells them.
//
// # How a call is paced
//
// A call waits in one line for all of its limits. When it goes, it is charged one request and the tokens that it is
// expected to use; when its response ends, what the response says. Less lets the calls behind it go earlier. A call
// that was refused, or rejected with a status from 400 to 499, has used no tokens.
//
// Each limit is a window of a minute plus a margin of 250 ms ([WithMargin]), so no call is refused, whether the
// provider counts in windows or with token buckets. For buckets [WithBucket] is faster. A real trace of 8,819 calls
// against 1,000 requests and 2,000,000 tokens a minute took 9.20 min, where 9.17 min are the optimum, and no call was
// refused.
//
// A call that would wait past its deadline fails at once with a *[reserve.WaitError]: see [AnswerRefusals]. A call
// larger than a limit goes when the limit is full: see [RefuseTooLarge].
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
// All [Limits] may be given for each preset. The usage of every provider is read with every preset, also that of
// Cohere, Mistral and Ollama: use [OpenAI] for these. Input read from a cache costs nothing at Anthropic and Bedrock.
//
// # What a call is expected to use
//
// The prompt is estimated from the request's characters. For 41 kinds of text that is between 0.6 and 1.8 times what
// OpenAI's o200k_base says, and for most within 20 %. An image is 1,000 tokens; a PDF, sound and video are estimated by
// their size. The output is the most that the request allows, because providers hold as much. Without a maximum it is
// the mean of calls before it, at first 500 tokens. For embeddings, moderations, speech and reranking it is nothing.
// [WithEstimate] replaces both.
//
// The latest fifty calls of a kind correct the estimate. A kind is an endpoint of a key, streamed or not, with or
// without files, with or without a reference to something that the server keeps (an earlier response, a conversation, a
// file, an address, cached content). Until a call of its kind has ended, twice the estimate is reserved. Where a
// reference hides what is read, the first call goes alone, for ten seconds at most. Some providers reserve more for a
// call without a maximum than it uses: their refusals show it, and as much is reserved for five minutes.
//
// A max_tokens that is far too high costs speed while the call is in flight. At 200,000 tokens a minute and a
// max_tokens of 4,096, at most 48 calls are in flight.
//
// # Responses
//
// The caller gets the same bytes, as soon as they come. JSON, server-sent events and AWS's event streams are read
// beside it, and charged:
//
//	a response that tells no usage, or breaks before    the estimate of its prompt and of its text; if there is no
//	                                                    text, the mean output of its kind
//	a stream that ends with an error                    what it put out; after an overload or a rate limit the key's
//	                                                    calls stop for a second
//	no response, or a status from 500 on                the estimate, once: see [RefundFailures]
//	a response in the background (OpenAI)               what the GET that asks for it tells
//
// OpenAI's streams tell a usage only if asked: see [AskForUsage]. A usage that can't be right is ignored and counted:
// see [Transport.Ignored].
//
// # Keys
//
// Limits hold for each host, credential and model ([Key]). [WithKey] joins keys that share a quota. The model is that
// of the address, or else of the body. Of a credential a part of its SHA-256 is kept. There are at most 1,024 keys
// ([WithMaxKeys]). [WithLimiters] is for many machines that share one quota. Lists of models, batches, uploads and
// counts of tokens use no limit; [Ignored] counts them.
//
// # Several deployments, and who goes first
//
// [NewDeployments] uses several keys, or a model at OpenAI and at Azure, as one. Each call goes to the deployment that
// has room for it first, and a refused call goes on to the next at once. The trace above, at 35 times its speed, took
// 99.6 % of the sum of three deployments of 1,000, 500 and 100 requests a minute; deployments chosen at random by their
// limits took 86 %, in turn 17 %. [WithClasses] has people go before a batch.
//
// # Limitations
//
// Other programs on the same quota show by what responses say remains, where they say it, and by refusals. Programs
// that begin together keep equal shares; one that begins later wins its share slowly. Models that share one limit need
// a part of it each: see [WithModel]. Days are rolling, not calendar days. Some models of Bedrock count an output token
// five times, and their usage does not say so. A file that is sent as a form costs a request and no tokens.
package llm
