package a

import (
	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve/fair"
)

var plain = pace.Must(fair.New(nil, nil))

type server struct{ q, tenants *fair.Queue }

func newServer(by pace.Reserver, classes []fair.Class, opts ...fair.Option) *server {
	s := &server{q: pace.Must(fair.New(by, classes, fair.WithClock(nil)))}
	s.tenants, _ = fair.New(by, classes, fair.WithTenants(nil))
	s.q.Tenant("a", "b") // want `the queue is made without fair.WithTenants, and ignores the tenant`
	s.tenants.Tenant("a", "b")
	plain.Tenant("a", "b") // want `the queue is made without fair.WithTenants`

	q, err := fair.New(by, classes)
	if err != nil {
		return nil
	}
	q.Tenant("a", "b")                               // want `the queue is made without fair.WithTenants`
	pace.Must(fair.New(by, classes)).Tenant("a", "") // want `the queue is made without fair.WithTenants`

	// What is right.
	other, _ := fair.New(by, classes, opts...)
	other.Tenant("a", "b")
	q.Class("a")
	both := pace.Must(fair.New(by, classes))
	if len(opts) > 0 {
		both = pace.Must(fair.New(by, classes, opts...))
	}
	both.Tenant("a", "b")
	return s
}

func handedOver(q *fair.Queue) { q.Tenant("a", "b") }
