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
}

// logLines are log logLines of one kind, at most one a second.
type logLines struct {
	mu     sync.Mutex
	last   time.Time
	others int
}

const logEvery = time.Second

func (l *waitLog) waited(now time.Time, r *http.Request, d time.Duration) {
	if l == nil || d <= l.longerThan {
		return
	}
	others, ok := l.over.turn(now)
	if !ok {
		return
	}
	l.logger.InfoContext(r.Context(), "outbound: waited before sending a request, to keep to a rate limit",
		"wait", d, "method", r.Method, "host", r.URL.Host, "others", others)
}

func (l *waitLog) waits(now time.Time, r *http.Request, so time.Duration, w Waiting) {
	others, ok := l.going.turn(now)
	if !ok {
		return
	}
	l.logger.InfoContext(r.Context(), "outbound: a request waits, to keep to a rate limit",
		"so far", so, "limit", w.Limit, "why", w.Why, "until", w.Until, "method", r.Method, "host", r.URL.Host, "others", others)
}

func (l *logLines) turn(now time.Time) (others int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.last.IsZero() && now.Sub(l.last) < logEvery {
		l.others++
		return 0, false
	}
	others, l.last, l.others = l.others, now, 0
	return others, true
}
