// Package pacevet finds mistakes in the use of rate limiters: golang.org/x/time/rate's, those of
// reserve/plug/xtime/rate, and pace's own. Run it before you move a program from golang.org/x/time/rate to pace.
//
//	go install github.com/nextfree/pace/reserve/plug/pacevet/cmd/pacevet@latest
//	pacevet ./...
//	go vet -vettool=$(which pacevet) ./...    # the same findings, cached
//
// Each analyzer's Doc has the reason, what it leaves alone, and what to write instead:
//
//	defercancel  a deferred Cancel gives back what was used
//	perrequest   a limiter, transport or middleware that is made for each request limits nothing
//	negative     a negative number of tokens, to give some back
//	errortext    a limiter's error is recognized by its text
//	dropped      a reservation is taken, and nobody waits for it
//	ignored      the answer of Wait, Acquire or Allow is ignored, so refused callers go too
//	nanoseconds  a duration without a unit: window.New(100, 60) is 100 in 60 ns
//	remoteaddr   a key with the client's port: each connection is another client
//	tenants      a tenant of a queue that is made without WithTenants
//
// An analyzer would rather miss a mistake than name code that is right. Assign to the blank identifier what is dropped
// on purpose (_ = lim.Wait(ctx)).
package pacevet

import (
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
)

// Analyzers are all of this package. The slice is the caller's.
func Analyzers() []*analysis.Analyzer {
	return []*analysis.Analyzer{
		DeferCancel, PerRequest, Negative, ErrorText, Dropped, Ignored, Nanoseconds, RemoteAddr, Tenants,
	}
}

func analyzer(name, doc string, run func(*analysis.Pass)) *analysis.Analyzer {
	lower := strings.ToLower(name)
	return &analysis.Analyzer{
		Name: lower, Doc: lower + ": " + doc, Requires: []*analysis.Analyzer{inspect.Analyzer},
		URL: "https://pkg.go.dev/github.com/nextfree/pace/reserve/plug/pacevet#" + name,
		Run: func(pass *analysis.Pass) (any, error) {
			run(pass)
			return nil, nil
		},
	}
}
