"""What the firmware does between power-on and the kernel's first instruction."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from vc4lab.diagnostics import Diagnostic, Reporter
from vc4lab.files import size_text
from vc4lab.soc.address.symbols import BadElf, read_elf
from vc4lab.soc.board import MIB, Board
from vc4lab.soc.boot.boot_extras import (
    LONGEST_COMMAND_LINE,
    BootExtras,
    CardWithExtras,
    is_extra,
)
from vc4lab.soc.boot.boot_plan import ATAGS, BootPlan, Piece, arm_memory, atags
from vc4lab.soc.boot.card import BareImage, Card, FolderCard
from vc4lab.soc.boot.config_txt import LONGEST_FILE, Config, parse_config
from vc4lab.soc.boot.device_tree import BadTree, complete, device_tree, read_tree, write_tree
from vc4lab.soc.sd.card_slot import CardSlot
from vc4lab.soc.sd.fat import BadCard, FatCard, looks_like_card
from vc4lab.soc.videocore.videocore import SERIAL_NUMBER

__all__ = ["LED_CODES", "BootError", "BootPlan", "plan_boot"]

LOAD_ADDRESS, LOAD_ADDRESS_64 = 0x8000, 0x80000
LED_CODES = {
    3: "start.elf not found",
    4: "start.elf not launched",
    7: "kernel image not found",
    8: "SDRAM failure",
    9: "insufficient SDRAM",
    10: "in HALT",
}
LARGEST_TREE = 1 << 20
MAX_INCLUDES = 8
ARM_64BIT_CONTROL = 0x200
EM_ARM, EM_AARCH64 = 40, 183
PROCESSORS = {
    EM_ARM: "ARM (32 bits)", EM_AARCH64: "AArch64", 3: "x86", 62: "x86-64", 243: "RISC-V",
}  # fmt: skip
LARGEST_ELF = 256 * MIB


class BootError(Exception):
    """The board would not start; `diagnostic` says why and what its LED would flash."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(str(diagnostic))
        self.diagnostic = diagnostic


@dataclass(frozen=True)
class _Kernel:
    """A kernel that was read: its bytes as they are to lie in RAM."""

    name: str
    image: bytes
    address: int
    entry: int


def open_card(path: str | os.PathLike[str], reporter: Reporter) -> Card:
    """A folder, an SD-card image, or a bare kernel image. Raises BootError."""
    place = Path(path)
    try:
        mode = place.stat().st_mode
        if stat.S_ISDIR(mode):
            return FolderCard(place)
        if not stat.S_ISREG(mode):
            raise _error(reporter, "BOOT-001", f"{place} is neither a folder nor a file")
        return FatCard(place) if looks_like_card(place) else BareImage(place)
    except BadCard as error:
        raise _error(reporter, "BOOT-008", f"{place}: {error.strerror}") from None
    except OSError as error:
        raise _error(
            reporter, "BOOT-001", f"{place}: {error.strerror or 'cannot be opened'}"
        ) from None


def open_slot(
    path: str | os.PathLike[str], card: str | os.PathLike[str] | None, reporter: Reporter
) -> CardSlot:
    """The SD card slot with what is booted from, or another card. Raises BootError."""
    try:
        return CardSlot(path, card, reporter)
    except OSError as error:
        why = error.strerror or "cannot be opened"
        raise _error(reporter, "BOOT-022", f"{card or path}: {why}") from None


def plan_boot(
    path: str | os.PathLike[str],
    board: Board,
    reporter: Reporter,
    extras: BootExtras = BootExtras(),  # noqa: B008 - it cannot change
) -> BootPlan:
    """Find the kernel as the firmware would: in a folder, an SD-card image, or the image itself.

    A bare image uses the config.txt that lies next to it, if there is one, except for the choice of
    the kernel.

    Raises
    ------
    BootError
        There is nothing that could be started.
    """
    card = open_card(path, reporter)
    try:
        config = _read_config(card, board, reporter)
        extras.apply(config)
        _check_extras(extras, reporter)
        name = card.kernel.name if isinstance(card, BareImage) else None
        name = name or _choose_kernel(card, board, config, reporter)
        wide = _is_wide(card, name, board, config)
        kernel = _read_kernel(card, name, wide, board, config, reporter)
        whole = CardWithExtras(card, extras.files())
        return _plan(whole, kernel, wide, board, config, reporter)
    except BadCard as error:
        raise _error(reporter, "BOOT-008", f"{card.title}: {error.strerror}") from None
    except OSError as error:
        why = error.strerror or "cannot be read"
        raise _error(reporter, "BOOT-001", f"{card.title}: {why}") from None


def _plan(
    card: Card, kernel: _Kernel, wide: bool, board: Board, config: Config, reporter: Reporter
) -> BootPlan:
    pieces: list[Piece] = []
    ramdisk = _ramdisk(card, kernel, board, config, reporter)
    if ramdisk is not None:
        pieces.append(ramdisk)
    place = None if ramdisk is None else (ramdisk.address, len(ramdisk.data))
    described = 0
    if not config.flag("disable_commandline_tags"):
        tree = _tree(card, wide, board, config, place, reporter)
        if tree is not None:
            described = config.integer("device_tree_address", 0)
            if not 0 < described < board.peripherals - len(tree):
                top = min(arm_memory(board, config), board.peripherals)
                described = top - LARGEST_TREE & ~0xFFF
            pieces.append(Piece("the device tree", described, tree))
        else:
            described = ATAGS
            pieces.append(Piece("the tagged list", ATAGS, atags(board, config, place)))
    elif is_extra(card, config.get("device_tree")):
        text = "disable_commandline_tags=1 in config.txt: the program gets no device tree"
        raise _error(reporter, "BOOT-031", text)
    old = config.flag("kernel_old")
    return BootPlan(
        name=kernel.name,
        image=kernel.image,
        address=kernel.address,
        config=config,
        entry_registers=(described, 0, 0, 0) if wide else (0, board.machine_id, described),
        entry=kernel.entry,
        wide=wide,
        level=3 if old else 2,
        all_cores=old and board.cores > 1,
        pieces=tuple(pieces),
    )


def _check_extras(extras: BootExtras, reporter: Reporter) -> None:
    for path in extras.files().values():
        if not os.path.isfile(path):
            raise _error(reporter, "BOOT-001", f"{path} is not a file")


def _error(reporter: Reporter, code: str, text: str) -> BootError:
    return BootError(reporter.report(code, text, block="firmware"))


# -- config.txt ------------------------------------------------------------------------------------


def _read_text(card: Card, name: str, limit: int, reporter: Reporter) -> str | None:
    if card.find(name) is None:
        return None
    size = card.size(name)
    if size > limit:
        text = f"{name[:60]} has {size} bytes; only the first {limit} are read"
        reporter.report("BOOT-012", text, block="firmware")
    return card.read(name, limit).decode("utf-8", "replace")


def _read_config(card: Card, board: Board, reporter: Reporter) -> Config:
    included = 0

    def read(name: str) -> str | None:
        nonlocal included
        included += 1
        return _read_text(card, name, LONGEST_FILE, reporter) if included <= MAX_INCLUDES else None

    text = _read_text(card, "config.txt", LONGEST_FILE, reporter)
    if text is None:
        config = Config()
    else:
        if "\0" in text:
            reporter.report("BOOT-010", "config.txt contains binary data", block="firmware")
        config = parse_config(
            text, board.filters, reporter, read=read, revision=board.revision, serial=SERIAL_NUMBER
        )
    name = config.get("cmdline", "cmdline.txt")
    lines = _read_text(card, name, LONGEST_COMMAND_LINE, reporter) or ""
    config.command_line = (lines.splitlines() or [""])[0].strip()
    return config


def _ramdisk(
    card: Card, kernel: _Kernel, board: Board, config: Config, reporter: Reporter
) -> Piece | None:
    name, where = config.ramdisk
    if not name:
        return None
    after = (kernel.address + len(kernel.image) + 0xFFF) & ~0xFFF
    address = after if where is None else where
    room = min(arm_memory(board, config), board.peripherals) - address
    if is_extra(card, name) and not 0 < card.size(name) <= room:
        text = f"{card.find(name)} cannot be the RAM disk: it has {card.size(name)} bytes, but"
        text += f" {max(room, 0)} are free at 0x{address:x}"
        raise _error(reporter, "BOOT-013", text)
    if card.find(name) is None or card.size(name) > room or address < 0:
        reporter.report(
            "BOOT-013", f"initramfs {name[:60]}: missing, or no room for it", block="firmware"
        )
        return None
    return Piece("the RAM disk", address, card.read(name, max(room, 0)))


def _tree(
    card: Card,
    wide: bool,
    board: Board,
    config: Config,
    ramdisk: tuple[int, int] | None,
    reporter: Reporter,
) -> bytes | None:
    """The card's device tree, or for AArch64 (which has no tagged list) a small generated one."""
    memory = min(arm_memory(board, config), board.peripherals)
    known = memory, board.revision, SERIAL_NUMBER, config.command_line, ramdisk
    names = (config.get("device_tree"),) if "device_tree" in config.values else board.device_trees
    for name in names:
        if name and card.find(name) is not None:
            try:
                if card.size(name) > LARGEST_TREE:
                    raise BadTree(f"larger than {size_text(LARGEST_TREE)}")
                root = read_tree(card.read(name, LARGEST_TREE))
            except BadTree as error:
                if is_extra(card, name):
                    raise _error(reporter, "BOOT-031", f"{card.find(name)}: {error}") from None
                reporter.report("BOOT-031", f"{card.find(name)}: {error}", block="firmware")
                continue
            complete(root, *known)
            return write_tree(root)
    return device_tree(board.title, board.chip, *known) if wide else None


# -- the kernel ------------------------------------------------------------------------------------


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
    raise _error(reporter, "BOOT-002", text)


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
    if head[:4] == b"\x7fELF" and len(head) > 20:
        return int.from_bytes(head[18:20], "little") == EM_AARCH64
    if isinstance(card, BareImage) and not name.lower().startswith("kernel"):
        return _looks_wide(head)
    return _names_wide(name)


def _looks_wide(head: bytes) -> bool:
    """Most instructions of AArch32 start-up code are unconditional: their top digit is E."""
    tops = [head[at] >> 4 for at in range(3, len(head), 4)]
    return sum(top == 0xE for top in tops) * 3 < len(tops)


def _load_address(config: Config, wide: bool, board: Board, reporter: Reporter) -> int:
    if config.flag("kernel_old"):
        return 0
    address = config.integer("kernel_address", LOAD_ADDRESS_64 if wide else LOAD_ADDRESS)
    if not 0 <= address < board.peripherals:
        raise _error(reporter, "BOOT-005", f"kernel_address=0x{address:x} is not in RAM")
    return address & ~3


def _read_kernel(
    card: Card, name: str, wide: bool, board: Board, config: Config, reporter: Reporter
) -> _Kernel:
    title = card.find(name) or name
    end = min(arm_memory(board, config), board.peripherals)
    if card.read(name, 4) == b"\x7fELF":
        return _read_elf_kernel(card, name, wide, end, reporter)
    address = _load_address(config, wide, board, reporter)
    room = max(end - address, 0)
    size = card.size(name)
    if size == 0:
        raise _error(reporter, "BOOT-003", f"{title} is empty")
    if size > room:
        raise _error(
            reporter,
            "BOOT-004",
            f"{title} has {size} bytes, but only {room} bytes of RAM are free at 0x{address:x}",
        )
    image = card.read(name, room)
    if not any(image[:64]):
        reporter.report("BOOT-007", f"{title} begins with zeros", block="firmware")
    return _Kernel(title, image, address, address)


def _read_elf_kernel(card: Card, name: str, wide: bool, end: int, reporter: Reporter) -> _Kernel:
    """An ELF file: its segments at their own addresses, entered where its header says."""
    title = card.find(name) or name
    if card.size(name) > LARGEST_ELF:
        text = f"{title} has more than {size_text(LARGEST_ELF)}, the limit for an ELF file"
        raise _error(reporter, "BOOT-006", text)
    data = card.read(name, LARGEST_ELF)
    try:
        segments = [part for part in read_elf(data).segments if part.data]
    except BadElf as error:
        raise _error(reporter, "BOOT-006", f"{title}: {error}") from None
    machine = int.from_bytes(data[18:20], "little")
    size = 8 if data[4] == 2 else 4
    entry = int.from_bytes(data[24 : 24 + size], "little")
    wanted = EM_AARCH64 if wide else EM_ARM
    if machine != wanted:
        made_for = PROCESSORS.get(machine, f"processor {machine}")
        text = f"{title} is made for {made_for}, but would be started as {PROCESSORS[wanted]}"
        raise _error(reporter, "BOOT-006", text)
    if any(len(part.data) < part.size for part in segments):
        raise _error(reporter, "BOOT-006", f"{title}: the ELF file is truncated")
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
        raise _error(reporter, "BOOT-006", f"{title} {why}")
    image = bytearray(last - first)
    for part in segments:
        at = part.address - first
        image[at : at + len(part.data)] = part.data
    return _Kernel(title, bytes(image), first, entry)
