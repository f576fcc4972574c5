// Keyed measures limiters for each key, pace's and others', in one run: what a key
// costs in memory and time, and what becomes of keys that are in debt when more keys come.
//
//	go run ./keyed            # a million keys: about a minute, 500 MB
//	go run ./keyed -keys 100000
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/nextfree/pace/bench/internal/report"
)

func main() {
	n := flag.Int("keys", 1_000_000, "how many keys")
	flag.Parse()
	names := make([]string, *n)
	others := make([]string, *n)
	for i := range names {
		names[i] = fmt.Sprintf("user-%07d", i)
		others[i] = fmt.Sprintf("host-%07d", i)
	}

	fmt.Printf("%s; %d keys of 12 characters\n\n", report.Machine(), *n)
	var costs [][]string
	for _, p := range peers() {
		costs = append(costs, measureCosts(p, names, others))
	}
	report.Table(os.Stdout, []string{"limiter", ">B/key, live", ">B/key, idle", ">ns/insert",
		">ns/hit", ">8 goroutines", ">same key", ">8 goroutines", ">allocs/hit", ">longest call, ms"}, costs)
	fmt.Println(`
live: each key has taken one permit of a thousand, at 0.001/s. Bytes are those beside the key's own.
idle: at 10/s, after 4 s of calls for another key; and the longest of these calls, while idle keys are swept.
hit: a call for a key that is there, any of them in no order, by one goroutine or 8; then all for one key.`)

	fmt.Println()
	var floods [][]string
	for _, p := range peers() {
		floods = append(floods, measureFlood(p, names))
	}
	header := []string{"limiter", ">goroutines", "room", ">B/key held after the flood", "the debtor"}
	report.Table(os.Stdout, header, floods)
	fmt.Println(`
flood: a key has used up its permits and more; then all the other keys come, where there is
room for a tenth of them, if that can be said. The debtor asks again: was it forgiven?`)
}
