"""Floats of eager runs: the processor's own rounding toward zero; denormals by comparison."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

BINARY: dict[str, Callable[..., Any]] = {
    "fadd": np.add, "fsub": np.subtract, "fmul": np.multiply, "fdiv": np.divide,
}  # fmt: skip
UNARY: dict[str, Callable[..., Any]] = {
    "sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil, "roundeven": np.rint,
}  # fmt: skip

_TOWARD_ZERO = {"x86_64": 0xC00, "aarch64": 0xC00000, "arm64": 0xC00000}
"""C's FE_TOWARDZERO."""
_SMALLEST = {np.dtype("f4"): np.float32(2.0**-126), np.dtype("f8"): np.float64(2.0**-1022)}


@cache
def _libm() -> Any:
    libm = ctypes.CDLL(None)
    libm.fmaf.argtypes, libm.fmaf.restype = [ctypes.c_float] * 3, ctypes.c_float
    libm.fma.argtypes, libm.fma.restype = [ctypes.c_double] * 3, ctypes.c_double
    return libm


class Floats:
    """Arithmetic in one of the two float modes.

    Attributes
    ----------
    overflow, invalid
        What has happened since they were last cleared.
    """

    def __init__(self, toward_zero: bool) -> None:
        self.toward_zero = toward_zero
        self.overflow = self.invalid = False
        self._mode = _TOWARD_ZERO.get(platform.machine()) if toward_zero else 0
        if self._mode is None:
            raise RuntimeError(f"eager runs know no rounding toward zero on {platform.machine()}")

    def operand(self, numbers: Any) -> Any:
        """Denormals count as zero in the qpu mode."""
        if not self.toward_zero:
            return numbers
        return np.where(np.abs(numbers) < _SMALLEST[numbers.dtype], np.copysign(0, numbers), numbers)

    result = operand

    def compute(self, function: Callable[..., Any], *numbers: Any) -> Any:
        """A numpy function in the float mode. Its arrays are made outside of it: Python's own
        numbers are not to be computed toward zero.
        """
        with np.errstate(all="ignore", over="call", invalid="call", call=self._raised):
            if not self._mode:
                return function(*numbers)
            libm = _libm()
            before = libm.fegetround()
            libm.fesetround(self._mode)
            try:
                return function(*numbers)
            finally:
                libm.fesetround(before)

    def _raised(self, text: str, flags: int) -> None:
        self.overflow |= bool(flags & 2)
        self.invalid |= bool(flags & 8)

    def convert(self, numbers: Any, dtype: Any) -> Any:
        """Numbers as floats of another kind."""
        return self.compute(lambda x: x.astype(dtype), numbers)

    def fused(self, a: Any, b: Any, c: Any) -> Any:
        """`a * b + c` with one rounding."""
        function = _libm().fmaf if a.dtype == np.float32 else _libm().fma

        def lanes(*numbers: Any) -> Any:
            return np.array([function(*map(float, three)) for three in zip(*numbers, strict=True)], a.dtype)

        return self.compute(lanes, a, b, c)
