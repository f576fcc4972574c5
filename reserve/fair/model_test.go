package fair

import (
	"math"
	"slices"
	"time"

	"github.com/nextfree/pace/reserve"
)

// A model is the rule of a queue, as simply as it can be said. It keeps no tags: it has a list of what has happened,
// and works out from the beginning who is the first whenever there is a permit.
type model struct {
	classes []Class
	by      *reserve.Limiter   // one of its own, of the same policy
	limits  []*reserve.Limiter // by class: likewise, or nil
	clock   *handClock
	begin   time.Time
	waiting []*request
	log     []event
}

type request struct {
	id, class, permits int
	tenant             string
	weight             float64
	asked, went        time.Duration
	gone               bool
	aged               bool // when it went
	r, own             reserve.Reservation
}

type event struct {
	kind eventKind
	at   time.Duration
	r    *request
	more int
}

type eventKind int

const (
	asks eventKind = iota
	leaves
	goes
	settles
)

func (m *model) now() time.Duration { return m.clock.Now().Sub(m.begin) }

// tags are what the events so far come to.
type tags struct {
	class, aged  []float64            // by class
	tenant       []map[string]float64 // by class
	virtual      map[int]float64      // by priority
	classVirtual []float64            // by class: of its tenants
	count        []int                // that wait, by class
	waits        map[*request]bool    //
	tenantWaits  []map[string]int     // by class
	agedWaits    []bool               // by class
	stretches    map[any]*stretchOf   // by flow: {class}, {class, true} for an aged one, {class, tenant}
	charged      map[*request][2]int  // the stretches that a request was charged in: its class's and its tenant's
}

// A stretchOf is since when a flow keeps its tag: what it got before is forgiven.
type stretchOf struct {
	number int
	floor  float64
}

// begins says that a flow's tag is forgiven what it is below virtual time, and returns the tag.
func (t *tags) begins(flow any, tag, virtual float64) float64 {
	if tag > virtual {
		return tag
	}
	t.of(flow).number++
	t.of(flow).floor = virtual
	return virtual
}

func (t *tags) of(flow any) *stretchOf {
	if t.stretches[flow] == nil {
		t.stretches[flow] = new(stretchOf)
	}
	return t.stretches[flow]
}

// settled returns a flow's tag after a request of a stretch came to more; less counts only in the same stretch.
func (t *tags) settled(flow any, tag float64, stretch int, more float64) float64 {
	s := t.of(flow)
	switch {
	case more >= 0:
		return tag + more
	case s.number != stretch:
		return tag
	}
	return min(tag, max(s.floor, tag+more))
}

func (m *model) share(r *request) any { return [2]any{r.class, r.aged} }

// replay works out the tags at a time from all that has happened.
func (m *model) replay(now time.Duration) *tags {
	n := len(m.classes)
	t := &tags{
		class: make([]float64, n), aged: make([]float64, n), tenant: make([]map[string]float64, n), virtual: map[int]float64{},
		classVirtual: make([]float64, n), count: make([]int, n), waits: map[*request]bool{}, tenantWaits: make([]map[string]int, n),
		agedWaits: make([]bool, n), stretches: map[any]*stretchOf{}, charged: map[*request][2]int{},
	}
	for i := range n {
		t.tenant[i], t.tenantWaits[i] = map[string]float64{}, map[string]int{}
	}
	for i := 0; i < len(m.log); i++ {
		m.age(t, m.log[i].at)
		m.apply(t, m.log[i])
		m.age(t, m.log[i].at)
	}
	m.age(t, now)
	return t
}

// old reports whether a class has a request that has waited for MaxAge.
func (m *model) old(t *tags, class int, now time.Duration) (oldest *request) {
	for r := range t.waits {
		if r.class == class && m.classes[class].MaxAge > 0 && now-r.asked >= m.classes[class].MaxAge && (oldest == nil || r.id < oldest.id) {
			oldest = r
		}
	}
	return oldest
}

// busy reports whether any flow of a priority waits.
func (m *model) busy(t *tags, priority int) bool {
	for i, c := range m.classes {
		if c.Priority == priority && t.count[i] > 0 || c.Priority+1 == priority && t.agedWaits[i] {
			return true
		}
	}
	return false
}

// even ends a busy period of a priority: no class owes anything.
func (m *model) even(t *tags, priority int) {
	if m.busy(t, priority) {
		return
	}
	for i, c := range m.classes {
		if c.Priority == priority {
			t.virtual[priority] = max(t.virtual[priority], t.class[i])
			t.of([2]any{i, false}).number++
		}
		if c.Priority+1 == priority && c.MaxAge > 0 {
			t.virtual[priority] = max(t.virtual[priority], t.aged[i])
			t.of([2]any{i, true}).number++
		}
	}
}

func (m *model) age(t *tags, now time.Duration) {
	for i, c := range m.classes {
		switch old := m.old(t, i, now) != nil; {
		case old && !t.agedWaits[i]:
			t.agedWaits[i] = true
			t.aged[i] = t.begins([2]any{i, true}, t.aged[i], t.virtual[c.Priority+1])
		case !old && t.agedWaits[i]:
			t.agedWaits[i] = false
			m.even(t, c.Priority+1)
		}
	}
}

func (m *model) apply(t *tags, e event) {
	r := e.r
	i := r.class
	c := m.classes[i]
	weight := c.Weight
	if weight == 0 {
		weight = 1
	}
	switch e.kind {
	case asks:
		if t.count[i] == 0 {
			t.class[i] = t.begins([2]any{i, false}, t.class[i], t.virtual[c.Priority])
		}
		if t.tenantWaits[i][r.tenant] == 0 {
			t.tenant[i][r.tenant] = t.begins([2]any{i, r.tenant}, t.tenant[i][r.tenant], t.classVirtual[i])
		}
		t.count[i]++
		t.tenantWaits[i][r.tenant]++
		t.waits[r] = true
		return
	case settles:
		cost := float64(e.more)
		level, tag := c.Priority, t.class
		if r.aged {
			level, tag = c.Priority+1, t.aged
		}
		if m.busy(t, level) {
			tag[i] = t.settled(m.share(r), tag[i], t.charged[r][0], cost/weight)
		}
		if t.count[i] > 0 {
			flow := [2]any{i, r.tenant}
			t.tenant[i][r.tenant] = t.settled(flow, t.tenant[i][r.tenant], t.charged[r][1], cost/r.weight)
		}
		return
	case goes:
		t.charged[r] = [2]int{t.of(m.share(r)).number, t.of([2]any{i, r.tenant}).number}
		if r.aged {
			t.virtual[c.Priority+1] = max(t.virtual[c.Priority+1], t.aged[i])
			t.aged[i] += float64(r.permits) / weight
		} else {
			t.virtual[c.Priority] = max(t.virtual[c.Priority], t.class[i])
			t.class[i] += float64(r.permits) / weight
		}
		t.classVirtual[i] = max(t.classVirtual[i], t.tenant[i][r.tenant])
		t.tenant[i][r.tenant] += float64(r.permits) / r.weight
	}
	delete(t.waits, r) // goes or leaves
	t.count[i]--
	t.tenantWaits[i][r.tenant]--
	m.age(t, e.at)
	if t.count[i] == 0 {
		m.even(t, c.Priority)
		for tenant := range t.tenant[i] { // a busy period of the class is over: no tenant owes anything
			t.classVirtual[i] = max(t.classVirtual[i], t.tenant[i][tenant])
		}
		for tenant := range t.tenant[i] {
			t.tenant[i][tenant] = t.classVirtual[i]
			t.of([2]any{i, tenant}).number++
		}
	}
}

// sorted returns all that wait in the order of the rule; of each tenant only its first.
func (m *model) sorted() []*request {
	t := m.replay(m.now())
	type rank struct {
		priority      int
		class, tenant float64
	}
	ranks := map[*request]rank{}
	var list []*request
	seen := map[[2]any]bool{}
	for _, r := range m.waiting { // in the order in which they asked
		if m.old(t, r.class, m.now()) == r {
			ranks[r] = rank{m.classes[r.class].Priority + 1, t.aged[r.class], math.Inf(-1)}
		} else if key := [2]any{r.class, r.tenant}; seen[key] {
			continue
		} else {
			ranks[r] = rank{m.classes[r.class].Priority, t.class[r.class], t.tenant[r.class][r.tenant]}
		}
		seen[[2]any{r.class, r.tenant}] = true
		list = append(list, r)
	}
	// The first of each class, by its tenants' tags, and then the classes by theirs.
	firsts := map[int]*request{}
	for _, r := range list {
		f := firsts[r.class]
		if f == nil || ranks[r].priority > ranks[f].priority || ranks[r].priority == ranks[f].priority && ranks[r].tenant < ranks[f].tenant {
			firsts[r.class] = r
		}
	}
	list = slices.DeleteFunc(list, func(r *request) bool { return firsts[r.class] != r })
	slices.SortFunc(list, func(a, b *request) int {
		x, y := ranks[a], ranks[b]
		switch {
		case x.priority != y.priority:
			return y.priority - x.priority
		case x.class < y.class:
			return -1
		case x.class > y.class:
			return 1
		}
		return a.id - b.id
	})
	if len(list) > 0 {
		list[0].aged = m.old(t, list[0].class, m.now()) == list[0]
	}
	for _, r := range list {
		r.aged = m.old(t, r.class, m.now()) == r
	}
	return list
}

// step grants what may go now, and returns it.
func (m *model) step() (went []*request) {
	for {
		r := m.first()
		if r == nil {
			return went
		}
		r.gone, r.went = true, m.now()
		m.waiting = slices.DeleteFunc(m.waiting, func(other *request) bool { return other == r })
		m.log = append(m.log, event{goes, m.now(), r, 0})
		went = append(went, r)
	}
}

// first returns the one that may go now.
func (m *model) first() *request {
	for _, r := range m.sorted() {
		own := m.limits[r.class]
		if own != nil && must(own.Peek(r.permits)) > 0 {
			continue // it holds up no other class
		}
		var err error
		if r.r, err = m.by.ReserveWithin(ctx, r.permits, 0); err != nil {
			return nil
		}
		if own != nil {
			r.own = reserve.Must(own.ReserveWithin(ctx, r.permits, 0))
		}
		return r
	}
	return nil
}

func must(d time.Duration, err error) time.Duration { return reserve.Must(d, err) }

// next returns when something may go, or ages.
func (m *model) next() (at time.Time) {
	soonest := time.Duration(math.MaxInt64)
	for _, r := range m.sorted() {
		d := must(m.by.Peek(r.permits))
		own := m.limits[r.class]
		if own == nil || must(own.Peek(r.permits)) <= d {
			soonest = min(soonest, d)
			break
		}
		soonest = min(soonest, must(own.Peek(r.permits)))
	}
	for _, r := range m.waiting {
		if age := m.classes[r.class].MaxAge; age > 0 && r.asked+age > m.now() {
			soonest = min(soonest, r.asked+age-m.now())
		}
	}
	if soonest == math.MaxInt64 {
		return time.Time{}
	}
	return m.clock.Now().Add(soonest)
}
