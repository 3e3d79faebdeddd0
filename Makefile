.DEFAULT_GOAL := help
SHELL := bash -o pipefail
LONG := Limits|NoiseStudy|Timing|WholeRuns|EverySet|NeverFails|FullSize|KindsOfBatches|ShippedSets|KeysEvaluate|ManyResults|Assignments|Circuits
LONGPKG := ./engine/gbfv ./engine/lwe ./engine/multikey ./engine/protocol/keygen ./engine/protocol/triple \
	./engine/protocol/threshold/lwekeys ./engine/protocol/threshold/decrypt ./engine/protocol/threshold/bgvkeys \
	./engine/protocol/threshold/bgvdecrypt ./engine/protocol/threshold/mkdecrypt ./services/session/evidence
# Histories use PostgreSQL. Its data is in memory if possible, because it syncs after every write.
HISTORIES := LODGE_REQUIRE_POSTGRES=1 $(if $(wildcard /dev/shm/.),TMPDIR=/dev/shm) \
	go test -count=1 -timeout 3h ./services/internal/histories
.PHONY: $(shell sed -n "s/^\([a-z0-9-]*\):.*\#\# .*/\1/p" $(MAKEFILE_LIST))

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The share of the long tests that a command runs: COUNT, or by default $(1), selected by SEED, or COUNT=all.
SHARE = $(if $(filter all,$(COUNT)),all,$(or $(COUNT),$(1))@$(or $(SEED),1))

build: ## build bin/lodge
	go build -o bin/lodge ./cmd/lodge

console: ## build the pages of the console into services/console/web/dist
	cd services/console/web && npm ci --ignore-scripts --no-audit --no-fund && PATH="$(CURDIR)/bin/tools:$$PATH" npm run generate && \
		npm run types && npm run build && npm test

# The pages on a stand-in for the server, which shows layout only: at three widths, in both themes, on an empty, a busy
# and a broken cluster, each checked with axe. OUT is a directory for the screenshots.
console-look: ## take screenshots of the console's pages with Chromium, and check them with axe
	cd services/console/web && npm ci --ignore-scripts --no-audit --no-fund && PATH="$(CURDIR)/bin/tools:$$PATH" npm run build && \
		npm run look -- $(abspath $(or $(OUT),bin/console))

browser: ## test the console in Chromium on a cluster; ARGS="-pictures DIR" keeps screenshots, ARGS=-write accepts a new layout
	e2e/console/run $(ARGS)

console-soak: ## test that the console keeps exactly an hour of history, in 70 minutes; ARGS="-ring 1m -for 5m"
	e2e/pages/run -test.run History $(ARGS)

console-load: ## measure how much a thousand open pages slow a batch; ARGS="-pages 100 -rounds 5"
	e2e/pages/run -test.run Load $(ARGS)

demo: ## make triples with three parties on this machine and check them
	go run ./cmd/lodge demo $(ARGS)

# The packages whose tests wait most come first, beside those that compute.
test: ## run all tests
	go test -p 3 -timeout 20m ./e2e ./services/party ./services/threshold ./...

# A tag excludes kernels from a build, and e2e builds lodge with its own tags. The first line of the output shows the
# instruction sets of the processor: without AVX-512, test-avx512 uses AVX2.
PATHS = go test -count=1 -v -run '^TestBuildTags$$' ./engine/kernel
# Crash behaviour does not depend on kernels, so of e2e only the tests that compute run again; ALL=1 runs all of e2e.
COMPUTES = the demonstration|decryption for a client|proofs of plaintext knowledge|the Go client
test-plain: ## run the tests without any assembly, including that of libraries; ALL=1 also runs all of e2e
	@$(PATHS) -tags purego | grep -o 'paths up to .*'
	go test -tags purego -timeout 30m $$(go list ./... | grep -v '/e2e$$')
	go test -tags purego -timeout 60m ./e2e -v -ginkgo.no-color $(if $(ALL),,-ginkgo.focus '$(COMPUTES)') | grep -E '^(Ran |ok|FAIL|---|panic)|\[FAIL\]'

test-avx2: ## run the engine's tests with at most AVX2
	@$(PATHS) -tags avx2 | grep -o 'paths up to .*'
	go test -tags avx2 -timeout 20m ./engine/...

test-avx512: ## run the engine's tests with AVX-512 without IFMA
	@$(PATHS) -tags avx512 | grep -o 'paths up to .*'
	go test -tags avx512 -timeout 20m ./engine/...

# The groups of e2e that only make crashes runs, from the list in e2e/suite_test.go.
CRASHES = are killed during key generation|rotated and destroyed while|reservations while|threshold keys are made and used|multi-key keys are made and used|a rolling upgrade
slow: ## run the tests that take an hour or more: the shipped sets at full size, every field, 2 to 16 parties
	go test -p 1 -timeout 6h -v -run '$(LONG)' $(LONGPKG) -long all

sample: ## run COUNT slow tests of each group, selected by SEED; prints the skipped tests
	go test -p 1 -timeout 30m -v -run '$(LONG)' $(LONGPKG) -long $(call SHARE,2) | grep -vE '^ *=== '

histories: ## test random histories of reservations: 10,000 each in memory and on the embedded store, 1,000 on PostgreSQL
	$(HISTORIES) -long all

store: ## run COUNT groups of each of those histories, selected by SEED; prints the skipped groups
	$(HISTORIES) -v -long $(call SHARE,2) | grep -vE '^ *=== '

crashes: ## test killed processes and a rolling upgrade: COUNT groups selected by SEED, or COUNT=all; prints the skipped groups
	go test -count=1 -timeout 60m -v ./e2e -ginkgo.no-color -ginkgo.focus '$(CRASHES)' \
		-long $(if $(filter all,$(COUNT)),all,$(or $(COUNT),2)@$(or $(SEED),1)) | grep -E '^(Ran |ok|FAIL|---|panic)|\[FAIL\]|left out'

byzantine: ## test cheating parties and coordinators: COUNT of each group selected by SEED, or COUNT=all; prints the skipped tests
	go test -count=1 -timeout 3h -v ./engine/protocol/cheattest ./e2e/byzantine \
		-long $(if $(filter all,$(COUNT)),all,$(or $(COUNT),6)@$(or $(SEED),1)) | grep -vE '^ *=== '

noise: ## measure the noise of all sets and write the tables of docs/internals/noise.md
	go test -count=1 -timeout 1h -run 'NoiseStudy' ./engine/gbfv -long all -write $(CURDIR)/docs/internals/noise.md

mutations: ## disable checks one at a time and require a test to fail: COUNT of them selected by SEED, or COUNT=all
	go run ./cmd/mutations -count $(if $(filter all,$(COUNT)),0,$(or $(COUNT),10)) -seed $(or $(SEED),1) $(ARGS)

compose: ## test the image and docker-compose.yml with a separate Docker daemon; as root on Linux
	e2e/compose/run $(ARGS)

dashboards: ## test the dashboards and alerts on a cluster with a real Prometheus
	e2e/dashboards/run $(ARGS)

pictures: ## draw the pictures of docs/operations/dashboards.md on such a cluster; takes about ten minutes
	e2e/dashboards/run -pictures docs/operations/dashboards -set S14-32 -busy 5m -limit 8m

dashboards-json: ## generate the Grafana dashboards
	go run ./dashboards/gen dashboards

kube: ## test the chart on a separate Kubernetes cluster; as root on Linux
	e2e/kube/run $(ARGS)

wan: ## test a cluster on links of 50 ms and 100 Mbit/s, with losses and cuts; as root on Linux
	e2e/wan/run $(ARGS)

soak: ## test a cluster under load whose processes are killed repeatedly: 5 minutes, or ARGS="-for 2h"
	e2e/soak/run $(ARGS)

check: ## run the static checks; ONLY="vet shell" selects sections
	.ci/check $(ONLY)

tools: ## install the pinned tools that check and proto use, under bin/
	.ci/install

proto: tools ## regenerate the code of proto/, in Go and for the Python client
	PATH="$(CURDIR)/bin/tools:$$PATH" buf format --write
	PATH="$(CURDIR)/bin/tools:$$PATH" buf generate
	clients/python/tools/generate.sh

baseline: tools ## make the current API the baseline for compatibility checks
	PATH="$(CURDIR)/bin/tools:$$PATH" buf build --exclude-source-info -o proto/baseline.binpb

docs: tools ## build the documentation site into bin/site; a broken link fails
	NO_MKDOCS_2_WARNING=1 bin/venv/bin/mkdocs build --strict --quiet && echo "open bin/site/index.html"

kinds: ## regenerate the Python client's table of the kinds of tuples
	go generate ./engine/kind

kernels: ## regenerate the assembly of engine/kernel
	go run -C engine/kernel/gen . ..

fuzz: ## run every fuzz target for FUZZTIME (5s) each
	FUZZTIME=$(or $(FUZZTIME),5s) .ci/fuzz

bench: ## measure kernels, operations and whole protocols on this machine; options: ARGS="--filter ntt --text"
	go run ./cmd/lodge-bench $(or $(PART),all) $(ARGS)

figures: ## measure everything and write the pages with figures; two hours on an idle machine with 2 cores and 16 GB
	.ci/figures $(ARGS)

licences: ## write docs/internals/dependencies.md: compiled-in modules, their licences and purposes
	go run ./cmd/dependencies report >docs/internals/dependencies.md.new && mv docs/internals/dependencies.md.new docs/internals/dependencies.md

sbom: build ## write bin/lodge.cdx.json: the bill of materials of bin/lodge, in CycloneDX
	go run ./cmd/dependencies sbom bin/lodge >bin/lodge.cdx.json

release: tools ## build a release of this commit into bin/release: VERSION=x.y.z
	.ci/release/run $(or $(VERSION),"")

release-test: tools ## build the release that CHANGELOG.md names first, twice, and install and use its parts
	.ci/release/test $$(awk '/^## / { print $$2; exit }' CHANGELOG.md)

clean: ## remove build outputs
	rm -rf bin
