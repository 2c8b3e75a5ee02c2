# The pattern "work" means every module in go.work; "./..." would mean only
# the root module.
.DEFAULT_GOAL := help

help: ## print the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

quick: ## build, vet and the tests that need no service
	go build work
	go vet work
	go test -short work
	@missing="$$(scripts/services missing)"; [ -z "$$missing" ] || \
		echo "quick: tests that need these were skipped: $$missing(make test runs them)"

# One package at a time: some tests hold leases of a second or two in real time,
# and must not compete for the processors with the others.
test: lint ## lint, then all tests, race detector on, against real services (what CI runs)
	scripts/services run -- scripts/failures go test -race -p 1 -timeout 30m work

# Random cases beyond those of make test; CHECKS=n and STEPS=n make it longer.
CHECKS ?= 5000
STEPS ?= 60
soak: ## compare the stores with the model for a long time
	scripts/services run -- go test ./tests/model -run TestModel -count=1 -timeout 0 \
		-rapid.checks=$(CHECKS) -rapid.steps=$(STEPS)

conformance: ## prove each requirement on each store and write docs/conformance.md
	scripts/services run -- go run ./tests/conformance

# Commits must survive a crash of the machine where speed is compared.
bench bench-full: export POSTROOM_MARIADB_ARGS = --innodb-flush-log-at-trx-commit=1 --innodb-doublewrite=1

bench: ## measure beside bare SQL, River, Watermill and goqite, in small (a minute)
	@mkdir -p bin
	scripts/services run postgres mariadb -- go run ./bench -form quick -out bin/bench.md

bench-full: ## the same in full (up to 15 minutes); writes docs/performance.md and .svg
	@mkdir -p bin
	scripts/services run postgres mariadb -- go run ./bench -form full -out bin/bench-full.md \
		-page docs/performance.md -chart docs/performance.svg

FUZZTIME ?= 20s
fuzz: ## look for inputs that break what parses or validates (FUZZTIME=20s each)
	scripts/fuzz $(FUZZTIME)

# vet finds misuse of the standard library, staticcheck bugs and dead code,
# errcheck errors that nobody looked at; gofumpt ends talk about layout.
lint: bin/staticcheck ## go vet, staticcheck, errcheck, gofumpt
	go vet work
	bin/staticcheck work
	bin/errcheck work
	@unformatted="$$(bin/gofumpt -l .)"; [ -z "$$unformatted" ] || \
		{ echo "not formatted, run bin/gofumpt -w on:"; echo "$$unformatted"; exit 1; }

# One build makes all three.
bin/staticcheck: tools/go.mod tools/go.sum
	GOWORK=off go build -C tools -o ../bin/ tool
	@touch $@

.PHONY: help bench bench-full quick test soak conformance fuzz lint
