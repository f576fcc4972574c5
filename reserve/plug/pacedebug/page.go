// Package pacedebug is a page that shows the limiters of a program: their rates, what is stored, who waits and until
// when. It answers "why does my program stand still?" in a browser, as net/http/pprof does for profiles. [New]'s
// example serves it at /debug/pace.
//
// The page refreshes itself every two seconds and loads nothing from elsewhere. /debug/pace?format=json has the same
// as JSON. Show it on an address that only operators reach: it names limits and keys, as a transport's hooks do.
package pacedebug

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/nextfree/pace/internal/invalid"
	"github.com/nextfree/pace/internal/isnil"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/shared"
)

var valueError = invalid.In("pacedebug")

// A Page is an [http.Handler]. Make it with [New]. All methods may be called at the same time.
//
// A row's line shows how many callers waited during the last five minutes. The page takes a sample each time somebody
// looks at it. Run [Page.Sample] for samples while nobody looks.
type Page struct {
	mu      sync.Mutex
	sources []source
	history map[rowKey]*history
}

type source struct {
	kind, name string
	rows       func(context.Context) ([]Row, error)
}

func New() *Page { return &Page{history: map[rowKey]*history{}} }

// Limiter shows a limiter. It returns a *[reserve.ValueError] if the limiter is nil, or the name is empty or another
// limiter's. So do the other methods.
func (p *Page) Limiter(name string, l *reserve.Limiter) error {
	return p.add("limiter", name, l, func(context.Context) ([]Row, error) {
		return []Row{ofLimiter(l.Snapshot())}, nil
	})
}

// Keys shows how many keys a keyed limiter remembers: of package keyed, or of package shared.
func (p *Page) Keys(name string, keys interface{ Len() int }) error {
	return p.add("keys", name, keys, func(context.Context) ([]Row, error) {
		return []Row{{Keys: keys.Len()}}, nil
	})
}

// Shared shows a limiter that several processes share. Looking at it makes one call to its store, which may take a
// second at most.
func (p *Page) Shared(name string, l *shared.Limiter) error {
	return p.add("shared", name, l, func(ctx context.Context) ([]Row, error) {
		now, err := l.Snapshot(ctx)
		if err != nil {
			return nil, err
		}
		return []Row{{
			Rate: number(l.Rate()), Stored: number(now.Level), Next: time.Now().Add(now.Wait),
		}}, nil
	})
}

func (p *Page) Queue(name string, q *fair.Queue) error {
	return p.add("queue", name, q, func(context.Context) ([]Row, error) { return ofClasses(q.Snapshot()), nil })
}

// A Transport is one of package outbound or of package llm.
type Transport interface{ Snapshot() outbound.Snapshot }

// Transport shows the limits of a transport, learned ones too: the first 100 of them, those with most callers waiting
// first.
func (p *Page) Transport(name string, t Transport) error {
	return p.add("transport", name, t, func(context.Context) ([]Row, error) { return ofTransport(t.Snapshot()), nil })
}

func (p *Page) add(kind, name string, what any, rows func(context.Context) ([]Row, error)) error {
	if isnil.Value(what) {
		return valueError("the "+kind+" "+name, nil, "one that is not nil")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := slices.ContainsFunc(p.sources, func(s source) bool { return s.kind == kind && s.name == name })
	if name == "" || taken {
		return valueError("the name of a "+kind, name, "a name that no other "+kind+" has")
	}
	p.sources = append(p.sources, source{kind, name, rows})
	return nil
}

// Sample takes a sample each five seconds until the context ends, and returns the context's cause.
func (p *Page) Sample(ctx context.Context) error {
	tick := time.NewTicker(binLength)
	defer tick.Stop()
	for {
		p.look(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// ServeHTTP answers with the page, or with JSON if the query has format=json.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	rows := p.look(r.Context())
	if r.URL.Query().Get("format") == "json" {
		writeJSON(w, rows)
		return
	}
	writePage(w, rows)
}

// look asks all sources, without the page's lock: a store may be slow, and one that is down must not hold up the page.
func (p *Page) look(ctx context.Context) []Row {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	p.mu.Lock()
	sources := slices.Clone(p.sources)
	p.mu.Unlock()
	of := make([][]Row, len(sources))
	var all sync.WaitGroup
	for i, s := range sources {
		all.Go(func() { of[i] = s.look(ctx) })
	}
	all.Wait()
	rows := slices.Concat(of...)
	p.record(time.Now(), rows)
	return rows
}

// look returns the source's rows; a source that fails is a row that says so.
func (s source) look(ctx context.Context) []Row {
	rows, err := s.rows(ctx)
	if err != nil {
		rows = []Row{{Error: err.Error()}}
	}
	for i := range rows {
		rows[i].Kind, rows[i].Name = s.kind, s.name
	}
	return rows
}
