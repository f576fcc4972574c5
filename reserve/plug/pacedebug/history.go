package pacedebug

import (
	"maps"
	"slices"
	"time"
)

const (
	binLength = 5 * time.Second
	bins      = 60 // five minutes
)

type rowKey struct{ kind, name, limit, key string }

// A history is how many callers of a row waited, by bins: the most in each.
type history struct {
	waiting [bins]int // a ring
	last    int64     // the newest bin, in binLengths since 1970
}

// record adds a sample to the history of each row, and puts the histories into the rows. It forgets rows that have not
// been seen for as long as a history lasts.
func (p *Page) record(now time.Time, rows []Row) {
	bin := now.UnixNano() / int64(binLength)
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range rows {
		r := &rows[i]
		key := rowKey{r.Kind, r.Name, r.Limit, r.Key}
		h := p.history[key]
		if h == nil {
			h = &history{last: bin}
			p.history[key] = h
		}
		h.add(bin, r.Waiting)
		r.History = h.list()
	}
	maps.DeleteFunc(p.history, func(_ rowKey, h *history) bool { return bin-h.last >= bins })
}

func (h *history) add(bin int64, waiting int) {
	for h.last < bin {
		h.last = max(h.last+1, bin-bins)
		h.waiting[h.last%bins] = 0
	}
	at := &h.waiting[h.last%bins] // of the newest bin, also if the clock was set back
	*at = max(*at, waiting)
}

func (h *history) list() []int {
	oldest := int((h.last + 1) % bins)
	return slices.Concat(h.waiting[oldest:], h.waiting[:oldest])
}
