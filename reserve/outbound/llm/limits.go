package llm

// Limits are what a provider allows for one model and credential. A limit a minute of 0 is learned from the responses'
// headers, if they tell it; otherwise there is none. A limit above 0 is a ceiling: a lower told limit is followed,
// below half of it if two responses in succession tell it. A day's limit is learned where a header's name or its reset
// shows that it is one (Cerebras', Groq's). A limit that no response has told for a day is forgotten.
type Limits struct {
	RequestsPerMinute int
	// TokensPerMinute are input and output together.
	TokensPerMinute int
	// InputTokensPerMinute and OutputTokensPerMinute are Anthropic's, and Gemini's TPM, which counts input.
	InputTokensPerMinute, OutputTokensPerMinute int
	RequestsPerDay, TokensPerDay                int // in any 24 hours
	// ImagesPerMinute counts the images that calls to /images/ ask for: n, or 1.
	ImagesPerMinute int
}

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

var names = [kinds]string{
	"requests", "tokens", "input-tokens", "output-tokens", "requests-per-day", "tokens-per-day", "images", "",
}

func (k kind) isDay() bool { return k == dayRequests || k == dayTokens }

func (k kind) isTokens() bool {
	return k == tokens || k == inputTokens || k == outputTokens || k == dayTokens
}

func (k kind) of(n count) int {
	switch k {
	case tokens, dayTokens:
		return n.input + n.output
	case inputTokens:
		return n.input
	case outputTokens:
		return n.output
	default:
		return 1
	}
}

func (l *Limits) list() [calls]int {
	return [calls]int{
		l.RequestsPerMinute, l.TokensPerMinute, l.InputTokensPerMinute, l.OutputTokensPerMinute,
		l.RequestsPerDay, l.TokensPerDay, l.ImagesPerMinute,
	}
}

func (l *Limits) check() error {
	for k, n := range l.list() {
		if n < 0 {
			return valueError("the limit of "+names[k], n, "0 or more")
		}
	}
	return nil
}

// SetLimits replaces the limits given to [New], for all models without limits of their own. Where a limit grows,
// waiting calls go earlier at once. Where it shrinks they wait longer, but none is refused for it. For a negative limit
// it returns a *[reserve.ValueError] and changes nothing.
func (t *Transport) SetLimits(l Limits) error {
	return t.setLimits(l, func() { t.given = l })
}

// SetModelLimits replaces the limits of one model ([WithModel]), as SetLimits does.
func (t *Transport) SetModelLimits(model string, l Limits) error {
	return t.setLimits(l, func() { t.settings.limits[cutModel(model)] = l })
}

func (t *Transport) setLimits(l Limits, set func()) error {
	if err := l.check(); err != nil {
		return err
	}
	t.table.mu.Lock()
	defer t.table.mu.Unlock()
	set()
	for _, in := range []accounts{t.table.accounts, t.table.others} {
		for key, a := range in {
			a.give(t.limitsOf(key.Model))
		}
	}
	return nil
}
