# Starling. `make help` lists what there is to do; each target installs or
# builds what it needs. Needs on a fresh machine: Go, Node, make, git.

GO      ?= go
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS := -s -w -X main.version=$(VERSION)
BIN     := bin/starling

# Tools run from the module proxy at these versions; nothing is installed.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

# The race detector's share of CI: packages that start goroutines, or whose callers do.
RACE := ./coordinator ./coordinator/bucket ./coordinator/internal/link ./coordinator/internal/socket ./coordinator/jobs \
	./coordinator/relay ./coordinator/server ./coordinator/shelf ./coordinator/signin ./coordinator/store ./dp ./dp/accounting ./edge ./internal/app/admin ./internal/app/bench \
	./internal/app/command/... ./internal/app/completions ./internal/app/generation ./internal/leaf/named ./internal/app/participation ./internal/app/service ./internal/app/sim ./internal/app/unattended ./internal/testkit/watchdog ./secagg ./simulate ./wasm/kernel

export CGO_ENABLED ?= 0
# Programs and tests are compiled alike, so that neither waits for what the other has compiled.
export GOFLAGS ?= -trimpath

.DEFAULT_GOAL := help

help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Says where the pages that are built into the program are older than their sources.
pages = @[ ! -f web/dist/built.json ] || [ ! -d web/node_modules ] || node web/build.mjs check || true

build: ## Build bin/starling (with the pages, if make web has built them; XLA=1 with --engine xla, which needs a C compiler)
	$(pages)
	$(if $(XLA),CGO_ENABLED=1) $(GO) build -C lab $(if $(XLA),-tags xla) -trimpath -ldflags '$(LDFLAGS)' -o ../$(BIN) ./cmd/starling

edge: ## Build bin/starling-edge: what a device needs, without a coordinator, simulations or plots
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/starling-edge ./cmd/starling-edge

demo: build ## Fine-tune a model across 24 devices, privately, on this machine (ARGS="--data FILE" for your own text)
	$(BIN) demo $(ARGS)

# make lint vets. A machine that does other things, too, needs more than Go's ten minutes a package.
TESTFLAGS := -vet=off -timeout 20m

# The laboratory's tests wait more than they compute: they go beside the core's.
test: ## Run the tests of both modules (PKG=./edge for one package's)
	$(pages)
ifdef PKG
	$(GO) test -C $(if $(filter ./lab%,$(PKG)),lab $(TESTFLAGS) $(patsubst ./lab%,.%,$(PKG)),. $(TESTFLAGS) $(PKG))
else
	@$(GO) test -C lab -p 1 $(TESTFLAGS) ./... & lab=$$!; $(GO) test $(TESTFLAGS) ./...; core=$$?; wait $$lab && exit $$core
endif
	@test -d ../shared/data || echo "SKIPPED for want of ../shared/data: tests at $$(grep -r 'realdata\.Path(' --include=*_test.go . | grep -vc internal/testkit/realdata) places"

# The tests of the core that take half of its processor time, and the packages that do nothing else.
SLOW := ^Test(AMillionClients|Compliance|AccountsBoundTheLedger|AccountsOfAStrangeLedger|CutCallsAgree|DeepBase|EqualForAnyNumberOfWorkers|EqualToAFleetOverSockets|FindsThatOneCoinDecidesOverAShard|Golden.*|HitsAreInTheLedger|HostileBomb|HostileCoalitionFramesNobody|HostileFields.*|HostileFraming|HostilePoison|HostileSilence|InterruptedRunsGoOn|KernelsEqualTwins|Kill|LogosTellWhoseDocumentsAre|MemoryIsBounded|OutsideReferences|OwnNoiseUnderDropouts|PartsAgree|PermutedLabels|ProgramAgainstReference.*|RemovedAnswersAreNotSeen|RepeatsEqualWrittenOut|ShardsAreDealt|SlowLines|SoundJobs|StatesThatDoNotFit|StrikersAreFound|Together.*|Transcripts|Try|UnderJS|UploadOverhead)$$
quick: ## Run the core's tests without the slow ones, in a minute or less (PKG=./edge/... for some)
	$(GO) test $(TESTFLAGS) -short -skip '$(SLOW)' $(or $(PKG),./...)

# With STARLING_SMOLLM2=FOLDER the tutorial is run over the published SmolLM2-135M-Instruct, 5 minutes of a core.
nightly: ## Run all tests with all cases, of which make test plays some (hostile fields, flaws that are put back)
	STARLING_NIGHTLY=1 $(MAKE) test

# With -short tests of thousands of hostile messages play one in six: each goes the same way.
# What is left out measures (a bias, bytes, a variance) or compares bits over rounds that other tests play too.
# GoMLX's Go backend does pointer arithmetic that checkptr, which -race turns on, stops at.
race: ## Run the race detector on the packages with goroutines (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race -short -skip '^Test(HostilePoison|UploadOverhead|OwnNoiseUnderDropouts|DualsRefused|EqualToAFleetOverSockets|SlowShare)$$' -timeout 20m -gcflags='github.com/gomlx/...=-d=checkptr=0' $(RACE)

arm64: ## Hold the kernels and programs for arm64 against the definition in an emulator (needs qemu-user; its speed says nothing)
	GOARCH=arm64 $(GO) test -exec qemu-aarch64-static ./wasm/kernel
	GOARCH=arm64 $(GO) test -exec qemu-aarch64-static -run HostsAgree ./wasm/compiler

stress: ## Repeat the tests under load until FOR is up (FOR=30m, PKG=./...); logs of failures are kept
	.ci/stress $(or $(FOR),30m) $(PKG)

fuzz: ## Run each fuzz target for FOR (60s), one after another (ONLY=FuzzOpenBlob for some)
	.ci/fuzz $(or $(FOR),60s) $(ONLY)

mutants: ## Put each listed fault into the private path and see that a test notices (PART=3/10, ONLY=dp or a name)
	$(GO) run ./internal/tools/mutants -part $(or $(PART),1/1) -only '$(ONLY)'

lint: ## gofmt, go vet, staticcheck, vanishing errors, go.mod tidiness; govulncheck where its database is reachable
	@files=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$files" || { echo "gofmt -w needed: $$files"; exit 1; }
	$(GO) vet ./... && $(GO) vet -C lab ./...
	GOOS=js GOARCH=wasm $(GO) vet ./cmd/starling-web ./edge ./wasm
	$(GO) run $(STATICCHECK) ./... && $(GO) run -C lab $(STATICCHECK) ./...
	$(GO) build -C internal/tools/lint -o ../../../bin/lint . && $(GO) vet -vettool=bin/lint ./... && $(GO) vet -C lab -vettool=../bin/lint ./...
	$(GO) test -C internal/tools/lint ./...
	$(GO) mod tidy -diff && $(GO) mod -C lab tidy -diff && $(GO) mod -C internal/tools/lint tidy -diff
	@if out=$$({ $(GO) run $(GOVULNCHECK) ./... && $(GO) run -C lab $(GOVULNCHECK) ./...; } 2>&1); then echo "$$out"; \
	elif echo "$$out" | grep -qiE 'dial|lookup|fetch|forbidden|403|no such host|connection'; then echo "govulncheck: database not reachable, skipped"; \
	else echo "$$out"; exit 1; fi

soak: build ## Kill gateways, owners, database and NATS under 500 devices' rounds for FOR (1h), one every KILL (5m)
	$(GO) run -C lab ./bench/gateways -for $(or $(FOR),1h) -kill $(or $(KILL),5m) -devices $(or $(DEVICES),500)

bench: build ## Run the benchmarks and the comparisons with peers, and write docs/BENCHMARKS.md (long; ONLY=secagg,quant for some)
	$(GO) run -C lab ./bench/tables -only '$(ONLY)'

xla: ## Hold XLA against the compiled program (fetches a pinned CPU plugin once, 63 MB; STARLING_PJRT=PATH for another)
	@GO=$(GO) sh model/xla/test.sh

reproduction: build ## Write docs/REPRODUCTION.md and docs/results from the tables in docs/reproduction
	$(BIN) reproduce docs/reproduction --out docs

interop: ## Hold models, adapters and tokenizers against transformers and PEFT (installs them once, 5 GB; ARGS="--only bert")
	@sh lab/bench/interop/run.sh $(ARGS)

generate: ## Remake the generated files that are in git
	$(GO) generate ./...

base: build ## Remake the embedded default base from generated public text (about 15 minutes)
	$(BIN) pretrain --generated --packed --out model/base/default

documents: build ## Remake the embedded base for documents from generated public documents (about 5 minutes)
	$(BIN) pretrain --architecture t5 --generated --packed --out model/base/documents

commands: build ## Remake the embedded base that writes from generated public commands (about 10 minutes)
	$(BIN) pretrain --architecture llama --generated --packed --out model/base/llama/commands

man: build ## Write manual pages and shell completion to dist/
	$(BIN) man dist/man
	@for s in bash zsh fish; do $(BIN) completion $$s >dist/starling.$$s; done

release: web ## Build what is released into dist/release: six targets of two programs, what they are made of, checksums
	GO=$(GO) sh deploy/release.sh $(VERSION) dist/release

image: web ## Pack an OCI image of starling for linux/amd64 and linux/arm64 into dist/image, without a daemon
	GO=$(GO) TARGETS="linux/amd64 linux/arm64" sh deploy/release.sh $(VERSION) dist/image

same: ## Hold that two builds of one source are one program (TARGET=darwin/arm64 for another)
	GO=$(GO) sh deploy/reproduce.sh $(TARGET)

web: ## Build the browser's edge and the pages
	sh web/build.sh

reference: ## Write the npm package's reference (TypeDoc) to dist/edge-reference
	@[ -x web/test/recipes/node_modules/.bin/typedoc ] || npm ci --silent --no-fund --no-audit --prefix web/test/recipes
	web/test/recipes/node_modules/.bin/typedoc --options web/edge/typedoc.json

clean: ## Remove what was built
	rm -rf bin dist starling-demo && git clean -qfdX web/dist

.PHONY: help build edge demo test quick nightly race arm64 stress fuzz mutants lint soak bench generate base documents commands man web reference clean interop xla reproduction release image same
