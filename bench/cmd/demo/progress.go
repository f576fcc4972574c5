package main

import (
	"fmt"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// A progress shows how many calls have been answered: as a bar on a terminal, and
// elsewhere, where a bar would leave nothing but control characters, as a line now and then.
type progress struct {
	name  string
	begin time.Time
	bar   *progressbar.ProgressBar // nil: no terminal
}

func newProgress(name string) *progress {
	p := &progress{name: name, begin: time.Now()}
	if term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("TERM") != "dumb" {
		p.bar = progressbar.NewOptions(calls,
			progressbar.OptionSetWriter(os.Stderr),
			progressbar.OptionSetDescription(fmt.Sprintf("%-8s", name)),
			progressbar.OptionSetWidth(40),
			progressbar.OptionShowCount(),
			progressbar.OptionSetElapsedTime(true),
			progressbar.OptionSetPredictTime(false),
			progressbar.OptionThrottle(50*time.Millisecond),
			progressbar.OptionSetRenderBlankState(true))
	}
	return p
}

// done says how many calls have been answered.
func (p *progress) done(n int) {
	switch {
	case p.bar != nil:
		p.bar.Set(n)
	case n%(calls/3) == 0:
		fmt.Fprintf(os.Stderr, "%s: %d of %d calls answered after %.1f s\n", p.name, n, calls, time.Since(p.begin).Seconds())
	}
}

// end leaves the bar as it is.
func (p *progress) end() {
	if p.bar != nil {
		p.bar.Exit()
		fmt.Fprintln(os.Stderr)
	}
}
