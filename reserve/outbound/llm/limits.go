package llm

// Limits are what a provider allows for one model and credential. A limit a minute of 0 is learned from the headers of
// the responses, if the provider sends such. Otherwise there is none. A limit above 0 is a ceiling. No response raises
// it, but one that tells a lower limit is followed. If that is less than half of what it was, a second response in
// succession must tell the same. Limits a day are not learned: the server's refusals tell of them.
type Limits struct {
	RequestsPerMinute int
	// TokensPerMinute are those of input and output together.
	TokensPerMinute int
	// InputTokensPerMinute and OutputTokensPerMinute are limits of their own: Anthropic's, and
	// Gemini's TPM, which counts input.
	InputTokensPerMinute, OutputTokensPerMinute int
	RequestsPerDay, TokensPerDay                int // in any 24 hours
	// ImagesPerMinute counts the images that calls to /images/ ask for: n in the request, or one.
	ImagesPerMinute int
}

// A kind is what one limit counts.
type kind int

const (
	requests kind = iota
	tokens
	inputTokens
	outputTokens
	dayRequests
	dayTokens
	images
	calls // without a limit, for a key whose limit of requests is not known: so that refusals stop it
	kinds
)

// names are those of limits, for hooks, for [WithLimiters], and for what servers say of them.
var names = [kinds]string{
	"requests", "tokens", "input-tokens", "output-tokens", "requests-per-day", "tokens-per-day", "images", "",
}

// isTokens reports whether the limit counts tokens, of which the number is known only afterwards.
func (k kind) isTokens() bool {
	switch k {
	case tokens, inputTokens, outputTokens, dayTokens:
		return true
	}
	return false
}

// isDaily reports whether the limit holds for a day.
func (k kind) isDaily() bool { return k == dayRequests || k == dayTokens }

// of returns what a limit of that kind counts of a call.
func (k kind) of(input, output int) int {
	switch k {
	case tokens, dayTokens:
		return sum(input, output)
	case inputTokens:
		return input
	case outputTokens:
		return output
	default:
		return 1
	}
}

// list returns the limits by kind.
func (l *Limits) list() [calls]int {
	return [calls]int{
		l.RequestsPerMinute, l.TokensPerMinute, l.InputTokensPerMinute, l.OutputTokensPerMinute,
		l.RequestsPerDay, l.TokensPerDay, l.ImagesPerMinute,
	}
}

// check returns an error for a limit that makes no sense.
func (l *Limits) check() error {
	for k, n := range l.list() {
		if n < 0 {
			return valueError("the limit of "+names[k], n, "0 or more")
		}
	}
	return nil
}

// sum returns a + b, saturated. Neither is negative.
func sum(a, b int) int {
	if n := a + b; n >= 0 {
		return n
	}
	return int(^uint(0) >> 1)
}
