package order

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A request is an entry's, with what the tests know of it.
type request struct {
	entry         Entry[request]
	tenant        string
	number, class int // in the order in which they came
	stays         bool
}

// A program is a random one on an order: classes of two priorities, three tenants each.
type program struct {
	t       testing.TB
	byte    func(n int) int // the next choice, of n
	classes []Class
	order   *Order[request]
	now     int64
	came    int
	waiting []*request
	went    []*request
	pushed  int
	removed int
}

func newProgram(t testing.TB, choose func(n int) int, classes []Class) *program {
	return &program{
		t: t, byte: choose, classes: classes, order: New(classes, func(r *request) bool { return r.stays }),
	}
}

func (p *program) push(class int, tenant string, permits int, weight float64) *request {
	r := &request{number: p.came, class: class, tenant: tenant}
	p.came++
	r.entry = Entry[request]{Of: r, Permits: permits}
	for i := range r.entry.Asks {
		r.entry.Asks[i] = int64(permits * (i + 1))
	}
	require.True(p.t, p.order.Push(&r.entry, class, tenant, weight, nil))
	p.waiting = append(p.waiting, r)
	p.pushed++
	return r
}

func (p *program) leaves(r *request) {
	p.waiting = slices.DeleteFunc(p.waiting, func(other *request) bool { return other == r })
}

// goes lets the first request go; nil: there is none.
func (p *program) goes() *request {
	e := p.order.First()
	if e == nil {
		return nil
	}
	p.order.Grant(e)
	p.leaves(e.Of)
	p.went = append(p.went, e.Of)
	return e.Of
}

func (p *program) check() {
	first := p.order.First()
	free := slices.ContainsFunc(p.waiting, func(r *request) bool { return !r.entry.Passed })
	stays := slices.ContainsFunc(p.waiting, func(r *request) bool { return r.stays })
	if !stays {
		require.Equal(p.t, free, first != nil, "somebody waits, and nobody is first")
	}
	if first != nil {
		require.False(p.t, first.Passed)
		for _, r := range p.waiting {
			e := &r.entry
			switch {
			case e.Passed || stays:
			case p.classes[first.Of.class].MaxAge == 0 && p.classes[r.class].MaxAge == 0:
				require.LessOrEqual(p.t, p.classes[r.class].Priority, p.classes[first.Of.class].Priority)
			}
			if r.class == first.Of.class && r.tenant == first.Of.tenant && !e.Passed {
				require.GreaterOrEqual(p.t, r.number, first.Of.number, "first come, first served")
			}
		}
	}
	waiting := 0
	for _, c := range p.order.Counts() {
		waiting += c.Waiting
	}
	require.Equal(p.t, len(p.waiting), waiting)
	require.Equal(p.t, p.pushed, waiting+len(p.went)+p.removed)
}

func (p *program) step() {
	pick := func(of []*request) *request { return of[p.byte(len(of))] }
	switch p.byte(9) {
	case 0, 1, 2:
		weight := 1.0
		tenant := p.byte(4)
		if tenant == 1 {
			weight = 2
		}
		p.push(p.byte(len(p.classes)), []string{"", "a", "b", "c"}[tenant], 1+p.byte(5), weight)
	case 3, 4:
		p.goes()
	case 5:
		if len(p.waiting) > 0 {
			r := pick(p.waiting)
			p.order.Remove(&r.entry)
			p.leaves(r)
			p.removed++
		}
	case 6:
		if len(p.waiting) > 0 {
			r := pick(p.waiting)
			p.order.Resize(&r.entry, 1+p.byte(9), r.entry.Asks)
		}
	case 7:
		if len(p.went) > 0 {
			p.order.Settle(&pick(p.went).entry, p.byte(9)-4)
		}
	case 8:
		if p.byte(2) == 0 {
			p.now += int64(p.byte(5)) * int64(time.Second)
			p.order.At(p.now)
		} else if len(p.waiting) > 0 {
			r := pick(p.waiting)
			if r.entry.Passed = !r.entry.Passed; !r.entry.Passed {
				r.stays = false
			} else {
				r.stays = p.byte(3) == 0
			}
		}
	}
	p.check()
}

var some = []Class{{Priority: 1}, {Priority: 1, Weight: 3}, {MaxAge: 3 * time.Second}, {Weight: .5}}

// Whatever comes, goes, leaves or is settled: somebody is first where somebody waits, priorities are strict, a tenant's
// requests go as they came, and nothing is lost. It knows no tags.
func FuzzOrder(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		seed := make([]byte, 400)
		for i := range seed {
			seed[i] = byte(random.IntN(256))
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		p := newProgram(t, func(n int) int {
			if len(choices) == 0 {
				return 0
			}
			c := choices[0]
			choices = choices[1:]
			return int(c) % n
		}, some)
		for len(choices) > 0 {
			p.step()
		}
		for _, r := range p.waiting {
			r.entry.Passed, r.stays = false, false
		}
		for range len(p.waiting) {
			require.NotNil(t, p.goes())
			p.check()
		}
	})
}

// While two flows wait, what they got by weight differs by at most one request of each (Goyal, Vin and Cheng, 1996,
// theorem 1), whoever else comes and goes.
func TestShares(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 2))
		weights := []float64{1, 3, .5}
		classes := []Class{{Weight: weights[0]}, {Weight: weights[1]}, {Weight: weights[2]}}
		tenants := []float64{1, 2, 4}
		p := newProgram(t, random.IntN, classes)
		name := func(class, tenant int) string { return fmt.Sprint(class, tenant) }
		weight, level := map[string]float64{}, map[string]string{}
		for c := range classes {
			weight[name(c, -1)], level[name(c, -1)] = weights[c], "classes"
			for i := range tenants {
				weight[name(c, i)], level[name(c, i)] = tenants[i], fmt.Sprint("tenants of ", c)
			}
		}
		waits, got, largest := map[string]int{}, map[string]float64{}, map[string]float64{}
		type pair [2]string
		low, high := map[pair]float64{}, map[pair]float64{}
		for range 400 {
			if random.IntN(2) == 0 || len(p.waiting) == 0 {
				c, i := random.IntN(3), random.IntN(3)
				n := 1 + random.IntN(8)
				p.push(c, tenantName(i), n, tenants[i])
				for _, flow := range []string{name(c, -1), name(c, i)} {
					waits[flow]++
					largest[flow] = max(largest[flow], float64(n)/weight[flow])
				}
			} else {
				r := p.goes()
				for _, flow := range []string{name(r.class, -1), name(r.class, int(r.tenant[0]-'a'))} {
					waits[flow]--
					got[flow] += float64(r.entry.Permits) / weight[flow]
				}
			}
			for a := range weight {
				for b := range weight {
					if a >= b || level[a] != level[b] {
						continue
					}
					both := pair{a, b}
					d := got[a] - got[b]
					if waits[a] == 0 || waits[b] == 0 {
						low[both], high[both] = math.Inf(1), math.Inf(-1)
						continue
					}
					low[both], high[both] = min(low[both], d), max(high[both], d)
					require.LessOrEqual(t, high[both]-low[both], largest[a]+largest[b]+1e-9, "seed %d: %s, %s", seed, a, b)
				}
			}
		}
	}
}

func tenantName(i int) string { return string(rune('a' + i)) }

// What is told to be before a request goes before it, where each flow's requests are of one size: also at equal tags,
// but for those of a class that has several tenants.
func TestAhead(t *testing.T) {
	for name, weights := range map[string][]float64{
		"no two tags are equal": {math.Sqrt2, math.E, 1, math.Pi, math.Phi},
		"of tenants":            {math.Sqrt2, math.E, 1, 1, 2},
		"of classes":            {1, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(300) {
				ahead(t, seed, weights[:2], weights[2:])
			}
		})
	}
}

func ahead(t *testing.T, seed uint64, ofClasses, ofTenants []float64) {
	random := rand.New(rand.NewPCG(seed, 3))
	classes := []Class{{Priority: 1}, {Weight: ofClasses[0]}, {Weight: ofClasses[1]}}
	p := newProgram(t, random.IntN, classes)
	for range 100 {
		if random.IntN(3) > 0 {
			c := random.IntN(3)
			i := random.IntN(len(ofTenants))
			p.push(c, tenantName(i), c+1, ofTenants[i])
		} else {
			p.goes()
		}
	}
	told := map[*request]Told{}
	for _, r := range p.waiting {
		all, ofClass := p.order.Ahead(&r.entry)
		told[r] = Told{all, ofClass}
	}
	var before, permits float64
	ofClass := make([]float64, len(classes))
	for r := p.goes(); r != nil; r = p.goes() {
		require.InDelta(t, before, told[r].all[OfPlaces], 1e-6, "seed %d", seed)
		require.InDelta(t, permits, told[r].all[OfPermits], 1e-6, "seed %d", seed)
		require.InDelta(t, ofClass[r.class], told[r].ofClass[OfPlaces], 1e-6, "seed %d", seed)
		before++
		permits += float64(r.entry.Permits)
		ofClass[r.class]++
	}
}

// Told is an answer of Ahead.
type Told struct{ all, ofClass [Tracked + 2]float64 }

// A request that asks again keeps its rank.
func TestRank(t *testing.T) {
	o := New([]Class{{}}, func(*request) bool { return false })
	var a, b, again request
	var rank Rank
	a.entry, b.entry, again.entry = Entry[request]{Of: &a, Permits: 1}, Entry[request]{Of: &b, Permits: 1}, Entry[request]{Of: &again, Permits: 1}
	require.True(t, o.Push(&a.entry, 0, "", 0, &rank))
	require.True(t, o.Push(&b.entry, 0, "", 0, nil))
	o.Remove(&a.entry)
	require.Equal(t, &b.entry, o.First())
	require.True(t, o.Push(&again.entry, 0, "", 0, &rank))
	require.Equal(t, &again.entry, o.First())
}

// A class that is full takes no more, and counts what it refuses.
func TestFull(t *testing.T) {
	p := newProgram(t, nil, []Class{{MaxQueue: 1}})
	p.push(0, "", 1, 1)
	require.False(t, p.order.Push(&Entry[request]{Permits: 5}, 0, "", 0, nil))
	require.Equal(t, []Counts{{Waiting: 1, Tenants: 1, Refused: 5}}, p.order.Counts())
}

// Others pass a request that waits for something that they don't need, but for those of its class if it stays.
func TestPassed(t *testing.T) {
	p := newProgram(t, nil, []Class{{Priority: 1}, {}})
	a, b, other := p.push(0, "a", 1, 1), p.push(0, "b", 1, 1), p.push(1, "", 1, 1)
	require.Equal(t, &a.entry, p.order.First())
	a.entry.Passed = true
	require.Equal(t, &b.entry, p.order.First())
	require.True(t, p.order.StillFirst(&a.entry))
	a.stays = true
	require.Equal(t, &other.entry, p.order.First())
	a.entry.Passed = false
	require.Equal(t, &a.entry, p.order.First())
}
