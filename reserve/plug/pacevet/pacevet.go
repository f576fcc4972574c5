// Package pacevet finds mistakes in the use of rate limiters: golang.org/x/time/rate's, those of the package
// that has its API on pace (reserve/plug/xtime/rate), and pace's own. The command of this name runs all of it:
//
//	go install github.com/nextfree/pace/reserve/plug/pacevet/cmd/pacevet@latest
//	pacevet ./...
//	pacevet -fix ./...                        # mends what can be mended without a thought
//	go vet -vettool=$(which pacevet) ./...    # the same findings, cached
//
// Run it before you move a program from golang.org/x/time/rate to pace: what it names is what `go fix` can't carry
// over.
//
// A finding is about one of these. Each analyzer's Doc has the reason, what it leaves alone, and what to write instead:
//
//	defercancel  a deferred Cancel gives back what was used
//	perrequest   a limiter that is made for each request limits nothing
//	retrywait    one Wait before a loop of attempts: all but the first go unpaced
//	negative     a negative number of tokens, to give some back
//	errortext    a limiter's error is told by its text
//	dropped      a reservation is taken, and nobody waits for it
//	ignored      Wait's or Acquire's error is ignored, so those refused go too
//	nanoseconds  a duration without a unit: window.New(100, 60) is 100 in 60 ns
//
// An analyzer would rather miss a mistake than name code that is right. Assign to the blank identifier what is dropped
// on purpose (_ = lim.Wait(ctx)): that is never named. Checks that are about production leave tests alone.
package pacevet

import "golang.org/x/tools/go/analysis"

// Analyzers are all of this package. The slice is the caller's.
func Analyzers() []*analysis.Analyzer {
	return []*analysis.Analyzer{DeferCancel, PerRequest, RetryWait, Negative, ErrorText, Dropped, Ignored, Nanoseconds}
}
