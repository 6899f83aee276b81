# consul-ecs. `make help` lists the targets.

export GOTOOLCHAIN := local
export CGO_ENABLED := 0

GO      ?= go
VERSION ?= 0.7.0
COMMIT  := $(shell git rev-parse --short HEAD 2>/dev/null)
PKG     := github.com/meshtask/consul-ecs/internal/cli
LDFLAGS := -s -w -X $(PKG).version=$(VERSION) -X $(PKG).prerelease= -X $(PKG).commit=$(COMMIT)

.DEFAULT_GOAL := build

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/consul-ecs and bin/localecs, static
	@mkdir -p bin
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/consul-ecs ./cmd/localecs ./examples/hello-mesh/hello

.PHONY: tools
tools: ## Put consul, envoy, staticcheck and uidmap into .tools/bin (from PATH, or built)
	@tools/ensure.sh

.PHONY: demo
demo: build ## Run three ECS tasks in a Consul mesh on this machine and check what happened
	@tools/ensure.sh consul envoy
	bin/localecs run examples/hello-mesh

.PHONY: test
test: build tools ## All tests: vet, staticcheck, race detector, real Consul and Envoy, the demo
	$(GO) vet ./...
	.tools/bin/staticcheck ./...
	GOOS=darwin $(GO) vet ./cmd/consul-ecs
	CGO_ENABLED=1 $(GO) test -race -timeout 20m $$($(GO) list ./... | grep -v /localecs/command)
	@# The scenarios count lost requests: they have the machine to themselves,
	@# two at a time, since an overloaded agent may fail instead of leaving.
	CGO_ENABLED=1 $(GO) test -race -parallel 2 -timeout 20m ./localecs/command

.PHONY: bench
bench: build tools ## Measure ours against floors in the same run (min, median, max)
	$(GO) run ./internal/bench

.PHONY: size
size: ## Show the size of consul-ecs, what its imports add, and its memory
	@tools/ensure.sh consul
	@$(GO) run ./internal/size

.PHONY: fuzz
fuzz: ## Fuzz every parser for FUZZTIME (default 20s) each
	@tools/fuzz.sh $(or $(FUZZTIME),20s)

.PHONY: cross
cross: ## Build consul-ecs for linux/arm64 too
	GOOS=linux GOARCH=arm64 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/consul-ecs-arm64 ./cmd/consul-ecs

.PHONY: clean
clean: ## Remove what was built; .tools stays
	rm -rf bin .localecs
