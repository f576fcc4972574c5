package outbound

import (
	"log/slog"
	"net/http"
	"sync"
	"time"
)

type waitLog struct {
	logger     *slog.Logger
	longerThan time.Duration
	going      logLines
	over       logLines
	misfits    logLines
}

func (l *waitLog) waited(now time.Time, r *http.Request, d time.Duration) {
	if l != nil && d > l.longerThan {
		l.over.write(l.logger, now, r, "outbound: waited before sending a request, to keep to a rate limit", "wait", d)
	}
}

func (l *waitLog) waits(now time.Time, r *http.Request, so time.Duration, w Waiting) {
	l.going.write(l.logger, now, r, "outbound: a request waits, to keep to a rate limit",
		"so far", so, "limit", w.Limit, "why", w.Why, "until", w.Until)
}

// logLines are of one kind, at most one a second.
type logLines struct {
	mu     sync.Mutex
	last   time.Time
	others int
}

const logEvery = time.Second

func (l *logLines) write(to *slog.Logger, now time.Time, r *http.Request, message string, about ...any) {
	l.mu.Lock()
	if !l.last.IsZero() && now.Sub(l.last) < logEvery {
		l.others++
		l.mu.Unlock()
		return
	}
	others := l.others
	l.last, l.others = now, 0
	l.mu.Unlock()
	to.InfoContext(r.Context(), message, append(about, "method", r.Method, "host", r.URL.Host, "others", others)...)
}
