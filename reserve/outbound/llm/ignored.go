package llm

import "sync/atomic"

// Ignored counts what was not heeded, because it can't be right or could not be read. The caller
// got it as it was.
type Ignored struct {
	Negative uint64 // usages with a negative number
	Absurd   uint64 // usages of more than 16,777,216 tokens
	Broken   uint64 // events or bodies that say a usage, but are no JSON or cut off; numbers that are none
	Repeated uint64 // usages that another one has replaced, where the provider sends one
	TooLong  uint64 // lines of a stream, or events, of more than 1 MiB
	Encoded  uint64 // bodies in an encoding that the caller asked for itself, such as gzip
	Missing  uint64 // responses without a usage, which keep their estimate
	Limits   uint64 // headers with a limit that is no number from 1 to 2^40
}

type reason int

const (
	_ reason = iota
	negative
	absurd
	broken
	repeated
	tooLong
	encoded
	missing
	badLimit
	reasons
)

// ignored are the counters behind Ignored.
type ignored struct {
	counts [reasons]atomic.Uint64
}

func (i *ignored) add(why reason) { i.counts[why].Add(1) }

func (i *ignored) read() Ignored {
	n := func(why reason) uint64 { return i.counts[why].Load() }
	return Ignored{
		Negative: n(negative), Absurd: n(absurd), Broken: n(broken), Repeated: n(repeated), TooLong: n(tooLong),
		Encoded: n(encoded), Missing: n(missing), Limits: n(badLimit),
	}
}
