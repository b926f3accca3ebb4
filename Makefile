# byhand: `make demo` shows a transformer worked out by hand, `make test` checks that it is right.
# Both set up everything they need in .venv; `make help` lists the rest.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install --constraint constraints.txt
TEST := $(BIN)/python -m pytest --numprocesses 2 --tell-progress
OLDEST := .venv-oldest
# What meets other packages.  The newest transformers needs newer tokenizers than byhand does, so
# tests that compare with it stay out.
MEETING := tests/test_smoke.py tests/test_subwords.py tests/cli tests/numbers/test_*.py tests/models \
  tests/serving tests/checking/test_readers_handwriting.py \
  tests/train/test_loop.py tests/train/test_norms.py tests/train/test_run_process.py \
  tests/document/test_spreadsheet.py tests/document/test_spreadsheet_files.py \
  tests/document/test_typst.py

# Tests start many processes: what one has compiled, the others read.
unexport PYTHONDONTWRITEBYTECODE
# Two processes with two threads each get in each other's way; `make test-elsewhere` tries both.
test coverage test-long: export OMP_NUM_THREADS := 1
test coverage test-long: export OPENBLAS_NUM_THREADS := 1

.DEFAULT_GOAL := demo
.PHONY: demo test coverage test-long test-elsewhere test-oldest check browser format docs books site pictures golden messages museum bench clean help

demo: .venv/installed ## work out the built-in model tiny on the text "a b"
	@$(BIN)/byhand trace tiny "a b"

test: check browser ## everything: style, types, layers, tests
	$(TEST)

test-oldest: $(OLDEST)/tested ## what meets other packages, with the lowest versions allowed
	$(OLDEST)/bin/python -m pytest --numprocesses 2 \
	  $$(grep -rLE "(import|from) (transformers|schemathesis|browser|oracles.checkpoints|benchmarks.families)" \
	    --include="test_*.py" $(MEETING))

coverage: browser ## the tests, and which lines they never run: half as long again
	$(TEST) --cov --cov-report=term --cov-fail-under=90

test-long: .venv/tested ## millions of samples and a thousand whole passes against Arb: about an hour
	BYHAND_LONG=1 $(TEST) tests/numbers tests/checking tests/document tests/explaining tests/train \
	  tests/files tests/models tests/serving tests/finishing tests/test_expression.py

test-elsewhere: browser ## the tests as an older processor does them, with one thread and with two
	$(BIN)/python tools/elsewhere.py 1 $(TEST)
	$(BIN)/python tools/elsewhere.py 2 $(TEST)

check: .venv/tested ## style, types and layers alone
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --verbose

browser: .venv/tested ## a Chromium that the tests of pages open, where one can be had
	@sh tools/browser.sh $(BIN)

format: .venv/tested ## lay the code out
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: .venv/tested ## write the transcripts and tables in README and docs anew
	$(BIN)/python -m cogapp -P -I docs --markers='{{{cog }}} {{{end}}}' -r README.md README.es.md docs/*.md

books: .venv/tested ## write the books of all built-in models into docs/books
	$(BIN)/python tools/books.py

site: .venv/tested ## build the documentation site into site/, every link checked
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/python tools/links.py site

pictures: .venv/tested browser ## take the pictures in README and docs anew
	$(BIN)/python tools/moving_picture.py
	$(BIN)/python tools/pictures.py
	$(BIN)/python tools/readme_picture.py
	$(BIN)/python tools/worksheet_pictures.py

golden: .venv/tested ## work out the golden files that come with byhand anew
	$(BIN)/python tools/golden.py

messages: .venv/tested ## collect the messages and compile the translations
	$(BIN)/python tools/messages.py

museum: .venv/tested ## replay bugs of public projects, and print what byhand says of each
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.museum

bench: .venv/tested ## measure the speed, as ratios within one run
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.checkpoints
	$(BIN)/python -m benchmarks.learning
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.training
	$(BIN)/python -m benchmarks.proven
	$(BIN)/python -m benchmarks.checking
	$(BIN)/python -m benchmarks.attribution
	$(BIN)/python -m benchmarks.book
	$(BIN)/python -m benchmarks.serving

clean: ## take away what make made
	rm -rf .venv $(OLDEST) build dist site .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /make \1\t/p' Makefile | expand -t 20

.venv/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "byhand needs Python 3.11 or newer; this is $$($(PYTHON) --version 2>&1)."; \
	  echo "hint: make PYTHON=python3.12 demo"; exit 2; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "Python's venv module is missing."; \
	  echo "hint: on Debian and Ubuntu: apt install python3-venv"; exit 2; }
	@echo "Setting up .venv (once) …"
	@$(PYTHON) -m venv .venv
	@touch $@

.venv/installed: .venv/python pyproject.toml constraints.txt
	@$(PIP) --editable .
	@touch $@

.venv/tested: .venv/installed
	@echo "Installing what the tests need (once) …"
	@$(PIP) --editable ".[test]"
	@touch $@

$(OLDEST)/tested: .venv/python pyproject.toml constraints.txt tools/oldest.py
	@echo "Installing the lowest versions that pyproject allows in $(OLDEST) (once) …"
	@$(PYTHON) -m venv $(OLDEST)
	@$(PYTHON) tools/oldest.py > $(OLDEST)/lowest.txt
	@$(OLDEST)/bin/python -m pip --disable-pip-version-check --quiet install \
	  --constraint constraints.txt --constraint $(OLDEST)/lowest.txt \
	  --editable ".[hf,pdf,serve,train,xlsx]" \
	  formulas html5lib hypothesis pytest pytest-xdist safetensors sympy syrupy
	@touch $@
