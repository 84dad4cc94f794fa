"""VPM and DMA of kernels that are written instruction by instruction: set-ups, and waiting for transfers."""

from __future__ import annotations

from vc4lab.kernels.assembly.instructions import OPERATIONS, Instruction, ldi, mov, recorder, rotate
from vc4lab.kernels.assembly.registers import REGISTERS, Register
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

_SIZES = {"8bit": 0, "16bit": 1, "32bit": 2}


def _block(mode: str, **place: int) -> dict[str, int]:
    """The fields of a generic VPM setup."""
    size, *rest = mode.split()
    code = _SIZES.get(size)
    if code is None or rest[-1] not in ("horizontal", "vertical"):
        raise recorder().fail(
            f"VPM mode {mode!r}: 8bit, 16bit or 32bit, packed or laned, horizontal or vertical"
        )
    parts = 2 - code
    part = place.get("B", 0) if code == 0 else place.get("H", 0) if code == 1 else 0
    y = place.get("Y", 0)
    row = y if rest[-1] == "horizontal" else (y & 0x30) | place.get("X", 0)
    return {
        "size": code, "laned": int(rest[0] == "laned"), "horizontal": int(rest[-1] == "horizontal"),
        "address": row << parts | part,
    }  # fmt: skip


def setup_vpm_read(
    nrows: int, mode: str = "32bit horizontal", Y: int = 0, stride: int = 1, **place: int
) -> None:
    """Reads of the VPM begin at Y (and X)."""
    word = GenericSetup.make(number=nrows & 15, stride=stride, **_block(mode, Y=Y, **place)).value
    ldi(REGISTERS["vpmvcd_rd_setup"], word)


def setup_vpm_write(mode: str = "32bit horizontal", stride: int = 1, Y: int = 0, **place: int) -> None:
    """Writes of the VPM begin at Y (and X)."""
    ldi(REGISTERS["vpmvcd_wr_setup"], GenericSetup.make(stride=stride, **_block(mode, Y=Y, **place)).value)


def _width(mode: str, offset: int) -> int:
    return {"8bit": 4 | offset, "16bit": 2 | offset}.get(mode.split()[0], 0)


def setup_dma_load(
    nrows: int = 1, ncols: int = 16, mode: str = "32bit horizontal", Y: int = 0, X: int = 0, offset: int = 0,
    vpitch: int = 1, mpitch: int = 3,
) -> None:  # fmt: skip
    """How memory comes into the VPM. mpitch: rows are 8 * 2**mpitch bytes apart; 0: by the stride."""
    word = LoadSetup.make(
        is_load=1, mode=_width(mode, offset), memory_pitch=mpitch, row_length=ncols & 15, rows=nrows & 15,
        vpm_pitch=vpitch & 15, vertical=int("vertical" in mode), y=Y, x=X,
    ).value  # fmt: skip
    ldi(REGISTERS["vpmvcd_rd_setup"], word)


def setup_dma_store(
    nrows: int = 1, ncols: int = 16, mode: str = "32bit horizontal", Y: int = 0, X: int = 0, offset: int = 0
) -> None:
    """How the VPM goes to memory."""
    word = StoreSetup.make(
        kind=STORE_KIND, units=nrows & 127, depth=ncols & 127, horizontal=int("horizontal" in mode),
        y=Y, x=X, mode=_width(mode, offset),
    ).value  # fmt: skip
    ldi(REGISTERS["vpmvcd_wr_setup"], word)


def _stride(setup: Register, kind: int, value: Register | int, tmp_reg: Register) -> None:
    if isinstance(value, int):
        ldi(setup, kind | value)
    else:
        ldi(tmp_reg, kind)
        OPERATIONS["bor"](setup, tmp_reg, value)


def setup_dma_load_stride(val: Register | int, tmp_reg: Register = REGISTERS["r0"]) -> None:
    """Bytes from the start of a row in memory to that of the next."""
    _stride(REGISTERS["vpmvcd_rd_setup"], LoadStride.make(kind=LOAD_STRIDE_KIND).value, val, tmp_reg)


def setup_dma_store_stride(
    val: Register | int, blockmode: bool = False, tmp_reg: Register = REGISTERS["r0"]
) -> None:
    """Bytes from the end of a row in memory to the start of the next."""
    kind = StoreStride.make(kind=STORE_STRIDE_KIND, block_mode=int(blockmode)).value
    _stride(REGISTERS["vpmvcd_wr_setup"], kind, val, tmp_reg)


def start_dma_load(reg: Register, rot: int = 0) -> Instruction:
    """Load from an address, that of lane 0."""
    target = REGISTERS["vpm_ld_addr"]
    return rotate(target, reg, rot) if rot else mov(target, reg)


def start_dma_store(reg: Register, rot: int = 0) -> Instruction:
    """Store to an address, that of lane 0."""
    target = REGISTERS["vpm_st_addr"]
    return rotate(target, reg, rot) if rot else mov(target, reg)


def wait_dma_load() -> Instruction:
    """Wait until the load is done."""
    return mov(REGISTERS["null"], REGISTERS["vpm_ld_wait"])


def wait_dma_store() -> Instruction:
    """Wait until the store is done."""
    return mov(REGISTERS["null"], REGISTERS["vpm_st_wait"])
