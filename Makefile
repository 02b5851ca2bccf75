# `make demo` and `make test` need nothing but Python 3.11 and a package index.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/pip install --quiet --disable-pip-version-check
HASHES ?= yes

.PHONY: demo test lint setup lock clean

demo: setup
	$(BIN)/fairtune run studies/movie-reviews.yaml --profile demo

test: setup
	$(BIN)/python -m pytest -n 3

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

setup: $(STAMP)

# Every file that is installed has one of the hashes in the lock files. `HASHES=no` takes the versions alone, for an index that has
# builds of its own. Where no index has torch's CPU build, Linux gets the one for NVIDIA's devices, which asks for more.
$(STAMP): pyproject.toml constraints.txt requirements.lock requirements-cuda.lock
	$(PYTHON) -m venv $(VENV)
ifeq ($(HASHES),no)
	$(PIP) -c constraints.txt hatchling editables
	$(PIP) -c constraints.txt --no-build-isolation -e '.[demo,dev]'
else
	$(PIP) --require-hashes --no-deps -r requirements.lock
	$(BIN)/pip check > /dev/null || $(PIP) --require-hashes --no-deps -r requirements-cuda.lock
	$(PIP) --no-deps --no-build-isolation -e .
endif
	$(BIN)/pip check
	touch $(STAMP)

lock: setup
	$(BIN)/python tools/lock.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
