"""Registers of kernels that are written instruction by instruction, and labels.

The names are those that py-videocore uses; each stands for one of the assembler.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from vc4lab.qpu.text.mnemonics import PACK_NAMES

PACKS = {
    "nop": "", "16a": "16a", "16b": "16b", "rep 8": "8abcd", "8a": "8a", "8b": "8b", "8c": "8c",
    "8d": "8d", "32 sat": "s", "16a sat": "16as", "16b sat": "16bs", "rep 8 sat": "8abcds",
    "8a sat": "8as", "8b sat": "8bs", "8c sat": "8cs", "8d sat": "8ds", "rep 8d": "8dr",
}  # fmt: skip
"""Names of packs and unpacks → the assembler's."""


@dataclass(frozen=True)
class Register:
    """A register, or an address that means something else. is_packed: its ALU packs the result."""

    text: str
    is_packed: bool = False

    def pack(self, how: str) -> Register:
        """As the target of an operation whose result is packed into parts of it."""
        return replace(self, text=f"{self.text}{_suffix(how)}", is_packed=bool(_suffix(how)))

    def unpack(self, how: str) -> Register:
        """As an operand of which a part is read."""
        return replace(self, text=f"{self.text}{_suffix(how)}")

    def __str__(self) -> str:
        return self.text


def _suffix(how: str) -> str:
    if how not in PACKS:
        raise ValueError(f"there is no pack {how!r} ({', '.join(PACKS)})")
    return f".{PACKS[how]}" if PACKS[how] else ""


_NAMES = {
    "uniform": "unif", "varying_read": "vary", "tmu_noswap": "tmurs", "r5_pix0": "r5quad",
    "broadcast": "r5rep", "host_interrupt": "irq", "element_number": "elem_num", "qpu_number": "qpu_num",
    "null": "-", "uniforms_address": "unif_addr", "vpm": "vpm", "vpm_ld_busy": "vr_busy",
    "vpm_st_busy": "vw_busy", "vpmvcd_rd_setup": "vr_setup", "vpmvcd_wr_setup": "vw_setup",
    "vpm_ld_wait": "vr_wait", "vpm_st_wait": "vw_wait", "vpm_ld_addr": "vr_addr",
    "vpm_st_addr": "vw_addr", "mutex": "mutex", "sfu_recip": "recip", "sfu_recipsqrt": "recipsqrt",
    "sfu_exp2": "exp", "sfu_log2": "log",
    **{f"tmu{unit}_{coordinate}": f"t{unit}{coordinate}" for unit in (0, 1) for coordinate in "strb"},
}  # fmt: skip
_NUMBERED = [f"r{number}" for number in range(6)]
_FILES = [f"r{file}{number}" for file in "ab" for number in range(32)]
REGISTERS = {name: Register(text) for name, text in _NAMES.items()}
REGISTERS |= {name: Register(name) for name in (*_NUMBERED, *_FILES)}
"""The registers by name."""
assert {*PACKS.values()} <= {"", "8dr", *(name.lower() for name in PACK_NAMES.values())}
