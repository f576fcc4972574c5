// Package paceexpvar shows pace's limiters through package expvar, that is on /debug/vars, without
// another module. Importing expvar adds a handler to http.DefaultServeMux.
package paceexpvar

import (
	"encoding/json"
	"expvar"
	"fmt"
	"math"
	"strings"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/plug/internal/stats"
	"github.com/nextfree/pace/reserve/shared"
)

var _ expvar.Var = (*Var)(nil)

// A Var is an expvar.Var: an object with a member for each number, named as Prometheus would have
// it. It comes from [New]. All methods may be called at the same time.
//
//	{"pace_limiter_rate_permits_per_second{limiter=\"billing\"}": 10, …}
//
// A number that JSON does not know, an infinite rate, is a string: "+Inf".
type Var struct{ set stats.Set }

func New() *Var { return &Var{stats.Set{Package: "paceexpvar"}} }

// Limiter shows a limiter, under a name. It returns a *[reserve.ValueError] if the limiter is nil, or the name is empty
// or another limiter's. So do the others.
func (v *Var) Limiter(name string, l *reserve.Limiter) error { return v.set.Limiter(name, l) }

func (v *Var) Inbound(name string, m *inbound.Middleware) error { return v.set.Inbound(name, m) }

// Shared shows a limiter that is shared through Redis.
func (v *Var) Shared(name string, l *shared.Limiter) error { return v.set.Shared(name, l) }

// Outbound returns hooks for a transport, for [outbound.WithHooks], and shows what they count. They
// call then's afterwards.
func (v *Var) Outbound(name string, then outbound.Hooks) (outbound.Hooks, error) {
	return v.set.Outbound(name, then, nil)
}

// String returns the numbers as they are now, in JSON.
func (v *Var) String() string {
	all := map[string]any{}
	put := func(value float64, name string, labels, values []string) {
		for i := range labels {
			labels[i] = fmt.Sprintf("%s=%q", labels[i], values[i])
		}
		all[name+"{"+strings.Join(labels, ",")+"}"] = number(value)
	}
	for _, s := range v.set.Samples() {
		put(s.Value, s.Prometheus, append([]string(nil), s.Labels...), s.Values)
	}
	v.set.Histograms(func(name string, h stats.Histogram) {
		label := h.Labels[0]
		put(float64(h.Count), h.Prometheus+"_count", []string{label}, []string{name})
		put(h.Sum, h.Prometheus+"_sum", []string{label}, []string{name})
		for bound, n := range h.UpTo {
			put(float64(n), h.Prometheus+"_bucket", []string{label, "le"}, []string{name, fmt.Sprint(bound)})
		}
	})
	text, err := json.Marshal(all)
	if err != nil { // there is nothing but numbers and strings
		return "null"
	}
	return string(text)
}

func number(value float64) any {
	if math.IsInf(value, 0) || math.IsNaN(value) {
		return fmt.Sprintf("%+v", value)
	}
	return value
}
