"""Loads, stores, gathers, scatters, stack slots, tables and mutable cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from vc4lab.simd.operators import Operand
from vc4lab.simd.trace import current, staged_error
from vc4lab.simd.types import Type, i1, i8, i64, literal, number_to_bits, ptr, vec
from vc4lab.simd.value import Value, coerce, const, select, splat

ALIGN = 64
Mask: TypeAlias = Value | bool | Sequence[bool]
"""Lanes that count: staged, the same for all, or known beforehand."""


def _pointer(p: Operand) -> Value:
    return coerce(p, ptr)


def load(type_: Type, p: Operand, align: int = 1) -> Value:
    """The value of type `type_` at address `p`; `align` is a promise in bytes."""
    trace, place = current(), _pointer(p)
    if trace.eager:
        found: Value = trace.eager.load(type_, place)
        return found
    return Value(type_, trace.load(f"load {type_.text}, ptr {place.text}, align {align}"))


def store(p: Operand, value: Operand, align: int = 1) -> None:
    """Writes a Value (Python numbers as i32/f32) to address `p`."""
    from vc4lab.simd.value import as_value

    trace, v, place = current(), as_value(value), _pointer(p)
    if trace.eager:
        trace.eager.store(place, v)
    else:
        trace.emit(f"store {v.type.text} {v.text}, ptr {place.text}, align {align}")


def alloca(what: Type | int, align: int = ALIGN) -> Value:
    """Uninitialised memory for a type or a number of bytes, until the function returns."""
    trace = current()
    if trace.eager:
        found: Value = trace.eager.alloca(what if isinstance(what, int) else what.size, align)
        return found
    text = f"[{what} x i8]" if isinstance(what, int) else what.text
    return Value(ptr, trace.alloca(text, align))


class Cell:
    """A mutable staged variable for Python objects; lives in a register if it can."""

    def __init__(self, type_: Type, initial: Operand | None = None) -> None:
        self.type = type_
        align = min(ALIGN, 1 << (type_.size - 1).bit_length())
        self.align = align
        trace = current()
        self.known: Value | None = None
        """The value that it holds, in an eager run."""
        if trace.eager:
            self.known = const(type_, 0)
        else:
            self.slot = trace.alloca(type_.text, align)
        if initial is not None:
            self.set(initial)

    def get(self) -> Value:
        if self.known is not None:
            return self.known
        text = f"load {self.type.text}, ptr {self.slot}, align {self.align}"
        return Value(self.type, current().read_cell(self.slot, text))

    def set(self, value: Operand) -> None:
        v = coerce(value, self.type)
        if self.known is not None:
            if current().block is not None:
                self.known = v
            return
        line = f"store {v.type.text} {v.text}, ptr {self.slot}, align {self.align}"
        current().write_cell(self.slot, v.text, line)


def var(type_: Type, initial: Operand | None = None) -> Cell:
    """A mutable cell of type `type_`: `.get()`, `.set(value)`."""
    return Cell(type_, initial)


def _initial(type_: Type, numbers: Sequence[float]) -> tuple[str, str]:
    elem = type_.elem
    words = [number_to_bits(elem, n) for n in numbers]
    if elem.is_float:  # as integers, so that NaN payloads survive
        text = f"i{elem.bits}"
        return f"[{len(words)} x {text}]", "[" + ", ".join(f"{text} {w}" for w in words) + "]"
    inner = ", ".join(f"{elem.text} {literal(elem, w)}" for w in words)
    return f"[{len(words)} x {elem.text}]", f"[{inner}]"


def table(type_: Type, numbers: Iterable[float]) -> Value:
    """The address of constant data in the module: an array of `type_`."""
    values = list(numbers)
    if not values:
        raise staged_error("an empty table")
    if type_.lanes or type_ is i1:
        raise staged_error(f"a table holds scalars of at least a byte, not {type_}")
    trace = current()
    if trace.eager:
        found: Value = trace.eager.table(type_, values)
        return found
    kind, text = _initial(type_, values)
    return Value(ptr, trace.module.table(kind, text, ALIGN, opaque=False))


def opaque(type_: Type, number: Any) -> Value:
    """A constant (number, or list of one per lane) that LLVM cannot see through.

    For float immediates: LLVM would fold `x * 1.0` or `x - 0.0`, which flush denormals on the QPU.
    """
    if current().eager:
        return const(type_, number)
    module = current().module
    if isinstance(number, list | tuple):
        kind, text = _initial(type_, list(number))
        source = module.table(kind, text, ALIGN, opaque=True)
        wide = f"load {type_.text}, ptr {source}, align {ALIGN}, !invariant.load !0"
        return Value(type_, current().once(wide))
    kind, text = _initial(type_, [number])
    source = module.table(kind, text, type_.bits // 8, opaque=True)
    line = f"load {type_.elem.text}, ptr {source}, align {type_.bits // 8}, !invariant.load !0"
    one = Value(type_.elem, current().once(line))
    return splat(one, type_.lanes) if type_.lanes else one


def prefetch(p: Operand) -> None:
    """Asks for the cache line of an address that is to be read soon; any address will do."""
    if current().eager:
        return
    name = current().module.declare("llvm.prefetch.p0", "void @{} (ptr, i32, i32, i32)")
    current().emit(f"call void @{name}(ptr {_pointer(p).text}, i32 0, i32 3, i32 1)")


def atomic_add(p: Operand, value: Operand) -> Value:
    """Adds atomically to the integer at the naturally aligned `p`; returns the old one."""
    from vc4lab.simd.value import as_value

    v = as_value(value)
    eager = current().eager
    if eager:
        found: Value = eager.atomic_add(_pointer(p), v)
        return found
    text = f"atomicrmw add ptr {_pointer(p).text}, {v.type.text} {v.text} seq_cst"
    return Value(v.type, current().call(text))


# -- by lanes


def _mangle(type_: Type) -> str:
    elem = type_.elem
    name = {"ptr": "p0"}.get(elem.name, elem.name)
    return f"v{type_.lanes}{name}" if type_.lanes else name


def _mask(mask: Mask, lanes: int) -> Value:
    if isinstance(mask, Value) and mask.type is i1:
        return splat(mask, lanes)
    if not isinstance(mask, Value):
        return const(vec(i1, lanes), mask)
    if mask.type is not vec(i1, lanes):
        raise staged_error(f"expected a mask of {lanes} lanes, found {mask.type}")
    return mask


def masked_load(type_: Type, p: Operand, mask: Mask, default: Operand = 0) -> Value:
    """Lanes of the vector at `p` where `mask` holds, `default` elsewhere (memory untouched)."""
    m = _mask(mask, type_.lanes)
    d = coerce(default, type_)
    eager = current().eager
    if eager:
        found: Value = eager.gather(type_, _pointer(p), None, m, d)
        return found
    name = current().module.declare(
        f"llvm.masked.load.{_mangle(type_)}.p0", f"{type_.text} @{{}} (ptr, {m.type.text}, {type_.text})"
    )
    args = f"ptr align 1 {_pointer(p).text}, {m.type.text} {m.text}, {type_.text} {d.text}"
    return Value(type_, current().load(f"call {type_.text} @{name}({args})"))


def masked_store(p: Operand, value: Value, mask: Mask) -> None:
    """Writes the lanes of `value` where `mask` holds; the other bytes are not touched."""
    type_ = value.type
    m = _mask(mask, type_.lanes)
    eager = current().eager
    if eager:
        eager.scatter(_pointer(p), None, value, m)
        return
    name = current().module.declare(
        f"llvm.masked.store.{_mangle(type_)}.p0", f"void @{{}} ({type_.text}, ptr, {m.type.text})"
    )
    args = f"{type_.text} {value.text}, ptr align 1 {_pointer(p).text}, {m.type.text} {m.text}"
    current().emit(f"call void @{name}({args})")


def _gathers_well(elem: Type, masked: bool) -> bool:
    """Use the gather instruction? (For 16 lanes in L1 cache on Zen 4: unmasked 5.2 ns against 3.5
    by single loads, masked 5.4 against 7.5.)"""
    target = current().module.target
    if elem.bits not in (32, 64) or target.level not in ("avx512", "avx2"):
        return False
    return masked or not target.slow_gather


def gather(
    elem: Type,
    base: Operand,
    offsets: Value,
    mask: Mask | None = None,
    default: Operand = 0,
    *,
    compact: bool = False,
) -> Value:
    """One `elem` per lane from `base + offsets[lane]` bytes (i32 offsets are sign-extended).

    Lanes without mask read nothing and give `default`. `compact`: the gather instruction where
    there is one, even if single loads are faster by themselves: code among much other work, which
    keeps the processor's decoder and ports busy, gains from the fewer instructions.
    """
    lanes = offsets.type.lanes
    if not (lanes and offsets.type.is_int):
        raise staged_error(f"gather wants a vector of byte offsets, not {offsets.type}")
    type_ = vec(elem, lanes)
    trace = current()
    if trace.eager:
        chosen = _mask(True if mask is None else mask, lanes)
        found: Value = trace.eager.gather(type_, _pointer(base), offsets, chosen, coerce(default, type_))
        return found
    pointers = _pointers(base, offsets)
    m = _mask(True if mask is None else mask, lanes)
    if m.constant is False:
        return coerce(default, type_)
    if _gathers_well(elem, compact or m.constant is None):
        passthru = coerce(default, type_)
        name = trace.module.declare(
            f"llvm.masked.gather.{_mangle(type_)}.{_mangle(pointers.type)}",
            f"{type_.text} @{{}} ({pointers.type.text}, {m.type.text}, {type_.text})",
        )
        args = (
            f"{pointers.type.text} align 1 {pointers.text}, {m.type.text} {m.text}, "
            f"{type_.text} {passthru.text}"
        )
        return Value(type_, trace.load(f"call {type_.text} @{name}({args})"))
    result = Value(type_, "poison")
    if m.constant:
        start, wide = _pointer(base), offsets.sext(i64)
        for lane in range(lanes):
            result = result.insert(lane, load(elem, start + wide[lane]))
        return result
    # lanes without mask read a dummy
    pointers = select(m, pointers, splat(table(i8, [0] * 8), lanes))
    for lane in range(lanes):
        result = result.insert(lane, load(elem, pointers[lane]))
    return select(m, result, coerce(default, type_))


def _pointers(base: Operand, offsets: Value) -> Value:
    type_ = vec(ptr, offsets.type.lanes)
    text = f"getelementptr i8, ptr {_pointer(base).text}, {offsets.type.text} {offsets.text}"
    return Value(type_, current().once(text))


def scatter(base: Operand, offsets: Value, value: Operand, mask: Mask = True) -> None:
    """Writes lane by lane, lowest first, to `base + offsets[lane]` bytes where `mask` holds."""
    lanes = offsets.type.lanes
    v = value if isinstance(value, Value) else splat(value, lanes)
    if not v.type.lanes:
        v = splat(v, lanes)
    trace = current()
    m = _mask(mask, lanes)
    if trace.eager:
        trace.eager.scatter(_pointer(base), offsets, v, m)
        return
    if trace.module.target.level == "avx512" and v.type.bits in (32, 64):
        pointers = _pointers(base, offsets)
        name = trace.module.declare(
            f"llvm.masked.scatter.{_mangle(v.type)}.{_mangle(pointers.type)}",
            f"void @{{}} ({v.type.text}, {pointers.type.text}, {m.type.text})",
        )
        trace.emit(
            f"call void @{name}({v.type.text} {v.text}, {pointers.type.text} align 1 "
            f"{pointers.text}, {m.type.text} {m.text})"
        )
        return
    pointers = _pointers(base, offsets)
    if m.constant is None:  # lanes without mask write to a dummy
        pointers = select(m, pointers, splat(alloca(64), lanes))
    elif not m.constant:
        return
    for lane in range(lanes):
        store(pointers[lane], v[lane])
