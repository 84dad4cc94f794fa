"""The kernel: which file the firmware chooses, and how its bytes come to lie in RAM."""

from __future__ import annotations

from dataclasses import dataclass

from vc4lab.diagnostics import Reporter
from vc4lab.files import size_text
from vc4lab.soc.board import MIB, Board
from vc4lab.soc.boot.boot_error import boot_error
from vc4lab.soc.boot.boot_plan import arm_memory
from vc4lab.soc.boot.config_txt import Config
from vc4lab.soc.boot.foreign_file import foreign_file
from vc4lab.soc.boot.instruction_set import seems_wide
from vc4lab.soc.boot.linux_image import (
    ALIGNMENT,
    GZIP,
    BadImage,
    ForeignImage,
    LinuxImage,
    is_wide,
    is_zimage,
    read_header,
    unpack,
)
from vc4lab.soc.boot.symbols import BadElf, read_elf
from vc4lab.soc.media.card import BareImage, Card

LOAD_ADDRESS, LOAD_ADDRESS_64 = 0x8000, 0x80000
LED_CODES = {
    3: "start.elf not found",
    4: "start.elf not launched",
    7: "kernel image not found",
    8: "SDRAM failure",
    9: "insufficient SDRAM",
    10: "in HALT",
}
ARM_64BIT_CONTROL = 0x200
EM_ARM, EM_AARCH64 = 40, 183
PROCESSORS = {
    EM_ARM: "ARM (32 bits)", EM_AARCH64: "AArch64", 3: "x86", 62: "x86-64", 243: "RISC-V",
}  # fmt: skip
LARGEST_ELF = 256 * MIB


@dataclass(frozen=True)
class Kernel:
    """A kernel that was read: its bytes as they are to lie in RAM.

    `linux` is what a Linux kernel's header says of it, None for all others.
    """

    name: str
    image: bytes
    address: int
    entry: int
    wide: bool
    linux: LinuxImage | None = None

    @property
    def end(self) -> int:
        """The first address after it that it leaves alone while it starts."""
        room = self.linux.room if self.linux else 0
        return self.address + max(room, len(self.image))


def read_kernel(card: Card, board: Board, config: Config, reporter: Reporter) -> Kernel:
    """Find the kernel and read it. Raises BootError."""
    name = card.kernel.name if isinstance(card, BareImage) else None
    name = name or _choose_kernel(card, board, config, reporter)
    return _read_kernel(card, name, _is_wide(card, name, board, config), board, config, reporter)


def _choose_kernel(card: Card, board: Board, config: Config, reporter: Reporter) -> str:
    asked = config.get("kernel")
    names = (asked,) if asked else board.kernels
    if not asked and board.cpu64 and "arm_64bit" in config.values:
        wide = config.flag("arm_64bit")
        names = tuple(name for name in names if _names_wide(name) == wide)
    for name in names:
        if card.find(name) is not None:
            return name
    code = 7
    text = (
        f"no kernel on the card: {' or '.join(n.strip()[:60] for n in names)} is missing from "
        f"{card.title}. The board's LED would flash {code} times: {LED_CODES[code]}"
    )
    if not asked and not board.cpu64 and card.find("kernel8.img") is not None:
        text += f". The kernel8.img is AArch64 code, which a {board.title} cannot run"
    raise boot_error(reporter, "BOOT-002", text)


def _names_wide(name: str) -> bool:
    return name.lower().rpartition("/")[2].startswith("kernel8") and "8-32" not in name


def _is_wide(card: Card, name: str, board: Board, config: Config) -> bool:
    """Whether the kernel is entered in AArch64."""
    if not board.cpu64:
        return False
    if "arm_64bit" in config.values:
        return config.flag("arm_64bit")
    if config.integer("arm_control") & ARM_64BIT_CONTROL:
        return True
    head = card.read(name, 64)
    if is_wide(head) or head[:2] == GZIP:
        return True
    if is_zimage(head):
        return False
    if head[:4] == b"\x7fELF" and len(head) > 20:
        return int.from_bytes(head[18:20], "little") == EM_AARCH64
    if isinstance(card, BareImage) and not name.lower().startswith("kernel"):
        return _looks_wide(head)
    return _names_wide(name)


def _looks_wide(head: bytes) -> bool:
    """Most instructions of AArch32 start-up code are unconditional: their top digit is E."""
    tops = [head[at] >> 4 for at in range(3, len(head), 4)]
    return sum(top == 0xE for top in tops) * 3 < len(tops)


def _load_address(
    config: Config, wide: bool, linux: LinuxImage | None, board: Board, reporter: Reporter
) -> int:
    if config.flag("kernel_old"):
        return 0
    default = LOAD_ADDRESS_64 if wide else LOAD_ADDRESS
    address = config.integer("kernel_address", default if linux is None else linux.address)
    if not 0 <= address < board.peripherals:
        raise boot_error(reporter, "BOOT-005", f"kernel_address=0x{address:x} is not in RAM")
    return address & ~3


def _read_kernel(
    card: Card, name: str, wide: bool, board: Board, config: Config, reporter: Reporter
) -> Kernel:
    title = card.find(name) or name
    end = min(arm_memory(board, config), board.peripherals)
    if card.read(name, 4) == b"\x7fELF":
        return _read_elf_kernel(card, name, wide, end, reporter)
    size = card.size(name)
    if size == 0:
        raise boot_error(reporter, "BOOT-003", f"{title} is empty")
    image = card.read(name, end) if size <= end else b""
    foreign = foreign_file(image[:256])
    if foreign is not None:
        raise boot_error(reporter, "BOOT-019", f"{title} {foreign}")
    try:
        if image[:2] == GZIP and wide:
            image = unpack(image, end)
        linux = read_header(image)
    except BadImage as error:
        raise boot_error(reporter, "BOOT-015", f"{title} {error}") from None
    except ForeignImage as error:
        raise boot_error(reporter, "BOOT-016", f"{title} {error}") from None
    if linux is not None and linux.wide != wide:
        raise boot_error(reporter, "BOOT-016", f"{title} is {_why_not(linux, board)}")
    address = _load_address(config, wide, linux, board, reporter)
    kernel = Kernel(title, image, address, address, wide, linux)
    size = max(size, kernel.end - address)
    if size > end - address:
        text = f"{title} has {size} bytes, but only {max(end - address, 0)} bytes of RAM are free"
        if linux is not None:
            text = text.replace("has", "needs", 1)
        raise boot_error(reporter, "BOOT-004", f"{text} at 0x{address:x}")
    if not any(image[:64]):
        reporter.report("BOOT-007", f"{title} begins with zeros", block="firmware")
    if linux is None and seems_wide(image) is not None and seems_wide(image) != wide:
        reporter.report("BOOT-034", f"{title} {_wrong_set(wide, board)}", block="firmware")
    if linux is not None and (address - linux.address) % ALIGNMENT:
        text = f"{title} is loaded to 0x{address:x}, but is made for 0x{linux.address:x} or "
        text += "multiples of 2 MiB from there"
        reporter.report("BOOT-017", text, address=address, block="firmware")
    return kernel


def _wrong_set(wide: bool, board: Board) -> str:
    """Say what is wrong with code for the other instruction set, after the file's name."""
    if wide:
        return (
            "begins with AArch32 code, but is entered in AArch64: call it kernel7.img, or write "
            "arm_64bit=0 into config.txt"
        )
    cure = "call it kernel8.img" if board.cpu64 else f"a {board.title} cannot run it, a Pi 3 can"
    return f"begins with AArch64 code, but is entered in AArch32: {cure}"


def _why_not(linux: LinuxImage, board: Board) -> str:
    """Why a kernel of the other state cannot be started."""
    if linux.wide and not board.cpu64:
        return f"{linux.title}, which the cores of a {board.title} cannot execute"
    return f"{linux.title}, but arm_64bit in config.txt asks for the other state"


def _read_elf_kernel(card: Card, name: str, wide: bool, end: int, reporter: Reporter) -> Kernel:
    """An ELF file: its segments at their own addresses, entered where its header says."""
    title = card.find(name) or name
    if card.size(name) > LARGEST_ELF:
        text = f"{title} has more than {size_text(LARGEST_ELF)}, the limit for an ELF file"
        raise boot_error(reporter, "BOOT-006", text)
    data = card.read(name, LARGEST_ELF)
    try:
        segments = [part for part in read_elf(data).segments if part.data]
    except BadElf as error:
        raise boot_error(reporter, "BOOT-006", f"{title}: {error}") from None
    machine = int.from_bytes(data[18:20], "little")
    size = 8 if data[4] == 2 else 4
    entry = int.from_bytes(data[24 : 24 + size], "little")
    wanted = EM_AARCH64 if wide else EM_ARM
    if machine != wanted:
        made_for = PROCESSORS.get(machine, f"processor {machine}")
        text = f"{title} is made for {made_for}, but would be started as {PROCESSORS[wanted]}"
        raise boot_error(reporter, "BOOT-006", text)
    if any(len(part.data) < part.size for part in segments):
        raise boot_error(reporter, "BOOT-006", f"{title}: the ELF file is truncated")
    first = min((part.address for part in segments), default=0)
    last = max((part.address + len(part.data) for part in segments), default=0)
    why = None
    if not segments:
        why = "has nothing to load (no PT_LOAD segment with bytes)"
    elif last > end:
        why = f"has segments up to 0x{last:x}, but the ARM's RAM ends at 0x{end:x}"
    elif not first <= entry < last:
        why = f"starts at 0x{entry:x}, which is in none of its segments (0x{first:x} to 0x{last:x})"
    if why is not None:
        raise boot_error(reporter, "BOOT-006", f"{title} {why}")
    image = bytearray(last - first)
    for part in segments:
        at = part.address - first
        image[at : at + len(part.data)] = part.data
    return Kernel(title, bytes(image), first, entry, wide)
