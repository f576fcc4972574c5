package outbound

import (
	"net/http"
	"strconv"
	"sync"

	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

type names struct {
	mu      sync.Mutex
	named   map[string]struct{}
	several bool    // the server has named two
	size    float64 // of the first
	differs bool
}

// maxNames bounds an account's names, some 700 bytes each while stopped; further calls have the account's limit.
const maxNames = 1000

func (n *names) key(s *reply.Reply) (key reply.Key, several bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if key = s.Key; key.Name == "" {
		key.Name = n.sized(s)
	}
	_, known := n.named[key.Name]
	switch {
	case known:
		return key, n.several
	case key.Name == "", len(n.named) >= maxNames:
		return reply.Key{}, n.several
	}
	if n.named == nil {
		n.named = map[string]struct{}{}
	}
	n.named[key.Name] = struct{}{}
	n.several = n.several || s.Key.Name != "" && len(n.named) > 1
	return key, n.several
}

// sized returns the limit's size as a name, if routes differ in it. Another limit may have caused a refusal.
func (n *names) sized(s *reply.Reply) string {
	if s.Refused || len(s.Limits) != 1 || s.Limits[0].Name != "" || s.Limits[0].Bucket || s.Limits[0].Size < 1 {
		return ""
	}
	size := s.Limits[0].Size
	if n.size == 0 {
		n.size = size
	}
	if n.differs = n.differs || size != n.size; !n.differs {
		return ""
	}
	return "limit of " + strconv.FormatFloat(size, 'g', -1, 64)
}

func (c *call) learns() bool {
	if len(c.t.limits) == 0 {
		return true
	}
	if !c.t.beside || !c.t.learned.several.Load() {
		return false
	}
	n, ok := c.t.learned.names.get(account(c.request))
	if !ok {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.several
}

func (l *learned) keyOf(r *http.Request, s *reply.Reply) reply.Key {
	if s.Key == (reply.Key{}) && len(s.Limits) == 0 {
		return reply.Key{}
	}
	who := account(r)
	n, ok := l.names.get(who)
	if !ok {
		n = l.names.getOr(who, new(names))
	}
	key, several := n.key(s)
	if several {
		l.several.Store(true)
	}
	return key
}
