"""The VPM, its DMA, mutex and semaphores as kernels use them by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from vc4lab.kernels.python.memory import WORD, WORDS, Pointer
from vc4lab.kernels.python.trace import LOAD_WAIT, MUTEX, STORE_WAIT, VPM, current
from vc4lab.kernels.python.values import Float, Int, Vector
from vc4lab.qpu.isa.registers import Write
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
from vc4lab.qpu.machine.code import Op

V = TypeVar("V", bound=Vector)
Place = int | Int
__all__ = [
    "dma_load", "dma_store", "mutex", "read_vpm", "semaphore_signal", "semaphore_wait",
    "setup_vpm_read", "setup_vpm_write", "write_vpm",
]  # fmt: skip


def _setup(word: int, place: Place, file: str) -> None:
    trace = current()
    if isinstance(place, int):
        given = Int.of(trace.uniform(str(word + place)))
    else:
        given = place + Int.of(trace.uniform(str(word)))
    trace.write(Write.VPM_SETUP, given.operand, "vpm", file=file)


def _row(row: Place, vertical: bool) -> Place:
    """The address of a row, or of a column: 16 * (its first row // 16) + x."""
    if isinstance(row, int) and not 0 <= row < 64:
        current().fail(f"VPM {'column' if vertical else 'row'} {row}: there are 64")
    return row


def setup_vpm_write(row: Place, vertical: bool = False, stride: int = 1) -> None:
    """`write_vpm` begins at a row (0 to 63), or at a column of 16 words: 16 * block + column."""
    word = GenericSetup.make(size=WORDS, horizontal=not vertical, stride=stride).value
    _setup(word, _row(row, vertical), "b")


def setup_vpm_read(row: Place, count: int, vertical: bool = False, stride: int = 1) -> None:
    """`read_vpm` begins at a row or column, and is called `count` (1 to 16) times."""
    if not 1 <= count <= 16:
        current().fail(f"setup_vpm_read of {count} vectors: 1 to 16")
    word = GenericSetup.make(size=WORDS, horizontal=not vertical, stride=stride, number=count & 15).value
    _setup(word, _row(row, vertical), "a")


def write_vpm(value: Any) -> None:
    """The next row or column of the VPM gets a value."""
    given = value if isinstance(value, Vector) else Float(value) if isinstance(value, float) else Int(value)
    current().write(Write.VPM, given.operand, "vpm")


def read_vpm(type: type[V]) -> V:
    """The next row or column of the VPM."""
    found = current().read(VPM, "vpm")
    assert found is not None
    return type.of(found)


def dma_load(pointer: Pointer[Any], row: Place, rows: int = 1, pitch: Place = 16, length: int = 16) -> None:
    """Rows of memory into rows of the VPM; waits until they are there.

    pitch: values from the start of a row in memory to that of the next; length: values of a row.
    """
    trace = current()
    if not (1 <= rows <= 16 and 1 <= length <= 16) or (isinstance(pitch, int) and not 0 < pitch <= 1 << 11):
        trace.fail("dma_load: 1 to 16 rows of 1 to 16 values, pitch at most 2048")
    _setup(LoadStride.make(kind=LOAD_STRIDE_KIND).value, pitch * WORD, "a")
    made = LoadSetup.make(is_load=1, row_length=length & 15, rows=rows & 15, vpm_pitch=1).value
    _setup(made, row * 16, "a")
    trace.write(Write.VPM_DMA_ADDRESS, pointer.operand, "vpm", file="a")
    trace.wait(LOAD_WAIT, "vpm")


def dma_store(pointer: Pointer[Any], row: Place, rows: int = 1, pitch: Place = 16, length: int = 16) -> None:
    """Rows of the VPM into rows of memory; waits until they are there."""
    trace = current()
    if trace.lanes:
        trace.fail("a store inside an `if` on lanes: all lanes are stored")
    if not (1 <= rows <= 64 and 1 <= length <= 16) or (
        isinstance(pitch, int) and not length <= pitch < 1 << 13
    ):
        trace.fail("dma_store: 1 to 64 rows of 1 to 16 values, pitch from that to 8191")
    made = StoreSetup.make(kind=STORE_KIND, units=rows, depth=length, horizontal=1).value
    _setup(made, row * 128, "b")
    _setup(StoreStride.make(kind=STORE_STRIDE_KIND).value, (pitch - length) * WORD, "b")
    begins = trace.write(Write.VPM_DMA_ADDRESS, pointer.operand, "vpm", file="b")
    trace.stores(pointer.array, begins, trace.wait(STORE_WAIT, "vpm"))


@contextmanager
def mutex() -> Iterator[None]:
    """`with mutex():` one QPU at a time; VPM and DMA accesses stay inside."""
    trace = current()
    trace.wait(MUTEX, "vpm")
    yield
    trace.write(Write.MUTEX_RELEASE, Int(0).operand, "vpm")


def semaphore_wait(number: int) -> None:
    """Wait until a semaphore (0 to 15) is above 0, and count it down."""
    _semaphore(number, ~0)


def semaphore_signal(number: int) -> None:
    """Count a semaphore up; waits while it is 15."""
    _semaphore(number, 0)


def _semaphore(number: int, invert: int) -> None:
    trace = current()
    if not isinstance(number, int) or not 0 <= number < 16:
        trace.fail("a semaphore is a number from 0 to 15")
    trace.begin_block(trace.loops)
    op = Op("semaphore", line=trace.line())
    op.semaphore = number if invert else ~number
    op.stays = True
    trace.code.add(op, None)
    trace.begin_block(trace.loops)
