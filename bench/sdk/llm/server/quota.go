package server

import (
	"cmp"
	"time"
)

// A Quota is what a credential may ask of a model.
type Quota struct {
	// In any window; 0: as many as one likes.
	Requests, Tokens, InputTokens, OutputTokens int
	// Window is what the provider calls a minute. Default: a minute.
	Window time.Duration
	// RequestWindow is the time over which requests are counted: with 600 requests in a window of a
	// minute and a request window of 10 s, 100 in any 10 s. Azure does that. Default: Window.
	RequestWindow time.Duration
	// Bucket has token buckets count, which are full at the start and let up to twice as much
	// through in the first window. Default: exact windows.
	Bucket bool
	// Charging says what is charged when. Default: Settled.
	Charging Charging
}

// Charging is what a provider charges a call, in tokens, and when. Cached tokens of the prompt are
// free where the provider says so: at Anthropic.
type Charging int

const (
	// Settled: the prompt and max_tokens when the call arrives, and from its end on what it came
	// to, as Anthropic and Bedrock say.
	Settled Charging = iota
	// Kept: the prompt and max_tokens, for good, as Azure OpenAI says.
	Kept
	// Foreseen: when it arrives, what the call will come to.
	Foreseen
)

// The names of limits.
const (
	requests     = "requests"
	tokens       = "tokens"
	inputTokens  = "input-tokens"
	outputTokens = "output-tokens"
)

// An account is the memory of a quota, of one credential and model.
type account struct {
	charging Charging
	meters   []*meter
}

func newAccount(q Quota) *account {
	window := cmp.Or(q.Window, time.Minute)
	often := cmp.Or(q.RequestWindow, window)
	a := &account{charging: q.Charging}
	for _, m := range []*meter{
		newMeter(requests, int(int64(q.Requests)*int64(often)/int64(window)), q.Requests, often, q.Bucket),
		newMeter(tokens, q.Tokens, q.Tokens, window, q.Bucket),
		newMeter(inputTokens, q.InputTokens, q.InputTokens, window, q.Bucket),
		newMeter(outputTokens, q.OutputTokens, q.OutputTokens, window, q.Bucket),
	} {
		if m != nil {
			a.meters = append(a.meters, m)
		}
	}
	return a
}

// A refusal is why a call is not answered.
type refusal struct {
	limit                string
	allowed, asked, left int
	wait                 time.Duration
	larger               bool // than could ever be allowed
}

// admit charges a call, whose reply counts for so many tokens, to all limits or to none, and says
// why if it is none.
func (a *account) admit(now time.Time, c *call) *refusal {
	reply := c.most
	if a.charging == Foreseen {
		reply = c.reply
	}
	var why *refusal
	for _, m := range a.meters {
		n := c.cost(m.name, reply)
		if n <= m.left(now) {
			continue
		}
		r := &refusal{limit: m.name, allowed: m.limit, asked: n, left: m.left(now), wait: m.wait(now, n), larger: n > m.limit}
		if why == nil || r.larger || r.wait > why.wait && !why.larger {
			why = r
		}
	}
	if why != nil {
		return why
	}
	for _, m := range a.meters {
		c.charges = append(c.charges, m.take(now, c.cost(m.name, reply)))
	}
	return nil
}

// settle corrects what a call was charged, when its reply has come to so many tokens.
func (a *account) settle(now time.Time, c *call, reply int) {
	if a.charging != Settled {
		return
	}
	for i, m := range a.meters {
		m.correct(now, c.charges[i], c.cost(m.name, reply))
	}
}

// cost returns what a call costs at a limit, if its reply has so many tokens.
func (c *call) cost(limit string, reply int) int {
	switch limit {
	case requests:
		return 1
	case inputTokens:
		return c.counted
	case outputTokens:
		return reply
	default:
		return c.counted + reply
	}
}
