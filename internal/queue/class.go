package queue

import (
	"time"

	"github.com/nextfree/pace/internal/order"
	"github.com/nextfree/pace/reserve"
)

type Class struct {
	Name     string
	Priority int
	Weight   float64
	MaxAge   time.Duration
	Limit    reserve.Reserver
	MaxQueue int
}

func (c Class) Own() []Limit {
	if c.Limit == nil {
		return nil
	}
	limits := Limits(c.Limit)
	for i := range limits {
		limits[i].Own = true
	}
	return limits
}

func (c Class) inOrder() order.Class {
	return order.Class{Priority: c.Priority, Weight: c.Weight, MaxAge: c.MaxAge, MaxQueue: c.MaxQueue}
}
