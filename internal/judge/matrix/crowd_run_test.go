package matrix

import (
	"math"
	"net/http"
	"slices"
	"time"
)

// A Crowding is what became of a crowd: programs that share a server's limit, with nothing but its answers to tell them of each other.
type Crowding struct {
	Used    float64 // of the server's rate
	Refused float64 // of all calls
	Jain    float64 // Jain's index of fairness, the median of stretches of 30 s: 1 is even, 1/n is one that has all
	Least   float64 // what the least program had over all, of an even share
	Late    float64 // what the last program had in the second minute after it began, of an even share
}

// Crowd has n programs call a server at a rate until 300 s have passed after the first 60. Those of them that leave go after 150 s,
// and the last one comes after late. Each has 16 goroutines, which are always busy.
func Crowd(k Kind, c Client, s Setting, n, leave int, late time.Duration) Crowding {
	warm, until := 60*time.Second, 360*time.Second
	programs := make([]Neighbour, n)
	for i := range programs {
		programs[i] = Neighbour{Client: c, Slots: 16}
		if i < leave {
			programs[i].Until = 150 * time.Second
		}
	}
	programs[n-1].From = late
	if late > 0 {
		warm = late + time.Minute
	}
	if leave > 0 {
		warm = 150*time.Second + time.Minute
	}
	accepted, seen := make([][]time.Duration, n), 0
	callers(k, programs, s, warm, until, func(i int, at time.Duration, status int) {
		if at < warm || at >= until {
			return
		}
		if seen++; status == http.StatusOK {
			accepted[i] = append(accepted[i], at)
		}
	})
	stay := accepted[leave:]
	var out Crowding
	sum, least, indices := 0., math.Inf(1), []float64{}
	for _, of := range stay {
		sum, least = sum+float64(len(of)), min(least, float64(len(of)))
	}
	for from := warm; from+30*time.Second <= until; from += 15 * time.Second {
		all, squares := 0., 0.
		for _, of := range stay {
			calls := between(of, from, from+30*time.Second)
			all, squares = all+calls, squares+calls*calls
		}
		indices = append(indices, all*all/float64(len(stay))/max(squares, 1))
	}
	slices.Sort(indices)
	total := 0
	for _, of := range accepted {
		total += len(of)
	}
	out.Used = float64(total) / s.Rate / (until - warm).Seconds()
	out.Refused = 1 - float64(total)/float64(max(1, seen))
	out.Jain, out.Least = indices[len(indices)/2], least*float64(len(stay))/max(sum, 1)
	if late > 0 {
		out.Late = between(accepted[n-1], late+time.Minute, late+2*time.Minute) * float64(n) / (s.Rate * 60)
	}
	return out
}

// between counts the calls of a sorted list from one time to another.
func between(calls []time.Duration, from, to time.Duration) float64 {
	i, _ := slices.BinarySearch(calls, from)
	j, _ := slices.BinarySearch(calls, to)
	return float64(j - i)
}
