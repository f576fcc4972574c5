// Command inbound compares pace's middleware with others: what a request costs, in
// process and over connections on 127.0.0.1; what a flood of clients leaves behind; and
// whether one abuser locks the others out, or many keys at once. It prints a report in Markdown, and ends
// after about five minutes.
//
//	go run ./inbound    # in bench/sdk
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"
)

func main() {
	parts := flag.String("parts", "abuser,handlers,keys,load,flood,honest", "what to measure")
	rounds := flag.Int("rounds", 5, "how often, for medians")
	each := flag.Duration("each", 500*time.Millisecond, "how long a round over connections takes")
	only := flag.String("only", "", "which contenders, separated by semicolons; default: all")
	profile := flag.String("cpuprofile", "", "a file for a profile")
	clients := flag.Int("clients", 1_000_000, "how many clients flood")
	flag.Parse()
	if *only != "" {
		contenders = named(strings.Split(*only, ";"))
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			fatal(err)
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			fatal(err)
		}
		defer pprof.StopCPUProfile()
	}
	fmt.Printf("%s, %s/%s, %d cores\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	for _, part := range strings.Split(*parts, ",") {
		if err := run(os.Stdout, part, *rounds, *each, *clients); err != nil {
			fatal(err)
		}
	}
}

func run(out io.Writer, part string, rounds int, each time.Duration, clients int) error {
	switch part {
	case "abuser":
		return measureAbuser(out)
	case "handlers":
		return measureHandlers(out, rounds)
	case "keys":
		return measureKeys(out, rounds)
	case "load":
		return measureLoad(out, rounds, each)
	case "flood":
		return measureFlood(out, clients)
	case "honest":
		return measureHonest(out, clients*7/5)
	default:
		return fmt.Errorf("no part is called %q", part)
	}
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "inbound:", err)
	os.Exit(1)
}
