"""The processors code is made for: the host, and the instruction-set levels tests compare."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

_init_lock = threading.Lock()
_initialised = False


@dataclass(frozen=True)
class Target:
    """A code generation target. `level` is `avx512`, `avx2`, `sse2` or `generic`."""

    level: str
    cpu: str
    features: str
    triple: str

    @property
    def attributes(self) -> str:
        """Function attributes: on AVX-512 keep 16×32-bit values in one 512-bit register."""
        if self.level == "avx512":
            return '"prefer-vector-width"="512" "min-legal-vector-width"="512"'
        return ""

    @property
    def slow_gather(self) -> bool:
        """Are single loads faster than the gather instruction?"""
        return self.cpu.startswith("znver") or self.level not in ("avx512", "avx2")

    @property
    def combiner_is_optional(self) -> bool:
        """Can the back end do without its combiner? That of AArch64 ends the process without."""
        return self.triple.startswith("x86_64")

    @property
    def digest(self) -> str:
        return f"{self.level}|{self.cpu}|{self.features}|{self.triple}"


def initialise() -> None:
    """Registers LLVM's native back end, once per process."""
    global _initialised
    if not _initialised:
        import llvmlite.binding as llvm

        with _init_lock:
            if not _initialised:
                # Scheduling machine code and reducing the strength of loop variables take a sixth
                # of the compile time and gain nothing on out-of-order processors.
                llvm.set_option("vc4lab", "-enable-misched=false")
                llvm.set_option("vc4lab", "-disable-lsr")
                llvm.initialize_native_target()
                llvm.initialize_native_asmprinter()
                _initialised = True


_generating = threading.Lock()
_combiner = True


@contextmanager
def code_generation(quick: bool) -> Iterator[None]:
    """Holds the back end for one module, with or without its combiner of selection nodes.

    That is an option of the whole process (of LLVM 22 and later; older ones always combine), so
    no other thread may generate code meanwhile. The bindings let only one thread compile anyway.
    """
    global _combiner
    import llvmlite.binding as llvm

    with _generating:
        wanted = not quick or llvm.llvm_version_info < _COMBINER_IS_AN_OPTION
        if wanted != _combiner:
            _combiner = wanted
            llvm.set_option("vc4lab", f"-combiner-disabled={'false' if wanted else 'true'}")
        yield


_COMBINER_IS_AN_OPTION = (22,)
"""LLVM's version from which on; an option it does not know would end the process."""

_AVX512 = ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_AVX2 = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")


@cache
def _host_features() -> dict[str, bool]:
    import llvmlite.binding as llvm

    initialise()
    try:
        return dict(llvm.get_host_cpu_features())
    except RuntimeError:  # LLVM cannot say on this CPU: the baseline
        return {}


@cache
def host_target() -> Target:
    """This machine, with everything it can do."""
    import llvmlite.binding as llvm

    features = _host_features()
    triple = llvm.get_process_triple()
    if not triple.startswith("x86_64"):
        level = "generic"
    elif all(features.get(f) for f in _AVX512):
        level = "avx512"
    elif all(features.get(f) for f in _AVX2):
        level = "avx2"
    else:
        level = "sse2"
    text = ",".join(("+" if on else "-") + name for name, on in sorted(features.items()))
    return Target(level, llvm.get_host_cpu_name(), text, triple)


@cache
def targets() -> tuple[Target, ...]:
    """The levels this CPU can run, best first; just the host where levels mean nothing."""
    host = host_target()
    if host.level == "generic":
        return (host,)
    levels = [
        Target("avx512", "x86-64-v4", "", host.triple),
        Target("avx2", "x86-64-v3", "", host.triple),
        Target("sse2", "x86-64", "", host.triple),
    ]
    names = [t.level for t in levels]
    return tuple(levels[names.index(host.level) :])
