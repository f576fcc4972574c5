package pacedebug

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/outbound"
)

// mostRows is how many limits of one transport are shown.
const mostRows = 100

// A Row is what one line of the page and one object of its JSON show.
type Row struct {
	Kind         string    `json:"kind"` // limiter, keys, shared, queue or transport
	Name         string    `json:"name"`
	Limit        string    `json:"limit,omitempty"` // of a transport; of a queue, the class
	Key          string    `json:"key,omitempty"`
	Rate         number    `json:"rate,omitzero"` // permits per second
	Stored       number    `json:"stored"`        // permits; negative while permits are owed
	Waiting      int       `json:"waiting"`       // callers
	InFlight     int       `json:"in_flight"`
	Next         time.Time `json:"next,omitzero"` // when a request for one permit would be granted
	StoppedUntil time.Time `json:"stopped_until,omitzero"`
	Refused      uint64    `json:"refused"`
	Keys         int       `json:"keys,omitempty"`
	Tenants      int       `json:"tenants,omitempty"`              // of a queue's class
	LongestWait  number    `json:"longest_wait_seconds,omitempty"` // of a queue's class, so far
	Error        string    `json:"error,omitempty"`
	History      []int     `json:"waiting_before,omitempty"` // callers waiting in each five seconds, oldest first
}

// A number is a float64 whose infinity JSON can show, as a text.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	if math.IsInf(float64(n), 0) || math.IsNaN(float64(n)) {
		return json.Marshal(n.String())
	}
	return json.Marshal(float64(n))
}

func ofLimiter(s reserve.Snapshot) Row {
	return Row{
		Rate: number(s.Rate), Stored: number(s.Level), Waiting: s.Waiting, Next: time.Now().Add(s.Wait),
		StoppedUntil: s.PausedUntil, Refused: s.Refused,
	}
}

func ofClasses(s fair.Snapshot) (rows []Row) {
	for _, c := range s.Classes {
		rows = append(rows, Row{
			Limit: c.Class, Waiting: c.Waiting, Refused: c.Refused, Tenants: c.Tenants,
			LongestWait: number(c.LongestWait.Round(time.Millisecond).Seconds()),
		})
	}
	return rows
}

func ofTransport(s outbound.Snapshot) (rows []Row) {
	for _, l := range s.Limits {
		rows = append(rows, Row{
			Limit: l.Name, Key: l.Key, Rate: number(l.Rate), Stored: number(l.Stored), Waiting: l.Waiting,
			InFlight: l.InFlight, StoppedUntil: l.StoppedUntil, Refused: l.Refused,
		})
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(b.Waiting, a.Waiting) })
	return rows[:min(len(rows), mostRows)]
}
