package outbound

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/nextfree/pace/internal/queue"
	"github.com/nextfree/pace/reserve/fair"
)

// WithClasses orders waiting requests with the same keys as package fair does: people before a batch, tenants by their
// shares. The function returns a request's class and tenant; nil: what [fair.With] put into its context. The class ""
// is the first one, if no other has that name.
//
// Shares are of the permits of the limit at which a request costs most; its used permits correct its tenant's account.
// Tenants have equal weights. A retry keeps its place among its tenant's requests. A class's own Limit is charged as
// many permits as its shares count.
//
// WithClasses returns the errors of [fair.New]. A request of another class gets a *[reserve.ValueError].
func WithClasses(of func(*http.Request) (class, tenant string), classes ...fair.Class) Option {
	if of == nil {
		of = func(r *http.Request) (class, tenant string) { return fair.From(r.Context()) }
	}
	return func(s *settings) error {
		if _, err := fair.New(queue.Unlimited(nil).Limiter(), classes); err != nil {
			return err
		}
		s.classOf, s.classes = of, slices.Clone(classes)
		return nil
	}
}

func (c *call) classOf() (class int, tenant string, err error) {
	name, tenant := c.t.classOf(c.request)
	class = slices.IndexFunc(c.t.classes, func(of fair.Class) bool { return of.Name == name })
	if class < 0 && name == "" {
		class = 0
	}
	if class < 0 {
		want := "one of"
		for _, of := range c.t.classes {
			want += fmt.Sprintf(" %q", of.Name)
		}
		return 0, "", valueError("the class", name, want)
	}
	return class, tenant, nil
}

// correct corrects its tenant's account, and the class's own limits.
func (a *charge) correct(used int) {
	p := a.place
	if p == nil {
		return
	}
	p.Charge(used)
	for i, l := range p.Options[p.Option()].Limits {
		if l.Own {
			p.Held(i).Settle(used)
		}
	}
}
