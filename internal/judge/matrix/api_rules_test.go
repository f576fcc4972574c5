package matrix

import (
	"fmt"
	"math"
	"net/http"
	"time"
)

// A rule is one of the limits of an API. Exactly one of the kinds is set.
type rule struct {
	name string
	// of returns whose limit a call is charged to, and what it costs there; 0: it is not.
	of func(r *http.Request) (key string, cost float64)

	quota  float64
	log    time.Duration // at most quota in any stretch of that length
	fixed  time.Duration // at most quota in each period of that length
	refill float64       // a bucket of quota permits gets so many a second
	places bool          // at most quota at a time
	closed time.Duration // nothing in the first so long of each minute
	again  time.Duration // what a closed server says

	penalty time.Duration // for which everything is refused after a refusal
}

// A state is how a rule stands for one key.
type state struct {
	rule   *rule
	log    []time.Time
	costs  []float64
	ends   time.Time // fixed
	used   float64   // fixed, and in flight
	bucket bucket
}

// A refusal is what the server fills in.
type refusal struct {
	rule    string
	wait    time.Duration // until the rule has room, or the penalty is over
	penalty bool          // it is in a penalty, or begins one
	now     time.Time
	request *http.Request
	state   state

	status int
	header http.Header
	body   string
}

func (f *refusal) set(status int, body string, headers ...string) {
	f.status, f.body = status, body
	for i := 0; i < len(headers); i += 2 {
		f.header.Set(headers[i], headers[i+1])
	}
}

func seconds(d time.Duration) string { return fmt.Sprint(int(math.Ceil(d.Seconds()))) }

// left returns what is left, and for how long.
func (s state) left(now time.Time) (n float64, ends time.Duration) {
	switch r := s.rule; {
	case r.log > 0:
		n = r.quota
		for i, at := range s.log {
			if now.Sub(at) < r.log {
				n -= s.costs[i]
			}
		}
		if len(s.log) > 0 {
			ends = r.log - now.Sub(s.log[0])
		}
		return n, ends
	case r.fixed > 0:
		return r.quota - s.used, s.ends.Sub(now)
	case r.places:
		return r.quota - s.used, 0
	default:
		b := s.bucket
		b.fill(now)
		return b.level, b.full()
	}
}

// An apiServer is an API at work.
type apiServer struct {
	api     *API
	begin   time.Time
	states  map[string]*state
	until   time.Time // the end of the penalty
	length  time.Duration
	bans    int
	refused int
	busy    map[*state][]time.Time
}

func (s *apiServer) of(r *rule, key string) *state {
	name := r.name + "\x00" + key
	st := s.states[name]
	if st == nil {
		st = &state{rule: r, bucket: fullBucket(s.begin, r.refill, r.quota)}
		s.states[name] = st
	}
	return st
}

// wait returns how long a call of that cost would have to wait.
func (s *apiServer) wait(st *state, now time.Time, cost float64) time.Duration {
	switch r := st.rule; {
	case r.log > 0:
		for len(st.log) > 0 && now.Sub(st.log[0]) >= r.log {
			st.log, st.costs = st.log[1:], st.costs[1:]
		}
		sum := cost
		for _, c := range st.costs {
			sum += c
		}
		for i := 0; sum > r.quota && i < len(st.log); i++ {
			if sum -= st.costs[i]; sum <= r.quota {
				return r.log - now.Sub(st.log[i])
			}
		}
	case r.fixed > 0:
		if !now.Before(st.ends) {
			st.ends, st.used = now.Truncate(r.fixed).Add(r.fixed), 0
		}
		if st.used+cost > r.quota {
			return st.ends.Sub(now)
		}
	case r.closed > 0:
		return max(0, r.closed-now.Sub(now.Truncate(time.Minute)))
	case r.places:
		free := s.busy[st][:0]
		for _, end := range s.busy[st] {
			if end.After(now) {
				free = append(free, end)
			}
		}
		s.busy[st] = free
		if st.used = float64(len(free)); st.used+cost > r.quota {
			return time.Millisecond
		}
	default:
		if st.bucket.fill(now); st.bucket.level < cost {
			return time.Duration((cost - st.bucket.level) / r.refill * float64(time.Second))
		}
	}
	return 0
}

func (s *apiServer) take(st *state, now time.Time, cost float64, takes time.Duration) {
	switch r := st.rule; {
	case r.log > 0:
		st.log, st.costs = append(st.log, now), append(st.costs, cost)
	case r.fixed > 0:
		st.used += cost
	case r.closed > 0:
	case r.places:
		st.used++
		s.busy[st] = append(s.busy[st], now.Add(takes))
	default:
		st.bucket.level -= cost
	}
}

func (s *apiServer) Answer(now time.Time, r *http.Request, h http.Header) (time.Duration, int, string) {
	a := s.api
	takes := time.Duration(0)
	if a.Takes != nil {
		takes = a.Takes(r)
	}
	f := &refusal{now: now, request: r, header: h}
	if now.Before(s.until) {
		f.penalty, f.wait = true, s.until.Sub(now)
		if a.Renewed {
			s.until = now.Add(s.length)
			f.wait = s.length
		}
	}
	type charge struct {
		*state
		cost float64
	}
	var charges []charge
	for i := range a.Rules {
		key, cost := a.Rules[i].of(r)
		if cost <= 0 {
			continue
		}
		st := s.of(&a.Rules[i], key)
		charges = append(charges, charge{st, cost})
		if d := s.wait(st, now, cost); d > 0 && !f.penalty && f.wait == 0 {
			f.rule, f.wait, f.state = st.rule.name, d, *st
			if d := st.rule.penalty; d > 0 {
				f.penalty, f.wait, s.length = true, d, d
				s.until = now.Add(d)
				s.bans++
			}
		}
	}
	if f.wait == 0 {
		for _, c := range charges {
			s.take(c.state, now, c.cost, takes)
		}
	}
	if a.Says != nil {
		a.Says(h, now, r, func(name string) state {
			for _, c := range charges {
				if c.rule.name == name {
					return *c.state
				}
			}
			return state{rule: &rule{log: 1}}
		})
	}
	if f.wait == 0 {
		return takes, http.StatusOK, ""
	}
	s.refused++
	a.Refuse(f)
	return 0, f.status, f.body
}
