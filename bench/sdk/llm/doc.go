// Package llm has the clients of OpenAI, Anthropic and Google, unmodified, call language models
// through pace, in its tests: see the folder server for what they call, and cmd for what can be
// run.
package llm
