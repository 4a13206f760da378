# The only commands a newcomer needs: `make run` and `make test`. `make help` lists the others.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo

.PHONY: help
help: ## list the commands
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

.PHONY: run
run: ## serve on 127.0.0.1:8443 with the example policy
	$(CARGO) build --bin statusgate
	@[[ -e certs/tls.crt ]] || target/debug/statusgate certs --out certs
	@echo
	@echo "Once it listens, from another terminal in this folder:"
	@echo "  curl --cacert certs/ca.crt --data @docs/review.json https://127.0.0.1:8443/validate"
	@echo
	exec target/debug/statusgate serve --tls-cert certs/tls.crt --tls-key certs/tls.key

.PHONY: test
test: test-rust test-deploy test-image ## everything, on a real API server too

.PHONY: test-rust
test-rust: ## the Rust tests
	hack/control-plane.sh assets > /dev/null # before, so that no test has to wait for the build
	$(CARGO) test --no-fail-fast

.PHONY: test-deploy
test-deploy: ## deploy/ against a real API server
	hack/with-control-plane.sh bash -c 'hack/deploy-test.sh "$$KUBECONFIG"'

.PHONY: test-image
test-image: ## the final stage of the Dockerfile
	$(CARGO) build --bin statusgate
	hack/image-test.sh target/debug/statusgate

.PHONY: lint
lint: ## formatting and clippy, warnings as errors
	$(CARGO) fmt --check
	$(CARGO) clippy --all-targets -- -D warnings

.PHONY: docs
docs: ## what is generated below docs/: the schemas of documents, the pages of conventions
	$(CARGO) build --bin statusgate
	target/debug/statusgate schema StatusPolicy > docs/schemas/statuspolicy.json
	target/debug/statusgate schema StatusConvention > docs/schemas/statusconvention.json
	UPDATE_DOCS=1 $(CARGO) test --test explain the_pages_of_the_docs

.PHONY: demo
demo: ## a real API server, a phase filled in, one refused, one repaired
	$(CARGO) build --bin statusgate
	hack/packages.sh curl
	hack/with-control-plane.sh hack/demo.sh

.PHONY: bench
bench: ## CPU and latency beside a null server
	bench/run.sh

.PHONY: bench-compare
bench-compare: ## what a review costs beside another build: OTHER=its binary
	bench/compare.sh "$(OTHER)"

.PHONY: bench-conventions
bench-conventions: ## what judging and a whole review cost under each built-in convention, and loading them
	$(CARGO) run --release --example judging
	bench/conventions.sh

.PHONY: bench-e2e
bench-e2e: ## status writes per second of a real API server
	bench/e2e.sh

.PHONY: bench-check
bench-check: ## objects a second of statusgate check
	bench/check.sh
.PHONY: bench-backfill
bench-backfill: ## backfill beside a bare patch loop, and its memory
	bench/backfill.sh
