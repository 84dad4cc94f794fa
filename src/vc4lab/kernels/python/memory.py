"""Arrays and pointers of a kernel: loads through the texture unit, stores through the VPM."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, Self, TypeVar

from vc4lab.kernels.python.trace import STORE_WAIT, Trace, current
from vc4lab.kernels.python.values import Float, Int, Vector
from vc4lab.qpu.isa.operations import Signal
from vc4lab.qpu.isa.registers import Write
from vc4lab.qpu.isa.vpm_setup import STORE_KIND, STORE_STRIDE_KIND, GenericSetup, StoreSetup, StoreStride
from vc4lab.qpu.machine.code import Op, Operand, Request, Wants

V = TypeVar("V", bound=Vector)
WORD = 4
ROWS = 4
"""Rows of the VPM that each QPU has for its stores."""
WORDS = 2
"""The code of 32 bits in VPM setups."""


class Pointer(Vector, Generic[V]):
    """16 addresses of 32-bit values of one type. `p + n` is n values further, `p[i]` what is there.

    Stores write 16 values in a row, from the address of lane 0 on.
    """

    kind = "pointer"
    item: type[V]

    def __init__(self, address: Int, item: type[V], array: str = "") -> None:
        self.operand, self.item, self.array = address.operand, item, array

    def like(self, operand: Operand) -> Self:
        made = self.__class__.__new__(self.__class__)
        made.operand, made.item, made.array = operand, self.item, self.array
        return made

    def is_like(self, other: Any) -> bool:
        return isinstance(other, Pointer) and (other.item, other.array) == (self.item, self.array)

    @property
    def address(self) -> Int:
        """The addresses themselves."""
        return Int.of(self.operand)

    def _at(self, index: Any) -> Int:
        if (not isinstance(index, Int) and not hasattr(index, "__index__")) or isinstance(index, Float):
            current().fail(f"the place in an array is an Int, not {type(index).__name__}")
        found: Int = self.address + index * WORD
        return found

    def __add__(self, index: Any) -> Pointer[V]:
        return Pointer(self._at(index), self.item, self.array)

    __radd__ = __add__

    def __sub__(self, index: Any) -> Pointer[V]:
        return Pointer(self.address - index * WORD, self.item, self.array)

    def __getitem__(self, index: Any) -> V:
        return self.item.of(look_up(self._at(index).operand, self.array))

    def __setitem__(self, index: Any, value: Any) -> None:
        store_rows([value], self + index)


class Array(Pointer[V]):
    """An array that comes in: `x[i]` are 16 values at the places i. `Array[Float]` is its annotation."""

    direction: ClassVar[str] = "in"

    @classmethod
    def argument(cls, name: str, type: type[V], trace: Trace) -> Array[V]:
        """The array of an argument."""
        return cls(Int.of(trace.uniform(name)), type, name)

    @property
    def length(self) -> Int:
        """Its length, or that of its first dimension, in all lanes."""
        return Int.of(current().uniform(f"len({self.array})"))


class InOut(Array[V]):
    """An array that comes in and whose new values come out."""

    direction = "inout"


class Out(Array[V]):
    """An array that comes out."""

    direction = "out"


def look_up(address: Operand, array: str) -> Operand:
    """A word of memory for each lane, through texture unit 0."""
    trace = current()
    request = Request()
    write = trace.op("mov", address)
    write.target, write.peripheral, write.request = int(Write.TMU0_S), True, request
    request.writes.append(write)
    trace.code.add(write, None)
    load = Op("load", line=trace.code.line)
    load.signal, load.request, load.peripheral, load.stays = Signal.LOAD_TMU0, request, True, True
    request.load = load
    trace.loads(array, write, load)
    found = trace.code.add(load, Wants.R4)
    assert found is not None
    return found


def gather(pointer: Pointer[Any]) -> None:
    """Ask for what is at 16 addresses; `receive` gets it, in the order of the requests.

    At most four requests may be on their way.
    """
    trace = current()
    if not isinstance(pointer, Pointer):
        trace.fail(f"gather() takes a pointer, not {type(pointer).__name__}")
    trace.outstanding += 1
    if trace.outstanding > 4:
        trace.fail("more than four requests of gather() are on their way: receive() one of them first")
    trace.gathered_in = trace.line()
    trace.loads(pointer.array, trace.write(Write.TMU1_S, pointer.operand, "tmu1"))


def receive(type: type[V]) -> V:
    """Return the words that the oldest `gather` asked for, as values of a type."""
    trace = current()
    if not trace.outstanding:
        trace.fail("receive() without a gather() before")
    trace.outstanding -= 1
    return type.of(trace.signal(Signal.LOAD_TMU1, Wants.R4, "tmu1"))


def store(value: Vector, pointer: Pointer[Any]) -> None:
    """Write 16 values in a row, from the address of lane 0 on."""
    store_rows([value], pointer)


def store_rows(values: list[Any], pointer: Pointer[Any], pitch: int = 16) -> None:
    """Write rows of 16 values. pitch: values from the start of a row to that of the next.

    Four rows go at a time; the kernel waits until they are in memory.
    """
    trace = current()
    if trace.lanes:
        trace.fail("a store inside an `if` on lanes: all lanes are stored; use any_(), or select() before")
    if not 1 <= pitch <= 1 << 13:
        trace.fail(f"pitch {pitch}: not from 1 to 8192")
    for first in range(0, len(values), ROWS):
        _store(trace, values[first : first + ROWS], pointer + first * pitch, pitch)


def _store(trace: Trace, values: list[Any], pointer: Pointer[Any], pitch: int) -> None:
    rows = GenericSetup.make(size=WORDS, horizontal=1, stride=1).value
    trace.write(Write.VPM_SETUP, trace.uniform(f"{rows} + {ROWS}*qpu"), "vpm", file="b")
    for value in values:
        given = pointer.item.of(pointer.item._from(value)) if not isinstance(value, Vector) else value
        if not isinstance(given, pointer.item) and {given.kind, pointer.item.kind} != {"int", "uint"}:
            trace.fail(f"a {type(given).__name__} is stored in an array of {pointer.item.__name__}")
        trace.write(Write.VPM, given.operand, "vpm")
    block = StoreSetup.make(kind=STORE_KIND, units=len(values), depth=16, horizontal=1).value
    y = StoreSetup.make(y=ROWS).value
    trace.write(Write.VPM_SETUP, trace.uniform(f"{block} + {y}*qpu"), "vpm", file="b")
    if len(values) > 1:
        stride = StoreStride.make(kind=STORE_STRIDE_KIND, stride=WORD * (pitch - 16) & 0xFFFF).value
        trace.write(Write.VPM_SETUP, trace.uniform(str(stride)), "vpm", file="b")
    begins = trace.write(Write.VPM_DMA_ADDRESS, pointer.operand, "vpm", file="b")
    trace.stores(pointer.array, begins, trace.wait(STORE_WAIT, "vpm"))
