// Command pacevet runs package pacevet's analyzers: on the packages that its arguments name, or as `go vet
// -vettool=$(which pacevet) ./...`. `pacevet help` lists the analyzers.
package main

import (
	"golang.org/x/tools/go/analysis/multichecker"

	"github.com/nextfree/pace/reserve/plug/pacevet"
)

func main() { multichecker.Main(pacevet.Analyzers()...) }
