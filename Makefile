# Everything that is done with this repository; `make help` lists it.
# Tools are installed at pinned versions into .tools, results into bin: both
# are ignored by git.

SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO          ?= go
TOOLS       := $(CURDIR)/.tools
STATICCHECK := $(TOOLS)/staticcheck-0.7.0
MINISTACK   := $(TOOLS)/ministack-1.5.33
DATA        ?= .longshore
LISTEN      ?= 127.0.0.1:8080
FUZZTIME    ?= 30s
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

export GOFLAGS := -mod=readonly -buildvcs=false

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

.PHONY: build
build: ## make bin/longshore
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/longshore ./cmd/longshore

.PHONY: run
run: build ## run the broker on this machine, no cloud account needed
	bin/longshore serve --listen $(LISTEN) --data $(DATA)

.PHONY: test
test: lint validate emulator ## everything: format, vet, linter, all tests with the race detector
	$(GO) test -race -timeout 10m ./...

.PHONY: emulator
emulator: $(MINISTACK)/installed ## install the emulated AWS that tests run on

.PHONY: check
check: format vet ## the inner loop: format, vet, the fast tests
	$(GO) test -short ./...

.PHONY: lint
lint: format vet $(STATICCHECK) ## format, vet, linter
	$(STATICCHECK) ./...

.PHONY: format
format:
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "not formatted (run: gofmt -w .):"; echo "$$files"; exit 1; fi

.PHONY: vet
vet:
	$(GO) vet ./...

.PHONY: validate
validate: build ## check the shipped offering files
	bin/longshore catalog validate

.PHONY: fuzz
fuzz: ## fuzz each target for FUZZTIME (30s)
	@for package in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
	    echo "$$package $$target"; $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package; \
	  done; done

.PHONY: clean
clean: ## remove what was built; the data folder stays
	rm -rf bin $(TOOLS)

$(STATICCHECK):
	mkdir -p $(TOOLS)
	GOFLAGS= GOBIN=$(TOOLS) $(GO) install honnef.co/go/tools/cmd/staticcheck@v0.7.0
	mv $(TOOLS)/staticcheck $@

$(MINISTACK)/installed: internal/emulator/requirements.txt
	rm -rf $(MINISTACK)
	python3 -m venv $(MINISTACK)
	$(MINISTACK)/bin/pip install --quiet --no-deps --requirement $<
	touch $@
