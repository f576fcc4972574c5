package fair

import "time"

type Snapshot struct {
	Classes []ClassSnapshot // in the order in which New got them
}

// A ClassSnapshot is a class's state at one moment, and counts of its requests so far.
type ClassSnapshot struct {
	Class   string
	Waiting int // requests
	Tenants int // that wait, or are remembered because others of the class wait
	// Permits: granted, or charged beyond that by Settle; refused, at once or later; given back by Cancel or Settle.
	Granted, Refused, GivenBack uint64
	LongestWait                 time.Duration // of a request, granted or still waiting
}

// Snapshot returns the queue's state now, and takes nothing.
func (q *Queue) Snapshot() (s Snapshot) {
	for i, c := range q.queue.Counts() {
		s.Classes = append(s.Classes, ClassSnapshot{
			q.classes[i].Name, c.Waiting, c.Tenants, c.Granted, c.Refused, c.GivenBack, c.LongestWait,
		})
	}
	return s
}
