# `make test` tests the library, `make check` looks at everything else; CI runs both. `make help` lists the targets.
#
# With empty caches (GOMODCACHE and GOCACHE), on two cores:
#
#	           downloads  processor time
#	test          1.7 MB         4 min    2 to 5 min
#	check                                 with test 15 min where modules and build are cached
#	demo           28 MB         1 min    and 31 s of the demo itself
#	demo-llm       29 MB       2.5 min    and 40 s
#
# Where Debian's packages are missing, test downloads 1 MB more for Redis, and check a C compiler.
GO          ?= go
# It needs a newer Go than the library does, and fetches it.
STATICCHECK := GOTOOLCHAIN=auto $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2
APIDIFF     := GOTOOLCHAIN=auto $(GO) run golang.org/x/exp/cmd/apidiff@v0.0.0-20261014143641-f0251eb4aa3e
FUZZTIME    ?= 20s
# The library: what a program may require.
LIBRARY     := . reserve/shared/goredis
# Adapters to other libraries, which make check tests.
PLUGS       := $(addprefix reserve/plug/pace,azure aws connect grpc k8s otel prom vet) reserve/plug/xtime
# Stores of shared limiters that need a server in their tests, which make check runs.
STORES      := reserve/shared/natskv reserve/shared/postgres
# Beside it: pace and its peers.
BENCH       := bench bench/sdk bench/shared
# The library is checked for a 32-bit Linux and for systems that are not Unix or not Linux, the stores for Windows.
# Elsewhere nothing differs but the system calls and structures of internal/wake, so only that is compiled.
PLATFORMS   := linux/386 windows/amd64 darwin/arm64
MORE        := freebsd/amd64 linux/arm linux/arm64 linux/loong64 linux/mips linux/mips64le linux/ppc64le linux/riscv64 \
               linux/s390x

.PHONY: help test check lint apidiff figures race i386 cross modules long valkey benches fuzz faults bench demo demo-llm demo-shared

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

test: ## all tests of the library; installs a Redis server on Debian
	@echo "The library's tests: about 4 minutes with empty caches, 2 with full ones."
	@.ci/setup redis-server
	@for m in $(LIBRARY); do (set -x; PACE_REQUIRE_REDIS=1 .ci/alive $(GO) test -C $$m -timeout 5m ./...) || exit 1; done

check: lint modules apidiff race i386 cross valkey benches ## all that test leaves out: the following, and the tests of the benchmarks

lint: ## gofmt, go vet, staticcheck
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "not gofmt'ed: $$unformatted"; exit 1; }
	@for m in $(LIBRARY) $(PLUGS) $(STORES) bench; do (set -x; cd $$m && $(GO) vet ./... && $(STATICCHECK) ./...) || exit 1; done
	@for m in $(BENCH); do (set -x; cd $$m && $(GO) vet ./...) || exit 1; done # staticcheck of all SDKs takes minutes

modules: ## each go.mod and go.sum has what is needed, and no more
	@for m in $(LIBRARY) $(PLUGS) $(STORES) $(BENCH); do (set -x; cd $$m && $(GO) mod tidy -diff) || exit 1; done

apidiff: ## the root module's exported names beside those of the last tag, if there is one
	@tag=$$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null) || { echo "apidiff: no release so far"; exit 0; }; \
	  old=$$(mktemp -d); trap 'git worktree remove --force "$$old/tag"; rm -rf "$$old"' EXIT; set -x; \
	  git worktree add -q --detach "$$old/tag" "$$tag" && \
	  (cd "$$old/tag" && $(APIDIFF) -m -w "$$old/api" github.com/nextfree/pace) && \
	  $(APIDIFF) -m -incompatible "$$old/api" github.com/nextfree/pace

race: ## all tests of the library, stores and adapters with the race detector; installs gcc and PostgreSQL on Debian
	@.ci/setup gcc redis-server postgresql
	@for m in $(LIBRARY) $(STORES) $(PLUGS); do \
	  (set -x; cd $$m && PACE_REQUIRE_REDIS=1 PACE_REQUIRE_POSTGRES=1 $(GO) test -race -timeout 8m ./...) || exit 1; done

i386: ## the tests of the root module for a 32-bit processor, where the kernel runs its programs; cross compiles them anyway
	@export GOARCH=386 CGO_ENABLED=0; \
	  if $(GO) test -timeout 1m ./internal/saturate 2>&1 | grep -q 'exec format error'; \
	  then echo "i386: not run: this kernel has no 32-bit programs (CONFIG_IA32_EMULATION)"; \
	  else (set -x; .ci/alive $(GO) test -timeout 8m ./...); fi

figures: ## how large the library is
	@$(GO) run ./internal/judge/figures

cross: ## compile the library and its tests for other systems
	@for p in $(PLATFORMS); do for m in $(LIBRARY); do \
	  (set -x; cd $$m && GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 $(GO) vet ./...) || exit 1; done; done
	@for m in $(STORES); do (set -x; cd $$m && GOOS=windows CGO_ENABLED=0 $(GO) vet ./...) || exit 1; done
	@for p in $(MORE); do (set -x; GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 $(GO) build ./internal/wake) || exit 1; done

long: ## the tests whose long form takes minutes (PACE_LONG): before a release, and after a change of the arithmetic
	PACE_LONG=1 $(GO) test -timeout 20m ./internal/... ./reserve/outbound/llm

valkey: ## the tests of shared limiters on Valkey; installs it on Debian
	@.ci/setup redis-server valkey-server
	@for m in reserve/shared reserve/shared/goredis; do \
	  (set -x; cd $$m && PACE_REQUIRE_REDIS=1 PACE_REDIS=valkey-server $(GO) test -timeout 5m ./...) || exit 1; done

benches: ## the tests of the benchmarks
	@for m in $(BENCH); do (set -x; cd $$m && $(GO) test -timeout 5m ./...) || exit 1; done

# A short minimization: past the time limit a long one fails the run without a finding.
fuzz: ## each fuzz target for FUZZTIME (default 20s)
	@for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
	  for target in $$(grep -h '^func Fuzz' $$dir/*_test.go | sed 's/func \(Fuzz[A-Za-z0-9_]*\).*/\1/'); do \
	    echo "fuzz $$dir $$target"; \
	    (cd $$dir && $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x .) || exit 1; done; done

faults: ## what callers see of a Redis, a PostgreSQL and a NATS that fail: three minutes
	@.ci/setup redis-server postgresql
	@cd bench/shared && $(GO) run ./fault

bench: ## the benchmarks, then pace and its peers side by side
	$(GO) test -run '^$$' -bench . ./...
	cd bench && $(GO) run ./cmd/ratios && $(GO) run ./cmd/spacing && $(GO) run ./keyed && $(GO) run ./window

demo: ## a local API that allows 100 calls in 2 s, called without a limiter, with x/time/rate and with pace
	@echo "Downloading 28 MB and compiling, a line for each package, about a minute the first time; then the demo runs for 31 s."
	@$(GO) build -C bench -v -o out/ ./cmd/demo && bench/out/demo -out bench/out/demo.png

demo-llm: ## a local server that limits tokens as OpenAI does, called with openai-go, unpaced and paced
	@echo "Downloading 29 MB and compiling SDKs, a line for each package, about three minutes the first time; then the demo runs for some 40 s."
	@$(GO) build -C bench/sdk -v -o ../out/demo-llm ./llm/cmd/demo && bench/out/demo-llm -out bench/out/demo-llm.png

demo-shared: ## three processes share a limit through a file, and one of them is killed
	@echo "Downloading 28 MB and compiling, a line for each package, about a minute the first time; then the demo runs for 8 s."
	@$(GO) build -C bench -v -o out/ ./cmd/demo && bench/out/demo -shared -out bench/out/demo-shared.png
