package llm

import (
	"math"
	"sync"
	"time"
)

const (
	forget  = 0.98 // what a call weighs when another one has come: the latest fifty count
	caution = 3.0  // standard deviations
	// enough calls that tell no usage show that none will. Their estimates are taken as they are then.
	enough = 10
)

// A forecast predicts what calls use from their estimates and from what the calls before them used. Knowing nothing, it
// says twice the estimate. After three calls that used what was estimated it says 1.1 times the estimate, after ten 1.01
// times.
type forecast struct {
	calls           float64 // that told a usage
	used, estimated float64 // sums, in which older calls weigh less
	spread          float64 // sum of squares: use beside the mean ratio, in estimates
}

func (f *forecast) learn(estimated, used int) {
	e, u := math.Max(1, float64(estimated)), float64(used)
	if f.calls > 0 {
		off := u/e - f.used/f.estimated
		f.spread = forget*f.spread + off*off
	}
	f.calls++
	f.used, f.estimated = forget*f.used+u, forget*f.estimated+e
}

// expect returns what to reserve for a call. The safety margin shrinks with the number of other calls in flight,
// because only their sum must not be too low.
func (f *forecast) expect(estimated, others int) int {
	if f.calls == 0 {
		return bounded(2 * float64(estimated))
	}
	if estimated < 1 {
		return f.mean(1)
	}
	ratio, proof := f.used/f.estimated, f.calls*f.calls
	ratio = (proof*ratio + math.Max(2, ratio)) / (proof + 1)
	weight := (1 - math.Pow(forget, f.calls)) / (1 - forget)
	margin := caution * math.Sqrt(f.spread/weight/float64(1+others))
	return bounded(float64(estimated) * (ratio + margin))
}

// mean returns what calls of that estimate use on average, as far as is known.
func (f *forecast) mean(estimated int) int {
	if f.calls == 0 {
		return estimated
	}
	return bounded(float64(estimated) * f.used / f.estimated)
}

func bounded(tokens float64) int { return int(math.Min(math.Ceil(tokens-1e-6), maxTokens)) }

// A class holds what the calls of one kind have used: calls of one key to one endpoint, streamed or not, with or
// without state that the server keeps.
type class struct {
	kind kindOfCall

	mu            sync.Mutex
	input, output forecast
	outputs       float64 // the mean of calls that set a maximum, for those that break
	untold        int32   // calls that told no usage, as long as none has told one

	// held is what the server reserves for the output of a call that sets no maximum, as its refusals show.
	held  int32
	since int64 // when held was raised, in nanoseconds since 1970

	first *gate // of calls whose input can't be estimated, as long as none has told a usage
}

// A kindOfCall tells classes apart.
type kindOfCall struct {
	endpoint               string
	streamed, state, blobs bool
}

// maxClasses bounds the classes of a key: further kinds share the last one.
const maxClasses = 8

// expect returns what to reserve for a call.
func (k *class) expect(p *prompt, others int, now time.Time) (input, output int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.untold >= enough {
		return p.input, max(p.output, k.holds(p, now))
	}
	input, output = k.input.expect(p.input, others), p.output
	if !p.most {
		output = max(k.output.expect(p.output, others), k.holds(p, now))
	}
	return input, output
}

// told adds a call whose response told its usage.
func (k *class) told(p *prompt, n count) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.untold = 0
	defer k.first.open()
	k.input.learn(p.input, n.input)
	if p.most {
		k.outputs += (float64(n.output) - k.outputs) / min(k.input.calls, 50)
	} else {
		k.output.learn(p.output, n.output)
	}
}

// guess returns what a call is charged whose response told no usage.
func (k *class) guess(p *prompt) (input, output int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	output = p.output
	switch {
	case !p.most:
		output = k.output.mean(output)
	case k.input.calls > 0:
		output = min(output, bounded(k.outputs))
	default:
		output = min(output, guessedOutput*max(1, p.choices))
	}
	return k.input.mean(p.input), output
}

// tellsNone adds a call whose response told no usage.
func (k *class) tellsNone() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.input.calls == 0 {
		if k.untold++; k.untold >= enough {
			k.first.open()
		}
	}
}

// isKnown reports whether calls that refer to the server's state can be estimated, or never will be.
func (k *class) isKnown() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.input.calls > 0 || k.untold >= enough
}

const (
	firstHeld = 512
	mostHeld  = 8192
	heldFor   = 5 * time.Minute // without a refusal; then half of it
)

// holds returns what the server is believed to reserve for the output of a call without a maximum.
func (k *class) holds(p *prompt, now time.Time) int {
	if k.held == 0 || p.most {
		return 0
	}
	for k.held > 0 && now.UnixNano()-k.since > int64(heldFor) {
		if k.held /= 2; k.held < firstHeld {
			k.held = 0
		}
		k.since += int64(heldFor)
	}
	return int(k.held)
}

// refused adds a refusal of a call without a maximum, for which there should have been room. The server reserves more
// for such calls than they use. No provider says how much, so what is held doubles, from 512 to 8,192 tokens. A refusal
// of a call that was sent before the latest raise says nothing new.
func (k *class) refused(sent, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if sent.UnixNano() < k.since && k.held > 0 {
		return
	}
	k.held, k.since = min(max(firstHeld, 2*k.held), mostHeld), now.UnixNano()
}
