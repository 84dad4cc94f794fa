"""Kernels run as plain Python: the same functions on numbers and numpy arrays, nothing compiled.

In an eager run every value is known, so that the language's own rules for constants decide its
branches and loops; what is left are the operations on lanes, floats and memory, which are here.
A debugger steps such a kernel line by line. Native code gives the same bits, except which NaN.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from vc4lab.simd import eager_floats
from vc4lab.simd.floatmode import CALLER_MODE, FP_INVALID, FP_OVERFLOW
from vc4lab.simd.kernel import Function
from vc4lab.simd.members import CTYPES
from vc4lab.simd.operators import Operand
from vc4lab.simd.target import Target
from vc4lab.simd.trace import Edge, FunctionTrace, Known, ModuleTrace, entered, staged_error
from vc4lab.simd.types import Type, i1, i32, ptr, vec
from vc4lab.simd.value import Lanes, Value, coerce, const, const_bits

TARGET = Target("eager", "eager", "", "eager")
"""Not a processor: what asks for an instruction-set level takes its portable way."""

WORDS = {1: np.bool_, 8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
SIGNED = {np.dtype(f"u{n}"): np.dtype(f"i{n}") for n in (1, 2, 4, 8)}
_FLOATS = {32: np.float32, 64: np.float64}


_by_address: WeakValueDictionary[int, EagerFunction] = WeakValueDictionary()


class EagerFunction:
    """A kernel that runs as Python; called as a `NativeFunction` is."""

    def __init__(
        self, name: str, function: Function[Any], float_mode: str, imports: Mapping[str, Any]
    ) -> None:
        self.name = name
        self.function = function
        self.float_mode = float_mode
        self.imports = imports
        self.address = id(self)
        """A number that stands for it in the kernels of eager runs."""
        _by_address[self.address] = self

    def __call__(self, *args: Any) -> Any:
        """Takes and returns Python numbers (addresses for ptr)."""
        function = self.function
        with entered(Eager(self.float_mode, self.imports).trace):
            result = function(*args)
        return None if function.returns is None else result.constant

    call = __call__

    def __repr__(self) -> str:
        return f"<eager {self.name}>"


class EagerModule:
    """Holds kernels that run as Python, as `build` makes them for the target `TARGET`."""

    def __init__(
        self, name: str, functions: Mapping[str, Function[Any]], float_mode: str, imports: Mapping[str, Any]
    ) -> None:
        self.name = name
        self.functions = {n: EagerFunction(n, f, float_mode, imports) for n, f in functions.items()}

    def __getitem__(self, name: str) -> EagerFunction:
        return self.functions[name]


class _Trace(FunctionTrace):
    """The place of an eager run: alive or dead; nothing is written."""

    def __init__(self, eager: Eager) -> None:
        super().__init__(ModuleTrace(TARGET, eager.float_mode), "eager")
        self.eager = eager

    def connect(self, edge: Edge, label: str) -> None:
        pass

    def start(self, label: str, known: Known | None = None) -> None:
        self.block = label
        self.lines.clear()


class Eager:
    """Carries out each operation at once."""

    def __init__(self, float_mode: str, imports: Mapping[str, Any]) -> None:
        self.float_mode = float_mode
        self.floats = eager_floats.Floats(float_mode not in ("default", CALLER_MODE))
        self.trace = _Trace(self)
        self._imports = imports
        self._functions: dict[int, EagerFunction] = {}  # by the address that stands for it
        self._blocks: list[Any] = []  # what alloca gave, until the run ends
        self._tables: dict[bytes, Value] = {}

    # -- values and arrays
    @staticmethod
    def words(value: Value) -> Any:
        """The raw bits of each lane as an array; a scalar is one lane."""
        type_ = value.type
        if isinstance(value, Lanes):
            if value.words.__class__ is list:
                value.words = np.array(value.words, WORDS[type_.bits])
            return value.words
        bits = value._bits
        if bits is None:
            if value.text != "poison":
                raise staged_error(f"{value!r} is of another run")
            bits = 0
        return np.full(type_.lanes or 1, bits, WORDS[type_.bits])

    @staticmethod
    def value(type_: Type, words: Any) -> Value:
        """The value with these bits."""
        return Lanes(type_, "", words) if type_.lanes else const_bits(type_, int(words[0]))

    def numbers(self, value: Value) -> Any:
        """The lanes as floats, denormals as the float mode has them."""
        return self.floats.operand(self.words(value).view(_FLOATS[value.type.bits]))

    def _from_floats(self, type_: Type, numbers: Any) -> Value:
        return self.value(type_, self.floats.result(numbers).view(WORDS[type_.bits]))

    # -- numbers
    def arithmetic(self, op: str, x: Value, y: Value) -> Value:
        type_ = x.type
        if type_.is_float:
            a, b = self.numbers(x), self.numbers(y)
            return self._from_floats(type_, self.floats.compute(eager_floats.BINARY[op], a, b))
        a, b = self.words(x), self.words(y)
        if op == "ashr":
            result = (a.view(SIGNED[a.dtype]) >> b.view(SIGNED[a.dtype])).view(a.dtype)
        else:
            result = _INTEGER[op](a, b)
        return self.value(type_, result)

    def divide(self, op: str, x: Value, y: Value) -> Value:
        a, b = self.words(x), self.words(y)
        if op[0] == "s":
            signed = SIGNED[a.dtype]
            p, q = a.view(signed).astype(object), b.view(signed).astype(object)
        else:
            p, q = a.astype(object), b.astype(object)
        quotients = [abs(m) // abs(n) * (1 if (m < 0) == (n < 0) else -1) for m, n in zip(p, q, strict=True)]
        if op.endswith("rem"):
            quotients = [m - k * n for k, m, n in zip(quotients, p, q, strict=True)]
        ones = (1 << x.type.bits) - 1
        return self.value(x.type, np.array([k & ones for k in quotients], a.dtype))

    def compare(self, kind: str, test: str, x: Value, y: Value) -> Value:
        result = _result_of_comparison(x.type)
        if kind == "fcmp":
            a, b = self.numbers(x), self.numbers(y)
            nan = np.isnan(a) | np.isnan(b)
            if test == "uno":
                return self.value(result, nan)
            self.floats.invalid |= bool(nan.any()) and test[1:] not in ("eq", "ne")
            held = _COMPARE[test[1:]](a, b)
            return self.value(result, held | nan if test[0] == "u" else held & ~nan)
        a, b = self.words(x), self.words(y)
        if test[0] == "s":
            a, b = a.view(SIGNED[a.dtype]), b.view(SIGNED[b.dtype])
        return self.value(result, _COMPARE[test.lstrip("su")](a, b))

    def select(self, condition: Value, x: Value, y: Value) -> Value:
        return self.value(x.type, np.where(self.words(condition), self.words(x), self.words(y)))

    def convert(self, op: str, x: Value, to: Type) -> Value:
        """A conversion, by LLVM's name for it."""
        words = self.words(x)
        if op in ("bitcast", "ptrtoint", "inttoptr"):
            return self.value(to, _bitcast(words, x.type, to))
        if op in ("zext", "trunc"):
            if to.bits == 1:
                return self.value(to, (words & words.dtype.type(1)).astype(bool))
            return self.value(to, words.astype(WORDS[to.bits]))
        if op == "sext":
            if x.type.bits == 1:
                wide = -words.astype(np.int64)
            else:
                wide = words.view(SIGNED[words.dtype]).astype(np.int64)
            return self.value(to, wide.astype(WORDS[to.bits]))
        if op in ("sitofp", "uitofp"):
            numbers = words if op[0] == "u" or x.type.bits == 1 else words.view(SIGNED[words.dtype])
            return self._from_floats(to, self.floats.convert(numbers, _FLOATS[to.bits]))
        if op in ("fpext", "fptrunc"):
            return self._from_floats(to, self.floats.convert(self.numbers(x), _FLOATS[to.bits]))
        assert op == "fptosi", op
        return self.value(to, _whole(self.numbers(x), to.bits))

    def intrinsic(self, name: str, result: Type, *operands: Value) -> Value:
        """One of LLVM's functions of lanes."""
        first = operands[0]
        if first.type.is_float and name not in _INTRINSICS:
            numbers = [self.numbers(x) for x in operands]
            if name == "fabs":
                words = self.words(first)
                return self.value(result, words & words.dtype.type((1 << (first.type.bits - 1)) - 1))
            if name == "fma":
                return self._from_floats(result, self.floats.fused(*numbers))
            function = eager_floats.UNARY[name]
            return self._from_floats(result, self.floats.compute(function, *numbers))
        arrays = [self.words(x) for x in operands]
        if name in _SIGNED_LANES:
            arrays = [a.view(SIGNED[a.dtype]) for a in arrays]
        made = _INTRINSICS[name](*arrays)
        return self.value(result, made.astype(made.dtype, copy=False).view(WORDS[result.bits]))

    # -- lanes
    def lane(self, x: Value, index: Operand) -> Value:
        number = index.constant if isinstance(index, Value) else index
        return const_bits(x.type.elem, int(self.words(x)[number % x.type.lanes]))

    def insert(self, x: Value, index: Operand, new: Value) -> Value:
        number = index.constant if isinstance(index, Value) else index
        words = self.words(x).copy()
        words[number % x.type.lanes] = new._bits
        return self.value(x.type, words)

    def shuffle(self, a: Value, b: Value, order: Sequence[int]) -> Value:
        both = np.concatenate([self.words(a), self.words(b)])
        return Lanes(_with_lanes(a.type, len(order)), "", both[list(order)])

    def permute(self, x: Value, index: Value) -> Value:
        return self.value(x.type, self.words(x)[self.words(index) % x.type.lanes])

    def mask_integer(self, mask: Value, whole: Type) -> Value:
        bits = 0
        for lane in np.flatnonzero(self.words(mask)):
            bits |= 1 << int(lane)
        return const_bits(whole, bits)

    # -- memory
    def offset_pointer(self, base: Value, step: Value) -> Value:
        if base._bits is not None and step._bits is not None and not step.type.lanes:
            sign = 1 << (step.type.bits - 1)
            number = base._bits + (step._bits ^ sign) - sign
            return const_bits(base.type, number & ((1 << 64) - 1))
        a, b = self.words(base), self.words(step)
        result = a + b.view(SIGNED[b.dtype]).astype(np.int64).view(np.uint64)
        return self.value(_with_lanes(ptr, max(base.type.lanes, step.type.lanes)), result)

    def load(self, type_: Type, place: Value) -> Value:
        data = ctypes.string_at(place._bits or 0, type_.size)
        if type_.lanes:
            return Lanes(type_, "", np.frombuffer(data, WORDS[type_.bits]))
        return const_bits(type_, int.from_bytes(data, "little") & ((1 << type_.bits) - 1))

    def store(self, place: Value, value: Value) -> None:
        if self.trace.block is not None:
            data = self.words(value).tobytes()
            ctypes.memmove(place._bits or 0, data, len(data))

    def atomic_add(self, place: Value, value: Value) -> Value:
        before = self.load(value.type, place)
        self.store(place, before + value)
        return before

    def gather(self, type_: Type, base: Value, offsets: Value | None, mask: Value, default: Value) -> Value:
        """Lane by lane; without offsets the lanes lie one after the other."""
        words = self.words(default).copy()
        size = type_.bits // 8
        for lane, place in self._places(base, offsets, mask, size):
            words[lane] = int.from_bytes(ctypes.string_at(place, size), "little")
        return Lanes(type_, "", words)

    def scatter(self, base: Value, offsets: Value | None, value: Value, mask: Value) -> None:
        if self.trace.block is None:
            return
        words = self.words(value)
        size = value.type.bits // 8
        for lane, place in self._places(base, offsets, mask, size):
            ctypes.memmove(place, words[lane].tobytes(), size)

    def _places(self, base: Value, offsets: Value | None, mask: Value, size: int) -> list[tuple[int, int]]:
        lanes = np.flatnonzero(self.words(mask))
        start = base._bits or 0
        if offsets is None:
            return [(int(n), start + int(n) * size) for n in lanes]
        steps = self.words(offsets)
        steps = steps.view(SIGNED[steps.dtype])
        return [(int(n), (start + int(steps[n])) & ((1 << 64) - 1)) for n in lanes]

    def alloca(self, size: int, align: int) -> Value:
        block = ctypes.create_string_buffer(size + align)
        self._blocks.append(block)
        return const_bits(ptr, -(-ctypes.addressof(block) // align) * align)

    def table(self, type_: Type, numbers: Sequence[float]) -> Value:
        words = self.words(const(_with_lanes(type_, len(numbers)), list(numbers)))
        data = words.tobytes()
        known = self._tables.get(data)
        if known is None:
            known = self._tables[data] = Eager.alloca(self, len(data), 64)
            ctypes.memmove(known._bits or 0, data, len(data))
        return known

    # -- functions
    def address_of(self, function: Function[Any]) -> Value:
        """The number that stands for a kernel in this run."""
        made = EagerFunction(function.name, function, CALLER_MODE, self._imports)
        self._functions[made.address] = made
        return const_bits(ptr, made.address)

    def imported(self, name: str) -> Value:
        return const_bits(ptr, self._imports[name].address)

    def call_pointer(
        self,
        target: Value,
        returns: Type | None,
        types: Sequence[Type],
        args: Sequence[Operand],
        float_mode: str,
    ) -> Value | None:
        """Calls a kernel of this run, or a C function."""
        address = target._bits or 0
        known = _by_address.get(address)
        if known is not None and known.float_mode == CALLER_MODE:
            found: Value | None = known.function(*args)
            return found
        values = [coerce(a, t).constant for a, t in zip(args, types, strict=True)]
        function: Any = known
        if function is None:
            kinds = [CTYPES[t] for t in types]
            function = ctypes.CFUNCTYPE(CTYPES[returns] if returns else None, *kinds)(address)
        result = function(*values)
        return None if returns is None else const(returns, result)

    def with_flags(self, called: Callable[[], Any]) -> tuple[Any, Value]:
        """Return the result of `called`, and which float exceptions it raised."""
        floats = self.floats
        floats.overflow = floats.invalid = False
        result = called()
        raised = (FP_OVERFLOW if floats.overflow else 0) | (FP_INVALID if floats.invalid else 0)
        return result, const(i32, raised)


@contextmanager
def running(eager: Eager | None = None) -> Iterator[Eager]:
    """Staged code that is called here is carried out at once."""
    eager = eager or Eager("default", {})
    with entered(eager.trace):
        yield eager


def _with_lanes(type_: Type, lanes: int) -> Type:
    return vec(type_.elem, lanes) if lanes else type_.elem


def _result_of_comparison(type_: Type) -> Type:
    return _with_lanes(i1, type_.lanes)


_COMPARE: dict[str, Callable[..., Any]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip

_INTEGER: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor, "shl": np.left_shift, "lshr": np.right_shift,
}  # fmt: skip


def _bitcast(words: Any, mine: Type, to: Type) -> Any:
    if mine.bits == 1 or to.bits == 1:
        size, target = max(mine.lanes, 1), max(to.lanes, 1)
        bits = words if mine.bits == 1 else np.unpackbits(words.view(np.uint8), bitorder="little")
        if to.bits == 1:
            return bits[:target].astype(bool)
        whole = np.zeros(to.size, np.uint8)
        packed = np.packbits(bits[:size], bitorder="little")
        whole[: len(packed)] = packed
        return whole.view(WORDS[to.bits])
    return np.ascontiguousarray(words).view(WORDS[to.bits])


def _whole(numbers: Any, bits: int) -> Any:
    """Floats without their fraction; what does not fit is undefined, here 0."""
    limit = 2.0 ** (bits - 1)
    inside = (numbers < limit) & (numbers >= -limit)
    signed = np.dtype(f"i{bits // 8}")
    return np.where(inside, numbers, 0).astype(np.int64).astype(signed).view(WORDS[bits])


def _count_leading(words: Any) -> Any:
    bits = words.dtype.itemsize * 8
    return np.array([bits - int(w).bit_length() for w in words], words.dtype)


def _saturating_add(a: Any, b: Any) -> Any:
    total = a + b
    return np.where(total < a, ~np.zeros_like(a), total)


def _compress(words: Any, mask: Any, rest: Any) -> Any:
    made = np.zeros_like(words)
    kept = words[mask]
    made[: len(kept)] = kept
    return made


_INTRINSICS: dict[str, Callable[..., Any]] = {
    "smin": np.minimum,
    "smax": np.maximum,
    "umin": np.minimum,
    "umax": np.maximum,
    "uadd.sat": _saturating_add,
    "usub.sat": lambda a, b: np.where(a > b, a - b, np.zeros_like(a)),
    "abs": np.abs,
    "ctlz": _count_leading,
    "ctpop": lambda a: np.array([int(w).bit_count() for w in a], a.dtype),
    "bswap": lambda a: a.byteswap(),
    "experimental.vector.compress": _compress,
    "vector.reduce.add": lambda a: a.sum(dtype=a.dtype, keepdims=True),
    "vector.reduce.smin": lambda a: a.min(keepdims=True),
    "vector.reduce.smax": lambda a: a.max(keepdims=True),
    "vector.reduce.umax": lambda a: a.max(keepdims=True),
    "vector.reduce.or": lambda a: np.bitwise_or.reduce(a, keepdims=True),
}
_SIGNED_LANES = {"smin", "smax", "abs", "vector.reduce.smin", "vector.reduce.smax"}
