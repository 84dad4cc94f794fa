"""Every call of native code, made a second time as an eager run whose writes go to a shadow.

In a process that has called `watch` before anything was built, each entry point that Python calls
is first run eagerly: what it writes is kept beside memory, where only it sees it. Then native code
runs, and memory must have become what the shadow has. Calls that leave kernels (for Python, or
for compiled QPU programs with blocks of their own) or that take too long are not compared.
"""

import ctypes
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

from vc4lab.simd import eager, native
from vc4lab.simd.kernel import Function
from vc4lab.simd.trace import entered
from vc4lab.simd.types import Type
from vc4lab.simd.value import Lanes, Value, const, const_bits

COMPARED: Counter[str] = Counter()
"""How often each kernel was called and gave the same."""
LEFT: Counter[str] = Counter()
"""Why calls were not compared."""
DIFFERENT: list[str] = []
"""What was not the same."""


class Left(Exception):  # noqa: N818 - not an error: this call is not compared
    """The run comes to what cannot be done in a shadow."""


class Shadow(eager.Eager):
    """Reads and writes through `written`, which all runs of one call share."""

    written: ClassVar[dict[int, int]] = {}
    """Bytes by address."""
    own: ClassVar[list[tuple[int, int]]] = []
    """Memory of the runs themselves: what `alloca` gave."""
    left = 0
    """Accesses until a run takes too long."""
    reached: ClassVar[set[str]] = set()
    """Kernels that have been called."""

    def _bytes(self, place: int, size: int) -> bytes:
        Shadow.left -= 1
        if Shadow.left < 0:
            raise Left("takes too long")
        data = bytearray(ctypes.string_at(place, size))
        written = self.written
        for k in range(size):
            byte = written.get(place + k)
            if byte is not None:
                data[k] = byte
        return bytes(data)

    def _write(self, place: int, data: bytes) -> None:
        for k, byte in enumerate(data):
            self.written[place + k] = byte

    def load(self, type_: Type, place: Value) -> Value:
        data = self._bytes(place._bits or 0, type_.size)
        if type_.lanes:
            import numpy as np

            return Lanes(type_, "", np.frombuffer(data, eager.WORDS[type_.bits]))
        return const_bits(type_, int.from_bytes(data, "little") & ((1 << type_.bits) - 1))

    def store(self, place: Value, value: Value) -> None:
        if self.trace.block is not None:
            self._write(place._bits or 0, self.words(value).tobytes())

    def gather(self, type_: Type, base: Value, offsets: Value | None, mask: Value, default: Value) -> Value:
        words = self.words(default).copy()
        size = type_.bits // 8
        for lane, place in self._places(base, offsets, mask, size):
            words[lane] = int.from_bytes(self._bytes(place, size), "little")
        return Lanes(type_, "", words)

    def scatter(self, base: Value, offsets: Value | None, value: Value, mask: Value) -> None:
        if self.trace.block is not None:
            words, size = self.words(value), value.type.bits // 8
            for lane, place in self._places(base, offsets, mask, size):
                self._write(place, words[lane].tobytes())

    def alloca(self, size: int, align: int) -> Value:
        place = super().alloca(size, align)
        self.own.append((place.constant, size))
        return place

    def call_pointer(
        self, target: Value, returns: Type | None, types: Sequence[Type], args: Sequence[Any], float_mode: str
    ) -> Value | None:
        known = eager._by_address.get(target._bits or 0)
        if known is None:
            raise Left("calls what is no kernel")
        if known.float_mode == eager.CALLER_MODE:
            return known.function(*args)
        with entered(Shadow(known.float_mode, known.imports).trace):
            return known.function(*args)


_keep: list[Any] = []
_depth = [0]


def watch(accesses: int) -> None:
    """From now on, all that is built is compared. accesses: of a run that is not too long."""
    make = native.NativeModule.__init__
    original_call = Function.__call__

    def called(self: Function[Any], *args: Any) -> Any:
        Shadow.reached.add(self.name)
        return original_call(self, *args)

    Function.__call__ = called  # type: ignore[method-assign]

    def made(self: Any, name: str, image: bytes, functions: Any, imports: Any) -> None:
        make(self, name, image, functions, imports)
        mode = sys._getframe(1).f_locals.get("float_mode", "qpu")
        for entry, function in functions.items():
            of_it = self.functions[entry]
            twin = eager.EagerFunction(function.name, function, mode, imports)
            eager._by_address[of_it.address] = twin
            _keep.append(twin)
            of_it.call = _compared(of_it.call, f"{name}.{entry}", twin, accesses)

    native.NativeModule.__init__ = made  # type: ignore[method-assign]


def _compared(call: Any, name: str, twin: eager.EagerFunction, accesses: int) -> Any:
    function = twin.function

    def both(*args: Any) -> Any:
        if _depth[0]:  # Python that native code called
            return call(*args)
        Shadow.written, Shadow.own, Shadow.left, Shadow.reached = {}, [], accesses, set()
        _depth[0] = 1
        why, result = "", None
        try:
            with entered(Shadow(twin.float_mode, twin.imports).trace):
                values = [
                    const(t, a if isinstance(a, int) else (getattr(a, "value", a) or 0))
                    for a, t in zip(args, function.args, strict=True)
                ]
                result = function(*values)
        except Left as left:
            why = str(left)
        except TypeError as error:
            if "compiled code only" not in str(error):
                raise
            why = "has blocks of its own"
        finally:
            _depth[0] = 0
        native_result = call(*args)
        if why:
            LEFT[f"{name} {why}"] += 1
            return native_result
        places = _different()
        if result is not None and function.returns is not None:
            wanted = const(function.returns, native_result or 0)._bits
            if wanted != result._bits:
                DIFFERENT.append(f"{name}: returns {native_result}, eagerly {result.constant}")
        if places:
            DIFFERENT.append(f"{name}: writes something else to {len(places)} bytes: {places[:8]}")
        COMPARED.update(Shadow.reached)
        return native_result

    return both


def _different() -> list[tuple[str, int, int]]:
    """(address, byte of native code, byte of the eager run); NaNs are as good as others."""
    found = []
    own = sorted(Shadow.own)
    for place, byte in Shadow.written.items():
        if any(start <= place < start + size for start, size in own):
            continue
        now = ctypes.string_at(place, 1)[0]
        if now != byte:
            word = place & ~3
            expected = int.from_bytes(
                bytes(Shadow.written.get(word + k, ctypes.string_at(word + k, 1)[0]) for k in range(4)),
                "little",
            )
            native_word = int.from_bytes(ctypes.string_at(word, 4), "little")
            if not (_is_nan(expected) and _is_nan(native_word)):
                found.append((hex(place), now, byte))
    return found


def _is_nan(word: int) -> bool:
    return word & 0x7FFFFFFF > 0x7F800000
