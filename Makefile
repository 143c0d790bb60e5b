PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test setup format clean

setup: $(VENV)/.installed

# Modules are compiled when they are loaded for the first time: most of these never are.
$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable ".[dev]"
	touch $@

demo: setup
	$(BIN)/byheart model download
	$(BIN)/python examples/demo.py

# Types and imports are checked beside the tests; their output comes last. In CI, failed tests run once more, one after the
# other: a machine shared with others can starve a test of time. A test that fails twice fails the run.
test: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/byheart model download
	@checked=$$(mktemp); \
	{ $(BIN)/mypy && $(BIN)/lint-imports --no-cache; } >$$checked 2>&1 & checks=$$!; \
	$(BIN)/python -m pytest -n 2 --dist worksteal; tests=$$?; \
	if test $$tests -eq 1 && test -n "$$CI"; then \
		$(BIN)/python -m pytest --last-failed --last-failed-no-failures none; tests=$$?; \
	fi; \
	wait $$checks; checks=$$?; \
	cat $$checked; rm -f $$checked; \
	test $$tests -eq 0 && test $$checks -eq 0

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
