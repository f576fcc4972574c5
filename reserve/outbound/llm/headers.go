package llm

type header struct {
	kind             kind
	limit, remaining string
	unless           string // another header's name: if that is there, this one does not count
}

// headers are read with every preset. Together's and OpenRouter's (x-ratelimit-limit) tell no unit of time.
//
//	OpenAI, Azure OpenAI, Groq   x-ratelimit-limit-requests, -tokens (Groq's requests are of a day)
//	Mistral                      x-ratelimit-limit-req-minute, -tokens-minute
//	Cerebras                     x-ratelimit-limit-requests-minute, -tokens-minute (and -day, -hour)
//	Anthropic                    anthropic-ratelimit-requests-limit, -tokens-, -input-tokens-, -output-tokens-
var headers = []header{
	rateLimit(requests, "Requests"), rateLimit(tokens, "Tokens"),
	rateLimit(requests, "Req-Minute"), rateLimit(requests, "Requests-Minute"), rateLimit(tokens, "Tokens-Minute"),
	anthropics(requests, "Requests"), anthropics(inputTokens, "Input-Tokens"), anthropics(outputTokens, "Output-Tokens"),
	{ // the closest of the others
		tokens, "Anthropic-Ratelimit-Tokens-Limit", "Anthropic-Ratelimit-Tokens-Remaining",
		"Anthropic-Ratelimit-Input-Tokens-Limit",
	},
}

func rateLimit(k kind, name string) header {
	return header{kind: k, limit: "X-Ratelimit-Limit-" + name, remaining: "X-Ratelimit-Remaining-" + name}
}

func anthropics(k kind, name string) header {
	name = "Anthropic-Ratelimit-" + name
	return header{kind: k, limit: name + "-Limit", remaining: name + "-Remaining"}
}
