"""The floating-point environment: rounding mode and flushing of native code, sticky flags.

x86: MXCSR. AArch64: FPCR and FPSR (compiles, but has never been run).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

from vc4lab.simd.kernel import Function, R, call, function_in_module
from vc4lab.simd.operators import Operand
from vc4lab.simd.trace import FunctionTrace, ModuleTrace, current, function_trace, staged_error
from vc4lab.simd.types import Type, i32, ptr
from vc4lab.simd.value import Value, coerce

FP_INVALID = 1
FP_OVERFLOW = 8
_STICKY = 0x3F

# MXCSR: exceptions masked 0x1F80, toward zero 0x6000, flush to zero 0x8000, denormals zero 0x40
_MXCSR = {"default": 0x1F80, "qpu": 0x1F80 | 0x6000 | 0x8000 | 0x0040}
# FPCR: RMode (bits 23:22) = 3 toward zero, FZ (bit 24)
_FPCR = {"default": 0, "qpu": 3 << 22 | 1 << 24}

CALLER_MODE = "caller"
"""The float mode of modules whose entry points run in the mode of their caller."""

FLOAT_MODES = (*_MXCSR, CALLER_MODE)


def _x86(trace: FunctionTrace) -> bool:
    triple = trace.module.target.triple
    if not triple.startswith(("x86_64", "aarch64", "arm64")):
        raise RuntimeError(f"no float mode control for {triple}; only float_mode='default' works")
    return triple.startswith("x86_64")


def save(trace: FunctionTrace) -> str:
    """Reads the control register; returns the slot (x86) or register that holds it."""
    trace.invalidate()
    if _x86(trace):
        slot = trace.alloca("i32", 4)
        name = trace.module.declare("llvm.x86.sse.stmxcsr", "void @{} (ptr)")
        trace.emit(f"call void @{name}(ptr {slot})")
        return slot
    name = trace.module.declare("llvm.aarch64.get.fpcr", "i64 @{} ()")
    return trace.assign(f"call i64 @{name}()")


def restore(trace: FunctionTrace, saved: str) -> None:
    """Writes back what save() read."""
    trace.invalidate()
    if _x86(trace):
        name = trace.module.declare("llvm.x86.sse.ldmxcsr", "void @{} (ptr)")
        trace.emit(f"call void @{name}(ptr {saved})")
    else:
        name = trace.module.declare("llvm.aarch64.set.fpcr", "void @{} (i64)")
        trace.emit(f"call void @{name}(i64 {saved})")


def enter(trace: FunctionTrace, mode: str) -> None:
    """Sets a float mode, with all sticky flags clear on x86."""
    if _x86(trace):
        source = trace.module.table("i32", str(_MXCSR[mode]), 4, opaque=False)
        restore(trace, source)
    else:
        restore(trace, str(_FPCR[mode]))


def define_entry(module: ModuleTrace, symbol: str, function: Function[Any], inner: str) -> None:
    """The exported wrapper that runs @inner in the module's float mode."""
    with function_trace(module, symbol) as trace:
        saved = save(trace)
        enter(trace, module.float_mode)
        operands = ", ".join(f"{t.text} %p{i}" for i, t in enumerate(function.args))
        returns = function.returns
        if returns is None:
            trace.emit(f"call void @{inner}({operands})")
            restore(trace, saved)
            trace.terminate("ret void")
        else:
            result = trace.assign(f"call {returns.text} @{inner}({operands})")
            restore(trace, saved)
            trace.terminate(f"ret {returns.text} {result}")
        parameters = ", ".join(f"{_c_type(t)} %p{i}" for i, t in enumerate(function.args))
        head = f"define {_c_type(returns, True)} @{symbol}({parameters}) #0"
        module.functions.append(trace.text(head))


def _c_type(type_: Type | None, result: bool = False) -> str:
    """The type at the C interface: a bool arrives and leaves as a whole byte."""
    if type_ is None:
        return "void"
    if type_.text == "i1":
        return "zeroext i1" if result else "i1 zeroext"
    return type_.text


@overload
def call_pointer(
    function: Operand, returns: Type, arg_types: Sequence[Type], *args: Operand, float_mode: str = "default"
) -> Value: ...
@overload
def call_pointer(
    function: Operand, returns: None, arg_types: Sequence[Type], *args: Operand, float_mode: str = "default"
) -> None: ...
def call_pointer(
    function: Operand,
    returns: Type | None,
    arg_types: Sequence[Type],
    *args: Operand,
    float_mode: str = "default",
) -> Value | None:
    """Calls a C function by address, in the float mode C code expects.

    Pass `float_mode="keep"` for native code that sets its own mode (an entry point of a module).
    An address given as a Python int ends up in the code: never do that in a module with a `key`.
    """
    trace = current()
    target = coerce(function, ptr)
    if trace.eager:
        found: Value | None = trace.eager.call_pointer(target, returns, arg_types, args, float_mode)
        return found
    if len(args) != len(arg_types):
        raise staged_error(f"call_pointer: {len(arg_types)} types, {len(args)} arguments")
    if any(t.lanes for t in (*arg_types, *([returns] if returns else []))):
        raise staged_error("call_pointer passes scalars and pointers; pass vectors in memory")
    values = [coerce(a, t) for a, t in zip(args, arg_types, strict=True)]
    operands = ", ".join(f"{_c_type(v.type)} {v.text}" for v in values)
    foreign = trace.module.float_mode != "default" and float_mode != "keep"
    saved = ""
    if foreign:
        saved = save(trace)
        enter(trace, "default")
    result = None
    if returns is None:
        trace.invalidate()
        trace.emit(f"call void {target.text}({operands})")
    else:
        text = trace.call(f"call {_c_type(returns, True)} {target.text}({operands})")
        result = Value(returns, text)
    if foreign:
        restore(trace, saved)
    return result


def imported(name: str, returns: Type | None, arg_types: tuple[Type, ...]) -> Value:
    """The address of a function of another module, for `call_pointer(…, float_mode="keep")`.

    `build(…, imports={name: address})` says where it is; the address is not part of the code.
    """
    eager = current().eager
    if eager:
        found: Value = eager.imported(name)
        return found
    types = ", ".join(_c_type(t) for t in arg_types)
    symbol = current().module.declare(name, f"{_c_type(returns, True)} @{{}} ({types})")
    return Value(ptr, f"@{symbol}")


def address_of(kernel: Function[Any]) -> Value:
    """The address of a function of this module, for others to call while the module is loaded."""
    eager = current().eager
    if eager:
        found: Value = eager.address_of(kernel)
        return found
    return Value(ptr, f"@{function_in_module(current().module, kernel)}")


def call_with_flags(kernel: Function[R] | Callable[..., R], *args: Operand) -> tuple[R, Value]:
    """Calls `kernel` (noinline) and reports which float exceptions it raised.

    Anything else that is callable is traced here; it should do no more than call. Returns its
    result and the sticky flags as i32, e.g. `FP_INVALID | FP_OVERFLOW`. The flags are conservative:
    an ordered comparison with a NaN raises FP_INVALID, too. The sticky flags of the caller are
    cleared.
    """
    trace = current()
    if trace.module.float_mode == CALLER_MODE:
        raise staged_error("call_with_flags needs a module with a float mode of its own")

    def called() -> R:
        return call(kernel, *args) if isinstance(kernel, Function) else kernel(*args)

    if trace.eager:
        found: tuple[R, Value] = trace.eager.with_flags(called)
        return found
    if _x86(trace):
        enter(trace, trace.module.float_mode)
        result = called()
        word = Value(i32, trace.assign(f"load i32, ptr {save(trace)}, align 4"))
        return result, word & _STICKY
    clear = trace.module.declare("llvm.aarch64.set.fpsr", "void @{} (i64)")
    trace.emit(f"call void @{clear}(i64 0)")
    result = called()
    read = trace.module.declare("llvm.aarch64.get.fpsr", "i64 @{} ()")
    # FPSR: IOC bit 0 and OFC bit 2, moved to the places of MXCSR's IE and OE
    fpsr = trace.assign(f"call i64 @{read}()")
    word = Value(i32, trace.assign(f"trunc i64 {fpsr} to i32"))
    return result, (word & 1) | ((word & 4) << 1)
