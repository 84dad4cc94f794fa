"""From traced kernels to machine code: the build() function, compilation, loading, calling."""

from __future__ import annotations

import ctypes
import gc
import itertools
import math
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from vc4lab import optimisations
from vc4lab.interruption import deferred
from vc4lab.simd import cache
from vc4lab.simd.floatmode import CALLER_MODE, FLOAT_MODES, define_entry
from vc4lab.simd.kernel import Function, define, function_in_module
from vc4lab.simd.members import CTYPES
from vc4lab.simd.target import Target, code_generation, host_target, initialise
from vc4lab.simd.trace import ModuleTrace
from vc4lab.simd.types import Type, ptr

UNOPTIMISED_ABOVE = 2_000_000
"""Bytes of LLVM text above which code is not optimised: the time to optimise grows faster than the
text, and a program made to be long must not take ten seconds.
"""
THOROUGH_UP_TO = 400_000
"""Bytes of LLVM text up to which code is compiled thoroughly: half a second."""
PASSES = (
    f"sroa simplifycfg instcombine O1, no misched, no lsr, O0 above {UNOPTIMISED_ABOVE}; "
    f"thorough O2 up to {THOROUGH_UP_TO}"
)
"""Part of cache keys."""

_ARGUMENTS: dict[Type, Any] = {**CTYPES, ptr: ctypes.c_void_p}  # None is 0


class Address:
    """The address of what is no kernel, to be imported by one: a C function, or data."""

    def __init__(self, address: int) -> None:
        self.address = address


class NativeFunction:
    """A compiled function. Call it with Python numbers (addresses for ptr); it releases the GIL.

    Attributes
    ----------
    call
        The same without a Python frame; valid as long as this object lives.
    """

    def __init__(self, code: _Code, name: str, address: int, function: Function[Any]) -> None:
        self._code = code
        self.name = name
        self.address = address
        returns = _ARGUMENTS[function.returns] if function.returns else None
        self.call: Any = ctypes.CFUNCTYPE(returns, *(_ARGUMENTS[t] for t in function.args))(address)

    def __call__(self, *args: Any) -> Any:
        return self.call(*args)

    def __repr__(self) -> str:
        return f"<native {self._code.name}.{self.name} at {self.address:#x}>"


class _Code:
    """Loaded code and what it calls: it is unloaded with the last module or function that has it.

    Functions have this and not their module, which has them: code in a circle of objects would stay
    until Python looks for such circles, in whatever thread and at whatever moment that happens.
    """

    def __init__(self, name: str, tracker: Any, imports: Mapping[str, NativeFunction | Address]) -> None:
        self.name = name
        self.tracker = tracker
        self.imports = dict(imports)


class NativeModule:
    """Compiled code in memory; it stays there as long as this object or a function of it lives.

    Neither the object file nor its LLVM text is kept: together they are ten times the code's size.
    """

    def __init__(
        self,
        name: str,
        image: bytes,
        functions: Mapping[str, Function[Any]],
        imports: Mapping[str, NativeFunction | Address],
    ) -> None:
        self.name = name
        places = {n: f.address for n, f in imports.items()}
        tracker = _load(image, [_symbol(n) for n in functions], places)
        code = _Code(name, tracker, imports)
        self.functions = {n: NativeFunction(code, n, tracker[_symbol(n)], f) for n, f in functions.items()}

    def __getitem__(self, name: str) -> NativeFunction:
        return self.functions[name]


def _symbol(name: str) -> str:
    return "vc4_" + "".join(c if c.isalnum() and c.isascii() else "_" for c in name)


_lock = threading.Lock()
_jit: Any = None
_serial = itertools.count(1)


def _load(image: bytes, symbols: list[str], imports: Mapping[str, int]) -> Any:
    import llvmlite.binding as llvm

    global _jit
    initialise()
    with _lock:
        if _jit is None:
            machine = llvm.Target.from_default_triple().create_target_machine(
                jit=True, reloc="pic", codemodel="small"
            )
            _jit = llvm.create_lljit_compiler(machine, use_jit_link=True)
        builder = llvm.JITLibraryBuilder().add_object_img(image).add_current_process()
        for symbol in symbols:
            builder.export_symbol(symbol)
        for symbol, address in imports.items():
            builder.import_symbol(symbol, address)
        return builder.link(_jit, f"vc4lab.{next(_serial)}")


def effort(ir: str) -> int:
    """LLVM's optimisation level for a module."""
    return 1 if len(ir) <= UNOPTIMISED_ABOVE else 0


class _Machines(threading.local):
    """This thread's code generators, by processor and effort."""

    def __init__(self) -> None:
        self.made: dict[tuple[Target, int], Any] = {}

    def get(self, target: Target, opt: int) -> Any:
        import llvmlite.binding as llvm

        machine = self.made.get((target, opt))
        if machine is None:
            machine = llvm.Target.from_triple(target.triple).create_target_machine(
                cpu=target.cpu, features=target.features, opt=opt, reloc="pic", codemodel="small", jit=True
            )
            self.made[target, opt] = machine
        return machine


_machines = _Machines()


def compile_ir(
    ir: str, target: Target, combine: bool = True, quick: bool = False, thorough: bool = False
) -> bytes:
    """Machine code (an object file) of LLVM text. Usable from several threads.

    combine, quick: as in `build`. thorough: all optimisations. Nothing verifies the module: the
    parser checks types and names already.
    """
    import llvmlite.binding as llvm

    initialise()
    level = 2 if thorough else effort(ir)
    machine = _machines.get(target, level)
    context = llvm.create_context()
    module = llvm.parse_assembly(ir, context)
    try:
        tuning = llvm.create_pipeline_tuning_options(speed_level=max(level, 1))
        tuning.loop_vectorization = tuning.slp_vectorization = False  # it is vectors already
        builder = llvm.create_pass_builder(machine, tuning)
        if thorough:
            passes = builder.getModulePassManager()
        else:
            passes = llvm.create_new_module_pass_manager()
            passes.add_sroa_pass()
            passes.add_simplify_cfg_pass()  # first: fewer blocks to combine in, a tenth less in all
            if combine:
                passes.add_instruction_combine_pass()
        passes.run(module, builder)
        with code_generation(quick and target.combiner_is_optional):
            return bytes(machine.emit_object(module))
    finally:
        module.close()


def trace_module(functions: Mapping[str, Function[Any]], target: Target, float_mode: str) -> str:
    """The LLVM text of a module with these entry points."""
    module = ModuleTrace(target, float_mode)
    for name, function in functions.items():
        for type_ in (*function.args, *([function.returns] if function.returns else [])):
            if type_ not in _ARGUMENTS:
                raise TypeError(f"entry point {name}: {type_} cannot cross the C interface")
        if float_mode in ("default", CALLER_MODE):
            define(module, function, _symbol(name), exported=True)
        else:
            define_entry(module, _symbol(name), function, function_in_module(module, function))
    return module.text()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Tracing makes tens of thousands of objects that all live to its end: nothing to collect.

    No signal raises in it: Python's parser, which it uses, makes a SystemError of that.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        with deferred():
            yield
    finally:
        if running:
            gc.enable()


def build(
    name: str,
    functions: Mapping[str, Function[Any]],
    *,
    target: Target | None = None,
    float_mode: str = "qpu",
    key: str | None = None,
    imports: Mapping[str, NativeFunction | Address] | None = None,
    combine: bool = True,
    quick: bool = False,
) -> NativeModule:
    """Compiles kernels into a module with one native entry point per item of `functions`.

    Args:
        name: for messages.
        functions: entry point name → @kernel or Function.
        target: the processor, the host if None.
        float_mode: "qpu" = round toward zero, denormals are zero; "default" = IEEE as C has it;
            "caller" = what it is when an entry point is called, which must be one of the two.
        key: names the content; if the disk cache has its object, nothing is traced. The key holds
            for one state of the sources: after a change the LLVM text finds the object again.
        imports: the functions of other modules that these kernels call by `imported(name, …)`.
        combine: run LLVM's instruction combining. Straight-line code hardly gains (tracing and
            code generation simplify it already) and compiles a fifth faster without; values
            carried around loops need it.
        quick: skip the code generator's search for cheaper instructions, which takes a quarter to
            a third of the time: for code that is compiled while a program waits.
    """
    if float_mode not in FLOAT_MODES:
        raise ValueError(f"float_mode is one of {FLOAT_MODES}, not {float_mode!r}")
    target = target or host_target()
    if target.level == "eager":
        from vc4lab.simd.eager import EagerModule

        return cast("NativeModule", EagerModule(name, functions, float_mode, imports or {}))
    slot = None
    if key is not None:
        slot = _key_slot(name, functions, target, float_mode, key)
        image = cache.read(slot)
        if image is not None:
            return NativeModule(name, image, functions, imports or {})
    ir = _traced(functions, target, float_mode)
    text_slot = _slot("ir", f"{combine} {quick}", ir, "", target, functions, "")
    image = cache.read(text_slot)
    if image is None:
        image = compile_ir(ir, target, combine, quick)
        _newest[0] = time.monotonic()
        cache.write(text_slot, image)
    if slot is not None:
        cache.write(slot, image)
    return NativeModule(name, image, functions, imports or {})


def _traced(functions: Mapping[str, Function[Any]], target: Target, float_mode: str) -> str:
    with _undisturbed():
        return trace_module(functions, target, float_mode)


def thorough_image(
    functions: Mapping[str, Function[Any]], *, target: Target | None = None, float_mode: str = "qpu"
) -> bytes:
    """The object file of kernels, compiled by all of LLVM's optimisations, for `place`."""
    target = target or host_target()
    ir = _traced(functions, target, float_mode)
    return compile_ir(ir, target, True, False, len(ir) <= THOROUGH_UP_TO)


def place(
    name: str,
    functions: Mapping[str, Function[Any]],
    image: bytes,
    *,
    key: str,
    target: Target | None = None,
    float_mode: str = "qpu",
) -> NativeModule:
    """The module of an object file that another process made of these kernels; the disk cache
    keeps it under the key.
    """
    cache.write(_key_slot(name, functions, target or host_target(), float_mode, key), image)
    return NativeModule(name, image, functions, {})


_newest = [-math.inf]


def seconds_since_build() -> float:
    """Since code was compiled that a program waited for: thorough builds do not count."""
    return time.monotonic() - _newest[0]


def kept(
    name: str,
    functions: Mapping[str, Function[Any]],
    *,
    key: str,
    target: Target | None = None,
    float_mode: str = "qpu",
) -> NativeModule | None:
    """Load the module that `build` has left under a key in the disk cache; None if it is not there."""
    image = cache.read(_key_slot(name, functions, target or host_target(), float_mode, key))
    return None if image is None else NativeModule(name, image, functions, {})


def _key_slot(
    name: str, functions: Mapping[str, Function[Any]], target: Target, float_mode: str, key: str
) -> str:
    sources = f"{cache.source_digest()} without {optimisations.WITHOUT}"
    return _slot("key", name, key, float_mode, target, functions, sources)


def _slot(
    kind: str,
    name: str,
    content: str,
    float_mode: str,
    target: Target,
    functions: Mapping[str, Function[Any]],
    sources: str,
) -> str:
    """The cache file for this content, processor and compiler."""
    import llvmlite

    exports = ";".join(f"{n}:{f.args}->{f.returns}" for n, f in functions.items())
    version = f"{llvmlite.__version__} {PASSES}"
    parts = (kind, name, content, float_mode, target.digest, exports, sources, version)
    return cache.digest(*parts)
