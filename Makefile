.DEFAULT_GOAL := help
SHELL := bash -o pipefail
LONG := Limits|NoiseStudy|Timing|WholeRuns|EverySet|NeverFails|FullSize|KindsOfBatches|ShippedSets|KeysEvaluate|ManyResults|Assignments|Circuits
LONGPKG := ./engine/gbfv ./engine/lwe ./engine/multikey ./engine/protocol/keygen ./engine/protocol/triple \
	./engine/protocol/threshold/keygen ./engine/protocol/threshold/decrypt ./engine/protocol/threshold/bgvkeys \
	./engine/protocol/threshold/bgvdecrypt ./engine/protocol/threshold/mkdecrypt ./services/evidence
# Histories have PostgreSQL, and write to memory when they can: they sync after every write.
HISTORIES := LODGE_REQUIRE_POSTGRES=1 $(if $(wildcard /dev/shm/.),TMPDIR=/dev/shm) \
	go test -count=1 -timeout 3h ./services/internal/histories
.PHONY: $(shell sed -n "s/^\([a-z0-9-]*\):.*\#\# .*/\1/p" $(MAKEFILE_LIST))

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/lodge
	go build -o bin/lodge ./cmd/lodge

demo: ## three parties on this machine make triples, and a checker accepts them
	go run ./cmd/lodge demo $(ARGS)

test: ## run all tests
	go test -timeout 20m ./...

# A tag leaves kernels out of a build, and e2e builds lodge with the tags of its own. The first line says how far the
# processor goes: one without AVX-512 runs test-avx512 on AVX2.
PATHS = go test -count=1 -v -run '^TestBuildTags$$' ./engine/kernel
# What processes do when they are killed does not depend on kernels: of e2e, what computes runs again; ALL=1 runs all of it.
COMPUTES = the demonstration|decryption for a client|proofs of plaintext knowledge|the Go client
test-plain: ## run the tests without any assembly, ours or that of libraries; ALL=1 runs all of e2e too
	@$(PATHS) -tags purego | grep -o 'paths up to .*'
	go test -tags purego -timeout 30m $$(go list ./... | grep -v '/e2e$$')
	go test -tags purego -timeout 60m ./e2e -v -ginkgo.no-color $(if $(ALL),,-ginkgo.focus '$(COMPUTES)') | grep -E '^(Ran |ok|FAIL|---|panic)|\[FAIL\]'

test-avx2: ## run the engine's tests with no more than AVX2
	@$(PATHS) -tags avx2 | grep -o 'paths up to .*'
	go test -tags avx2 -timeout 20m ./engine/...

test-avx512: ## run the engine's tests with AVX-512, but not its IFMA
	@$(PATHS) -tags avx512 | grep -o 'paths up to .*'
	go test -tags avx512 -timeout 20m ./engine/...

# The groups of e2e that are left to make crashes, as e2e/suite_test.go lists them.
CRASHES = are killed during key generation|rotated and destroyed while|reservations while|threshold keys are made and used|multi-key keys are made and used|a rolling upgrade
slow: ## tests that take an hour or more: the shipped sets at full size, every field, 2 to 16 parties
	go test -p 1 -timeout 6h -v -run '$(LONG)' $(LONGPKG) -long all

sample: ## some of the slow tests, chosen by SEED: COUNT of each group; prints what was left out
	go test -p 1 -timeout 30m -v -run '$(LONG)' $(LONGPKG) -long $(or $(COUNT),2)@$(or $(SEED),1) | grep -vE '^ *=== '

histories: ## random histories of reservations: 10,000 each in memory and on the embedded store, 1,000 on PostgreSQL
	$(HISTORIES) -long all

store: ## some of those histories, chosen by SEED: COUNT groups of each; prints what was left out
	$(HISTORIES) -v -long $(or $(COUNT),2)@$(or $(SEED),1) | grep -vE '^ *=== '

crashes: ## processes that are killed, and a rolling upgrade: COUNT of the groups, chosen by SEED, or COUNT=all; prints what was left out
	go test -count=1 -timeout 60m -v ./e2e -ginkgo.no-color -ginkgo.focus '$(CRASHES)' \
		-long $(if $(filter all,$(COUNT)),all,$(or $(COUNT),2)@$(or $(SEED),1)) | grep -E '^(Ran |ok|FAIL|---|panic)|\[FAIL\]|left out'

byzantine: ## parties and coordinators that cheat: COUNT of each group, chosen by SEED, or COUNT=all; prints what was left out
	go test -count=1 -timeout 3h -v ./engine/protocol/cheattest ./e2e/byzantine \
		-long $(if $(filter all,$(COUNT)),all,$(or $(COUNT),6)@$(or $(SEED),1)) | grep -vE '^ *=== '

noise: ## measure the noise of all sets and write the tables of docs/noise.md
	go test -count=1 -timeout 1h -run 'NoiseStudy' ./engine/gbfv -long all -write $(CURDIR)/docs/noise.md

mutations: ## switch off the verifications, one at a time, of which a test must fail: COUNT of them chosen by SEED, or COUNT=all
	go run ./cmd/mutations -count $(if $(filter all,$(COUNT)),0,$(or $(COUNT),10)) -seed $(or $(SEED),1) $(ARGS)

compose: ## the image and docker-compose.yml, with a Docker daemon of its own; as root on Linux
	e2e/compose/run $(ARGS)

dashboards: ## the dashboards and alerts, on a cluster with a real Prometheus
	e2e/dashboards/run $(ARGS)

pictures: ## draw the pictures of docs/dashboards.md on such a cluster, in ten minutes or so
	e2e/dashboards/run -pictures docs/dashboards -set S14-32 -busy 5m -limit 8m

dashboards-json: ## write the dashboards for Grafana
	go run ./dashboards/gen dashboards

kube: ## the chart, on a Kubernetes of its own; as root on Linux
	e2e/kube/run $(ARGS)

wan: ## a cluster across links of 50 ms and 100 Mbit/s, with losses and cuts; as root on Linux
	e2e/wan/run $(ARGS)

soak: ## a cluster under load whose processes are killed again and again: 5 minutes, or ARGS="-for 2h"
	e2e/soak/run $(ARGS)

check: ## static checks; make check ONLY="vet shell" runs some
	.ci/check $(ONLY)

tools: ## install the pinned tools that check and proto use, under bin/
	.ci/install

proto: tools ## regenerate the code of proto/, in Go and for the Python client
	PATH="$(CURDIR)/bin/tools:$$PATH" buf format --write
	PATH="$(CURDIR)/bin/tools:$$PATH" buf generate
	clients/python/tools/generate.sh

baseline: tools ## take the API as it is now for what clients rely on
	PATH="$(CURDIR)/bin/tools:$$PATH" buf build --exclude-source-info -o proto/baseline.binpb

docs: tools ## build the documentation site into bin/site; a broken link fails
	NO_MKDOCS_2_WARNING=1 bin/venv/bin/mkdocs build --strict --quiet && echo "open bin/site/index.html"

kernels: ## regenerate the assembly of engine/kernel
	go run -C engine/kernel/gen . ..

fuzz: ## run every fuzz target for FUZZTIME (5s) each
	FUZZTIME=$(or $(FUZZTIME),5s) .ci/fuzz

bench: ## measure this machine: kernels, operations, whole protocols; ARGS="--filter ntt --text" and the like
	go run ./cmd/lodge bench $(or $(PART),all) $(ARGS)

figures: ## measure everything and write the pages with figures; two hours, alone on a machine of 2 cores and 16 GB
	.ci/figures $(ARGS)

licences: ## write docs/dependencies.md: what is compiled in, its licences and why it is here
	go run ./cmd/dependencies report >docs/dependencies.md.new && mv docs/dependencies.md.new docs/dependencies.md

sbom: build ## write bin/lodge.cdx.json: what bin/lodge is made of, in CycloneDX
	go run ./cmd/dependencies sbom bin/lodge >bin/lodge.cdx.json

clean: ## remove what was built
	rm -rf bin
