package llm

import (
	"math"
	"sync"
)

const (
	forget  = 0.98 // what a call weighs when another one has come: the latest fifty count
	caution = 3.0  // standard deviations
	// enough calls without a usage show that none will tell. Their estimates hold uncorrected.
	enough = 10
)

// forecast corrects estimates: after three calls that used their estimate it adds 10 %, after ten 1 %.
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

// expect returns what to reserve. The margin shrinks with others in flight, since only their sum must suffice.
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

func (f *forecast) mean(estimated int) int {
	if f.calls == 0 {
		return estimated
	}
	return bounded(float64(estimated) * f.used / f.estimated)
}

func bounded(tokens float64) int { return int(math.Min(math.Ceil(tokens-1e-6), maxTokens)) }

type class struct {
	kind kindOfCall

	mu            sync.Mutex
	input, output forecast
	outputs       float64 // the mean of a choice with a maximum, for calls that break; first a guess
	untold        int32   // calls that told no usage, as long as none has told one

	first gate // of calls whose input can't be estimated, as long as none has told a usage
}

type kindOfCall struct {
	endpoint               string
	streamed, state, blobs bool
}

const maxClasses = 8

func (k *class) expect(p *prompt, others int) (n count) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n.input, n.output = p.input, p.output
	if k.untold < enough {
		n.input = k.input.expect(p.input, others)
		if !p.most {
			n.output = k.output.expect(p.output, others)
		}
	}
	return n
}

func (k *class) told(p *prompt, n count) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.untold = 0
	defer k.first.shut(false)
	k.input.learn(p.input, n.input)
	if p.most {
		k.outputs += (float64(n.output)/float64(p.choices) - k.outputs) / min(k.input.calls, 50)
	} else {
		k.output.learn(p.output, n.output)
	}
}

// guess returns the charge for a response without a usage.
func (k *class) guess(p *prompt) (n count) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n.input = k.input.mean(p.input)
	if p.most {
		n.output = min(p.output, bounded(k.outputs*float64(p.choices)))
	} else {
		n.output = k.output.mean(p.output)
	}
	return n
}

func (k *class) tellsNone() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.input.calls == 0 {
		if k.untold++; k.untold >= enough {
			k.first.shut(false)
		}
	}
}
