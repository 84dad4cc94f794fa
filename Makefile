# Two commands do everything on a fresh machine with Python 3.11: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: demo test test-fast slow-tests check lint types bench bench-compare conformance decide conformance-gl conformance-linux conformance-igt soak soak-linux gallery fuzz examples clean packages peer env lock

demo: env
	$(BIN)/vc4lab demo

# Compiled modules stay on disk, the tests' with their rewritten assertions, even where a shell's setting
# says otherwise: without them each process, also those that tests start, compiles 1,500 files.
test test-fast slow-tests: export PYTHONDONTWRITEBYTECODE =

# A process for each processor, each with a part of the files in their order: what tests of a folder
# compile and record is shared in a process. One that has finished takes half of what another has left.
test: packages env lint types
	$(BIN)/python -m pytest -n logical --dist worksteal

# While working: without the rows of tests/slow.txt, a sixth of the items and most of the time.
test-fast: env
	$(BIN)/python -m pytest -n logical --dist worksteal -m "not slow"

# The table of slow tests, from the times of a whole run.
slow-tests: env
	mkdir -p out
	$(BIN)/python -m pytest -n logical --dist worksteal --durations=0 --durations-min=0.02 > out/durations.txt; \
		$(BIN)/python tools/slow_tests.py out/durations.txt

lint: env
	$(BIN)/ruff check src tests benchmarks examples tools
	$(BIN)/ruff format --check src tests benchmarks examples tools
	$(BIN)/python tools/sizes.py

types: env
	$(BIN)/mypy

# With VC4_DRIVER=DIR (a folder with Mesa's vc4_dri.so) also real programs on the virtual device.
bench: env peer
	$(BIN)/python -m benchmarks

# Programs on one virtual device for a long time: make soak VC4_DRIVER=DIR MINUTES=30
MINUTES ?= 30
soak: env
	@test -n "$(VC4_DRIVER)" || { echo 'usage: make soak VC4_DRIVER=DIR [MINUTES=30]'; exit 2; }
	$(BIN)/python -m benchmarks._soak --driver $(VC4_DRIVER) --minutes $(MINUTES)

# glmark2 in a booted Debian for a long time (`vc4lab linux --setup` first): make soak-linux MINUTES=60 [PICTURES=DIR]
soak-linux: env
	$(BIN)/python -m benchmarks._soak_linux --minutes $(MINUTES) $(if $(PICTURES),--pictures $(PICTURES))

# The working tree against a commit, both in turn: make bench-compare BASE=COMMIT [MODULES="qpu scenes"].
bench-compare: env
	@test -n "$(BASE)" || { echo 'usage: make bench-compare BASE=COMMIT [MODULES="qpu scenes"]'; exit 2; }
	$(BIN)/python -m benchmarks._compare $(BASE) $(MODULES)

# piglit and dEQP-GLES2 through Mesa's vc4 beside what boards do: docs/conformance.md. It takes about
# an hour; stopped, it goes on: make conformance VC4_DRIVER=DIR DEQP=DIR [CONFORMANCE="--shards 1"].
# Without DEQP piglit alone runs, and no page is written. GPU_FFT=DIR: that program's accuracy beside
# what boards print, from its public sources (hello_fft of raspberrypi/userland; several folders).
conformance: env
	$(if $(GPU_FFT),$(BIN)/python -m benchmarks._conformance.gpu_fft $(GPU_FFT))
	$(if $(and $(GPU_FFT),$(if $(VC4_DRIVER)$(DEQP),,alone)),,$(BIN)/python -m benchmarks._conformance $(if $(VC4_DRIVER),--driver "$(VC4_DRIVER)") $(if $(DEQP),--deqp "$(DEQP)") $(CONFORMANCE))

# Every open row of the table of unknowns, choice by choice, over recorded runs and, where given, piglit
# (VC4_DRIVER=DIR), dEQP-GLES2 (DEQP=DIR) and public programs that check themselves (PROGRAMS=FILE.toml),
# compared with what boards do: make decide VC4_DRIVER=DIR [DECIDE="--whole --record"]. Stopped, it goes on.
decide: env
	$(BIN)/python -m benchmarks._conformance.decide $(if $(VC4_DRIVER),--driver "$(VC4_DRIVER)") $(if $(DEQP),--deqp "$(DEQP)") $(if $(PROGRAMS),--programs "$(PROGRAMS)") $(DECIDE)

# piglit through `vc4lab gl` beside llvmpipe after the same protocol: the other part of that page.
conformance-gl: env
	$(BIN)/python -m benchmarks._conformance.gl $(CONFORMANCE)

# A sample of piglit in a booted Debian beside the virtual device: docs/linux_piglit.md
# (`vc4lab linux --setup -- piglit` first). Stopped, it goes on.
conformance-linux: env
	$(BIN)/python -m benchmarks._conformance.linux $(CONFORMANCE)

# igt-gpu-tools on the virtual device beside vc4.ko in the guest: a part of docs/conformance.md. DIR
# has two builds of them, amd64 and arm64. Stopped, it goes on: make conformance-igt IGT=DIR
conformance-igt: env
	@test -n "$(IGT)" || { echo 'usage: make conformance-igt IGT=DIR [CONFORMANCE="--only kms_lease"]'; exit 2; }
	$(BIN)/python -m benchmarks._conformance.igt "$(IGT)" $(CONFORMANCE)

# Every recorded run beside llvmpipe's picture of the scene: out/gallery.html and out/gallery.png.
gallery: env peer
	$(BIN)/python -m benchmarks._gallery

# Ten million mutated bytes for the V3D, a million ioctls of hostile programs for the device.
fuzz: env
	VC4LAB_FUZZ=long $(BIN)/python -m pytest tests/fuzz -q -s

examples: env
	$(MAKE) -C examples VC4LAB=$(abspath $(BIN)/vc4lab)

# llvmpipe, to compare with; without it the pictures and rows come without a peer.
peer:
	sh tools/system-packages.sh gallery

# The environment is made once and again whenever the lock or the metadata changes.
env: $(STAMP)
$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("vc4lab needs Python 3.11 or newer") if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	touch $@

# The digests of all files of the versions in requirements.lock, for each platform: after a version
# was changed there, where uv is installed.
lock:
	uv pip compile requirements.lock -o requirements.lock --universal --python-version 3.11 \
		--generate-hashes --no-annotate --custom-compile-command "make lock" --quiet

# What the tests like to have from Debian (cross compilers, programs they run); skipped with a
# message elsewhere.
packages:
	sh tools/system-packages.sh

clean:
	rm -rf $(VENV) build dist out .pytest_cache .mypy_cache .ruff_cache .hypothesis
