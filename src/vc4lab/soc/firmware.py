"""What the firmware does between power-on and the kernel's first instruction."""

from __future__ import annotations

import os
import stat
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vc4lab.soc.board import MIB, Board
from vc4lab.soc.config_txt import LONGEST_FILE, Config, parse_config

if TYPE_CHECKING:
    from vc4lab.diagnostics import Diagnostic, Reporter
    from vc4lab.memory import GuestMemory

LOAD_ADDRESS = 0x8000
ATAGS = 0x100
ATAG_NONE, ATAG_CORE, ATAG_MEM, ATAG_CMDLINE = 0, 0x54410001, 0x54410002, 0x54410009
LED_CODES = {
    3: "start.elf not found",
    4: "start.elf not launched",
    7: "kernel image not found",
    8: "SDRAM failure",
    9: "insufficient SDRAM",
    10: "in HALT",
}
LONGEST_COMMAND_LINE = 1024


class BootError(Exception):
    """The board would not start; `diagnostic` says why and what its LED would flash."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(str(diagnostic))
        self.diagnostic = diagnostic


@dataclass(frozen=True)
class BootPlan:
    """What to load where, and how to enter it."""

    name: str
    image: bytes
    address: int
    config: Config
    entry_registers: tuple[int, ...]

    def place(self, memory: GuestMemory, board: Board, reporter: Reporter) -> None:
        """Write the image and the ATAGs into RAM."""
        memory.write(self.address, self.image)
        if self.entry_registers[2:] == (ATAGS,):
            tags = _atags(board, self.config)
            if self.address < ATAGS + len(tags) and self.address + len(self.image) > ATAGS:
                reporter.report(
                    "BOOT-021",
                    f"the tags at 0x{ATAGS:x} overwrite the image loaded to 0x{self.address:x}",
                    address=ATAGS,
                    block="firmware",
                )
            memory.write(ATAGS, tags)


def plan_boot(path: str | os.PathLike[str], board: Board, reporter: Reporter) -> BootPlan:
    """Find the kernel as the firmware would, in an SD card folder or as a bare image.

    A bare image uses the config.txt that lies next to it, if there is one, except for the choice of
    the kernel.

    Raises
    ------
    BootError
        There is nothing that could be started.
    """
    place = Path(path)
    try:
        mode = place.stat().st_mode
    except OSError as error:
        raise _error(
            reporter, "BOOT-001", f"{place}: {error.strerror or 'cannot be opened'}"
        ) from None
    if stat.S_ISDIR(mode):
        config = _read_config(place, board, reporter)
        kernel = _choose_kernel(place, board, config, reporter)
    elif stat.S_ISREG(mode):
        config = _read_config(place.parent, board, reporter)
        kernel = place
    else:
        raise _error(reporter, "BOOT-001", f"{place} is neither a folder nor a file")
    address = _load_address(config, board, reporter)
    image = _read_image(kernel, address, board, config, reporter)
    registers = (0, board.machine_id, 0 if config.flag("disable_commandline_tags") else ATAGS)
    return BootPlan(kernel.name, image, address, config, registers)


def _error(reporter: Reporter, code: str, text: str) -> BootError:
    return BootError(reporter.report(code, text, block="firmware"))


def _read_text(path: Path, limit: int) -> str:
    """A text file's beginning, "" if it cannot be read."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(limit).decode("utf-8", "replace")
    except OSError:
        return ""


def _read_config(folder: Path, board: Board, reporter: Reporter) -> Config:
    found = _in_folder(folder, "config.txt")
    if found is None:
        config = Config()
    else:
        text = _read_text(found, LONGEST_FILE)
        if "\0" in text:
            reporter.report("BOOT-010", "config.txt holds binary data", block="firmware")
        config = parse_config(text, board.filters, reporter)
    command_line = _in_folder(folder, config.get("cmdline", "cmdline.txt"))
    if command_line is not None:
        lines = _read_text(command_line, LONGEST_COMMAND_LINE).splitlines()
        config.command_line = lines[0].strip() if lines else ""
    return config


def _in_folder(folder: Path, name: str) -> Path | None:
    """The file `name` of the card, upper or lower case as on FAT; never outside of the folder."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    if not parts or ".." in parts or "\0" in name:
        return None
    here = folder
    for part in parts:
        exact = here / part
        try:
            if not os.path.lexists(exact):
                names = sorted(p for p in os.listdir(here) if p.lower() == part.lower())
                if not names:
                    return None
                exact = here / names[0]
        except OSError:
            return None
        here = exact
    try:
        inside = here.resolve().is_relative_to(folder.resolve())
        return here if inside and here.is_file() else None
    except (OSError, RuntimeError):
        return None


def _choose_kernel(folder: Path, board: Board, config: Config, reporter: Reporter) -> Path:
    asked = config.get("kernel")
    names = (asked,) if asked else board.kernels
    for name in names:
        found = _in_folder(folder, name)
        if found is not None:
            return found
    code = 7
    text = (
        f"no kernel on the card: {' or '.join(n.strip()[:60] for n in names)} is missing in "
        f"{folder}. The board's LED would flash {code} times: {LED_CODES[code]}"
    )
    if not asked and _in_folder(folder, "kernel8.img") is not None:
        text += f". There is a kernel8.img, which is AArch64: not for a {board.title}"
    raise _error(reporter, "BOOT-002", text)


def _load_address(config: Config, board: Board, reporter: Reporter) -> int:
    if config.flag("kernel_old"):
        reporter.report(
            "BOOT-020", "kernel_old=1: only core 0 is started, in this version", block="firmware"
        )
        return 0
    address = config.integer("kernel_address", LOAD_ADDRESS)
    if not 0 <= address < board.peripherals:
        raise _error(reporter, "BOOT-005", f"kernel_address=0x{address:x} is not in RAM")
    return address & ~3


def _read_image(
    path: Path, address: int, board: Board, config: Config, reporter: Reporter
) -> bytes:
    room = board.ram - config.integer("gpu_mem", 64) * MIB
    room = max(min(room, board.peripherals) - address, 0)
    try:
        size = path.stat().st_size
        if size == 0:
            raise _error(reporter, "BOOT-003", f"{path.name} is empty")
        if size > room:
            raise _error(
                reporter,
                "BOOT-004",
                f"{path.name} is {size / MIB:.1f} MiB, but only {room / MIB:.1f} MiB of RAM are "
                f"free from 0x{address:x} on",
            )
        with path.open("rb") as file:
            image = file.read(room)
    except OSError as error:
        raise _error(reporter, "BOOT-001", f"{path}: {error.strerror}") from None
    if image[:4] == b"\x7fELF":
        raise _error(reporter, "BOOT-006", f"{path.name} is an ELF file, not a raw image")
    if not any(image[:64]):
        reporter.report("BOOT-007", f"{path.name} begins with zeros", block="firmware")
    return image


def _atags(board: Board, config: Config) -> bytes:
    """The tagged list at 0x100: core, memory, command line, end."""
    arm_memory = board.ram - min(max(config.integer("gpu_mem", 64), 16), 512) * MIB
    out = struct.pack("<5I", 5, ATAG_CORE, 0, 0, 0)
    out += struct.pack("<4I", 4, ATAG_MEM, arm_memory, 0)
    line = config.command_line.encode("ascii", "replace") + b"\0"
    line += bytes(-len(line) % 4)
    out += struct.pack("<2I", 2 + len(line) // 4, ATAG_CMDLINE) + line
    return out + struct.pack("<2I", 0, ATAG_NONE)
