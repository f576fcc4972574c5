package main

import (
	"fmt"
	"io"
	"net/http"
	"sync"

	"golang.org/x/time/rate"

	"github.com/nextfree/pace/bench/internal/report"
	"github.com/nextfree/pace/internal/matrix"
)

// The cells of the matrix of kinds of servers that are run in real time as well, beside peers, at 50 calls/s.
var (
	cellKinds = []string{"token bucket, Retry-After", "fixed windows, GitHub's headers", "n in flight, 503"}
	cellPeers = []struct {
		name   string
		client func(http.RoundTripper) doer
	}{
		{"x/time/rate 50/s, go-retryablehttp", xtime(50)},
		{"x/time/rate 80/s, go-retryablehttp", xtime(80)},
		{"aws-sdk-go-v2, adaptive", adaptiveAWS()},
		{"failsafe-go, retries", failsafeHTTP()},
	}
)

// xtime is go-retryablehttp with a limiter of its own for each client.
func xtime(perSecond rate.Limit) func(http.RoundTripper) doer {
	return func(base http.RoundTripper) doer { return retryable(rate.NewLimiter(perSecond, 1))(base) }
}

// cells runs all cells at the same time: they mostly wait. It prints time over the ideal / refused, in % of what the
// server saw / longest call in s.
func cells(w io.Writer, calls int) {
	clients := matrix.Clients[:4]
	for i := range cellPeers {
		p := &cellPeers[i]
		clients = append(clients[:len(clients):len(clients)], matrix.Client{Name: p.name, New: func(base http.RoundTripper, _ matrix.Kind, _ matrix.Setting) *http.Client {
			return &http.Client{Transport: p.client(base)}
		}})
	}
	header, table := []string{""}, make([][]string, len(clients))
	var all sync.WaitGroup
	for i, c := range clients {
		table[i] = make([]string, 1+len(cellKinds))
		table[i][0] = c.Name
		if i < 4 {
			table[i][0] = "pace, " + c.Name
		}
		for j, name := range cellKinds {
			for _, k := range matrix.Kinds {
				if k.Name == name {
					all.Go(func() {
						s := matrix.At(50, 1)
						s.Calls = calls
						o := matrix.Run(k, c, s)
						table[i][1+j] = fmt.Sprintf("%.2f / %.1f / %.0f", o.Took, 100*o.Wasted, o.Longest)
						if !o.Finished() {
							table[i][1+j] = fmt.Sprintf("(%d of %d)", o.Done, o.Calls)
						}
					})
				}
			}
		}
	}
	all.Wait()
	for _, name := range cellKinds {
		header = append(header, ">"+name)
	}
	report.Table(w, header, table)
}

// RoundTrip makes a doer a transport.
func (d doer) RoundTrip(r *http.Request) (*http.Response, error) { return d(r) }
