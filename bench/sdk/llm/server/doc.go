// Package server is an HTTP server that speaks as providers of language models do, and limits its
// callers as they do: a number of requests and of tokens in any minute. It is what pace is tested
// against, so nothing in it is pace's.
//
// It speaks OpenAI's chat completions, responses and embeddings, the same as Azure OpenAI does it,
// Anthropic's messages and Gemini's generateContent, each with its headers, its stream of events
// and its refusals. The replies mean nothing. How long they are, and how they come, is for the
// prompt to say: see [Prompt].
package server
