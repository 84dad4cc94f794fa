"""Register addresses beyond the register file, as calls on the environment.

Source: hardware reference 4.11.
"""

from __future__ import annotations

from collections.abc import Callable

from vc4lab.qpu.isa.ops import Mask, Ops, Word
from vc4lab.qpu.isa.qpu_unknowns import Settings
from vc4lab.qpu.isa.registers import TMU_WRITES, Read, Write
from vc4lab.qpu.run.environment import Environment

_READS: dict[tuple[str, int], str] = {
    ("a", Read.ELEMENT_OR_QPU_NUMBER): "element_number",
    ("b", Read.ELEMENT_OR_QPU_NUMBER): "qpu_number",
    ("a", Read.PIXEL_COORD): "x_coord",
    ("b", Read.PIXEL_COORD): "y_coord",
    ("a", Read.FLAGS): "ms_flags",
    ("b", Read.FLAGS): "rev_flag",
}

PURE_READS: frozenset[int] = frozenset(range(32, 64)) - {
    Read.UNIFORM,
    Read.VARYING,
    Read.NOP,
    Read.VPM,
    Read.VPM_WAIT,
    Read.MUTEX_ACQUIRE,
}
"""Read addresses without a side effect: asked for only when an operand needs them."""

SOURCES: dict[tuple[str, int], str] = {
    **_READS,
    **{(file, Read.UNIFORM): "uniform" for file in "ab"},
    **{(file, Read.VPM): "vpm" for file in "ab"},
}
"""Names of where a read's word comes from, for `Environment.nan_free`."""


MUTEX_WORD = 0xFC2FF000
"""The word that VC4C's author read from MUTEX_ACQUIRE."""


def _unmapped(env: Environment, ops: Ops, settings: Settings, file: str) -> Word:
    """Reads that no unit answers."""
    if settings["unmapped_read"] == "zero":
        return ops.const(0)
    return ops.const(list(range(16))) if file == "a" else env.qpu_number()


def read_peripheral(env: Environment, ops: Ops, settings: Settings, file: str, address: int) -> Word:
    """The value of a read of address 32..63, except varyings and NOP; does what the read does."""
    if address == Read.UNIFORM:
        return env.uniform()
    if address == Read.VPM:
        return env.vpm_read()
    if address == Read.MUTEX_ACQUIRE:
        word = env.mutex_acquire()
        return ops.const(MUTEX_WORD) if settings["mutex_read"] == "constant" else word
    side = "read" if file == "a" else "write"
    if address == Read.VPM_BUSY and settings["dma_busy_read"] == "status":
        return env.dma_busy(side)
    if address == Read.VPM_WAIT:
        env.dma_wait(side)
        return _unmapped(env, ops, settings, file)
    if (file, address) in _READS:
        method: Callable[[], Word] = getattr(env, _READS[file, address])
        return method()
    return _unmapped(env, ops, settings, file)


def write_peripheral(
    env: Environment, settings: Settings, file: str, address: int, value: Word, mask: Mask, site: int
) -> None:
    """A write of address 36..63, accumulators and SFU excepted."""
    if address in TMU_WRITES:
        unit, register = TMU_WRITES[address]
        env.tmu_write(unit, register, value, mask, site)
    elif address == Write.TLB_COLOUR_ALL or address == Write.TLB_COLOUR_MS:
        env.tlb_colour(value, mask, address == Write.TLB_COLOUR_ALL)
    elif address == Write.TLB_Z:
        env.tlb_z(value, mask)
    elif address == Write.TLB_STENCIL_SETUP:
        env.tlb_stencil(value)
    elif address == Write.TLB_ALPHA_MASK:
        env.tlb_alpha_mask(value, mask)
    elif address == Write.VPM:
        env.vpm_write(value, mask)
    elif address == Write.VPM_SETUP:
        env.vpm_setup("read" if file == "a" else "write", value)
    elif address == Write.VPM_DMA_ADDRESS:
        env.dma_start("read" if file == "a" else "write", value)
    elif address == Write.FLAGS:
        (env.set_ms_flags if file == "a" else env.set_rev_flag)(value, mask)
    elif address == Write.QUAD:
        env.set_quad("x" if file == "a" else "y", value, mask)
    elif address == Write.UNIFORMS_ADDRESS:
        relative = file == "b" and settings["uniforms_address_b"] == "relative"
        env.uniforms_address(value, relative, mask)
    elif address == Write.TMU_NOSWAP:
        env.tmu_noswap(value)
    elif address == Write.HOST_INT:
        env.host_interrupt(value, mask)
    elif address == Write.MUTEX_RELEASE:
        env.mutex_release()
