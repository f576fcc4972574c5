package main

import (
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A call is one of a trace.
type call struct {
	at            time.Duration // since the first one
	prompt, reply int           // tokens
}

// readTrace reads a trace: a line for each call, with its time, and the tokens of its prompt and
// its reply. The first line has the columns' names. A time is as in Azure's traces, or in seconds
// since the first call; in milliseconds if that is its column's name.
func readTrace(name string) ([]call, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := io.Reader(f)
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	lines, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	unit := time.Second
	if len(lines) > 0 && lines[0][0] == "milliseconds" {
		unit = time.Millisecond
	}
	var calls []call
	for i, line := range lines[min(1, len(lines)):] {
		c, err := parse(line, unit)
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", name, i+2, err)
		}
		calls = append(calls, c)
	}
	if len(calls) == 0 {
		return nil, fmt.Errorf("%s: there is no call in it", name)
	}
	slices.SortStableFunc(calls, func(a, b call) int { return int(a.at - b.at) })
	for i := len(calls) - 1; i >= 0; i-- {
		calls[i].at -= calls[0].at
	}
	return calls, nil
}

func parse(line []string, unit time.Duration) (c call, err error) {
	if len(line) != 3 {
		return c, fmt.Errorf("there are %d columns, not 3", len(line))
	}
	if t, bad := time.Parse("2006-01-02 15:04:05.9999999", line[0]); bad == nil {
		c.at = t.Sub(time.Unix(0, 0))
	} else if s, bad := strconv.ParseFloat(line[0], 64); bad == nil {
		c.at = time.Duration(s * float64(unit))
	} else {
		return c, fmt.Errorf("%q is no time", line[0])
	}
	for i, n := range []*int{&c.prompt, &c.reply} {
		if *n, err = strconv.Atoi(line[i+1]); err != nil || *n < 0 {
			return c, fmt.Errorf("%q is no number of tokens", line[i+1])
		}
	}
	return c, nil
}
