package demo

import (
	"fmt"
	"os"
	"time"
)

// A progress shows how many calls have ended: on a terminal in a line that changes, and elsewhere in a few lines.
type progress struct {
	name     string
	calls    int
	begin    time.Time
	shown    time.Time
	terminal bool
}

func newProgress(name string, calls int) *progress {
	info, err := os.Stderr.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	return &progress{name: name, calls: calls, begin: time.Now(), terminal: terminal}
}

// done says how many calls were answered and how many failed.
func (p *progress) done(answered, failed int) {
	n := answered + failed
	begin, end := "", "\n"
	if p.terminal {
		begin, end = "\r", "\x1b[K" // over the line before; without the rest of that
	}
	soon := time.Since(p.shown) < 50*time.Millisecond
	if n < p.calls && (p.terminal && soon || !p.terminal && n%max(1, p.calls/4) != 0) {
		return
	}
	p.shown = time.Now()
	fmt.Fprintf(os.Stderr, "%s%s: %d of %d calls answered and %d failed after %.1f s%s",
		begin, p.name, answered, p.calls, failed, time.Since(p.begin).Seconds(), end)
}

// end leaves the line as it is.
func (p *progress) end() {
	if p.terminal {
		fmt.Fprintln(os.Stderr)
	}
}
