# Only the Go toolchain is needed, and Python for the Python package. `make test` is everything that CI runs.

GO ?= go

# The race detector needs a C compiler; go itself turns cgo off where there is none. pebblegozstd keeps Pebble from
# compiling its C zstd, invariants overwrites released memory, grpcnotrace leaves out pages that nobody serves, and with them
# 13 MB of dsi (internal/commandline).
ifeq ($(shell $(GO) env CGO_ENABLED),1)
RACE := -race
else
RACE_NOTE := (no C compiler: without the race detector)
endif
TAGS := invariants,pebblegozstd,grpcnotrace

# Programs say from which commit they were built, unless git does not give this checkout to this user (a container's root), or is
# that of another repository around it: then go would fail, or take that one's commit.
ifneq ($(shell git rev-parse --show-toplevel 2>/dev/null),$(shell pwd -P))
export GOFLAGS := $(shell $(GO) env GOFLAGS) -buildvcs=false
endif

# What runs without the race detector is compiled as the Python package's library is, so that all packages without the tag invariants
# in them are compiled once for both, for go vet and for staticcheck.
ifeq ($(shell $(GO) env CGO_ENABLED),1)
ALIKE := GOFLAGS="$(or $(GOFLAGS),$(shell $(GO) env GOFLAGS)) -buildmode=pie -trimpath"
endif

# A test that was skipped for want of a server is not remembered as passed.
export DSISTORE_TRY := $(shell date +%s)

# How long each fuzz target runs in fuzz-smoke, and each benchmark in bench. A count, because go test can fail at a deadline
# that falls into its own minimising (context deadline exceeded); that is kept short for the same reason.
FUZZTIME ?= 1000x
BENCHTIME ?= 1s

.PHONY: build demo test check fmt vet lint gotest race independent corpus fuzz-smoke kill-test kill-requests many-writers races refused faulty metamorphic simulate mutations python-test rotation python-bench plots baselines bench-peers baselines-test frameworks-env frameworks-bench frameworks-test bench browser assets reference site licences man release arm64 golden clean

# How programs are built: all alike, so that packages are compiled once.
PROGRAM := -tags grpcnotrace -trimpath

build: ## builds bin/dsi and bin/dsistat
	CGO_ENABLED=0 $(GO) build $(PROGRAM) -o bin/ ./tools/cmd/...

demo: build ## generates a training table, ingests it and scans it, beside the Parquet it came from; leaves out/demo, or the store at STORE=s3://bucket/prefix
	@CGO_ENABLED=0 $(GO) run $(PROGRAM) ./bench/demo $(if $(STORE),--store $(STORE))


# The environment of the Python tests is downloaded while the Go tests run; its wheel is built after them, from what they compiled. The browser is
# there before they begin.
test: ## everything that CI runs; fuzz targets run on their seeds
	@rm -rf out/servers-left-out; \
	python/test.sh prepare & prepare=$$!; internal/browser/install.sh & browser=$$!; trap 'kill $$prepare $$browser 2>/dev/null; exit 130' INT TERM; \
	{ $(MAKE) --no-print-directory fmt vet lint && wait $$browser && $(MAKE) --no-print-directory gotest; } || { kill $$prepare $$browser 2>/dev/null; exit 1; }; \
	wait $$prepare; $(MAKE) --no-print-directory independent && $(ALIKE) python/test.sh run
	@left=; [ ! -f out/python-left-out ] || left="the Python tests"; \
	[ ! -f out/browser-left-out ] || left="$${left:+$$left and }the tests in a browser"; \
	for f in out/servers-left-out/*; do [ ! -f "$$f" ] || left="$${left:+$$left and }the tests with $${f##*/}"; done; \
	if [ "$${PYTHON:-}" = none ] || ! $(MAKE) -s out/site-venv/ready 2>/dev/null; then left="$${left:+$$left and }the site"; \
	else $(MAKE) --no-print-directory site || exit 1; fi; \
	if [ -n "$$left" ]; then echo "make test: all green, but $$left were left out"; else echo "make test: all green"; fi

check: test race fuzz-smoke ## what CI runs, then all tests with the race detector, then every fuzz target on new inputs

fmt: ## fails on Go files that gofmt would change
	@echo "== gofmt"
	@bad=$$(find . -name '*.go' -not -path './.*' -print0 | xargs -0 "$$($(GO) env GOROOT)/bin/gofmt" -l) || exit 1; \
	if [ -n "$$bad" ]; then echo "gofmt would change:"; echo "$$bad"; exit 1; fi

vet: ## go vet
	@echo "== go vet"
	@$(ALIKE) $(GO) vet -tags $(TAGS) ./...

lint: ## staticcheck, pinned in go.mod, and the rules of internal/lint (layers above all)
	@echo "== staticcheck"
	@$(ALIKE) $(GO) tool staticcheck -tags $(TAGS) ./...
	@echo "== internal/lint"
	@$(ALIKE) $(GO) test -vet=off -count=1 ./internal/lint

# Packages of our own threads run with the race detector in make test: those whose tests need neither the clients of object stores nor
# Arrow, which would all be compiled once more. make race has the others. Packages in UNRACED have neither threads nor tests with any, or
# their tests run dsi as a process. Nor do codecs have threads: they run with the detector's checks of pointers, in a twentieth of its
# time. Tests in files that import internal/race do less under the detector (smaller inputs, no counts of allocations) and run again,
# whole, without. tools/dsi takes longest and comes first, so that one processor is not left with it in the end. go vet and internal/lint
# were there before.
UNRACED := dedup internal/corpus internal/faults internal/workload storage/bitmap storage/sst tools/report/page
RACED := grep -E '/dsistore/(storage|reader|writer|usage|internal/(lru|spill))(/|$$)' | grep -vE '/(arrowbatch|azure|bitmap|gcs|s3|sst)$$'

gotest: ## the Go tests; some with the race detector, where a C compiler is found
	@packages=$$($(GO) list -tags $(TAGS) ./... | grep -v -e /internal/lint$$ -e /dsistore/format) && raced=$$(echo "$$packages" | $(RACED)) || exit 1; \
	echo "== go test $(RACE) -tags $(TAGS) $(RACE_NOTE)"; \
	$(GO) test -vet=off $(RACE) -tags $(TAGS) -timeout 15m $$raced || exit 1; \
	echo "== go test -gcflags=-d=checkptr -tags $(TAGS) ./format/..."; \
	$(GO) test -vet=off -gcflags=-d=checkptr -tags $(TAGS) -timeout 15m ./format/... || exit 1; \
	echo "== go test -tags $(TAGS): without the race detector"; \
	$(ALIKE) $(GO) test -vet=off -tags $(TAGS) -timeout 15m ./tools/dsi $$(echo "$$packages" | grep -vxF "$$raced") || exit 1; \
	again=$$(internal/race/again.sh $$($(GO) list -f '{{.Dir}}' $$raced)) && set -f && $(ALIKE) $(GO) test -vet=off -tags $(TAGS) -timeout 15m $$again

race: ## all Go tests with the race detector, but for measuring programs and what has no threads
	@if [ -z "$(RACE)" ]; then echo "== go test -race: left out, there is no C compiler"; else \
		echo "== go test -race -tags $(TAGS)"; \
		$(GO) test -vet=off -race -tags $(TAGS) -timeout 30m $$($(GO) list -tags $(TAGS) ./... | grep -v -e /bench/ -e /internal/lint$$ -e /dsistore/format $(foreach p,$(UNRACED),-e /dsistore/$p$$)); fi

# They skip, in the runs above, where the Python in PATH has no pyarrow.
independent: ## the tests that compare with another reader: pyarrow, and the decoder that was written from format/SPEC.md; with out/venv's Python
	@if [ ! -f out/venv/ready ] || [ -f out/python-left-out ]; then echo "== go test, with pyarrow: left out, there is no out/venv (python/test.sh prepare makes it)"; else \
		echo "== go test, with pyarrow"; \
		DSISTORE_PYTHON="$(CURDIR)/out/venv/bin/python" $(ALIKE) $(GO) test -vet=off -count=1 -tags $(TAGS) -timeout 15m \
		-run 'Spec|ORC|Corpus|OfOthers|Hive|Shared|Again' ./format ./format/encoding ./internal/corpus ./tools/ingest ./tools/ingest/source; fi

corpus: ## every file that others wrote, in testdata of a folder shared beside the checkout or in DSISTORE_TESTDATA, beside pyarrow
	@python/test.sh prepare; test -f out/venv/ready && test ! -f out/python-left-out || { cat out/python-left-out out/python-prepare.log; exit 1; }
	@test -d "$${DSISTORE_TESTDATA:-../shared/testdata}" || { echo "there are no files: DSISTORE_TESTDATA names a folder of them"; exit 1; }
	DSISTORE_PYTHON="$(CURDIR)/out/venv/bin/python" $(GO) test -vet=off -count=1 -tags $(TAGS) -timeout 30m -v -run '^(TestCorpus|TestHiveLayouts)$$' ./internal/corpus
	DSISTORE_PYTHON="$(CURDIR)/out/venv/bin/python" $(GO) test -vet=off -count=1 -tags $(TAGS) -timeout 30m -v -run '^TestFilesOfOthers$$' ./tools/ingest/source -all-files

fuzz-smoke: ## every fuzz target for $(FUZZTIME)
	@echo "== fuzz targets, $(FUZZTIME) each"
	@grep -r --include='*_test.go' -o '^func Fuzz[A-Za-z0-9_]*' . | sed 's|/[^/]*_test.go:func | |' | sort -u | \
	while read -r dir target; do \
		echo "-- $$dir $$target"; \
		$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x -tags $(TAGS) $$dir || exit 1; \
	done

kill-test: ## kill -9 at 200 random moments of ingest, a deep verification after each
	DSI_KILLS=200 $(GO) test -count=1 -timeout 30m -run '^TestKilledIngest$$' -v ./tools/ingest

# Real servers of object stores, which tests start. make test has those that are quickly installed.
ALL_SERVERS := DSISTORE_SERVERS=all $(GO) test -count=1 -timeout 0 -tags $(TAGS) -v

kill-requests: ## dsi killed before and after each request of an ingest, a compaction and a gc, in S3, Google's and Azure's stores
	$(GO) test -count=1 -timeout 0 -tags $(TAGS) -v -run '^TestKilledAtRequests$$' ./internal/faults -all-requests

many-writers: ## 16 processes of 200 commits to one table while 5 % of the requests fail
	$(GO) test -count=1 -timeout 0 -tags $(TAGS) -v -run '^TestManyWriters$$' ./internal/faults -writers 16 -commits 200

races: ## 1,000 rounds of 32 creations that race, on versitygw, fake-gcs-server and Azurite; and the conformance of rclone, compiled first
	$(ALL_SERVERS) -run '^(TestRaces|TestRclone)$$' ./storage/object/s3 ./storage/object/gcs ./storage/object/azure -races 1000

refused: ## 20 tries each to make a store in servers that do not keep conditions, installed first: npm, pip and cargo are needed
	$(ALL_SERVERS) -run '^TestRefused$$' ./internal/faults -tries 20

# The seed that it begins with is printed, and those that follow are counted up from it.
HOURS ?= 1
SEED ?= $(shell date +%s)

metamorphic: ## does random things to tables and to a model of them, for HOURS hours from SEED on, and compares what is read
	@echo "seed $(SEED), $(HOURS) h"
	$(GO) test -count=1 -timeout 0 -tags $(TAGS) -run '^TestMetamorphic$$' ./internal/metamorphic -seed $(SEED) -hours $(HOURS)

faulty: ## metamorphic with the table in a server of S3 of which one request of 15 goes wrong
	@echo "seed $(SEED), $(HOURS) h"
	$(GO) test -count=1 -timeout 0 -tags $(TAGS) -run '^TestFaultyService$$' ./internal/metamorphic -seed $(SEED) -steps 40 -hours $(HOURS) -v

SECONDS ?= 60
SIMSEED ?= 1

simulate: ## machines over a simulated store, in all orders (small worlds) and in random ones, for SECONDS seconds from SIMSEED on
	$(GO) test -count=1 -timeout 0 -tags $(TAGS) -run '^TestSimulate$$' ./internal/simulate -simulate.seconds $(SECONDS) -simulate.seed $(SIMSEED) -v

mutations: ## puts mistakes into the protocols, each must be found; writes internal/simulate/RESULTS.md anew
	$(GO) test -count=1 -timeout 0 -tags $(TAGS) -run '^TestMutations$$' ./internal/simulate -v -simulate.mutate 60 -simulate.report RESULTS.md
	$(GO) test -count=1 -timeout 0 -tags $(TAGS) -run '^TestSimulate$$' ./internal/simulate -v -simulate.seconds 600 -simulate.report RESULTS.md

python-test: ## builds the Python package and tests it in out/venv; says what is left out where something is missing
	@python/test.sh prepare; $(ALIKE) python/test.sh run

# With credentials that last a minute, as long as those of a long job do many times over.
rotation: MINUTES ?= 30
rotation: ## reads a table in a bucket for MINUTES, while its credentials change each minute
	@python/test.sh prepare; python/test.sh wheel
	DSISTORE_ROTATION_SECONDS=$$((60 * $(MINUTES))) DSISTORE_ROTATION_EVERY=60 \
		out/venv/bin/python -m pytest -s -p no:cacheprovider -k epochs python/tests/test_credentials.py

python-bench: build python-test ## measures the Python loader beside pyarrow, and draws the guide's plots of it
	out/venv/bin/python bench/pytorch/loader.py
	out/venv/bin/python bench/pytorch/startup.py
	out/venv/bin/python bench/pytorch/memory.py
	out/venv/bin/pip --disable-pip-version-check install -q -r bench/pytorch/requirements.txt
	out/venv/bin/python bench/pytorch/plot.py

plots: ## draws the plots of bench/profiles, bench/dedupsweep and bench/ablation anew; wants matplotlib (bench/pytorch/requirements.txt)
	python3 bench/plots.py

# The baselines join the Python package in the virtual environment of its tests.
baselines: build
	@python/test.sh prepare; python/test.sh wheel; test -f out/python-ready || { cat out/python-left-out out/python-prepare.log; exit 1; }
	out/venv/bin/pip --disable-pip-version-check install -q -r bench/baselines/requirements.txt
	out/venv/bin/pip --disable-pip-version-check install -q --no-deps -r bench/baselines/requirements-nodeps.txt
	out/venv/bin/pip --disable-pip-version-check install -q --no-deps --upgrade --target out/baselines-s3 -r bench/baselines/requirements-s3.txt

bench-peers: baselines ## measures dsistore beside Parquet, Arrow IPC, DuckDB, Lance, Vortex, ...; ARGS='--only kjt' for a part
	PYTHONPATH=bench out/venv/bin/python -m baselines $(ARGS)

baselines-test: baselines ## every measure of bench-peers with 500 rows
	PYTHONPATH=bench out/venv/bin/python -m baselines --rows 500 --long-rows 20000 --rounds 1 --dir out/baselines-test --no-results

# Its baselines are packages that the Python package's tests have.
frameworks-env: build
	@python/test.sh prepare; python/test.sh wheel; test -f out/python-ready || { cat out/python-left-out out/python-prepare.log; exit 1; }

frameworks-bench: frameworks-env ## measures TensorFlow, JAX and Grain fed by dsistore, beside TFRecord, Parquet and ArrayRecord; ARGS=--page fills docs/guide/benchmarks-training.md
	PYTHONPATH=bench out/venv/bin/python -m frameworks $(ARGS)

frameworks-test: frameworks-env ## every measure of frameworks-bench with 500 rows
	PYTHONPATH=bench out/venv/bin/python -m frameworks --rows 500 --rounds 1 --dir out/baselines-test --no-results

bench: ## every Go benchmark
	$(GO) test -run '^$$' -bench . -benchtime $(BENCHTIME) -tags pebblegozstd ./...

browser: ## downloads a headless Chromium into out/browser, for the tests of dsistat's page
	@internal/browser/install.sh

assets: ## fetches the chart library of dsistat's page anew, as its asset.json pins it
	tools/report/page/assets.sh

out/site-venv/ready: internal/site/requirements.txt
	@python3 -m venv --clear out/site-venv
	@out/site-venv/bin/python -m pip --disable-pip-version-check install -q --no-compile -r $<
	@touch $@

site: out/site-venv/ready ## builds the documentation as a static site in out/site; broken links fail
	@echo "== mkdocs build --strict"
	@NO_MKDOCS_2_WARNING=1 out/site-venv/bin/python -m mkdocs build --strict

reference: ## writes the generated pages of docs/reference anew
	$(GO) run -tags pebblegozstd ./internal/reference
	python3 python/reference.py

licences: ## writes NOTICE and THIRD_PARTY.md anew, and copies the dependencies' licences to bin/licences
	$(GO) run ./internal/notice
	$(GO) run ./internal/notice -texts bin/licences

man: ## writes the man pages of dsi and dsistat into out/man; MANDIR=/usr/local/share/man/man1 for another directory
	CGO_ENABLED=0 $(GO) run -tags grpcnotrace ./internal/man $(or $(MANDIR),out/man)

out/release-venv/ready: internal/release/requirements.txt
	@python3 -m venv --clear out/release-venv
	@out/release-venv/bin/python -m pip --disable-pip-version-check install -q --no-compile -r $<
	@touch $@

release: ## makes the files of a release from the commit that is checked out, into out/release, and tries them
	@$(MAKE) -s out/release-venv/ready || echo "make release: no Python with a package index: without wheels"
	@set --; [ ! -f out/release-venv/ready ] || set -- -python "$$PWD/out/release-venv/bin/python"; $(GO) run ./internal/release "$$@"

# binfmt_misc is not needed: go test runs the tests' programs by the emulator.
QEMU ?= $(shell command -v qemu-aarch64-static || command -v qemu-aarch64)

arm64: ## go vet for arm64, on Linux and macOS; with an emulator (Debian: qemu-user-static) the tests of codecs and kernels
	GOARCH=arm64 CGO_ENABLED=0 $(GO) vet -tags $(TAGS) ./...
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 $(GO) vet -tags $(TAGS) ./...
	$(if $(QEMU),GOARCH=arm64 CGO_ENABLED=0 $(GO) test -count=1 -vet=off -timeout 1h -tags $(TAGS) -exec $(QEMU) \
		./format/... ./reader/expand,@echo "make arm64: no qemu-aarch64: the tests of codecs and kernels were left out")

golden: ## makes the golden store of this version anew, unless that is released (internal/golden)
	$(GO) test -count=1 -tags $(TAGS) ./internal/golden -remake

clean:
	rm -rf bin out
