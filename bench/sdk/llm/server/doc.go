// Package server is an HTTP server that speaks as providers of language models do, over the limits of a
// [pacetest.Server]: a number of requests and of tokens in any minute.
//
// It speaks OpenAI's chat completions, responses and embeddings, Azure OpenAI's chat completions, Anthropic's messages
// and Gemini's generateContent, each with its headers, its stream of events and its refusals. The replies mean nothing.
// A prompt says how long its reply is, and how it comes: see [Prompt].
package server
