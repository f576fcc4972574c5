package a

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/gin-gonic/gin"
	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/outbound"
	body "github.com/nextfree/pace/reserve/plug/xtime/rate"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
)

func handle(w http.ResponseWriter, r *http.Request) {
	lim := rate.NewLimiter(10, 5) // want `a limiter that is made for each request limits nothing`
	if !lim.Allow() {
		w.WriteHeader(http.StatusTooManyRequests)
	}
}

func middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lim := body.NewLimiter(10, 5) // want `a limiter that is made for each request`
		if err := lim.Wait(r.Context()); err != nil {
			return
		}
		next.ServeHTTP(w, r)
	})
}

func ofPace(w http.ResponseWriter, r *http.Request) {
	var lim = pace.Must(pace.NewBursty(10)) // want `a limiter that is made for each request`
	if !lim.TryAcquire(2) {
		w.WriteHeader(http.StatusTooManyRequests)
	}
}

func ofAPolicy(p *reserve.Policy) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		lim := p.Limiter() // want `a limiter that is made for each request`
		if _, err := lim.Acquire(r.Context(), 1); err != nil {
			return
		}
	}
}

type transport struct{ base http.RoundTripper }

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	lim := rate.NewLimiter(1, 1) // want `a limiter that is made for each request`
	if err := lim.Wait(r.Context()); err != nil {
		return nil, err
	}
	return t.base.RoundTrip(r)
}

func ofGin(c *gin.Context) {
	lim, err := pace.NewTokenBucket(10, 5) // want `a limiter that is made for each request`
	if err != nil || !lim.Allow() {
		c.AbortWithStatus(429)
	}
}

func intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	lim := rate.NewLimiter(1, 1) // want `a limiter that is made for each request`
	if !lim.Allow() {
		return nil, io.EOF
	}
	return next(ctx, req)
}

func atOnce(ctx context.Context) error {
	return rate.NewLimiter(1, 1).Wait(ctx) // want `a limiter that is made where it is asked`
}

func inALoop(ctx context.Context, urls []string) {
	for _, url := range urls {
		lim := rate.NewLimiter(10, 1) // want `a limiter that is made for each round of a loop`
		if lim.Wait(ctx) == nil {
			http.Get(url)
		}
	}
}

// What is right.

var shared = rate.NewLimiter(10, 5)

func outside() http.HandlerFunc {
	lim := rate.NewLimiter(10, 5)
	return func(w http.ResponseWriter, r *http.Request) {
		if !lim.Allow() || !shared.Allow() {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}
}

type clients struct {
	mu  sync.Mutex
	all map[string]*rate.Limiter
	sm  sync.Map
	lim *rate.Limiter
}

func (c *clients) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lim, ok := c.all[r.RemoteAddr]
	if !ok {
		lim = rate.NewLimiter(1, 1)
		c.all[r.RemoteAddr] = lim
	}
	fresh := rate.NewLimiter(1, 1)
	c.sm.LoadOrStore(r.RemoteAddr, fresh)
	c.sm.LoadOrStore(r.RemoteAddr, rate.NewLimiter(1, 1))
	if c.lim == nil {
		c.lim = rate.NewLimiter(1, 1)
	}
	if !lim.Allow() || !fresh.Allow() {
		w.WriteHeader(http.StatusTooManyRequests)
	}
}

// The pace of a download.
func download(w http.ResponseWriter, r *http.Request) {
	lim := rate.NewLimiter(1<<20, 1<<16)
	buffer := make([]byte, 1<<10)
	for {
		n, err := r.Body.Read(buffer)
		if err != nil || lim.WaitN(r.Context(), n) != nil {
			return
		}
		w.Write(buffer[:n])
	}
}

type slow struct {
	io.Reader
	lim *rate.Limiter
}

func upload(w http.ResponseWriter, r *http.Request) {
	lim := rate.NewLimiter(1<<20, 1<<16)
	io.Copy(w, slow{r.Body, lim})
	chunk := rate.NewLimiter(1<<20, 1<<16)
	each(func() { chunk.Allow() })
}

func each(f func()) { f(); f() }

func forEach(ctx context.Context, limits map[string]rate.Limit) map[string]*rate.Limiter {
	all := map[string]*rate.Limiter{}
	for name, limit := range limits {
		all[name] = rate.NewLimiter(limit, 1)
		if probe := rate.NewLimiter(limit, 1); !probe.Allow() { // a limit for each
			return nil
		}
	}
	for range 3 {
		lim := rate.NewLimiter(10, 1) // a worker's own
		go func() {
			for lim.Wait(ctx) == nil {
			}
		}()
		rounds := rate.NewLimiter(10, 1)
		for range 100 {
			rounds.Wait(ctx)
		}
	}
	return all
}

func notARequest(ctx context.Context) {
	lim := rate.NewLimiter(10, 1)
	lim.Wait(ctx)
}

func onlySettings(w http.ResponseWriter, r *http.Request) {
	lim := rate.NewLimiter(10, 1)
	io.WriteString(w, http.StatusText(lim.Burst()))
}

// What a program has once.

func keyedPerRequest(w http.ResponseWriter, r *http.Request) {
	perUser := keyed.New(policy) // want `a limiter that is made for each request`
	if !perUser.TryAcquire("a", 1) {
		w.WriteHeader(http.StatusTooManyRequests)
	}
}

func transportPerRequest(w http.ResponseWriter, r *http.Request) {
	client := &http.Client{Transport: pace.Must(outbound.New(nil, nil))} // want `a limiter that is made for each request`
	resp, err := client.Get("http://example.com")
	if err == nil {
		resp.Body.Close()
	}
}

func roundTripPerRequest(w http.ResponseWriter, r *http.Request) {
	t, err := outbound.New(nil, nil) // want `a limiter that is made for each request`
	if err == nil {
		t.RoundTrip(r)
	}
}

func middlewarePerRequest(next http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		pace.Must(inbound.New(nil)).Handler(next).ServeHTTP(w, r) // want `a limiter that is made where it is asked`
		m := pace.Must(inbound.New(nil))                          // want `a limiter that is made for each request`
		m.Handler(next).ServeHTTP(w, r)
	}
}

func policy(string) (*reserve.Policy, error) { return pace.Bursty(1) }

var (
	perUser = keyed.New(policy)
	api     = &http.Client{Transport: pace.Must(outbound.New(nil, nil))}
)

func once(mux *http.ServeMux) http.Handler {
	m := pace.Must(inbound.New(nil))
	return m.Handler(mux)
}
