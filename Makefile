# `make` alone lists what there is.
SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS   += --no-print-directory

LINT_VERSION := $(shell cat .golangci-lint-version)
LINT         := bin/golangci-lint-$(LINT_VERSION)

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS := -s -w

FUZZTIME ?= 10s
BENCH    ?= .

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: ## Run Seatline on its embedded stores
	go run .

.PHONY: build
build: ## Build bin/seatline
	CGO_ENABLED=0 go build -trimpath -ldflags='$(LDFLAGS)' -o bin/seatline .

.PHONY: assets
assets: ## Put the playground's npm packages into what is built next, so that it works offline
	@scripts/assets

.PHONY: test
test: setup assets lint verify ## Run everything: set-up, lint, generated code, all tests with the race detector, fuzz tests briefly, pages in Chromium
	go test -race -timeout 30m ./...
	scripts/fuzz -brief 1000x
	cd web && npm --silent test

.PHONY: test-web
test-web: setup assets ## Check and test the web app, the SDK and the playground alone
	cd web && npm --silent test

.PHONY: setup
setup: ## Install what the tests need, where it is missing
	@scripts/setup

.PHONY: lint
lint: $(LINT) ## Check style, formatting and imports
	$(LINT) run ./...

.PHONY: format
format: $(LINT) ## Format the Go code
	$(LINT) fmt

# Built once a version, from source: the pin is all that needs to be trusted.
$(LINT): .golangci-lint-version
	@echo "building golangci-lint $(LINT_VERSION), which takes some minutes, once"
	@GOFLAGS= GOBIN=$(CURDIR)/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	@mv bin/golangci-lint $@
	@touch $@

.PHONY: generate
generate: ## Generate ent/ and graph/generated/ from their schemas
	go generate ./ent
	go tool gqlgen generate

.PHONY: verify
verify: ## Prove that the generated code is fresh and go.mod tidy
	scripts/verify

.PHONY: migration
migration: ## Write the next migration: NAME=what_it_does DEV_DATABASE_URL=an empty database
	go run ./migrations/internal/generate -name '$(NAME)'

.PHONY: fuzz
fuzz: ## Run each fuzz test for FUZZTIME (10s)
	@scripts/fuzz $(FUZZTIME)

# Benchmarks compare ways of doing a thing within one run and report ratios, so
# packages run one after the other.
.PHONY: bench
bench: setup ## Run the benchmarks, which report ratios: BENCH=regexp
	@go list -f '{{.Dir}} {{.ImportPath}}' ./... | while read -r dir pkg; do \
		if grep -lqE '^func Benchmark' "$$dir"/*_test.go 2>/dev/null; then \
			go test -run '^$$' -bench '$(BENCH)' -benchtime 1x -timeout 20m "$$pkg" </dev/null; \
		fi; \
	done

.PHONY: image
image: ## Build the container image
	docker build --tag seatline:$(VERSION) --tag seatline:latest .

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin artefacts
	find web/assets -type f -not -name .gitignore -delete
