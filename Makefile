# A newcomer needs `make run` and `make test`. `make help` lists the other commands.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo
# An example has the dependencies of the tests. Without it, cargo compiles 48 crates once more, with fewer features.
BUILD := build --profile test --bin statusgate --example kube_status_writes

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

.PHONY: run
run: ## serve on 127.0.0.1:8443 with the example policy
	$(CARGO) build --bin statusgate --no-default-features
	@[[ -e certs/tls.crt ]] || target/debug/statusgate certs --out certs
	@echo
	@echo "When it is listening, run in another terminal in this folder:"
	@echo "  curl --cacert certs/ca.crt --data @docs/review.json https://127.0.0.1:8443/validate"
	@echo
	exec target/debug/statusgate serve --tls-cert certs/tls.crt --tls-key certs/tls.key

.PHONY: test
test: ## run all Rust tests, including those on a real API server; properties with fixed seeds
	hack/control-plane.sh assets > /dev/null # first, so that no test waits for this build
	$(CARGO) test --no-run
	@# Those on an API server wait most of the time. Each of the two prints its results when it ends.
	$(MAKE) --jobs=2 --output-sync=target test-cluster test-others
	$(CARGO) test --doc

.PHONY: test-cluster
test-cluster:
	RUST_TEST_THREADS=8 $(CARGO) test --no-fail-fast --test cluster

.PHONY: test-others
test-others:
	nice -n 10 $(CARGO) test --no-fail-fast --lib --bins --test claims $(patsubst tests/%/main.rs,--test %,$(filter-out %/cluster/main.rs,$(wildcard tests/*/main.rs)))

.PHONY: test-release
test-release: ## test deploy/, the Helm chart, the alerts, the image, the page and the list of crates
	$(MAKE) --jobs=2 --output-sync=target test-deploy test-chart test-monitoring test-image test-browser
	$(MAKE) test-sbom # last: it exchanges the program that the others run

.PHONY: test-random
test-random: ## run the property tests with a random seed, for at most a minute: SECONDS=60 SEED=
	SEED="$(SEED)" hack/random-properties.sh "$(SECONDS)"

.PHONY: enumerate
enumerate: ## try what is promised on every small convention, 10 minutes: CLAIMS_SEED=
	CLAIMS=all $(CARGO) test --profile enumerate -p statusgate-pages --test claims -- --nocapture

.PHONY: fuzz
fuzz: ## search inputs that break the readers, for a minute per target: SECONDS=60 TARGETS="review cel" SEED= COUNTERS=targets
	SEED="$(SEED)" COUNTERS="$(COUNTERS)" hack/fuzz.sh "$(SECONDS)" $(TARGETS)

.PHONY: test-deploy
test-deploy: ## test deploy/, `manifests install` and examples/envtest on a real API server
	$(CARGO) $(BUILD)
	hack/packages.sh curl
	hack/with-control-plane.sh bash -c 'hack/deploy-test.sh "$$KUBECONFIG" && examples/envtest/run.sh'

.PHONY: test-monitoring
test-monitoring: ## test the alert rules and the dashboard with promtool and the metrics of a running server
	$(CARGO) $(BUILD)
	hack/monitoring-test.sh target/debug/statusgate

.PHONY: test-chart
test-chart: ## render the Helm chart, compare it with `manifests install`, and apply it
	$(CARGO) $(BUILD)
	hack/with-control-plane.sh hack/chart-test.sh

.PHONY: test-image
test-image: ## test the final stage of the Dockerfile
	$(CARGO) $(BUILD)
	hack/image-test.sh target/debug/statusgate

.PHONY: test-sbom
test-sbom: ## test the list of crates, and the one inside a binary of `cargo auditable`
	@# This compiles our packages once more, and only the list is read.
	"$$(hack/tool.sh cargo-auditable)" auditable $(BUILD) $(foreach part,core analysis pages,--config 'profile.test.package.statusgate-$(part).opt-level=0')
	hack/sbom-test.sh target/debug/statusgate

.PHONY: test-browser
test-browser: site ## test the page of `statusgate ui` and of the site in Chromium; screenshots in target/screenshots
	hack/packages.sh chromium chromium-driver
	$(CARGO) test --test command_line browser:: -- --ignored

.PHONY: picture
picture: test-browser ## make the picture of the page in the README again
	cp target/screenshots/playground-light-1280.png docs/images/page.png

.PHONY: ui-editor
ui-editor: ## bundle the editor of the page again; needs npm
	hack/editor.sh

.PHONY: test-editor
test-editor: ## compare the editor of the page with the result of its script; needs npm
	hack/editor.sh --check

.PHONY: test-workflows
test-workflows: ## test the GitHub action and the workflows, without running them on GitHub; needs PyPI
	$(CARGO) $(BUILD)
	hack/workflows-test.sh target/debug/statusgate

.PHONY: test-arm64
test-arm64: ## build the release for arm64 and run it in an emulator; not part of `make test`
	hack/arm64-test.sh

.PHONY: lint
lint: format deny ## check formatting, dependencies and idiom, and run clippy, with warnings as errors
	hack/idiom.sh
	$(CARGO) clippy --workspace --all-targets -- -D warnings

.PHONY: tools
tools: ## install the programs that the tests and the site need in target/tools
	for tool in cargo-deny cargo-auditable cargo-cyclonedx mdbook; do hack/tool.sh $$tool; done

.PHONY: format
format: ## check formatting
	$(CARGO) fmt --all --check

.PHONY: deny
deny: ## check the licenses, sources and duplicate versions of all crates
	"$$(hack/tool.sh cargo-deny)" --locked check licenses bans sources

.PHONY: advisories
advisories: ## check all crates for known vulnerabilities; downloads the database of RustSec from GitHub
	"$$(hack/tool.sh cargo-deny)" --locked check advisories

.PHONY: sbom
sbom: ## list all crates of the binary as CycloneDX JSON in target/sbom
	hack/sbom.sh

.PHONY: hot-functions
hot-functions: ## list the functions that a server executes, for the layout of the released binary; 20 minutes
	hack/hot-functions.sh

.PHONY: reproducible
reproducible: ## build the release twice in different folders and compare the bytes, 10 minutes
	hack/reproducible.sh

.PHONY: wasm
wasm: ## build the engine for WebAssembly
	hack/wasm.sh > /dev/null

.PHONY: test-wasm
test-wasm: wasm ## compare its answers with those of `statusgate ui`
	$(CARGO) $(BUILD)
	hack/packages.sh nodejs
	node hack/wasm-test.mjs "$$(hack/wasm.sh)" target/debug/statusgate

.PHONY: lines
lines: ## count lines of code, comments and tests per folder
	hack/lines.sh

.PHONY: docs
docs: ## generate the schemas, the pages of conventions and of lint, the table of metrics and the CRDs
	$(CARGO) $(BUILD)
	target/debug/statusgate schema StatusPolicy > docs/schemas/statuspolicy.json
	target/debug/statusgate schema StatusConvention > docs/schemas/statusconvention.json
	target/debug/statusgate schema Dictionary > docs/schemas/dictionary.json
	target/debug/statusgate manifests crds StatusPolicy > deploy/crds/statuspolicies.statusgate.dev.yaml
	target/debug/statusgate manifests crds StatusConvention > deploy/crds/statusconventions.statusgate.dev.yaml
	UPDATE_DOCS=1 $(CARGO) test --test command_line explain::the_pages_of_the_docs
	UPDATE_DOCS=1 $(CARGO) test --test server metrics::the_table_of_the_docs

.PHONY: site
site: wasm ## build the documentation site in target/site
	$(CARGO) $(BUILD)
	hack/site.sh

.PHONY: manifests
manifests: docs ## generate the folders of deploy/ for kustomize, and the files of the Helm chart
	UPDATE_DOCS=1 $(CARGO) test --test command_line -- manifests:: chart::

.PHONY: demo
demo: ## on a real API server: set a default phase, reject one, repair one
	$(CARGO) $(BUILD)
	hack/packages.sh curl
	hack/with-control-plane.sh hack/demo.sh

.PHONY: bench
bench: ## measure CPU and latency compared with a null server, the cost of many policies, memory after a burst, and attacks
	bench/run.sh
	bench/policies.sh
	bench/burst.sh
	bench/hostile.sh

.PHONY: bench-smoke
bench-smoke: ## run every benchmark once with the smallest load and a debug build
	bench/smoke.sh

.PHONY: bench-compare
bench-compare: ## compare the cost of a review with another build: OTHER=BINARY
	bench/compare.sh "$(OTHER)"

.PHONY: bench-conventions
bench-conventions: ## measure judging, reviews and loading for each built-in convention
	bench/conventions.sh

.PHONY: bench-e2e
bench-e2e: ## measure status writes per second on a real API server
	bench/e2e.sh

.PHONY: bench-managed
bench-managed: ## measure an idle server that manages policies, certificate and registrations
	bench/managed.sh

.PHONY: soak
soak: ## for ten minutes, write while replicas, keys and policies change: SECONDS=600 SEED=
	hack/control-plane.sh assets > /dev/null
	SOAK_SECONDS="$(SECONDS)" SOAK_SEED="$(SEED)" $(CARGO) test --release --test cluster managed::soak -- --ignored --nocapture

.PHONY: bench-check
bench-check: ## measure the objects per second of statusgate check
	bench/check.sh

.PHONY: bench-backfill
bench-backfill: ## measure backfill compared with a bare patch loop, and its memory
	bench/backfill.sh
