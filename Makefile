# consul-ecs. `make help` lists the targets.

# The version that go.mod names, no older and no newer one: go fetches it. The same commit gives
# the same program on every machine.
export GOTOOLCHAIN := go$(shell sed -n 's/^go //p' go.mod)
export CGO_ENABLED := 0
# Without the checkout's path in what is compiled, all checkouts share one build cache; without VCS
# data, tags and a shallow clone make no difference.
export GOFLAGS := $(strip $(GOFLAGS) -trimpath -buildvcs=false)

GO      ?= go
VERSION ?= 1.0.0-beta.1
# Cut here, since git makes it longer where the checkout has another object that begins so.
COMMIT  := $(shell git describe --always --dirty --abbrev=40 --exclude '*' 2>/dev/null | sed 's/^\(.......\)[0-9a-f]*/\1/')
PKG     := github.com/meshtask/consul-ecs/internal/cli
# Without inlining in these packages consul-ecs is 4 % smaller, and starts as fast.
SMALL   := -gcflags=github.com/...=-l -gcflags=go.yaml.in/...=-l
# The image of consul-ecs where a mesh file names none, for those who publish one: no registry is assumed.
DEFAULT_IMAGE ?=
LDFLAGS := -s -w -X $(PKG).version=$(VERSION) -X $(PKG).commit=$(COMMIT) -X $(PKG).image=$(DEFAULT_IMAGE)

IMAGE   ?= consul-ecs
DOCKER  ?= docker
DIST    ?= dist
ARCH    ?= $(if $(filter aarch64 arm64,$(shell uname -m)),arm64,amd64)
# The commit's, so that the same commit gives the same layer.
EPOCH    = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null),0)
REVISION = $(shell git describe --always --dirty --abbrev=40 --exclude '*' 2>/dev/null)
BUILD_IMAGE = $(GO) run ./internal/image -dist $(DIST) -name $(IMAGE) -version $(VERSION) -revision '$(REVISION)' -time $(EPOCH)

.DEFAULT_GOAL := build

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/consul-ecs and bin/localecs, static
	@mkdir -p bin
	$(GO) build $(SMALL) -ldflags '$(LDFLAGS)' -o bin/ ./cmd/consul-ecs
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/ ./cmd/localecs ./examples/hello-mesh/hello ./examples/token-broker/tokendemo

.PHONY: tools
tools: ## Put what tests need into .tools: consul, envoy, staticcheck, govulncheck, gotestsum, uidmap, aws, dockerd, compose
	@tools/ensure.sh

.PHONY: demo
demo: build ## Run ECS tasks in a Consul mesh on this machine, kill one, and check what happened
	@tools/ensure.sh consul envoy
	bin/localecs run examples/hello-mesh

.PHONY: demo-full
demo-full: build ## Replace, stop and kill instances under traffic, in both stop orders, with a control; then disturb everything, start all at once, and run without agents
	@tools/ensure.sh consul envoy
	bin/localecs run -stop-order both examples/rolling-update examples/long-drain examples/without-delay
	bin/localecs run examples/rolling-service examples/faults examples/first-deployment
	bin/localecs run examples/agentless-mesh examples/agentless-gateways examples/two-datacenters examples/token-broker examples/service-connect

.PHONY: chaos
chaos: build ## Run N (20) random schedules of faults, FOR (60s) each, from SEED (random) on; ORDER=at-once for old agents
	@tools/ensure.sh consul envoy
	bin/localecs run -chaos $(or $(SEED),random) -for $(or $(FOR),60s) -runs $(or $(N),20) $(if $(ORDER),-stop-order $(ORDER)) examples/chaos

.PHONY: check
check: ## Look for mistakes without running anything: gofmt, vet, staticcheck
	@tools/ensure.sh staticcheck
	@files=$$("$$($(GO) env GOROOT)/bin/gofmt" -l *.go */) && test -z "$$files" || { echo "make: run gofmt -w on:" $$files >&2; exit 1; }
	$(GO) vet ./...
	$(GO) vet -C tools/aclcompare ./...
	$(GO) vet -C terraform ./...
	GOOS=darwin $(GO) vet ./cmd/consul-ecs
	.tools/bin/staticcheck ./...

.PHONY: vuln
vuln: ## Fail when consul-ecs or localecs can reach a known vulnerability
	@tools/ensure.sh govulncheck
	tools/vuln.sh

# The packages whose tests start no server, no proxy and no container engine.
UNIT := . aclrules admission awsutil/awstest broker/receiver config doctor envoy images internal/cli internal/failure internal/inflight internal/metrics \
	internal/retry internal/secret internal/size internal/testkit internal/testkit/arch internal/testkit/servers \
	internal/volume localecs/chaos localecs/control localecs/ecs/controlplane localecs/ecs/metadata \
	localecs/ecs/scheduler localecs/ecs/shapes localecs/ecs/simulated localecs/meter localecs/network localecs/runtime \
	localecs/scenario/file localecs/view reach supervise taskdef traffic workload

.PHONY: unit
unit: ## Run the tests that need nothing but Go
	$(GO) test -short -vet=off -skip '^TestServersAreRequired$$' $(UNIT:%=./%)

.PHONY: test
test: build check tools vuln ## What each commit must pass: no known vulnerability, all packages, real Consul and Envoy, the demo
	tools/test.sh short

.PHONY: test-full
test-full: build check tools vuln ## All of that and what takes longer: both stop orders, Docker, more moments of each leak, Consul 1.22, chaos, fuzzing
	tools/ensure.sh consul-1.22
	tools/test.sh full
	tools/fuzz.sh $(or $(FUZZTIME),20s)
	$(MAKE) alerts
	$(MAKE) chaos N=$(or $(N),10) SEED=$(or $(SEED),random)

.PHONY: alerts
alerts: ## Check the alerting rules by Prometheus's own program
	$(GO) -C tools/promtool tool promtool check rules $(CURDIR)/deploy/alerts.yaml
	$(GO) -C tools/promtool tool promtool test rules $(CURDIR)/deploy/alerts_test.yaml

.PHONY: bench
bench: build tools ## Measure ours against floors in the same run (min, median, max)
	tools/ensure.sh consul-1.22
	CONSUL_ECS_BIN=$(CURDIR)/bin $(GO) run ./internal/bench
	CONSUL_ECS_BIN=$(CURDIR)/bin $(GO) test -run '^$$' -bench 'Controller|Leftovers' -benchtime 1x -timeout 60m ./subcommand
	$(GO) test -v -run '^$$' -bench BenchmarkServers -benchtime 1x -timeout 60m ./subcommand
	CONSUL_ECS_BIN=$(CURDIR)/bin $(GO) test -run '^$$' -bench AtServers -benchtime 20x ./subcommand
	CONSUL_ECS_BIN=$(CURDIR)/bin $(GO) test -run '^$$' -bench LateServers -benchtime 20x ./subcommand
	$(GO) test -v -count 1 -run NoRequestIsLostWithTheServer ./relay
	CONSUL_ECS_BIN=$(CURDIR)/bin $(GO) test -run '^$$' -bench Replacement -benchtime 20x -timeout 60m ./localecs/command
	CONSUL_ECS_BIN=$(CURDIR)/bin $(GO) test -run '^$$' -bench ScaleOut -benchtime 1x ./localecs/command
	$(GO) test -run '^$$' -bench 'Tasks|Metadata' -benchtime 5x ./localecs/cluster
	$(GO) test -run '^$$' -bench . -benchtime 2s ./localecs/ecs/simulated
	$(GO) test -run '^$$' -bench Load -benchtime 1x ./broker
	$(GO) test -C tools/aclcompare -run '^$$' -bench . -benchtime 200ms ./...

.PHONY: size
size: ## Show the size of consul-ecs, what its imports add, and its memory
	@tools/ensure.sh consul
	@GOFLAGS='$(GOFLAGS) $(SMALL)' $(GO) run ./internal/size

.PHONY: fuzz
fuzz: ## Fuzz every parser for FUZZTIME (default 20s) each
	@tools/fuzz.sh $(or $(FUZZTIME),20s)

.PHONY: image
image: image-$(ARCH) ## Build the container image for this machine, and load it into the Docker engine
	$(DOCKER) tag $(IMAGE):$(VERSION)-$(ARCH) $(IMAGE):$(VERSION)

.PHONY: image-arm64
image-arm64: ## Build the container image for arm64, and load it into the Docker engine

# Before anything is built for it.
.PHONY: engine
engine:
	@$(DOCKER) version >/dev/null || { echo "make: loading an image needs a Docker engine and its client: start one, set DOCKER_HOST, name the client, DOCKER=/path/to/docker, or run make archive" >&2; exit 1; }

.PHONY: image-amd64
image-amd64 image-arm64: image-%: engine archive-%
	$(DOCKER) load -i $(DIST)/consul-ecs-$*.tar

.PHONY: archive
archive: archive-$(ARCH) ## Build the container image as a file, its SBOM, and a context for docker build, in dist/, without an engine

.PHONY: archive-amd64 archive-arm64
archive-amd64 archive-arm64: archive-%: dist-%
	$(BUILD_IMAGE) $*

# Before anything is built for it.
.PHONY: committed
committed:
	@case '$(REVISION)' in '' | *-dirty) echo "make: a release is of a commit, and the tree has changes that are in none" >&2; exit 1 ;; esac

.PHONY: release
release: committed dist-amd64 dist-arm64 ## Build what a release has, in dist/release, without an engine
	GOOS=linux GOARCH=amd64 $(GO) build -ldflags '$(LDFLAGS)' -o $(DIST)/amd64/localecs ./cmd/localecs
	GOOS=linux GOARCH=arm64 $(GO) build -ldflags '$(LDFLAGS)' -o $(DIST)/arm64/localecs ./cmd/localecs
	rm -rf $(DIST)/release
	$(BUILD_IMAGE) -release -default-image '$(DEFAULT_IMAGE)' $(if $(BUILDER),-builder $(BUILDER)) amd64 arm64
	cd $(DIST)/release && sha256sum -c --quiet SHA256SUMS

.PHONY: dist-amd64 dist-arm64
dist-amd64 dist-arm64: dist-%:
	GOOS=linux GOARCH=$* $(GO) build $(SMALL) -ldflags '$(LDFLAGS)' -o $(DIST)/$*/consul-ecs ./cmd/consul-ecs

.PHONY: cross
cross: ## Build consul-ecs for linux/arm64 too
	GOOS=linux GOARCH=arm64 $(GO) build $(SMALL) -ldflags '$(LDFLAGS)' -o bin/consul-ecs-arm64 ./cmd/consul-ecs

.PHONY: clean
clean: ## Remove what was built; .tools stays
	rm -rf bin dist .localecs
