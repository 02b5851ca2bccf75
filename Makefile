# `make demo` and `make test` need nothing but Python 3.11 and a package index.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TRACKERS := $(VENV)/.trackers
RAY := $(VENV)/.ray
PIP := $(BIN)/pip install --quiet --disable-pip-version-check
LOCKED := $(PIP) --require-hashes --no-deps -r
HASHES ?= yes

.PHONY: demo test quick browser-test cluster-test lint docs setup lock clean

demo: setup
	$(BIN)/fairtune run studies/movie-reviews.yaml --profile demo

# Three processes on two cores, as those whose tests start others wait for them; see tests/forks.py. What was compiled is kept,
# whatever the shell says: many processes import it.
test quick browser-test cluster-test: export PYTHONDONTWRITEBYTECODE =
test: setup $(TRACKERS)
	$(BIN)/python -m pytest --forks 3 --ignore tests/cluster

# Between two edits: what needs neither torch nor figures nor processes, see tests/quick.py.
quick: setup
	$(BIN)/python -m pytest --forks 2 --quick

# The tests in a real browser alone; Debian's Chromium is installed if there is none.
browser-test: setup
	$(BIN)/python -m tests.browser
	$(BIN)/python -m pytest -m browser $$(grep -rl --include='test_*.py' needs_browser tests)

# The tests on a real Slurm and a real Ray, minutes in which most processes start others; Debian's Slurm is installed if there is none.
cluster-test: setup $(RAY)
	$(BIN)/python -m tests.cluster.slurm_cluster --install
	$(BIN)/python -m pytest tests/cluster

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache

# The reference pages, from the help texts in the code; a test fails where they are out of date.
docs: setup
	$(BIN)/python tools/docs.py

setup: $(STAMP)

# Every file that is installed has one of the hashes in locks/. torch is the CPU's build where a folder or an index that pip knows has
# that, else the index's own; anything else that goes wrong (a full disk) is told, not answered by fetching gigabytes. `HASHES=no` takes
# the versions alone, for an index that has builds of its own.
$(STAMP): pyproject.toml constraints.txt $(wildcard locks/*.txt)
	$(PYTHON) -m venv $(VENV)
ifeq ($(HASHES),no)
	$(PIP) -c constraints.txt hatchling editables
	$(PIP) -c constraints.txt --no-build-isolation -e '.[demo,dev]'
else
	$(LOCKED) locks/all.txt
	$(LOCKED) locks/torch-cpu.txt 2> $(VENV)/torch-cpu.log \
	  || { grep -q 'No matching distribution' $(VENV)/torch-cpu.log && $(LOCKED) locks/torch.txt; } \
	  || { cat $(VENV)/torch-cpu.log >&2; exit 1; }
	$(PIP) --no-deps --no-build-isolation -e .
endif
	$(BIN)/pip check
	touch $(STAMP)

# What the tests of trackers need: 52 MB of TensorBoard, MLflow and W&B, which nobody needs who only runs studies.
$(TRACKERS): $(STAMP) locks/trackers.txt
ifeq ($(HASHES),no)
	$(PIP) -c constraints.txt tensorboard mlflow-skinny wandb
else
	$(LOCKED) locks/trackers.txt
endif
	$(BIN)/pip check
	touch $(TRACKERS)

# What the tests of Ray need besides (some of the trackers' packages too): 80 MB.
$(RAY): $(TRACKERS) locks/ray.txt
ifeq ($(HASHES),no)
	$(PIP) -c constraints.txt ray
else
	$(LOCKED) locks/ray.txt
endif
	$(BIN)/pip check
	touch $(RAY)

lock: setup
	$(BIN)/python tools/lock.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
