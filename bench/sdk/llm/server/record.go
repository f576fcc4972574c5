package server

import (
	"cmp"
	"time"
)

// A Record is what became of a call.
type Record struct {
	At      time.Time
	Asked   int    // prompt and max_tokens
	Tokens  int    // charged now; 0 if it was refused
	Used    int    // what the call used: prompt and reply
	Reply   int    // tokens of that
	Refused string // by which limit: "requests", "tokens", "input-tokens" or "output-tokens"; empty: it was answered
	Larger  bool   // than could ever be allowed
}

// Counts are sums over all calls.
type Counts struct {
	Answered, Refused, Larger int
	Tokens                    int // charged now
	Used, Reply               int // what the calls used, and what of that are replies
	MostRequests, MostTokens  int // answered and charged in any window
}

// Records returns those of all calls, in their order.
func (s *Server) Records() []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Record
	for _, c := range s.calls {
		r := Record{At: c.at, Asked: c.counted + c.most, Used: c.used, Reply: c.made, Refused: c.refused, Larger: c.larger}
		if c.refused == "" {
			r.Tokens = c.used
			if s.quota.Charging == Kept {
				r.Tokens = r.Asked
			}
		}
		all = append(all, r)
	}
	return all
}

// Counts returns the sums. The most in a window is over all credentials and models.
func (s *Server) Counts() Counts {
	window := cmp.Or(s.quota.Window, time.Minute)
	var sum Counts
	var recent []Record
	inWindow := 0
	for _, r := range s.Records() {
		if r.Refused != "" {
			sum.Refused++
			if r.Larger {
				sum.Larger++
			}
			continue
		}
		sum.Answered++
		sum.Tokens += r.Tokens
		sum.Used += r.Used
		sum.Reply += r.Reply
		recent = append(recent, r)
		inWindow += r.Tokens
		for r.At.Sub(recent[0].At) >= window {
			inWindow -= recent[0].Tokens
			recent = recent[1:]
		}
		sum.MostRequests = max(sum.MostRequests, len(recent))
		sum.MostTokens = max(sum.MostTokens, inWindow)
	}
	return sum
}

// Reset has the server forget all calls, and charge nobody for them.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accounts, s.calls = map[[2]string]*account{}, nil
}
