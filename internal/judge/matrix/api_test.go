package matrix

import (
	"cmp"
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
	Host  string        // "": api.example.com
	RTT   time.Duration // between 60 and 250 ms; each way of a call takes a half of it, 50 % more or less
	Calls int
	// Callers is how many goroutines call; default 16.
	Callers int
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
}

// Ideal returns how long the calls take at least: by each rule, and by the callers' number.
func (a *API) Ideal() time.Duration { return a.least(0) }

// Safe returns how long the calls take at least for who can't know when the server counts a call, between its sending
// and its answer: each window is longer by a round trip, and a place in flight is held for a round trip more. Who is told
// to come back after some seconds does so.
func (a *API) Safe() time.Duration { return a.least(a.RTT) }

func (a *API) least(more time.Duration) (ideal time.Duration) {
	type sum struct {
		rule  *rule
		cost  float64
		takes time.Duration
		calls int
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
			sums[key].calls++
		}
	}
	ideal = all / time.Duration(a.callers())
	closed := time.Duration(0)
	for _, s := range sums {
		var d time.Duration
		out := more
		if more > 0 {
			out += s.takes / time.Duration(s.calls)
		}
		switch r := s.rule; {
		case r.log > 0:
			d = time.Duration(math.Ceil(s.cost/r.quota)-1) * (r.log + out)
		case r.fixed > 0:
			d = time.Duration(math.Ceil(s.cost/r.quota)-1) * (r.fixed + out)
		case r.closed > 0:
			closed = r.closed
			if more > 0 {
				closed += r.again
			}
		case r.places:
			d = time.Duration(float64(s.takes+time.Duration(s.calls)*more) / r.quota)
		default:
			d = time.Duration((s.cost - r.quota) / r.refill * float64(time.Second))
		}
		ideal = max(ideal, d+a.RTT)
	}
	if closed > 0 { // the runs begin with a minute
		ideal += closed * time.Duration(math.Ceil(float64(ideal)/float64(time.Minute-closed)))
	}
	return ideal
}

func (a *API) callers() int { return cmp.Or(a.Callers, 16) }

func (a *API) request(i int) *http.Request {
	method, path, body := a.Request(i)
	var from io.Reader
	if body != "" {
		from = strings.NewReader(body)
	}
	r, err := http.NewRequest(method, "https://"+cmp.Or(a.Host, "api.example.com")+path, from)
	if err != nil {
		panic(err)
	}
	r.Header.Set("Authorization", "Bearer of-whoever-calls")
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
func (a *API) Run(c APIClient, seed uint64) APIOutcome { return a.Among(c, 1, false, seed) }

// Among is Run for several programs that share the calls, and beside a neighbour that sends half as many as there is
// room for, evenly, whatever the server says. Refusals of the neighbour's calls do not count, but bans do.
func (a *API) Among(c APIClient, programs int, neighbour bool, seed uint64) (o APIOutcome) {
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
	clients, last := make([]http.RoundTripper, programs), begin
	for i := range clients {
		clients[i] = c.New(net)
	}
	over := make(chan struct{})
	others := 0
	if neighbour {
		go func() {
			for i := 0; ; i++ {
				select {
				case <-over:
					return
				case <-time.After(2 * ideal / time.Duration(a.Calls)):
					others++
					if !a.call(net, i%a.Calls, end) {
						net.mu.Lock()
						api.refused--
						net.mu.Unlock()
					}
				}
			}
		}()
	}
	done := each(a.callers(), a.Calls, func(i int) bool {
		for time.Now().Before(end) {
			ok := a.call(clients[i%programs], i, end)
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
	close(over)
	<-time.After(10 * time.Minute) // the neighbour's last call
	o.Took = float64(last.Sub(begin)) / float64(ideal)
	o.Sent, o.Bans, o.Finished = len(net.seen)-others, api.bans, done == a.Calls
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
