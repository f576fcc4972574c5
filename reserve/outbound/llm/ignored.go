package llm

import "sync"

// Ignored counts what the transport could not believe or read, and the calls that it could not pace as it should.
// The caller got every response as it was.
type Ignored struct {
	Negative uint64 // usages with a negative number
	Absurd   uint64 // usages of more than 16,777,216 tokens
	Broken   uint64 // events or bodies that tell a usage, but are not JSON or are cut off; numbers that are not whole
	Encoded  uint64 // bodies in an encoding that the caller asked for itself, such as gzip
	Missing  uint64 // responses without a usage: charged their estimate, and the text that they put out
	Limits   uint64 // headers with a limit that is not a number from 1 to 2^40, or that no second response confirms
	Unpaced  uint64 // requests that no limit was charged for: lists of models, batches, uploads, counts of tokens
	Crowded  uint64 // calls whose key found no place, and that share one set of limits: see [WithMaxKeys]
}

type ignored struct {
	mu sync.Mutex
	Ignored
}

func (i *ignored) add(in *uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	*in++
}

func (i *ignored) read() Ignored {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.Ignored
}
