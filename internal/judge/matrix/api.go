package matrix

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// An API is one of twenty well-known ones, as its public documentation describes it (November 2026): see Twenty.
type API struct {
	Name  string
	RTT   time.Duration // between 60 and 250 ms; each way of a call takes a half of it, 50 % more or less
	Calls int
	// Request returns the method and the path of the call with a number, and its body if it has one.
	Request func(i int) (method, path, body string)
	Rules   []rule
	// Takes is how long the server works on a call; nil: no time.
	Takes func(r *http.Request) time.Duration
	// Refuse fills in a refusal because of a rule: it has room again after wait.
	Refuse func(f *refusal)
	// Says fills in the headers of every response.
	Says func(h http.Header, now time.Time, r *http.Request, of func(rule string) state)
	// Renewed says that a refused call begins a penalty anew.
	Renewed bool
	// Failed reports whether a response with status 200 is a refusal.
	Failed func(body string) bool
	// Most is how long a client may take, in units of the ideal; default 12.
	Most float64

	Documented []APIClient // what a reader of the documentation writes
}

// An APIClient is one way to write down an API's limits: in so many lines of configuration.
type APIClient struct {
	Name  string
	Lines int
	New   func(base http.RoundTripper) http.RoundTripper
	// Bounds in units of the ideal time, refused calls of all, and penalties that were begun; zero Took: none.
	Took, Refused float64
	Bans          int
}

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

// Ideal returns how long the calls take at least: by each rule, and by the callers' number.
func (a *API) Ideal() (ideal time.Duration) {
	type sum struct {
		rule  *rule
		cost  float64
		takes time.Duration
	}
	sums := map[string]*sum{}
	all := time.Duration(0)
	for i := range a.Calls {
		r := a.request(i)
		takes := time.Duration(0)
		if a.Takes != nil {
			takes = a.Takes(r)
		}
		all += a.RTT + takes
		for j := range a.Rules {
			key, cost := a.Rules[j].of(r)
			if cost <= 0 {
				continue
			}
			key = a.Rules[j].name + "\x00" + key
			if sums[key] == nil {
				sums[key] = &sum{rule: &a.Rules[j]}
			}
			sums[key].cost += cost
			sums[key].takes += takes
		}
	}
	ideal = all / apiCallers
	for _, s := range sums {
		var d time.Duration
		switch r := s.rule; {
		case r.log > 0:
			d = time.Duration(math.Ceil(s.cost/r.quota)-1) * r.log
		case r.fixed > 0:
			d = time.Duration(math.Ceil(s.cost/r.quota)-1) * r.fixed
		case r.closed > 0:
			ideal = time.Duration(float64(ideal) * float64(time.Minute) / float64(time.Minute-r.closed))
		case r.places:
			d = time.Duration(float64(s.takes) / r.quota)
		default:
			d = time.Duration((s.cost - r.quota) / r.refill * float64(time.Second))
		}
		ideal = max(ideal, d+a.RTT)
	}
	return ideal
}

// apiCallers is how many goroutines call.
const apiCallers = 16

func (a *API) request(i int) *http.Request {
	method, path, body := a.Request(i)
	var from io.Reader
	if body != "" {
		from = strings.NewReader(body)
	}
	r, err := http.NewRequest(method, "https://api.example.com"+path, from)
	if err != nil {
		panic(err)
	}
	return r
}

// An APIOutcome is what became of the calls.
type APIOutcome struct {
	Took     float64 // in units of the ideal
	Refused  float64 // of all calls that the server saw
	Bans     int     // penalties that were begun
	Sent     int
	Reached  int // refusals and errors that reached the program
	Finished bool
}

// Run has a client make the calls of an API, in a synctest bubble. The program asks again half a second after a refusal
// or an error.
func (a *API) Run(c APIClient, seed uint64) (o APIOutcome) {
	begin, ideal := time.Now(), a.Ideal()
	api := &apiServer{api: a, begin: begin, states: map[string]*state{}, busy: map[*state][]time.Time{}}
	net := &server{
		judge: api, random: rand.New(rand.NewPCG(seed, 1)), latency: [2]time.Duration{a.RTT / 2, 3 * a.RTT / 2},
		begin: begin,
	}
	most := a.Most
	if most == 0 {
		most = limit
	}
	end := begin.Add(time.Duration(most * float64(ideal)))
	client, last := c.New(net), begin
	done := each(apiCallers, a.Calls, func(i int) bool {
		for time.Now().Before(end) {
			ok := a.call(client, i, end)
			net.mu.Lock()
			if ok {
				last = time.Now()
			} else {
				o.Reached++
			}
			net.mu.Unlock()
			if ok {
				return true
			}
			<-time.After(500 * time.Millisecond)
		}
		return false
	})
	o.Took = float64(last.Sub(begin)) / float64(ideal)
	o.Sent, o.Bans, o.Finished = len(net.seen), api.bans, done == a.Calls
	o.Refused = float64(api.refused) / float64(max(1, o.Sent))
	return o
}

func (a *API) call(client http.RoundTripper, i int, end time.Time) bool {
	r := a.request(i)
	response, err := (&http.Client{Transport: client, Timeout: time.Until(end)}).Do(r)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return response.StatusCode == http.StatusOK && (a.Failed == nil || !a.Failed(string(body)))
}

// each makes calls from so many goroutines, in their order, and returns how many were made.
func each(callers, calls int, call func(i int) bool) (done int) {
	todo, made := make(chan int, calls), make(chan bool, calls)
	for i := range calls {
		todo <- i
	}
	close(todo)
	for range callers {
		go func() {
			for i := range todo {
				made <- call(i)
			}
		}()
	}
	for range calls {
		if <-made {
			done++
		}
	}
	return done
}
