.DEFAULT_GOAL := help

help: ## print the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

quick: ## build, vet and the tests that need no service
	go build work && go vet work && go test work

.PHONY: help quick
