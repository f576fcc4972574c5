// Command inbound compares pace's middleware with others: whether one abuser locks other clients out, what a request
// costs, and what a flood of clients leaves behind. It prints Markdown tables, in about two minutes.
//
//	go run ./inbound    # in bench/sdk
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/nextfree/pace/bench/internal/command"
	"github.com/nextfree/pace/bench/internal/report"
)

func main() {
	rounds := flag.Int("rounds", 5, "how often a request's cost is measured; the median counts")
	clients := flag.Int("clients", 1_000_000, "how many clients flood")
	command.Main("inbound", func() string {
		if *rounds < 1 || *clients < 1 {
			return "-rounds and -clients must be positive"
		}
		return ""
	}, func(context.Context) error {
		fmt.Printf("%s.\n\n", report.Machine())
		return errors.Join(measureAbuser(os.Stdout), measureHandlers(os.Stdout, *rounds), measureFlood(os.Stdout, *clients))
	})
}
