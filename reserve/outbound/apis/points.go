package apis

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/nextfree/pace/reserve/outbound"
)

// estimates are what calls will cost, by key: the most that the last ones did, as their responses said.
type estimates struct {
	first float64

	mu sync.Mutex
	of map[string]float64
}

// maxEstimates bounds the keys that are remembered.
const maxEstimates = 10000

func (e *estimates) get(key string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n, ok := e.of[key]; ok {
		return int(n + 0.5)
	}
	return int(e.first)
}

func (e *estimates) note(key string, cost float64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.of) >= maxEstimates {
		clear(e.of)
	}
	e.of[key] = max(1, cost, 0.98*e.of[key])
}

// learn makes a limit's cost what responses say, by a field of their bodies: asked before a call, and charged after it.
func (e *estimates) learn(of *outbound.Limit, asked, charged string, key func(*http.Request) string) {
	holds := of.Cost
	of.Cost = func(r *http.Request) int { return holds(r) * e.get(key(r)) }
	of.Used = func(r *http.Response) outbound.Usage {
		return &tail{done: func(text string) (int, bool) {
			if n, ok := numberAfter(text, asked); ok {
				e.note(key(r.Request), n)
			}
			n, ok := numberAfter(text, charged)
			return int(n + 0.5), ok && n >= 0
		}}
	}
}

// A tail keeps the end of a body.
type tail struct {
	text []byte
	done func(text string) (int, bool)
}

const tailed = 4 << 10

func (t *tail) Write(piece []byte) (int, error) {
	t.text = append(t.text, piece[max(0, len(piece)-tailed):]...)
	if len(t.text) > 2*tailed {
		t.text = bytes.Clone(t.text[len(t.text)-tailed:])
	}
	return len(piece), nil
}

func (t *tail) Used() (int, bool) { return t.done(string(t.text)) }

// numberAfter returns the number of a field of a JSON text, the last if there are several.
func numberAfter(text, name string) (float64, bool) {
	i := strings.LastIndex(text, `"`+name+`"`)
	if i < 0 {
		return 0, false
	}
	text = strings.TrimLeft(text[i+len(name)+2:], " :\t\r\n")
	if end := strings.IndexAny(text, ",} \t\r\n"); end >= 0 {
		text = text[:end]
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil && n < 1e9
}
