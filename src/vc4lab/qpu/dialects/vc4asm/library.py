"""Gives sources the names of `vc4.qinc`: setup words of VPM and DMA, predicates, bits, constants.

The functions are built from the layouts of the setup registers (`isa/vpm_setup.py`); names and
parameters are those of vc4asm's page about the file, which sources include or load with `-i`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from vc4lab.qpu.dialects.vc4asm.values import Access, Label, Lanes, Register, Trouble, Value, compare
from vc4lab.qpu.isa.operations import SMALL_IMMEDIATES
from vc4lab.qpu.isa.vpm_setup import (
    LOAD_STRIDE_KIND,
    STORE_KIND,
    STORE_STRIDE_KIND,
    GenericSetup,
    LoadSetup,
    LoadStride,
    StoreSetup,
    StoreStride,
)


@dataclass(frozen=True)
class Parameter:
    """A number from `low` to `high`, a multiple of `step`."""

    name: str
    low: int
    high: int
    step: int = 1

    def checked(self, value: Value) -> int:
        if not isinstance(value, int):
            raise Trouble(f"{self.name} has to be an integer")
        if not self.low <= value <= self.high or value % self.step:
            multiple = f", a multiple of {self.step}" if self.step > 1 else ""
            raise Trouble(f"{self.name} = {value} is not in {self.low}..{self.high}{multiple}")
        return value


@dataclass(frozen=True)
class Helper:
    """A function of the library. parameters: numbers with ranges, or how many values of any
    kind.
    """

    parameters: tuple[Parameter, ...] | int
    compute: Callable[..., Value]

    @property
    def count(self) -> int:
        return self.parameters if isinstance(self.parameters, int) else len(self.parameters)

    def __call__(self, arguments: list[Value]) -> Value:
        if isinstance(self.parameters, int):
            return self.compute(*arguments)
        pairs = zip(self.parameters, arguments, strict=True)
        return self.compute(*(parameter.checked(value) for parameter, value in pairs))


_Y = Parameter("y", 0, 63)
_ROW16 = Parameter("y", 0, 48, 16)
_DMA_Y = Parameter("y", 0, 127)
_X = Parameter("x", 0, 15)
_HALF = Parameter("h", 0, 1)
_BYTE = Parameter("b", 0, 3)
_PITCH = Parameter("vpitch", 0, 16)


def _word(layout: Any, **fields: int) -> int:
    value: int = layout.make(**fields).value
    return value


def _generic(size: int, laned: int, horizontal: int) -> Callable[..., int]:
    parts = (4, 2, 1)[size]

    def setup(y: int, *rest: int) -> int:
        x, part = (0, *rest) if horizontal else rest if len(rest) == 2 else (*rest, 0)
        address = (y | x) * parts + (part if parts > 1 else 0)
        fields = {"address": address, "size": size, "laned": laned, "horizontal": horizontal}
        return _word(GenericSetup, **fields)

    if horizontal:
        return (lambda y: setup(y, 0)) if parts == 1 else setup
    return setup


def _store(mode: int, horizontal: int) -> Callable[..., int]:
    def setup(y: int, x: int, part: int = 0) -> int:
        return _word(StoreSetup, horizontal=horizontal, y=y, x=x, mode=mode | part)

    return setup


def _vpm_setup(num: int, stride: int, dma: int) -> int:
    return _word(GenericSetup, number=num & 15, stride=stride & 63) | dma


def _vdw_setup_0(units: int, depth: int, dma: int) -> int:
    return _word(StoreSetup, kind=STORE_KIND, units=units & 127, depth=depth & 127) | dma


def _vdr_setup_0(pitch: int, row_length: int, rows: int, dma: int) -> int:
    if dma >> 28 == 1 or dma & ~0x7000FFFF:
        raise Trouble(f"dma = 0x{dma:x} is no mode of vdr_h32() or vdr_v32()")
    fields = {"memory_pitch": pitch, "row_length": row_length & 15, "rows": rows & 15}
    return _word(LoadSetup, is_load=1, **fields) | dma


def _vdr(vertical: int) -> Callable[..., int]:
    def setup(pitch: int, y: int, x: int) -> int:
        return _word(LoadSetup, vpm_pitch=pitch & 15, vertical=vertical, y=y, x=x)

    return setup


def _setups() -> dict[str, Helper]:
    found: dict[str, Helper] = {
        "vpm_setup": Helper(
            (Parameter("num", 0, 16), Parameter("stride", -64, 64), Parameter("dma", 0, 0xFFF)),
            _vpm_setup,
        ),
        "vdw_setup_0": Helper(
            (Parameter("units", 0, 128), Parameter("depth", 0, 128), Parameter("dma", 0, 0x7FFF)),
            _vdw_setup_0,
        ),
        "vdr_setup_0": Helper(
            (
                Parameter("mpitch", 0, 15), Parameter("rowlen", 0, 16), Parameter("nrows", 0, 16),
                Parameter("dma", 0, 0x7FFFFFFF),
            ),
            _vdr_setup_0,
        ),
        "vdw_setup_1": Helper(
            (Parameter("stride", 0, 0xFFFF),),
            lambda stride: _word(StoreStride, kind=STORE_STRIDE_KIND, stride=stride),
        ),
        "vdw_setup_1p": Helper(
            (Parameter("stride", 0, 0xFFFF),),
            lambda stride: _word(StoreStride, kind=STORE_STRIDE_KIND, block_mode=1, stride=stride),
        ),
        "vdr_setup_1": Helper(
            (Parameter("stride", 0, 0x1FFF),),
            lambda stride: _word(LoadStride, kind=LOAD_STRIDE_KIND, pitch=stride),
        ),
        "vdr_h32": Helper((_PITCH, _Y, _X), _vdr(0)),
        "vdr_v32": Helper((_PITCH, _Y, _X), _vdr(1)),
        "h32": Helper((_Y,), _generic(2, 0, 1)),
        "v32": Helper((_ROW16, _X), _generic(2, 0, 0)),
        "dma_h32": Helper((_DMA_Y, _X), _store(0, 1)),
        "dma_v32": Helper((_DMA_Y, _X), _store(0, 0)),
    }  # fmt: skip
    for size, bits, part in ((1, 16, _HALF), (0, 8, _BYTE)):
        for laned, letter in enumerate("pl"):
            found[f"h{bits}{letter}"] = Helper((_Y, part), _generic(size, laned, 1))
            found[f"v{bits}{letter}"] = Helper((_ROW16, _X, part), _generic(size, laned, 0))
        mode = 2 if size else 4
        found[f"dma_h{bits}p"] = Helper((_DMA_Y, _X, part), _store(mode, 1))
        found[f"dma_v{bits}p"] = Helper((_DMA_Y, _X, part), _store(mode, 0))
    return found


# Predicates -------------------------------------------------------------------------------------


def _is_register(value: Value) -> bool:
    return isinstance(value, Register) and not value.is_semaphore


def _has(value: Value, access: Access) -> bool:
    return _is_register(value) and value.access & access == access  # type: ignore[union-attr]


def _is_accumulator(value: Value) -> bool:
    """r0 to r5, which have no read address."""
    if not isinstance(value, Register) or value.is_semaphore:
        return False
    return 32 <= value.number <= 37 and not value.access & Access.READ


def _is_small(value: Value) -> bool:
    return isinstance(value, int) and value & 0xFFFFFFFF in SMALL_IMMEDIATES[:48]


_PREDICATES: Final[dict[str, Callable[[Value], bool]]] = {
    "isConstant": lambda x: isinstance(x, int | float),
    "isLdPE": lambda x: isinstance(x, Lanes),
    "isLdPES": lambda x: isinstance(x, Lanes) and x.sign <= 0,
    "isLdPEU": lambda x: isinstance(x, Lanes) and x.sign >= 0,
    "isRegister": _is_register,
    "isRegfileA": lambda x: _has(x, Access.A),
    "isRegfileB": lambda x: _has(x, Access.B),
    "isAccu": _is_accumulator,
    "isReadable": lambda x: _has(x, Access.READ) or _is_accumulator(x),
    "isWritable": lambda x: _has(x, Access.WRITE),
    "isRotate": lambda x: isinstance(x, Register) and x.rotate != 0,
    "isSemaphore": lambda x: isinstance(x, Register) and x.is_semaphore,
    "isLabel": lambda x: isinstance(x, Label),
    "isSmallImmd": _is_small,
}


# Numbers ----------------------------------------------------------------------------------------


def _unsigned(value: Value) -> int:
    if not isinstance(value, int):
        raise Trouble("an integer is expected")
    return value & 0xFFFFFFFFFFFFFFFF


def _reversed(value: Value, bits: Value) -> int:
    width = _unsigned(bits)
    if not 1 <= width <= 64:
        raise Trouble(f"n = {width} is not in 1..64")
    text = f"{_unsigned(value) & (1 << width) - 1:0{width}b}"
    number = int(text[::-1], 2)
    return number - (1 << 64) if number >> 63 else number


def _semaphore(access: Access) -> Callable[[int], Register]:
    return lambda number: Register(number, access)


_NUMBER = (Parameter("i", 0, 15),)

HELPERS: Final[dict[str, Helper]] = {
    **_setups(),
    **{name: Helper(1, lambda x, test=test: int(test(x))) for name, test in _PREDICATES.items()},
    "sacq": Helper(_NUMBER, _semaphore(Access.ACQUIRE)),
    "srel": Helper(_NUMBER, _semaphore(Access.RELEASE)),
    "min": Helper(2, lambda x, y: x if compare(x, y) == -1 else y),
    "max": Helper(2, lambda x, y: x if compare(x, y) == 1 else y),
    "ilog2": Helper(1, lambda x: _unsigned(x).bit_length() - 1),
    "countBits": Helper(1, lambda x: _unsigned(x).bit_count()),
    "reverseBits": Helper(2, _reversed),
    **{f"reverseBits{n}": Helper(1, lambda x, n=n: _reversed(x, n)) for n in (4, 8, 16, 32, 64)},
}
"""Function name -> what it computes."""

CONSTANTS: Final[dict[str, float]] = {
    "M_E": math.e,
    "M_LOG2E": math.log2(math.e),
    "M_LOG10E": math.log10(math.e),
    "M_LN2": math.log(2),
    "M_LN10": math.log(10),
    "M_PI": math.pi,
    "M_2PI": 2 * math.pi,
    "M_PI_2": math.pi / 2,
    "M_PI_4": math.pi / 4,
    "M_1_PI": 1 / math.pi,
    "M_2_PI": 2 / math.pi,
    "M_2_SQRTPI": 2 / math.sqrt(math.pi),
    "M_SQRT2": math.sqrt(2),
    "M_SQRT1_2": math.sqrt(0.5),
    "M_NAN": math.nan,
    "M_INF": math.inf,
}
