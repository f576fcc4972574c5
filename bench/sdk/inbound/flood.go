package main

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"time"

	"github.com/nextfree/pace/bench/internal/report"
)

// measureFlood sends one request of each of very many clients, after one client has
// used up its limit, and says what that leaves behind.
func measureFlood(out io.Writer, clients int) error {
	fmt.Fprintf(out, "## A flood of %d distinct clients (60 an hour each, one request each)\n\n", clients)
	var rows [][]string
	for _, c := range contenders {
		if c.name == withoutHeaders {
			continue
		}
		row, err := floodOf(c, clients)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		rows = append(rows, row)
	}
	report.Table(out, []string{"", ">memory after", ">bytes for each", ">time", ">served",
		"one that had used up its limit is still refused"}, rows)
	fmt.Fprintln(out)
	return nil
}

func floodOf(c contender, clients int) ([]string, error) {
	wrap, err := c.build([]tier{{"client", 60, time.Hour, true}})
	if err != nil {
		return nil, err
	}
	h := wrap(hello)
	w := &recorder{header: http.Header{}}
	r, err := http.NewRequest("GET", "http://localhost/", nil)
	if err != nil {
		return nil, err
	}
	before := heap()
	const limited = 1 << 24
	used := served(h, limited, 600)
	begin := time.Now()
	passed := 0
	for i := range clients {
		clear(w.header)
		w.status = 0
		r.RemoteAddr = address(i)
		h.ServeHTTP(w, r)
		if w.status == http.StatusOK {
			passed++
		}
	}
	took := time.Since(begin)
	still := "yes"
	// A token bucket has earned a few since; one that was forgotten has 60.
	if n := served(h, limited, 60); c.name == bare {
		still = "-"
	} else if n >= 50 {
		still = fmt.Sprintf("no, %d more served (%d before)", n, used)
	}
	memory := heap() - before
	runtime.KeepAlive(h)
	return []string{c.name, fmt.Sprintf("%.1f MB", float64(memory)/1e6), fmt.Sprintf("%.0f", float64(memory)/float64(clients)),
		fmt.Sprintf("%.2f s", took.Seconds()), fmt.Sprint(passed), still}, nil
}
