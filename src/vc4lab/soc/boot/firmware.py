"""The firmware's work between power-on and the kernel's first instruction."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from vc4lab.diagnostics import Reporter
from vc4lab.files import size_text
from vc4lab.memory import GuestMemory
from vc4lab.soc.board import SERIAL_NUMBER, Board
from vc4lab.soc.boot.armstub import armstub
from vc4lab.soc.boot.boot_error import BootError, boot_error
from vc4lab.soc.boot.boot_extras import LONGEST_COMMAND_LINE, BootExtras, CardWithExtras, is_extra
from vc4lab.soc.boot.boot_plan import ATAGS, RAMDISK_NAME, BootPlan, Piece, arm_memory, atags
from vc4lab.soc.boot.config_txt import LONGEST_FILE, Config, parse_config
from vc4lab.soc.boot.foreign_file import foreign_file
from vc4lab.soc.boot.kernel import LED_CODES, Kernel, read_kernel
from vc4lab.soc.boot.tree.device_tree import BadTree, complete, device_tree, read_tree, write_tree
from vc4lab.soc.boot.tree.tree_changes import changed
from vc4lab.soc.media.card import BareImage, Card, FolderCard
from vc4lab.soc.media.card_slot import CardSlot
from vc4lab.soc.media.fat import BadCard, FatCard, looks_like_card
from vc4lab.soc.pins import PinLevel

__all__ = ["LED_CODES", "BootError", "BootPlan", "plan_boot"]

LARGEST_TREE = 1 << 20
LOW_MEMORY = 0x2F000000
SPIN_TABLE = 0, 0x1000
"""Address and size of the page in which the firmware's stub holds the other cores (AArch64)."""
MAX_INCLUDES = 8


def open_card(path: str | os.PathLike[str], reporter: Reporter) -> Card:
    """A folder, an SD-card image, or a bare kernel image. Raises BootError."""
    place = Path(path)
    try:
        mode = place.stat().st_mode
        if stat.S_ISDIR(mode):
            return FolderCard(place)
        if not stat.S_ISREG(mode):
            raise boot_error(reporter, "BOOT-001", f"{place} is neither a folder nor a file")
        return FatCard(place) if looks_like_card(place) else BareImage(place)
    except BadCard as error:
        raise boot_error(reporter, "BOOT-008", f"{place}: {error.strerror}") from None
    except OSError as error:
        why = error.strerror or "cannot be opened"
        raise boot_error(reporter, "BOOT-001", f"{place}: {why}") from None


def open_slot(
    path: str | os.PathLike[str], card: str | os.PathLike[str] | None, reporter: Reporter
) -> CardSlot:
    """The SD card slot with what is booted from, or another card. Raises BootError."""
    try:
        return CardSlot(path, card, reporter)
    except OSError as error:
        why = error.strerror or "cannot be opened"
        raise boot_error(reporter, "BOOT-022", f"{card or path}: {why}") from None


def plan_boot(
    path: str | os.PathLike[str],
    board: Board,
    reporter: Reporter,
    extras: BootExtras = BootExtras(),  # noqa: B008 - it cannot change
    pins: Iterable[PinLevel] = (),
) -> BootPlan:
    """Find the kernel as the firmware would: in a folder, an SD-card image, or the image itself.

    A bare image uses the config.txt that lies next to it, if there is one, except for the choice of
    the kernel. Filters of config.txt see what is connected to `pins` from the beginning.

    Raises
    ------
    BootError
        There is nothing that could be started.
    """
    card = open_card(path, reporter)
    try:
        levels = {one.pin: one.level for one in pins if not one.seconds}
        config = _read_config(card, board, levels, reporter)
        extras.apply(config)
        _check_extras(extras, reporter)
        kernel = read_kernel(card, board, config, reporter)
        whole = CardWithExtras(card, extras.files())
        return _plan(whole, kernel, board, config, reporter)
    except BadCard as error:
        raise boot_error(reporter, "BOOT-008", f"{card.title}: {error.strerror}") from None
    except OSError as error:
        why = error.strerror or "cannot be read"
        raise boot_error(reporter, "BOOT-001", f"{card.title}: {why}") from None


def place_plan(plan: BootPlan, memory: GuestMemory, reporter: Reporter) -> None:
    """Put into RAM what was planned. Raises BootError where a file cannot be read any more."""
    try:
        plan.place(memory, reporter)
    except OSError as error:
        text = f"{RAMDISK_NAME}: {error.strerror or 'cannot be read'}"
        raise boot_error(reporter, "BOOT-001", text) from None


def _top(board: Board, config: Config) -> int:
    """Find the address of the device tree, where a RAM disk that belongs to Linux ends, too.

    Linux for AArch32 reaches no more than 760 MiB directly, and boards stay below that.
    """
    top = min(arm_memory(board, config), board.peripherals, LOW_MEMORY)
    return top - LARGEST_TREE & ~0xFFF


def _plan(card: Card, kernel: Kernel, board: Board, config: Config, reporter: Reporter) -> BootPlan:
    pieces: list[Piece] = []
    ramdisk = _ramdisk(card, kernel, board, config, reporter)
    if ramdisk is not None:
        pieces.append(ramdisk)
    place = None if ramdisk is None else (ramdisk.address, len(ramdisk.data))
    described = 0
    if not config.flag("disable_commandline_tags"):
        tree = _tree(card, kernel, board, config, place, reporter)
        if tree is not None:
            described = config.integer("device_tree_address", 0)
            if not 0 < described < board.peripherals - len(tree):
                described = _top(board, config)
            pieces.append(Piece("the device tree", described, tree))
        else:
            described = ATAGS
            pieces.append(Piece("the tagged list", ATAGS, atags(board, config, place)))
    elif is_extra(card, config.get("device_tree")):
        text = "disable_commandline_tags=1 in config.txt: the program gets no device tree"
        raise boot_error(reporter, "BOOT-031", text)
    stub = armstub(card, config, described, kernel.entry, reporter)
    if stub is not None:
        pieces.insert(0, stub)
    registers = (described, 0, 0, 0) if kernel.wide else (0, board.machine_id, described)
    own_start = stub is not None or config.flag("kernel_old")
    return BootPlan(
        name=kernel.name,
        image=kernel.image,
        address=kernel.address,
        config=config,
        entry_registers=registers if stub is None else (0, 0, 0, 0),
        entry=kernel.entry if stub is None else stub.address,
        wide=kernel.wide,
        level=3 if own_start else 2,
        all_cores=own_start and board.cores > 1,
        pieces=tuple(pieces),
        room=kernel.end - kernel.address,
        cleans_caches=kernel.linux is not None,
    )


def _check_extras(extras: BootExtras, reporter: Reporter) -> None:
    for path in extras.files().values():
        if not os.path.isfile(path):
            raise boot_error(reporter, "BOOT-001", f"{path} is not a file")


# -- config.txt ------------------------------------------------------------------------------------


def _read_text(card: Card, name: str, limit: int, reporter: Reporter) -> str | None:
    if card.find(name) is None:
        return None
    size = card.size(name)
    if size > limit:
        text = f"{name[:60]} has {size} bytes; only the first {limit} are read"
        reporter.report("BOOT-012", text, block="firmware")
    return card.read(name, limit).decode("utf-8", "replace")


def _read_config(card: Card, board: Board, levels: Mapping[int, int], reporter: Reporter) -> Config:
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
            text,
            board.filters,
            reporter,
            read=read,
            revision=board.revision,
            serial=SERIAL_NUMBER,
            levels=levels,
        )
    name = config.get("cmdline", "cmdline.txt")
    lines = _read_text(card, name, LONGEST_COMMAND_LINE, reporter) or ""
    config.command_line = (lines.splitlines() or [""])[0].strip()
    return config


def _ramdisk(card: Card, kernel: Kernel, board: Board, config: Config, reporter: Reporter) -> Piece | None:
    """After the kernel; for Linux, whose room is a guess at times, as far from it as possible."""
    name, where = config.ramdisk
    if not name:
        return None
    size = card.size(name) if card.find(name) is not None else 0
    address, end = kernel.end + 0xFFF & ~0xFFF, min(arm_memory(board, config), board.peripherals)
    if where is not None:
        address = where
    elif kernel.linux is not None:
        end = _top(board, config)
        address = max(end - size & ~0xFFF, address)
    room = end - address
    if is_extra(card, name) and not 0 < size <= room:
        text = f"{card.find(name)} cannot be the RAM disk: it has {size} bytes"
        if size:
            text += f", but {max(room, 0)} are free at 0x{address:x}"
        raise boot_error(reporter, "BOOT-013", text)
    if card.find(name) is None or size > room or address < 0:
        reporter.report("BOOT-013", f"initramfs {name[:60]}: missing, or no room for it", block="firmware")
        return None
    foreign = foreign_file(card.read(name, 256))
    if foreign is not None:
        reporter.report("BOOT-013", f"the RAM disk {name[:60]} {foreign}", block="firmware")
    data = card.open(name) if is_extra(card, name) else card.read(name, max(room, 0))
    return Piece(RAMDISK_NAME, address, data)


def _tree(
    card: Card,
    kernel: Kernel,
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
                    raise boot_error(reporter, "BOOT-031", f"{card.find(name)}: {error}") from None
                reporter.report("BOOT-031", f"{card.find(name)}: {error}", block="firmware")
                continue
            root = changed(root, card, config, reporter)
            complete(root, *known)
            if kernel.wide:
                root.reserve(*SPIN_TABLE)
            return write_tree(root)
    if kernel.linux is not None and not config.flag("kernel_old"):
        text = f"{kernel.name} is {kernel.linux.title} and gets no device tree of this board"
        reporter.report("BOOT-018", text, block="firmware")
    return device_tree(board.title, board.chip, *known) if kernel.wide else None
