# `make test` is all that CI does; `make help` lists the rest.
GO          ?= go
# It needs a newer Go than the library does, and fetches it.
STATICCHECK := GOTOOLCHAIN=auto $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME    ?= 20s
PLATFORMS   := linux/amd64 linux/arm64 linux/386 darwin/arm64 windows/amd64 freebsd/amd64

.PHONY: help test unit lint cross fuzz bench demo setup

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

test: setup lint cross unit ## format, vet, staticcheck, cross-builds and all tests, with and without the race detector

unit: ## only the tests
	$(GO) test -timeout 5m ./...
	$(GO) test -race -timeout 8m ./...
	cd reserve/shared/goredis && $(GO) test -timeout 5m ./... && $(GO) test -race -timeout 8m ./...
	cd bench && $(GO) test -timeout 5m ./...

lint: ## gofmt, go vet, staticcheck
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "not gofmt'ed: $$unformatted"; exit 1; }
	$(GO) vet ./...
	$(STATICCHECK) ./...
	cd reserve/shared/goredis && $(GO) vet ./... && $(STATICCHECK) ./...
	cd bench && $(GO) vet ./... && $(STATICCHECK) ./...

cross: ## compile library and tests for other systems
	@for p in $(PLATFORMS); do \
	  echo "vet for $$p"; GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 $(GO) vet ./... || exit 1; done

# A short minimization: past the time limit a long one fails the run without a finding.
fuzz: ## each fuzz target for FUZZTIME (default 20s)
	@for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
	  for target in $$(grep -h '^func Fuzz' $$dir/*_test.go | sed 's/func \(Fuzz[A-Za-z0-9_]*\).*/\1/'); do \
	    echo "fuzz $$dir $$target"; \
	    (cd $$dir && $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x .) || exit 1; done; done

bench: ## the benchmarks, then pace and its peers side by side
	$(GO) test -run '^$$' -bench . ./...
	cd bench && $(GO) run ./cmd/ratios && $(GO) run ./cmd/spacing && $(GO) run ./keyed && $(GO) run ./window && $(GO) run ./stream

demo: ## a local API that allows 50 calls/s, called unpaced and paced
	@cd bench && $(GO) run ./cmd/demo

setup:
	@.ci/setup
