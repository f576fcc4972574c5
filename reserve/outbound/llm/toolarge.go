package llm

import (
	"fmt"
	"net/http"
)

// TooLargeError says that a call is larger than a limit, and so would be refused whenever it comes.
type TooLargeError struct {
	Limit  string // "tokens", "input-tokens" or "output-tokens", a minute
	Tokens int    // what the call needs at least
	Most   int    // the limit
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("llm: a call of at least %d tokens is larger than the limit of %s, %d", e.Tokens, e.Limit, e.Most)
}

// orTooLarge makes an error of a response that refuses a call which could never go.
func (c *call) orTooLarge(response *http.Response, err error) (*http.Response, error) {
	if err != nil || c == nil || c.large == nil {
		return response, err
	}
	response.Body.Close()
	return nil, c.large
}

func (c *call) fits() error {
	a, t := c.account, c.account.of
	if !t.large && !t.preset.refusesLarge || c.file {
		return nil
	}
	least := count{input: c.input / 2}
	if c.most {
		least.output = c.output
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, k := range []kind{tokens, inputTokens, outputTokens} {
		m := &a.limits[k]
		most := int(m.size.Load())
		if most > 0 && k.of(least) > most && (t.large || m.told > 0) {
			return &TooLargeError{Limit: names[k], Tokens: k.of(least), Most: most}
		}
	}
	return nil
}
