# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

OCB_VERSION := v0.161.0
GOLANGCI_LINT_VERSION := v2.15.0

TOOLS := $(CURDIR)/.tools
OCB := $(TOOLS)/builder-$(OCB_VERSION)
GOLANGCI_LINT := $(TOOLS)/golangci-lint-$(GOLANGCI_LINT_VERSION)
GOFUMPT := go tool -modfile=internal/tools/go.mod gofumpt
DISTRIBUTION := distribution/otelcol-fpm
VENV := .venv
COMPONENTS := $(patsubst %/metadata.yaml,%,$(wildcard receiver/*/metadata.yaml processor/*/metadata.yaml exporter/*/metadata.yaml))

# A static binary, the same bytes wherever it is built.
GO_BUILD := CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags='-s -w'
HEALTH_GATE := --feature-gates=+extension.healthcheck.useComponentStatus

.PHONY: help
help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

.PHONY: run
run: build ## build, then run the quickstart with a simulated engine; Ctrl-C ends both
	@scripts/run-quickstart.sh

.PHONY: build
build: bin/otelcol-fpm bin/fpmsim bin/fpmbench ## build bin/otelcol-fpm with ocb, bin/fpmsim and bin/fpmbench (the first time about 8 minutes)

GO_SOURCES := $(shell git ls-files -co --exclude-standard '*.go' go.mod go.sum 2>/dev/null | grep -v _test.go)

bin/otelcol-fpm: $(TOOLS)/sources.stamp $(GO_SOURCES)
	@scripts/build-distribution.sh "$(CURDIR)/$@"

bin/fpmsim bin/fpmbench: bin/%: $(GO_SOURCES)
	@$(GO_BUILD) -o $@ ./cmd/$*

# ocb writes the sources of the distribution, which are not formatted, and tidies its module.
define write_distribution
@$(OCB) --config builder-config.yaml --skip-compilation --skip-strict-versioning=false 2>&1 | { grep -v INFO || true; }
@gofmt -w $(DISTRIBUTION)
endef

$(TOOLS)/sources.stamp: builder-config.yaml go.mod $(OCB)
	@echo "ocb: writing $(DISTRIBUTION)/ from builder-config.yaml"
	$(write_distribution)
	@touch $@

$(OCB):
	@echo "installing ocb $(OCB_VERSION)"
	@mkdir -p $(TOOLS)
	@GOBIN=$(TOOLS)/bin go install go.opentelemetry.io/collector/cmd/builder@$(OCB_VERSION)
	@mv $(TOOLS)/bin/builder $@

# One package after the other: many tests start processes, which need the cores.
.PHONY: test
test: build $(VENV)/stamp packaging-tools ## run everything that fits a CI run
	$(VENV)/bin/python -m pytest -q plugins/tokenspeed
	@echo "compiling the tests"
	@go test -run '^$$' ./... >/dev/null
	FPM_TEST_PYTHON=$(CURDIR)/$(VENV)/bin/python go test -p 1 -timeout 20m ./...

.PHONY: test-race
test-race: $(VENV)/stamp ## run the components and their cores with the race detector
	FPM_TEST_PYTHON=$(CURDIR)/$(VENV)/bin/python go test -race -timeout 30m ./internal/... ./receiver/... ./processor/... ./exporter/... ./cmd/...

.PHONY: test-long
test-long: build $(VENV)/stamp packaging-tools test-race ## test, plus kill loops and fuzzing time
	FPM_TEST_LONG=1 $(VENV)/bin/python -m pytest -q plugins/tokenspeed
	FPM_TEST_LONG=1 FPM_TEST_PYTHON=$(CURDIR)/$(VENV)/bin/python go test -timeout 120m ./...
	$(MAKE) fuzz

.PHONY: packaging-tools
packaging-tools:
	@for tool in helm nfpm cyclonedx-gomod; do distribution/scripts/tool.sh $$tool >/dev/null; done

.PHONY: chart
chart: build ## lint, render and check the Helm chart
	@distribution/scripts/chart.sh

.PHONY: dist
dist: ## binaries, packages, chart archive, checksums and bill of materials into dist/
	@distribution/scripts/dist.sh

$(VENV)/stamp: test/requirements.txt
	@python3 -m venv $(VENV)
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check -r test/requirements.txt
	@touch $@

FUZZ_TIME ?= 10m
.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZ_TIME (10m)
	@scripts/fuzz.sh $(FUZZ_TIME)

.PHONY: bench
bench: ## run the Go benchmarks
	go test -run '^$$' -bench . -benchmem ./internal/... ./receiver/... ./processor/... ./exporter/...

.PHONY: bench-e2e
bench-e2e: build $(VENV)/stamp ## measure the Collector beside a Python consumer under the same load
	@$(VENV)/bin/python test/bench/side_by_side.py

.PHONY: soak
soak: build $(VENV)/stamp ## run both pipelines for an hour with restarts, gaps and rolls, and account for every message
	@$(VENV)/bin/python test/bench/soak.py

.PHONY: lint
lint: $(GOLANGCI_LINT) ## gofumpt and golangci-lint
	@unformatted=$$($(GOFUMPT) -l cmd exporter internal processor receiver test); \
	  if [ -n "$$unformatted" ]; then echo "gofumpt would change:"; echo "$$unformatted"; exit 1; fi
	$(GOLANGCI_LINT) run ./...

$(GOLANGCI_LINT):
	@echo "installing golangci-lint $(GOLANGCI_LINT_VERSION)"
	@mkdir -p $(TOOLS)
	@GOBIN=$(TOOLS)/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	@mv $(TOOLS)/bin/golangci-lint $@

.PHONY: format
format: ## gofumpt everything
	@$(GOFUMPT) -w cmd exporter internal processor receiver test

.PHONY: generate
generate: $(OCB) ## write what is generated: component metadata, the distribution's sources
	@for component in $(COMPONENTS); do (cd $$component && go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml); done
	$(write_distribution)

.PHONY: check-generated
check-generated: generate ## fail when a generated file is not up to date
	@git diff --exit-code --stat -- $(DISTRIBUTION) $(COMPONENTS) go.mod go.sum
	@untracked=$$(git ls-files --others --exclude-standard -- $(DISTRIBUTION) $(COMPONENTS)); \
	  if [ -n "$$untracked" ]; then echo "generated but not committed:"; echo "$$untracked"; exit 1; fi

.PHONY: clean
clean: ## remove binaries, tools and the test environment
	rm -rf bin dist run $(VENV) $(TOOLS) $(DISTRIBUTION)/otelcol-fpm
