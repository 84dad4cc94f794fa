"""The V3D register map: every register, its access, reset value and fields, declared once.

Source: hardware reference 2.1-2.10 (the guide's map, with the offsets of the debug block from
programs that run on boards). Behaviour hangs on these names in `core.py`: a method
``on_write_CT0EA`` or ``on_read_CT0CS`` is found by the name in this table.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Access(Enum):
    """What a bus access to a register does, in the guide's terms."""

    READ = "R"
    WRITE = "W"
    READ_WRITE = "RW"
    CLEAR = "W1C"
    SET = "W1S"


@dataclass(frozen=True)
class Field:
    """Bits ``high:low`` of a register."""

    name: str
    high: int
    low: int
    doc: str = ""

    @property
    def mask(self) -> int:
        """The field's bits, in place."""
        return ((1 << (self.high - self.low + 1)) - 1) << self.low

    def get(self, value: int) -> int:
        """The field's number in a register value."""
        return (value & self.mask) >> self.low

    def put(self, number: int) -> int:
        """A register value holding only this field; the number wraps as in hardware."""
        return (number << self.low) & self.mask


@dataclass(frozen=True)
class Register:
    """One 32-bit register: byte offset from the V3D base, access, reset value, fields."""

    offset: int
    name: str
    access: Access
    reset: int
    doc: str
    fields: tuple[Field, ...] = ()

    def describe(self, value: int) -> str:
        """The value with its non-zero fields by name, for traces and messages."""
        parts = [f"{f.name}={f.get(value)}" for f in self.fields if f.get(value)]
        return f"{self.name} = 0x{value:08x}" + (f" ({', '.join(parts)})" if parts else "")


R, W, RW = Access.READ, Access.WRITE, Access.READ_WRITE
W1C, W1S = Access.CLEAR, Access.SET


def _bits(*rows: tuple[str, int, int, str]) -> tuple[Field, ...]:
    return tuple(Field(*row) for row in rows)


_INTERRUPTS = _bits(
    ("FRDONE", 0, 0, "a frame is rendered and its last tile is in memory"),
    ("FLDONE", 1, 1, "binning is complete, all tile lists are in memory"),
    ("OUTOMEM", 2, 2, "the binner needs memory"),
    ("SPILLUSE", 3, 3, "the binner took the overspill block"),
)
_CONTROL = _bits(
    ("CTRSTA", 15, 15, "reset the thread"),
    ("CTSEMA", 14, 12, "semaphore count"),
    ("CTRTSD", 9, 8, "sub-list nesting depth"),
    ("CTRUN", 5, 5, "running"),
    ("CTSUBS", 4, 4, "stopped at halt, or stalled while running"),
    ("CTERR", 3, 3, "stopped by an error"),
    ("CTMODE", 0, 0, "prefixing: no tile list started yet"),
)
_LIST_COUNTER = _bits(
    ("CTLLCM", 31, 16, "Flush records executed"), ("CTLSLCS", 15, 0, "Return records executed")
)
_PIPELINE = _bits(
    ("BMOOM", 8, 8, "binner out of memory"),
    ("RMBUSY", 3, 3, "rendering operation in progress"),
    ("RMACTIVE", 2, 2, "rendering pipeline not empty"),
    ("BMBUSY", 1, 1, "binning operation in progress"),
    ("BMACTIVE", 0, 0, "binning pipeline not empty"),
)
_QUEUE = _bits(
    ("QPURQCC", 23, 16, "programs completed"),
    ("QPURQCM", 15, 8, "requests made"),
    ("QPURQERR", 7, 7, "a request was dropped"),
    ("QPURQL", 5, 0, "queue length"),
)
_ERRORS = _bits(
    ("L2CARE", 15, 15, "L2C AXI receive FIFO overrun"),
    ("VCMBE", 14, 14, "VCM error, binner"),
    ("VCMRE", 13, 13, "VCM error, renderer"),
    ("VCDI", 12, 12, "VCD idle"),
    ("VCDE", 11, 11, "VCD FIFO pointers out of sync"),
    ("VDWE", 10, 10, "VDW address overflow"),
    ("VPMEAS", 9, 9, "allocated size error"),
    ("VPMEFNA", 8, 8, "free of non-allocated"),
    ("VPMEWNA", 7, 7, "write to non-allocated"),
    ("VPMERNA", 6, 6, "read from non-allocated"),
    ("VPMERR", 5, 5, "read range"),
    ("VPMEWR", 4, 4, "write range"),
    ("VPAERRGL", 3, 3, "renderer request above limit"),
    ("VPAEBRGL", 2, 2, "binner request above limit"),
    ("VPAERGS", 1, 1, "request too big"),
    ("VPAEABB", 0, 0, "base allocated while busy"),
)
_IDENT1 = _bits(
    ("VPMSZ", 31, 28, "VPM size in KiB"),
    ("HDRT", 27, 24, "64-bit colour"),
    ("NSEM", 23, 16, "semaphores"),
    ("TUPS", 15, 12, "TMUs a slice"),
    ("QUPS", 11, 8, "QPUs a slice"),
    ("NSLC", 7, 4, "slices"),
    ("REV", 3, 0, "revision"),
)

REGISTERS: tuple[Register, ...] = (
    Register(0x000, "IDENT0", R, 0x02443356, "identity: version 2, 'V3D'"),
    Register(0x004, "IDENT1", R, 0xC1102431, "configuration A", _IDENT1),
    Register(0x008, "IDENT2", R, 0x00000121, "configuration B"),
    Register(0x00C, "IDENT3", R, 0, "undocumented"),
    Register(0x010, "SCRATCH", RW, 0, "free use"),
    Register(0x020, "L2CACTL", RW, 0, "L2 cache"),
    Register(0x024, "SLCACTL", W, 0, "slice caches"),
    Register(0x030, "INTCTL", W1C, 0, "interrupt status", _INTERRUPTS),
    Register(0x034, "INTENA", W1S, 0, "interrupt enable, set", _INTERRUPTS),
    Register(0x038, "INTDIS", W1C, 0, "interrupt enable, clear", _INTERRUPTS),
    Register(0x100, "CT0CS", RW, 0, "binning thread control and status", _CONTROL),
    Register(0x104, "CT1CS", RW, 0, "rendering thread control and status", _CONTROL),
    Register(0x108, "CT0EA", RW, 0, "binning list end address"),
    Register(0x10C, "CT1EA", RW, 0, "rendering list end address"),
    Register(0x110, "CT0CA", RW, 0, "binning list current address"),
    Register(0x114, "CT1CA", RW, 0, "rendering list current address"),
    Register(0x118, "CT00RA0", R, 0, "binning return address"),
    Register(0x11C, "CT01RA0", R, 0, "rendering return address"),
    Register(0x120, "CT0LC", RW, 0, "binning list counters", _LIST_COUNTER),
    Register(0x124, "CT1LC", RW, 0, "rendering list counters", _LIST_COUNTER),
    Register(0x128, "CT0PC", R, 0, "binning primitives remaining"),
    Register(0x12C, "CT1PC", R, 0, "rendering primitives remaining"),
    Register(0x130, "PCS", R, 0, "pipeline status", _PIPELINE),
    Register(0x134, "BFC", RW, 0, "binning flush count"),
    Register(0x138, "RFC", RW, 0, "rendering frame count"),
    Register(0x300, "BPCA", R, 0, "binning pool current address"),
    Register(0x304, "BPCS", R, 0, "binning pool bytes left"),
    Register(0x308, "BPOA", RW, 0, "overspill block address"),
    Register(0x30C, "BPOS", RW, 0, "overspill block size"),
    Register(0x310, "BXCF", RW, 0, "binner debug"),
    Register(0x410, "SQRSV0", RW, 0, "reserve QPUs 0-7"),
    Register(0x414, "SQRSV1", RW, 0, "reserve QPUs 8-15"),
    Register(0x418, "SQCNTL", RW, 0, "QPU scheduler control"),
    Register(0x41C, "SQCSTAT", R, 0, "undocumented scheduler state"),
    Register(0x430, "SRQPC", W, 0, "user program request: code address"),
    Register(0x434, "SRQUA", RW, 0, "user program request: uniforms address"),
    Register(0x438, "SRQUL", RW, 0, "user program request: uniforms length"),
    Register(0x43C, "SRQCS", RW, 0, "user program queue", _QUEUE),
    Register(0x500, "VPACNTL", RW, 0, "VPM allocator control"),
    Register(0x504, "VPMBASE", RW, 0, "VPM rows reserved for user programs"),
    Register(0x670, "PCTRC", W, 0, "performance counter clear"),
    Register(0x674, "PCTRE", RW, 0, "performance counter enable"),
    *(Register(0x680 + 8 * n, f"PCTR{n}", RW, 0, f"performance count {n}") for n in range(16)),
    *(Register(0x684 + 8 * n, f"PCTRS{n}", RW, 0, f"source of count {n}") for n in range(16)),
    Register(0xE00, "DBCFG", RW, 0, "bit 0: QPU interrupts reach the host"),
    Register(0xE04, "DBSCS", RW, 0, "undocumented"),
    Register(0xE08, "DBSCFG", RW, 0, "undocumented"),
    Register(0xE0C, "DBSSR", RW, 0, "undocumented"),
    *(Register(0xE10 + 4 * n, f"DBSDR{n}", RW, 0, "undocumented") for n in range(4)),
    Register(0xE20, "DBQRUN", RW, 0, "QPU run (debug)"),
    Register(0xE24, "DBQHLT", RW, 0, "QPU halt (debug)"),
    Register(0xE28, "DBQSTP", RW, 0, "QPU step (debug)"),
    Register(0xE2C, "DBQITE", RW, 0, "QPU interrupt enable"),
    Register(0xE30, "DBQITC", W1C, 0, "QPU interrupt status"),
    Register(0xE34, "DBQGHC", RW, 0, "undocumented"),
    Register(0xE38, "DBQGHG", RW, 0, "undocumented"),
    Register(0xE3C, "DBQGHH", RW, 0, "undocumented"),
    Register(0xF00, "DBGE", R, 0, "PSE errors"),
    Register(0xF04, "FDBGO", R, 0, "FEP overruns"),
    Register(0xF08, "FDBGB", R, 0, "FEP interface and busy"),
    Register(0xF0C, "FDBGR", R, 0, "FEP ready"),
    Register(0xF10, "FDBGS", R, 0, "FEP stall"),
    Register(0xF20, "ERRSTAT", R, 0, "errors", _ERRORS),
)

BY_OFFSET: dict[int, Register] = {register.offset: register for register in REGISTERS}
BY_NAME: dict[str, Register] = {register.name: register for register in REGISTERS}


def field(register: str, name: str) -> Field:
    """The field ``name`` of the register named ``register``.

    Raises:
        KeyError: there is no such register or field.
    """
    for candidate in BY_NAME[register].fields:
        if candidate.name == name:
            return candidate
    raise KeyError(f"{register} has no field {name}")
