// Command inbound compares pace's middleware with others: whether one abuser locks other clients out, and what a
// request costs. It prints Markdown tables, in about a minute.
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
	command.Main("inbound", func() string {
		if *rounds < 1 {
			return "-rounds must be positive"
		}
		return ""
	}, func(context.Context) error {
		fmt.Printf("%s.\n\n", report.Machine())
		return errors.Join(measureAbuser(os.Stdout), measureHandlers(os.Stdout, *rounds))
	})
}
