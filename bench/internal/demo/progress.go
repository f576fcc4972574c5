package demo

import (
	"fmt"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// A progress shows how many calls have ended: as a bar on a terminal, and elsewhere, where a bar
// would leave nothing but control characters, as a line now and then.
type progress struct {
	name  string
	calls int
	begin time.Time
	bar   *progressbar.ProgressBar // nil: no terminal
}

func newProgress(name string, calls int) *progress {
	p := &progress{name: name, calls: calls, begin: time.Now()}
	if term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("TERM") != "dumb" {
		p.bar = progressbar.NewOptions(calls,
			progressbar.OptionSetWriter(os.Stderr),
			progressbar.OptionSetDescription(p.title(0)),
			progressbar.OptionSetWidth(40),
			progressbar.OptionShowCount(),
			progressbar.OptionSetElapsedTime(true),
			progressbar.OptionSetPredictTime(false),
			progressbar.OptionThrottle(50*time.Millisecond),
			progressbar.OptionSetRenderBlankState(true))
	}
	return p
}

func (p *progress) title(failed int) string {
	if failed == 0 {
		return fmt.Sprintf("%-19s", p.name)
	}
	return fmt.Sprintf("%-8s%4d failed", p.name, failed)
}

// done says how many calls were answered and how many failed.
func (p *progress) done(answered, failed int) {
	n := answered + failed
	switch {
	case p.bar != nil:
		p.bar.Describe(p.title(failed))
		p.bar.Set(n)
	case n%max(1, p.calls/4) == 0:
		fmt.Fprintf(os.Stderr, "%s: %d of %d calls answered and %d failed after %.1f s\n",
			p.name, answered, p.calls, failed, time.Since(p.begin).Seconds())
	}
}

// end leaves the bar as it is.
func (p *progress) end() {
	if p.bar != nil {
		p.bar.Exit()
		fmt.Fprintln(os.Stderr)
	}
}
